//! The filter of the list of runs, as it is in the address.

use serde::{Deserialize, Serialize};
use shared::api::RunQuery;
use shared::id::Username;
use shared::person_filter::PersonFilter;
use shared::run::{Ending, RunStatus, RunSummary};
use shared::time::Timestamp;

use super::days;

/// The filter in the address. Days are in the person's time zone, as the times of the rows are; both ends are included.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunFilter {
    pub status: Option<RunStatus>,
    pub ending: Option<Ending>,
    pub flow: Option<String>,
    pub q: Option<String>,
    pub requested_by: Option<PersonFilter>,
    pub from: Option<String>,
    pub to: Option<String>,
}

impl RunFilter {
    /// The request for the filtered runs. `begin` returns the start of a day, as in [`days::span`].
    pub fn query(&self, begin: fn(u32, u32, u32) -> Option<Timestamp>) -> RunQuery {
        let Self { status, ending, flow, q, requested_by, from, to } = self.clone();
        let (started_after, started_before) = days::span(from.as_deref(), to.as_deref(), begin);
        RunQuery { status, ending, flow, q, requested_by, started_after, started_before, ..RunQuery::default() }
    }
}

/// Whether a run matches a query, apart from its words, which only the server looks for.
pub fn takes(query: &RunQuery, run: &RunSummary, me: Option<&Username>) -> bool {
    let is_by = |by: &PersonFilter| match by {
        PersonFilter::Me => me == Some(&run.requested_by),
        PersonFilter::Named(name) => *name == run.requested_by,
    };
    query.status.is_none_or(|status| status == run.status)
        && (query.ending.is_none() || query.ending == Ending::of(run.error.as_ref()))
        && query.flow.as_ref().is_none_or(|flow| flow.as_str() == run.flow.as_str())
        && query.requested_by.as_ref().is_none_or(is_by)
        && query.started_after.is_none_or(|after| run.created_at >= after)
        && query.started_before.is_none_or(|before| run.created_at < before)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::state::filter;

    fn run() -> RunSummary {
        serde_json::from_value(json!({
            "id": "018f0000-0000-7000-8000-000000000001", "revision": 1, "flow": "article", "version": 1,
            "title": "Article", "status": "running", "requested_by": "ana", "created_at": "2026-11-20T10:00:00Z",
            "updated_at": "2026-11-20T10:00:00Z",
        }))
        .unwrap()
    }

    #[test]
    fn a_run_that_starts_is_listed_if_it_matches_every_filter() {
        let (ana, tom) = ("ana".parse().unwrap(), "tom".parse().unwrap());
        let read = |parts: &[(&str, &str)]| -> RunQuery {
            let filter: RunFilter = filter::read(parts.iter().copied());
            filter.query(|_, _, day| Some(Timestamp(i64::from(day))))
        };
        for (part, by_ana, by_tom) in [
            (("requested_by", "me"), true, false),
            (("requested_by", "ana"), true, true),
            (("requested_by", "tom"), false, false),
            (("flow", "other"), false, false),
            (("from", "1970-01-20"), true, true),
            (("to", "1970-01-20"), false, false),
            (("q", "anything"), true, true),
        ] {
            let query = read(&[part]);
            assert_eq!(
                (takes(&query, &run(), Some(&ana)), takes(&query, &run(), Some(&tom))),
                (by_ana, by_tom),
                "{part:?}"
            );
        }
        assert_eq!(read(&[("requested_by", "Not a name"), ("cursor", "x")]), RunQuery::default(), "it is left out");
    }
}
