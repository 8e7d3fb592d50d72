//! The steps and reviews of a run, kept up to date from the log.

use std::collections::HashSet;

use shared::log::{Entry, EntryKind};
use shared::run::{Report, StepStatus};

/// Applies a log entry of the run to its report. Entries that the report already contains may be applied again, in
/// order. Returns whether the report must be reloaded, because the entry may end other steps and reviews without
/// entries of their own.
pub fn apply(report: &mut Report, entry: &Entry) -> bool {
    if let Some(step) = entry.event.step() {
        match report.steps.iter_mut().rev().find(|known| known.id == step.id) {
            Some(known) => *known = step,
            None => report.steps.push(step),
        }
    }
    if let Some(review) = entry.event.review() {
        match report.reviews.iter_mut().rev().find(|known| known.id == review.id) {
            Some(known) if known.version > review.version => {}
            Some(known) => *known = review,
            None => report.reviews.push(review),
        }
    }
    if let Some(run) = entry.event.run() {
        report.status = run.status;
    }
    let Report { steps, reviews, .. } = report;
    // No entry says that a step waits; its pending review does.
    let pending = reviews.iter().filter(|review| review.is_pending());
    let awaited: HashSet<_> = pending.filter_map(|review| Some((review.node.as_ref()?, review.visit?))).collect();
    for step in steps.iter_mut().filter(|step| matches!(step.status, StepStatus::Running | StepStatus::Waiting)) {
        let waits = awaited.contains(&(&step.node, step.visit));
        step.status = if waits { StepStatus::Waiting } else { StepStatus::Running };
    }
    matches!(
        entry.event.kind,
        EntryKind::StepFailed | EntryKind::RunCompleted | EntryKind::RunFailed | EntryKind::RunCancelled
    )
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use shared::log::{Cursor, Event};
    use shared::run::RunStatus;
    use shared::time::Timestamp;

    use super::*;
    use crate::state::fixtures::review;

    fn entry(kind: EntryKind, data: Value) -> Entry {
        let Value::Object(data) = data else { panic!("data is an object") };
        let event = Event { kind, at: Timestamp(0), run_id: None, review_id: None, actor: None, token: None, data };
        Entry { cursor: Cursor(String::new()), sealed: None, event }
    }

    fn step(status: &str) -> Value {
        json!({
            "id": "01890000-0000-7000-8000-000000000001", "node": "ask", "visit": 1, "kind": "human",
            "status": status, "started_at": "2026-01-01T00:00:00Z",
        })
    }

    fn report() -> Report {
        let run_id = "01890000-0000-7000-8000-000000000009".parse().expect("an id");
        let flow = "article".parse().unwrap();
        let (status, output, error) = (RunStatus::Running, None, None);
        Report {
            run_id,
            flow,
            version: 1,
            status,
            output,
            error,
            duration_ms: 0,
            steps: Vec::new(),
            reviews: Vec::new(),
        }
    }

    #[test]
    fn a_step_waits_while_its_review_is_pending() {
        let mut report = report();
        let mut asked = review(1, 1, json!({}));
        asked.node = Some("ask".parse().expect("an id"));
        asked.visit = Some(1);
        let mut over = asked.clone();
        over.version += 1;
        over.status = shared::review::ReviewStatus::Resolved;
        let entries = [
            (entry(EntryKind::StepStarted, json!({ "step": step("running") })), StepStatus::Running),
            (entry(EntryKind::ReviewRequested, json!({ "review": asked })), StepStatus::Waiting),
            (entry(EntryKind::ReviewResolved, json!({ "review": over })), StepStatus::Running),
            (
                entry(EntryKind::StepCompleted, json!({ "step": step("completed"), "writes": [] })),
                StepStatus::Completed,
            ),
        ];
        for (entry, status) in &entries {
            assert!(!apply(&mut report, entry));
            assert_eq!(report.steps[0].status, *status);
        }
        // As after a report that was newer than the socket's position.
        for (entry, _) in &entries[1..] {
            apply(&mut report, entry);
        }
        assert_eq!((report.steps.len(), report.reviews.len()), (1, 1));
        assert_eq!(report.steps[0].status, StepStatus::Completed);
        assert!(!report.reviews[0].is_pending(), "an older version changes nothing");
    }

    #[test]
    fn what_ends_more_than_it_tells_is_read_anew() {
        assert!(apply(&mut report(), &entry(EntryKind::RunCancelled, json!({}))));
    }
}
