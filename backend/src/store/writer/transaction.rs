//! Writes groups of changes, each in one transaction. Changes that cannot be written together are written in several.

use std::sync::Arc;
use std::time::Duration;

use shared::id::{CommitId, FlowId};
use tokio::time::Instant;

use super::super::change_signal::News;
use super::super::{Change, CommitError, Error, Inner};
use super::commit_outcome::{self, CommitOutcome};
use super::group::{ChangeResult, Group};
use super::named::Named;
use super::preparation::Preparations;
use super::queue::{Caller, CommitAnswer, QueuedChange};
use super::{load, locks};
use crate::clock::Moment;
use crate::engine::Refusal;
use crate::flow::on_large_stack;

/// How long changes are decided in one transaction, which holds their locks meanwhile. The rest of the group gets
/// another transaction. Few groups take a hundredth of it.
const DECIDING: Duration = Duration::from_secs(1);
/// The longest time for deciding one change. With [`DECIDING`], it is less than PostgreSQL waits for the next statement
/// of a transaction. The engine bounds what it computes (`flow::work_limit`), so only a process that was suspended, or
/// a very slow machine, takes longer.
const TOO_LONG: Duration = Duration::from_secs(10);
/// How often a change is decided that takes too long.
const SLOW_TRIES: u32 = 3;

/// What has become of a group.
enum GroupOutcome {
    /// The answers to its first changes, at least one. The others were not begun.
    Answered(Vec<ChangeResult>),
    /// Nothing was written: deciding the change at this position took too long.
    TooSlow(usize),
    /// Nothing was written: these versions of flows must be compiled first, for the changes that are marked.
    Uncompiled(Vec<(FlowId, u32)>, Vec<bool>),
}

/// Writes a group. If it cannot be written as a whole and one change may be to blame, its parts are written separately.
pub(super) async fn write_all(inner: &Arc<Inner>, jobs: Vec<QueuedChange>, preparations: &mut Preparations) {
    // A change whose caller no longer waits is not begun; the caller was told that it may not have taken effect.
    let (jobs, gone): (Vec<_>, Vec<_>) = jobs.into_iter().partition(|job| !job.caller.answer.is_closed());
    if !gone.is_empty() {
        tracing::info!(changes = gone.len(), "changes were dropped before they began: no one waits for them");
    }
    if jobs.is_empty() {
        return;
    }
    // What is still not compiled after the preparation is compiled in the transaction, so that no change waits again.
    let compile = jobs.iter().all(|job| job.caller.is_prepared);
    if !compile && jobs.iter().any(|job| job.caller.is_prepared) {
        let (prepared, others): (Vec<_>, Vec<_>) = jobs.into_iter().partition(|job| job.caller.is_prepared);
        Box::pin(write_all(inner, prepared, preparations)).await;
        return Box::pin(write_all(inner, others, preparations)).await;
    }
    let (changes, callers): (Vec<_>, Vec<_>) = jobs.into_iter().map(|job| (job.change, job.caller)).unzip();
    let written = write_group(inner, &changes, compile).await;
    let together = changes.len();
    let mut jobs = changes.into_iter().zip(callers).map(|(change, caller)| QueuedChange { change, caller });
    match written {
        Ok(GroupOutcome::Answered(results)) => {
            for (result, job) in results.into_iter().zip(jobs.by_ref()) {
                answer(job, result);
            }
            let rest: Vec<_> = jobs.collect();
            if !rest.is_empty() {
                Box::pin(write_all(inner, rest, preparations)).await;
            }
        }
        Ok(GroupOutcome::Uncompiled(flows, marks)) => {
            let (waiting, others): (Vec<_>, Vec<_>) = jobs.zip(marks).partition(|(_, waits)| *waits);
            preparations.begin(inner, waiting.into_iter().map(|(job, _)| job).collect(), flows);
            let others = others.into_iter().map(|(job, _)| job).collect();
            Box::pin(write_all(inner, others, preparations)).await;
        }
        Ok(GroupOutcome::TooSlow(position)) => {
            let mut others: Vec<_> = jobs.collect();
            let mut slow = others.remove(position);
            slow.caller.slow += 1;
            Box::pin(write_all(inner, others, preparations)).await;
            if slow.caller.slow < SLOW_TRIES {
                tracing::warn!("computing a change took more than {TOO_LONG:?}; trying again");
                return Box::pin(write_all(inner, vec![slow], preparations)).await;
            }
            let why = format!(
                "computing this took more than {} s each of {SLOW_TRIES} times: the flow computes too much at once, or \
                 this machine is too slow",
                TOO_LONG.as_secs()
            );
            tracing::error!(%why, "a change is not made");
            answer(slow, Err(CommitError::Failed(why)));
        }
        Err(error) if together > 1 && error.can_be_due_to_one_change() => {
            tracing::warn!(%error, changes = together, "a group could not be written; writing its two halves");
            let mut first: Vec<_> = jobs.collect();
            let second = first.split_off(first.len() / 2);
            Box::pin(write_all(inner, first, preparations)).await;
            Box::pin(write_all(inner, second, preparations)).await;
        }
        Err(error) => {
            tracing::error!(%error, changes = together, "changes could not be written");
            jobs.for_each(|job| answer(job, Err(error.of_commit())));
        }
    }
}

fn answer(job: QueuedChange, result: ChangeResult) {
    let QueuedChange { mut change, caller: Caller { answer, .. } } = job;
    let _ = answer.send(match result {
        Err(CommitError::Refused(Refusal::Unasked { inquiries, until })) if change.replies().is_some() => {
            CommitAnswer::AskFirst { change: Box::new(change), inquiries, until }
        }
        result => CommitAnswer::Done(result),
    });
}

/// Writes a group in one transaction. After an error, nothing of it was written. `compile`: flows that are not compiled
/// yet are compiled in the transaction.
async fn write_group(inner: &Inner, changes: &[Change], compile: bool) -> Result<GroupOutcome, Error> {
    let mut conn = inner.db.writer_on_this_thread().await?;
    let named = Named::of_all(changes);
    let run_of = load::runs_of(&mut conn, &named.reviews).await?;
    let locks =
        if inner.db.is_postgres() { locks::take(&mut conn, changes, &named, &run_of).await? } else { Vec::new() };
    let mut group = Group::load(inner, &mut conn, changes, named, run_of, compile).await?;
    if !group.uncompiled.is_empty() {
        conn.rollback().await?;
        let mut marks: Vec<bool> = changes.iter().map(|change| group.waits_for_flow(change)).collect();
        if !marks.contains(&true) {
            marks.fill(true);
        }
        return Ok(GroupOutcome::Uncompiled(std::mem::take(&mut group.uncompiled), marks));
    }
    let begun = Instant::now();
    let decide = |change: &Change| group.decide(change, Moment::of(&*inner.clock));
    // One stack for all templates, conditions and schemas of the group.
    let (answers, took) = on_large_stack(|| one_by_one(changes, || begun.elapsed(), decide));
    if took >= TOO_LONG {
        // The transaction may have ended meanwhile, and its locks with it.
        return Ok(GroupOutcome::TooSlow(answers.len() - 1));
    }
    conn.extend(took);
    if group.is_empty() {
        conn.rollback().await?;
        return Ok(GroupOutcome::Answered(answers));
    }
    let commit = CommitId(Moment::of(&*inner.clock).ids().uuid());
    let written = group.write(inner, &mut conn, commit).await?;
    if let Err(error) = conn.commit().await {
        match commit_outcome::after(inner, &locks, &written, &error).await {
            CommitOutcome::Committed => {}
            CommitOutcome::NotCommitted => return Err(error.into()),
            // All changes get the same answer: none may be retried, since it may have been made.
            CommitOutcome::Unknown => {
                let unknown = || {
                    Err(CommitError::Unknown(format!(
                        "the connection was lost during COMMIT ({error}); it is not known whether the change was made"
                    )))
                };
                return Ok(GroupOutcome::Answered(answers.iter().map(|_| unknown()).collect()));
            }
        }
    }
    group.measure();
    let beside_runs = group.out.events.iter().any(|(run, _)| run.is_none());
    let news = News { tasks: group.has_new_tasks(), beside_runs };
    if !group.erasures.steps.is_empty() {
        // Recent rows in memory may still contain the erased data.
        inner.recent.forget();
    } else if !written.large {
        inner.recent.add(group.take_log(written.seq));
    }
    inner.signal.committed(news);
    Ok(GroupOutcome::Answered(answers))
}

/// Decides changes one after the other until [`DECIDING`] is over. Returns the answers so far, at least one if there is
/// a change, and how long all of it took.
fn one_by_one<C, T>(
    changes: &[C],
    elapsed: impl Fn() -> Duration,
    mut decide: impl FnMut(&C) -> T,
) -> (Vec<T>, Duration) {
    let mut answers = Vec::with_capacity(changes.len());
    let mut took = Duration::ZERO;
    for change in changes {
        answers.push(decide(change));
        took = elapsed();
        if took >= DECIDING {
            break;
        }
    }
    (answers, took)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn changes_behind_a_slow_one_are_left_to_the_next_transaction() {
        let now = Cell::new(Duration::ZERO);
        let decide = |milliseconds: &u64| {
            now.set(now.get() + Duration::from_millis(*milliseconds));
            *milliseconds
        };
        let decided = |changes: &[u64]| {
            now.set(Duration::ZERO);
            one_by_one(changes, || now.get(), decide)
        };
        assert_eq!(decided(&[1, 2, 3]), (vec![1, 2, 3], Duration::from_millis(6)));
        assert_eq!(decided(&[1, 2_000, 3]), (vec![1, 2_000], Duration::from_millis(2_001)));
        let (answers, took) = decided(&[12_000, 1]);
        assert!(answers == [12_000] && took >= TOO_LONG, "the last one is to blame: the others took a second at most");
    }
}
