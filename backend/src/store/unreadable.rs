//! Replacements for rows that cannot be read: the content of their columns, marked as unreadable. They let lists, pages
//! and exports show the other rows. A column may have a word that only later versions know, which have written the row;
//! a neutral one is shown instead.

use serde_json::error::Category;
use serde_json::json;
use shared::access::ADMIN;
use shared::definition::Severity;
use shared::error::FlowCode;
use shared::id::RunId;
use shared::log::{Event, EventData, Unreadable};
use shared::review::{Review, ReviewKind, ReviewStatus};
use shared::run::{RunStatus, RunSummary, Step};
use shared::time::Timestamp;
use uuid::Uuid;

use super::Error;
use super::blobs::typed;
use super::db::{Conn, Row, Sql};
use crate::engine::RunState;

/// Why JSON could not be read. Quotes nothing of the JSON, since it may be someone's draft.
pub(super) fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match error.classify() {
        Category::Data if !text.starts_with("missing field") => "a member has an unexpected form".to_owned(),
        _ => text,
    }
}

/// The columns that [`run`] reads.
pub(super) const RUN: &str = "id, flow, status, requested_by, created_at";
const RUN_COLUMNS: usize = 5;

/// Makes the summary of a run whose state cannot be read. Its columns are [`RUN`], beginning at `at`.
pub(super) fn run(row: &Row, at: usize, error: &Error) -> Result<RunSummary, Error> {
    let created_at = Timestamp(row.int(at + 4)?);
    let flow = row.text(at + 1)?;
    let status = RunStatus::of_word(&row.text(at + 2)?).unwrap_or(RunStatus::Running);
    let shown = json!({
        "id": row.uuid(at)?, "flow": flow, "title": flow, "version": 0, "status": status, "revision": 0,
        "requested_by": row.text(at + 3)?, "created_at": created_at, "updated_at": created_at, "error": failure(error),
    });
    typed("the columns of a run", shown)
}

/// Makes the state of a run whose state cannot be read, with which the run can be given up. Its columns are [`RUN`] and
/// then the format. If the run was over, so is this state.
pub(super) fn state(row: &Row, error: &Error) -> Result<RunState, Error> {
    let run = run(row, 0, error)?;
    let outcome =
        run.status.is_over().then(|| json!({ "outcome": "failed", "at": run.created_at, "error": run.error }));
    let state = json!({
        "format": row.int(RUN_COLUMNS)?, "id": run.id, "flow": run.flow, "title": run.title, "version": run.version,
        "revision": run.revision, "requested_by": run.requested_by, "created_at": run.created_at,
        "updated_at": run.updated_at, "next_branch": 0, "outcome": outcome,
    });
    typed("the columns of a run", state)
}

/// The columns that [`review`] reads.
pub(super) const REVIEW: &str = "r.id, r.flow, r.status, r.requested_by, r.created_at, r.kind, r.severity, r.due";

impl Conn {
    /// Makes a state from the columns of a run whose state cannot be read.
    pub(in crate::store) async fn unreadable_state(&mut self, run: RunId, error: &Error) -> Result<RunState, Error> {
        let sql = Sql::new("SELECT ").push(RUN).push(", format FROM runs WHERE id = ").bind(run.0);
        let row = self.fetch_one(sql).await?.ok_or_else(|| Error::Stored(format!("run {run} has gone")))?;
        state(&row, error)
    }
}

/// Makes a review whose body cannot be read. Only admins see it, and nobody can decide it. Its columns are [`REVIEW`],
/// beginning at `at`.
pub(super) fn review(row: &Row, run: Uuid, at: usize, error: &Error) -> Result<Review, Error> {
    let kind = ReviewKind::of_word(&row.text(at + 5)?).unwrap_or(ReviewKind::Approval);
    // Every version knows the word for pending reviews.
    let status = ReviewStatus::of_word(&row.text(at + 2)?).unwrap_or(ReviewStatus::Resolved);
    let severity = Severity::of_word(&row.text(at + 6)?).unwrap_or_default();
    let shown = json!({
        "id": row.uuid(at)?, "run_id": run, "revision": 0, "digest": "", "version": 0, "kind": kind,
        "status": status, "severity": severity, "flow": row.text_opt(at + 1)?,
        "title": "This review cannot be read", "prompt": "", "problem": error.to_string(), "unreadable": true,
        "requested_by": row.text(at + 3)?, "created_at": Timestamp(row.int(at + 4)?), "reviewers": { "roles": [ADMIN] },
        "expires_at": row.int_opt(at + 7)?.map(Timestamp).filter(|due| *due < Timestamp::MAX),
    });
    typed("the columns of a review", shown)
}

/// Makes the outline of a class that cannot be read. Only admins see its reviews.
pub(super) fn class(class: Uuid, error: &Error) -> Result<Review, Error> {
    let shown = json!({
        "id": class, "revision": 0, "digest": "", "version": 0, "kind": "approval", "status": "pending",
        "severity": "low", "title": "These reviews cannot be read", "prompt": "", "problem": error.to_string(),
        "unreadable": true, "requested_by": "unknown", "created_at": Timestamp(0), "reviewers": { "roles": [ADMIN] },
    });
    typed("a class of reviews", shown)
}

/// Makes a step whose body cannot be read.
pub(super) fn step(id: Uuid, started_at: Timestamp, error: &Error) -> Result<Step, Error> {
    let shown = json!({
        "id": id, "node": "unreadable", "visit": 0, "kind": "unreadable", "status": "failed", "started_at": started_at,
        "tries": 0, "error": failure(error),
    });
    typed("the columns of a step", shown)
}

/// Makes an entry in place of one that cannot be read, or of all entries of its row.
pub(super) fn event(at: Timestamp, run_id: Option<RunId>, reason: &str) -> Event {
    let data = EventData::Unreadable(Unreadable { reason: reason.to_owned() });
    Event { run_id, ..Event::new(at, None, &data) }
}

fn failure(error: &Error) -> serde_json::Value {
    json!({ "code": FlowCode::RecordUnreadable, "message": error.to_string() })
}
