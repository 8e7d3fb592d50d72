//! All checks that need more than one place of a flow, one file per subject. Each reports its mistakes with their
//! places.

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
mod members;
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

/// What is known of the server on which a flow is to be saved.
#[derive(Debug, Clone, Copy, Default)]
pub struct Here<'a> {
    /// The existing people; `None` if unknown.
    pub people: Option<&'a [Principal]>,
    /// The flows that can be called; `None` if unknown.
    pub library: Option<&'a Library>,
    /// The handlers that can be asked, and the tools that can be called; `None` if unknown.
    pub reach: Option<&'a Reach>,
}

/// A check in progress: the flow, and the findings so far.
pub struct Checker<'a> {
    /// The flow, without the parts that could not be read.
    pub flow: &'a Flow,
    /// The analysis of the flow's graph.
    pub reachability: Reachability,
    /// Whether all nodes could be read completely. If not, checks of the whole graph are skipped: they would only
    /// repeat in other words what was reported already.
    nodes_whole: bool,
    /// Whether the whole flow could be read completely.
    whole: bool,
    /// The source with the places of all values; `None` if the flow was built, not read.
    source: Option<&'a SourceText>,
    /// The existing people; `None` if unknown.
    people: Option<&'a [Principal]>,
    /// The flows that can be called; `None` if unknown.
    library: Option<&'a Library>,
    /// The conditions that could be compiled, set by [`expressions`].
    conditions: Conditions,
    abandoned: &'a CancelFlag,
    errors: Vec<Mistake>,
    warnings: Vec<Mistake>,
}

/// Checks a flow that was read from a source or built. `noted` are the mistakes found so far. Returns errors and
/// warnings.
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
    /// Reports an error with the code `FLOW_INVALID`.
    fn invalid(&mut self, path: &str, message: impl Into<String>) {
        self.error(path, FlowCode::FlowInvalid, message);
    }

    /// Returns `; did you mean …?` for a misspelt name. Empty if no similar name exists, or if so many mistakes were
    /// found that no more are reported.
    fn guess<'n>(&self, written: &str, names: impl IntoIterator<Item = &'n str>) -> String {
        if self.errors.len().max(self.warnings.len()) < MAX_MISTAKES {
            did_you_mean(written, names)
        } else {
            String::new()
        }
    }

    /// Reports an error at a key instead of its value.
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

    /// Reports a warning: something that is allowed but doubtful.
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

    /// Returns the names under a top-level key, including those of parts that could not be read.
    fn written<'k>(&self, section: &str, read: impl Iterator<Item = &'k str>) -> BTreeSet<String> {
        let written = self.source.and_then(|source| source.value.get(section)).and_then(Value::as_object);
        let written = written.into_iter().flat_map(|map| map.keys().cloned());
        written.chain(read.map(str::to_owned)).collect()
    }
}
