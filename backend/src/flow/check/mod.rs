//! Every check that needs more than one place of a flow. One file a subject; each notes its mistakes at their places.

mod audience;
mod calls;
mod conflicts;
mod expressions;
mod gates;
mod graph;
mod guardrails;
mod handlers;
mod human;
mod keys;
mod maps;
mod names;
mod parts;
mod policy;
mod reach;
mod stakes;
mod teams;
mod timers;
mod values;

use std::collections::BTreeSet;

use serde_json::Value;
use shared::access::Principal;
use shared::definition::Flow;
use shared::error::{FlowCode, Mistake};

use super::Library;
use super::cancellation::CancelFlag;
use super::condition::Conditions;
use super::limits::MAX_MISTAKES;
use super::reachability::Reachability;
use super::source::{SourceText, mistake_at};
use super::suggest::did_you_mean;

pub use reach::{Reach, handlers as handlers_of, unreachable};

/// The place where a flow is to be saved, as far as it is known.
#[derive(Debug, Clone, Copy, Default)]
pub struct Here<'a> {
    /// The people who exist now; none where nobody knows them.
    pub people: Option<&'a [Principal]>,
    /// The flows that can be called; none where nobody knows them.
    pub library: Option<&'a Library>,
    /// Which handlers can be asked; none where nobody knows.
    pub reach: Option<Reach>,
}

/// A flow that is being checked, and what was found.
pub struct Checker<'a> {
    /// The flow, without what could not be read.
    pub flow: &'a Flow,
    /// What follows from its graph.
    pub reachability: Reachability,
    /// Whether every node could be read whole. Where not, what depends on the whole graph is left out: it would only
    /// repeat in other words what is noted already.
    nodes_whole: bool,
    /// The same for the whole flow.
    whole: bool,
    /// Where everything stands; none for a flow that was built, not read.
    source: Option<&'a SourceText>,
    /// The people who exist now; none where nobody knows them.
    people: Option<&'a [Principal]>,
    /// The flows that can be called; none where nobody knows them.
    library: Option<&'a Library>,
    /// The conditions that could be read, once [`expressions`] has read them.
    conditions: Conditions,
    abandoned: &'a CancelFlag,
    errors: Vec<Mistake>,
    warnings: Vec<Mistake>,
}

/// Checks a flow that was read from a source, after `noted` was found wrong on the way, or one that was built. Gives
/// errors and warnings.
pub fn check_flow(
    flow: &Flow,
    source: Option<&SourceText>,
    noted: &[Mistake],
    here: &Here<'_>,
    abandoned: &CancelFlag,
) -> (Vec<Mistake>, Vec<Mistake>) {
    let mut checker = Checker {
        flow,
        reachability: Reachability::new(flow),
        nodes_whole: !noted.iter().any(|noted| noted.path.is_empty() || noted.path.starts_with("/nodes")),
        whole: noted.is_empty(),
        source,
        people: here.people,
        library: here.library,
        conditions: Conditions::default(),
        abandoned,
        errors: Vec::new(),
        warnings: Vec::new(),
    };
    parts::check(&mut checker);
    expressions::check(&mut checker);
    names::check(&mut checker);
    human::check(&mut checker);
    gates::check(&mut checker);
    teams::check(&mut checker);
    maps::check(&mut checker);
    calls::check(&mut checker);
    keys::check(&mut checker);
    audience::check(&mut checker);
    reach::check(&mut checker, here.reach);
    if checker.nodes_whole {
        graph::check(&mut checker);
        conflicts::check(&mut checker);
    }
    (checker.errors, checker.warnings)
}

impl Checker<'_> {
    /// Notes a mistake that is `FLOW_INVALID`.
    fn invalid(&mut self, path: &str, message: impl Into<String>) {
        self.error(path, FlowCode::FlowInvalid, message);
    }

    /// `; did you mean …?` for a name that is a mistake or doubtful; nothing where no more of these are named.
    fn guess<'n>(&self, written: &str, names: impl IntoIterator<Item = &'n str>) -> String {
        if self.errors.len().max(self.warnings.len()) < MAX_MISTAKES {
            did_you_mean(written, names)
        } else {
            String::new()
        }
    }

    /// Notes a mistake in a key, not in its value.
    fn invalid_key(&mut self, path: &str, message: impl Into<String>) {
        if self.errors.len() > MAX_MISTAKES {
            return;
        }
        let spot = self.source.and_then(|source| source.key_spot(path));
        self.errors.push(mistake_at(spot, path, FlowCode::FlowInvalid, message));
    }

    fn error(&mut self, path: &str, code: FlowCode, message: impl Into<String>) {
        if self.errors.len() > MAX_MISTAKES {
            return;
        }
        let mistake = self.mistake(path, code, message);
        self.errors.push(mistake);
    }

    /// Notes what is allowed but doubtful.
    fn warn(&mut self, path: &str, message: impl Into<String>) {
        if self.warnings.len() > MAX_MISTAKES {
            return;
        }
        let warning = self.mistake(path, FlowCode::FlowInvalid, message);
        self.warnings.push(Mistake { code: "doubtful".to_owned(), ..warning });
    }

    fn mistake(&self, path: &str, code: FlowCode, message: impl Into<String>) -> Mistake {
        match self.source {
            Some(source) => mistake_at(source.spot(path), source.nearest(path), code, message),
            None => Mistake::new(path, code.as_str(), message),
        }
    }

    /// The names written under a top-level key, also of pieces that could not be read.
    fn written<'k>(&self, section: &str, read: impl Iterator<Item = &'k str>) -> BTreeSet<String> {
        let written = self.source.and_then(|source| source.value.get(section)).and_then(Value::as_object);
        let written = written.into_iter().flat_map(|map| map.keys().cloned());
        written.chain(read.map(str::to_owned)).collect()
    }
}
