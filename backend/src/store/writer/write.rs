//! Writes the data that a group decided: in one batch, in a fixed order of tables.

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;
use shared::id::{CommitId, ReviewId, RunId, TaskId};
use shared::log::Event;
use shared::review::Review;
use uuid::Uuid;

use super::super::batch::{Batch, Table};
use super::super::blobs::{NewBlobs, encode, encode_owned, encode_whole, is_marked};
use super::super::compact_review::Compact;
use super::super::db::{Arg, Conn};
use super::super::feedback::{FEEDBACK, feedback_row};
use super::super::grants::{GRANTS, grant_row};
use super::super::log_row::{NewBody, review_in};
use super::super::notifications::NOTIFICATIONS;
use super::super::packed::pack;
use super::super::recent_rows::{LARGE, NewRow};
use super::super::review_row::{AUDIENCE, REVIEWS, UNDECIDED, review_row};
use super::super::row_mac::Stored;
use super::super::run_steps;
use super::super::runs::{RUN_CALLBACKS, RUNS, RUNS_BY_STATUS};
use super::super::saved_views::VIEWS;
use super::super::tasks::lane;
use super::super::users::{USERS, user_row};
use super::super::{Committed, Error, Inner, queue, statistics};
use super::commit_outcome::Written;
use super::group::{Changed, Group, RunWork};
use crate::clock::Moment;
use crate::engine::{RunState, Snapshot, summary};

const BLOBS: Table = Table { name: "blobs", key: "run_id, digest", others: "body" };
const FLOWS: Table =
    Table { name: "flows", key: "id, version", others: "digest, source, definition, saved_by, saved_at" };
const IDEMPOTENCY: Table = Table { name: "idempotency", key: "scope, key", others: "body, run_id, answer, created_at" };
const LOG: Table = Table { name: "log", key: "seq", others: "commit_id, at, run_id, body, mac" };
const TASKS: Table = Table { name: "tasks", key: "id", others: "run_id, lane, ready_at, attempt, format, body" };

/// The rows to write, by table.
#[derive(Default)]
pub(super) struct Rows {
    pub(super) runs: Vec<Vec<Arg>>,
    /// Keys of runs that had another status before.
    pub(super) left_statuses: Vec<Vec<Arg>>,
    pub(super) statuses: Vec<Vec<Arg>>,
    pub(super) reviews: Vec<Vec<Arg>>,
    /// Keys in the queue that reviews have left.
    pub(super) left_queue: Vec<Vec<Arg>>,
    pub(super) classes: BTreeMap<Uuid, String>,
    pub(super) queue: Vec<Vec<Arg>>,
    pub(super) undecided: Vec<Vec<Arg>>,
    /// Audience keys under which reviews are no longer found.
    pub(super) left_audience: Vec<Vec<Arg>>,
    pub(super) audience: Vec<Vec<Arg>>,
    /// Reviews whose stored audience keys are unknown.
    pub(super) unknown: Vec<ReviewId>,
    pub(super) steps: Vec<Vec<Arg>>,
    pub(super) ended_tasks: Vec<Vec<Arg>>,
    pub(super) abandoned_tasks: Vec<Vec<Arg>>,
    pub(super) tasks: Vec<Vec<Arg>>,
    /// Tasks that have not changed, but whose run has a newer format than before.
    pub(super) raised_tasks: Vec<Vec<Arg>>,
    pub(super) log: Vec<LogRow>,
    /// Whether a log row is too large for the cache of recent rows.
    pub(super) large: bool,
    pub(super) keys: Vec<Vec<Arg>>,
    pub(super) blobs: NewBlobs,
}

/// A log row that has no number yet.
pub(super) struct LogRow {
    at: i64,
    run: Option<Uuid>,
    body: String,
}

impl Group {
    /// Writes all data that the group decided. Returns the first log row that it wrote.
    pub async fn write(&mut self, inner: &Inner, conn: &mut Conn, commit: CommitId) -> Result<Written, Error> {
        self.forget_unanswered(conn).await?;
        // This may add log entries.
        self.write_flows_and_people(conn, Moment::of(&*inner.clock)).await?;
        let rows = self.rows()?;
        let again = begin_again(&rows);
        self.write_erased_people(conn, inner.clock.now().0).await?;
        for review in &rows.unknown {
            conn.forget_audience(*review).await?;
        }
        let mut batch = Batch::default();
        batch.insert(
            &RUNS,
            rows.runs,
            " ON CONFLICT (id) DO UPDATE SET status = excluded.status, format = excluded.format, state = excluded.state, \
             steps = COALESCE(excluded.steps, runs.steps)",
        );
        batch.delete(&RUNS_BY_STATUS, rows.left_statuses);
        batch.insert(&RUNS_BY_STATUS, rows.statuses, "");
        let blobs = rows.blobs.into_iter().filter(|(key, _)| !self.blobs.0.contains_key(key));
        let blobs = blobs.map(|((run, digest), body)| vec![run.into(), (&digest).into(), pack(body).into()]).collect();
        batch.insert(&BLOBS, blobs, " ON CONFLICT (run_id, digest) DO NOTHING");
        batch.insert(
            &REVIEWS,
            rows.reviews,
            " ON CONFLICT (id) DO UPDATE SET status = excluded.status, search = excluded.search, body = excluded.body, \
             facts = excluded.facts, tags = excluded.tags, due = excluded.due, claimed_until = excluded.claimed_until, \
             comments = excluded.comments",
        );
        batch.delete(&queue::QUEUE, rows.left_queue);
        // In a fixed order: if two groups have the same new class, one waits for the other.
        let classes = rows.classes.into_iter().map(|(class, outline)| vec![class.into(), outline.into()]).collect();
        batch.insert(&queue::CLASSES, classes, " ON CONFLICT (class) DO NOTHING");
        batch.insert(&queue::QUEUE, rows.queue, queue::ON_CONFLICT_UPDATE);
        batch.insert(&UNDECIDED, rows.undecided, " ON CONFLICT DO NOTHING");
        batch.delete(&AUDIENCE, rows.left_audience);
        batch.insert(&AUDIENCE, rows.audience, " ON CONFLICT DO NOTHING");
        batch.insert(&run_steps::STEPS, rows.steps, run_steps::ON_CONFLICT_UPDATE);
        batch.delete(&GRANTS, self.out.ended_grants.iter().map(|id| vec![Arg::from(id.0)]).collect());
        let given = self.out.new_grants.values().map(grant_row).collect();
        batch.insert(&GRANTS, given, "");
        let given = self.out.feedback.iter().map(feedback_row).collect();
        batch.insert(&FEEDBACK, given, "");
        batch.delete(&FEEDBACK, self.out.retracted_feedback.iter().map(|id| vec![Arg::from(id.0)]).collect());
        let callbacks = self.out.callbacks.iter().map(|(run, url)| vec![run.0.into(), url.as_str().into()]).collect();
        batch.insert(&RUN_CALLBACKS, callbacks, "");
        batch.insert(&IDEMPOTENCY, rows.keys, "");
        batch.delete(&TASKS, rows.ended_tasks);
        batch.change(&TASKS, "UPDATE tasks SET lane = 'over' WHERE (id)".to_owned(), rows.abandoned_tasks);
        // An older server that claimed such a task could not commit its result.
        let raise = format!("UPDATE tasks SET format = {} WHERE (id)", RunState::FORMAT);
        batch.change(&TASKS, raise, rows.raised_tasks);
        if again {
            // No part of a batch sees what another one writes.
            conn.write(std::mem::take(&mut batch)).await?;
        }
        batch.insert(
            &TASKS,
            rows.tasks,
            " ON CONFLICT (id) DO UPDATE SET ready_at = excluded.ready_at, attempt = tasks.attempt + 1, owner = NULL, \
             lost = 0, format = excluded.format, body = excluded.body",
        );
        if !self.erasures.steps.is_empty() {
            conn.write(std::mem::take(&mut batch)).await?;
            self.write_erasure_steps(conn).await?;
        }
        let of_runs = i64::try_from(rows.log.len() - self.out.events.len()).unwrap_or(0);
        let written = write_log(inner, conn, commit, batch, rows.log).await?;
        self.write_archive(conn, written.seq + of_runs).await?;
        self.write_erasures(conn, written.seq + of_runs).await?;
        Ok(Written { large: rows.large, ..written })
    }

    /// Takes the log rows out as they were written; the first has the number `first`.
    pub fn take_log(&mut self, first: i64) -> Vec<NewRow> {
        let changed = self.runs.iter_mut().filter(|(_, work)| work.snapshot.is_some());
        let changed = changed.filter_map(|(run, work)| Some((*run, work.changed.as_mut()?)));
        let of_runs = changed.map(|(run, changed)| (Some(run), std::mem::take(&mut changed.events)));
        let others = std::mem::take(&mut self.out.events).into_iter().map(|(run, event)| (run, vec![event]));
        let rows = of_runs.chain(others).zip(first..);
        rows.map(|((run, events), seq)| NewRow { seq, run, events }).collect()
    }

    /// Records metrics of the reviews that ended, after the commit.
    pub fn measure(&self) {
        for work in self.runs.values() {
            let (Some(changed), Some(snapshot)) = (&work.changed, &work.snapshot) else { continue };
            // A review that has ended no longer changes, so each is measured once.
            for review in changed.reviews.iter().filter_map(|id| snapshot.reviews.get(id)) {
                let Some(resolution) = &review.resolution else { continue };
                let (kind, outcome) = (review.kind.as_str(), resolution.outcome.as_str());
                let via = resolution.via.as_str();
                metrics::counter!("countersign_reviews_total", "kind" => kind, "outcome" => outcome, "via" => via)
                    .increment(1);
                if let Some(seconds) = statistics::response_seconds(review) {
                    metrics::histogram!("countersign_review_response_seconds").record(seconds);
                }
            }
        }
    }

    fn rows(&self) -> Result<Rows, Error> {
        let mut rows = Rows::default();
        for (run, work) in &self.runs {
            if let (Some(changed), Some(snapshot)) = (&work.changed, &work.snapshot) {
                rows.run(*run, work, snapshot, changed)?;
            }
        }
        for (run, event) in &self.out.events {
            let body = NewBody::pack(event.at, *run, std::slice::from_ref(event));
            let run = run.map(|run| run.0);
            let body = encode_owned(run.unwrap_or_default(), &body, || body.owner(), &mut rows.blobs)?;
            rows.large |= is_large(&body);
            rows.log.push(LogRow { at: event.at.0, run, body: pack(body) });
        }
        for (key, at, answer) in &self.out.keys {
            let run = answer.as_ref().and_then(run_of);
            let answer = match (answer, run) {
                (None, _) => None,
                (Some(answer), Some(run)) => Some(pack(encode(run, answer, &mut rows.blobs)?)),
                (Some(answer), None) => Some(encode_whole(answer)?),
            };
            rows.keys.push(vec![
                key.scope.as_str().into(),
                key.key.as_str().into(),
                (&key.body).into(),
                run.into(),
                answer.into(),
                at.0.into(),
            ]);
        }
        Ok(rows)
    }

    async fn write_flows_and_people(&mut self, conn: &mut Conn, moment: Moment) -> Result<(), Error> {
        let out = &self.out;
        let mut flows = Vec::new();
        for flow in &out.flows {
            flows.push(vec![
                flow.id.as_str().into(),
                flow.version.into(),
                flow.digest.as_str().into(),
                flow.source.clone().unwrap_or_default().into(),
                encode_whole(&flow.definition)?.into(),
                flow.saved_by.as_ref().map(ToString::to_string).into(),
                flow.saved_at.0.into(),
            ]);
        }
        conn.insert(&FLOWS, flows, "").await?;
        let people = out.users.iter().filter_map(|name| self.users.get(name)).map(user_row).collect();
        conn.insert(
            &USERS,
            people,
            " ON CONFLICT (username) DO UPDATE SET display_name = excluded.display_name, email = excluded.email, \
             roles = excluded.roles, active = excluded.active, password_hash = excluded.password_hash, \
             deputyships = excluded.deputyships, second_factor = excluded.second_factor, \
             provider_account = excluded.provider_account, signed_in_at = excluded.signed_in_at",
        )
        .await?;
        let chosen = out.notifications.iter().map(|(name, chosen)| chosen.row(name));
        conn.insert(
            &NOTIFICATIONS,
            chosen.collect::<Result<_, _>>()?,
            " ON CONFLICT (username) DO UPDATE SET slack_user_id = excluded.slack_user_id, body = excluded.body",
        )
        .await?;
        let views =
            out.saved_views.iter().map(|(name, views)| Ok(vec![name.as_str().into(), encode_whole(views)?.into()]));
        let views = views.collect::<Result<Vec<Vec<Arg>>, Error>>()?;
        conn.insert(&VIEWS, views, " ON CONFLICT (username) DO UPDATE SET body = excluded.body").await?;
        self.write_credentials(conn, moment).await
    }
}

impl Rows {
    fn run(&mut self, run: RunId, work: &RunWork, snapshot: &Snapshot, changed: &Changed) -> Result<(), Error> {
        let last = changed.events.last().map(|event| event.at);
        let at = last.max(Some(snapshot.state.updated_at)).unwrap_or_default();
        let mut body = NewBody::pack(at, Some(run), &changed.events);
        if !changed.inputs.is_empty() {
            self.state(run, work, snapshot, changed)?;
            body = body.with_inputs(at, &changed.inputs, RunState::FORMAT);
        }
        let body = encode_owned(run.0, &body, || body.owner(), &mut self.blobs)?;
        self.large |= is_large(&body);
        self.log.push(LogRow { at: at.0, run: Some(run.0), body: pack(body) });
        Ok(())
    }

    /// Adds what has changed of a run beside its entries.
    fn state(&mut self, run: RunId, work: &RunWork, snapshot: &Snapshot, changed: &Changed) -> Result<(), Error> {
        let state = &snapshot.state;
        let shown = summary(state);
        self.status(work.stored_status.as_deref(), &shown, state);
        let steps = self.steps(run, work, &changed.steps)?;
        self.runs.push(vec![
            run.0.into(),
            state.flow.as_str().into(),
            shown.status.as_str().into(),
            state.requested_by.as_str().into(),
            state.created_at.0.into(),
            state.format.into(),
            pack(encode(run.0, state, &mut self.blobs)?).into(),
            state.shown_id().is_none().into(),
            steps.into(),
        ]);
        for review in changed.reviews.iter().filter_map(|id| snapshot.reviews.get(id)) {
            let shown = newest_of(review, &changed.events);
            self.reviews.push(review_row(run, review, shown, &mut self.blobs)?);
            self.index_rows(review, work.stored_reviews.get(&review.id))?;
        }
        self.ended_tasks.extend(changed.ended_tasks.iter().map(|task| vec![task.0.into()]));
        // A run that cannot be read ends with all its tasks, also those of calls that it has abandoned.
        let abandoned = changed.abandoned_tasks.difference(&changed.ended_tasks);
        self.abandoned_tasks.extend(abandoned.map(|task| vec![task.0.into()]));
        for task in changed.tasks.values() {
            self.tasks.push(vec![
                task.id.0.into(),
                run.0.into(),
                lane(task).into(),
                task.due_at.0.into(),
                0_u32.into(),
                state.format.into(),
                encode_whole(task)?.into(),
            ]);
        }
        if work.stored_format.is_some_and(|stored| stored < state.format) {
            let is_unchanged = |task: &TaskId| !changed.tasks.contains_key(task) && !changed.ended_tasks.contains(task);
            self.raised_tasks.extend(state.open_tasks().filter(is_unchanged).map(|task| vec![task.0.into()]));
        }
        Ok(())
    }
}

/// The review in its latest event, if that has its current version. Reviews with a vote are left out, since events do
/// not show secret votes.
fn newest_of<'a>(review: &Review, events: &'a [Event]) -> Option<Compact<'a>> {
    let shown = events.iter().rev().find_map(|event| review_in(event, review.id))?;
    let is_newest = shown.0.get("version").and_then(Value::as_u64) == Some(review.version);
    (review.voting.is_none() && is_newest).then_some(shown)
}

/// Whether a task has ended and begun again.
fn begin_again(rows: &Rows) -> bool {
    let begun: HashSet<_> = rows.tasks.iter().filter_map(|task| task.first()).collect();
    rows.ended_tasks.iter().chain(&rows.abandoned_tasks).flatten().any(|task| begun.contains(task))
}

/// Writes the rest of the batch and the log rows. This is the last write: in PostgreSQL, drawing the numbers takes the
/// lock of the log, which is held until the commit. Numbers are drawn first, since the HMAC of a row covers its number.
async fn write_log(
    inner: &Inner,
    conn: &mut Conn,
    commit: CommitId,
    batch: Batch,
    rows: Vec<LogRow>,
) -> Result<Written, Error> {
    let numbers = write_and_number(conn, batch, rows.len()).await?;
    inner.queue.share().writes(&numbers);
    let written = Written { commit, seq: numbers.first().copied().unwrap_or(0), large: false };
    let rows = numbers.into_iter().zip(rows).map(|(seq, LogRow { at, run, body })| {
        let generation = &inner.log.generation;
        let row = Stored { generation, seq, commit: commit.0, at, run, body: &body };
        let mac = inner.row_keys.as_ref().map(|keys| keys.mac(&row));
        vec![seq.into(), commit.0.into(), at.into(), run.into(), body.into(), Arg::Blob(mac)]
    });
    let mut into = LOG.insert();
    if conn.is_postgres() {
        into.push_str("OVERRIDING SYSTEM VALUE ");
    }
    conn.insert_by(into, rows.collect(), "").await?;
    Ok(written)
}

/// Writes the rest of the batch, and draws numbers for log rows. In PostgreSQL, this takes the lock of the log until the
/// commit, after the rows of the batch were written and locked.
async fn write_and_number(conn: &mut Conn, batch: Batch, count: usize) -> Result<Vec<i64>, Error> {
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    if count > 0 && conn.is_postgres() {
        return Ok(conn.write_and_call(batch, "log_numbers", count).await?);
    }
    conn.write(batch).await?;
    if count > 0 { super::log_numbers::next(conn, count).await } else { Ok(Vec::new()) }
}

/// Whether a row is too large for the cache, or refers to values that may be.
fn is_large(body: &str) -> bool {
    body.len() > LARGE || is_marked(body)
}

/// The run whose blobs a result uses.
fn run_of(answer: &Committed) -> Option<Uuid> {
    match answer {
        Committed::Run { run } => Some(run.summary.id.0),
        Committed::Decided { decided } => decided.review.run_id.map(|run| run.0),
        _ => None,
    }
}
