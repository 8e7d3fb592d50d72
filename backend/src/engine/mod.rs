//! The engine, which computes what a run does next: `(flow, snapshot, input, moment) -> transition or refusal`. It is
//! pure: it never awaits, reads no clock and touches no database; the same inputs give the same transition, so a logged
//! run can be replayed and checked.
//!
//! The modules are declared from the bottom up: each group uses only itself and the groups before it.

// The state of a run, what comes in and goes out, and what a node sees.
mod ask_builtin;
mod call_limits;
mod carrier;
mod conversation;
mod digest;
mod guardrail_reply;
mod input;
mod item;
mod next;
mod phase;
mod projection;
mod question;
mod ruling;
mod scope;
mod state;
mod team;
mod transition;
mod upgrade;
mod usage;
mod usage_by_agent;

// The transition under construction, how it begins, and what every kind of node does to it.
mod answer;
mod builder;
mod edges;
mod emit;
mod feedback;
mod invoke;
mod launch;
pub(crate) mod model_call;
mod prompt;
mod request;
mod retry;
mod roster;
mod steps;

// Who is asked, and what they answer; results that nothing waits for any more.
mod ask;
mod late_results;

// The end of branches and of the run, which withdraws what is still asked.
mod cancel;
mod ending;

// The kinds of nodes, and what an agent does in its step.
mod nodes;

// What follows from what, and what the tasks of a run have to do.
mod advance;
mod work;

#[cfg(test)]
mod tests;

pub use crate::flow::guardrail::{GuardrailAnswer, GuardrailPrograms, Inquiry};
pub use ask_builtin::parameters as ask_parameters;
pub use carrier::{Carrier, is_carrier, question_of};
pub use conversation::{Conversation, Message, ToolCall, ToolCallState};
pub use digest::of_inquiry as digest_of_inquiry;
pub use guardrail_reply::GuardrailReply;
pub use input::{HandlerAnswer, Input, ModelAnswer, ModelToolCall, TaskFailure};
pub use launch::RunStart;
pub use phase::{Branch, Phase};
pub use projection::{given_out, report, shown_run, summary};
pub use question::{Approval, Asked, Question, Subject, Timer};
#[cfg(test)]
pub use request::request_of;
pub use state::{Frame, RunOutcome, RunState, Unanswered};
pub use transition::{Granted, Refusal, Snapshot, Task, TaskKind, Transition};
pub use usage::ModelUsage;
pub use work::{HandlerRequest, ModelRequest, ToolRequest, ToolSpec, Work, of as work};

use std::time::Duration;

use builder::Builder;
use shared::access::Principal;
use shared::decision::DecisionRequest;
use shared::id::{ReviewId, TaskId};
use shared::reassignment::Reassign;
use shared::review::Checked;

use crate::clock::Moment;
use crate::flow::{Compiled, work_limit};

/// Starts a run, and advances it until it has to wait. If it takes too much work until then, the run fails.
pub fn launch(flow: &Compiled, launch: RunStart, grants: Vec<Granted>, moment: Moment) -> Result<Transition, Refusal> {
    work_limit::within(work_limit::MAX_AT_ONCE, || {
        let mut builder = launch::start(flow, launch, moment)?;
        builder.grants = grants;
        advance(&mut builder);
        Ok(builder.finish(None))
    })
}

/// Applies an input to a run, and advances it until it has to wait. Passed deadlines come first, then the votes of
/// those who have lost their right: if there were any, the transition must be committed even if the input itself is
/// refused ([`Transition::refused`]). If all of this takes too much work, the run fails.
///
/// A view changes nothing: it only adds its entry, and the run keeps its revision.
pub fn apply(flow: &Compiled, snapshot: Snapshot, input: Input, moment: Moment) -> Result<Transition, Refusal> {
    work_limit::within(work_limit::MAX_AT_ONCE, || respond(flow, snapshot, input, moment))
}

fn respond(flow: &Compiled, snapshot: Snapshot, input: Input, moment: Moment) -> Result<Transition, Refusal> {
    if let Input::Viewed { review, by, seen } = input {
        let mut builder = Builder::resume(flow, snapshot, moment);
        builder.viewed(review, &by, seen)?;
        return Ok(builder.into_transition(None));
    }
    let mut builder = resume(flow, snapshot, moment);
    let expired = expire_overdue(&mut builder);
    let to_recount = builder.to_recount(matches!(input, Input::Recount));
    let recounted = recount(&mut builder, to_recount);
    if expired || recounted {
        advance(&mut builder);
    }
    match carry_out(&mut builder, input, recounted) {
        Ok(()) => {
            advance(&mut builder);
            Ok(builder.finish(None))
        }
        Err(refusal) if expired || recounted => Ok(builder.finish(Some(refusal))),
        Err(refusal) => Err(refusal),
    }
}

/// Continues a run as the store read it, whatever its format.
fn resume(flow: &Compiled, snapshot: Snapshot, moment: Moment) -> Builder<'_> {
    let mut builder = Builder::resume(flow, snapshot, moment);
    if builder.state.format < RunState::FORMAT {
        builder.record_requests();
    }
    builder
}

/// Applies all passed deadlines, earliest first. Returns whether there were any.
fn expire_overdue(builder: &mut Builder<'_>) -> bool {
    let mut expired = false;
    while builder.expire_overdue() {
        expired = true;
        builder.deliver();
    }
    expired
}

/// Advances the run until it has to wait, and bars those who have decided a step meanwhile from the reviews that check
/// it. That may end votes, and so let the run continue.
fn advance(builder: &mut Builder<'_>) {
    loop {
        builder.advance();
        let outdated = if builder.state.outcome.is_none() { builder.checks_with_new_deciders() } else { Vec::new() };
        if !recount(builder, outdated) {
            return;
        }
    }
}

/// Rechecks who may decide these reviews. Returns whether anything changed.
fn recount(builder: &mut Builder<'_>, reviews: Vec<ReviewId>) -> bool {
    let mut changed = false;
    for review in reviews {
        changed |= builder.recount(review);
        builder.deliver();
    }
    changed
}

/// Either refuses the input, with nothing changed, or applies it.
fn carry_out(builder: &mut Builder<'_>, input: Input, recounted: bool) -> Result<(), Refusal> {
    if let Some((task, Some(_))) = input.task()
        && (builder.state.outcome.is_some() || builder.state.unanswered.contains_key(&task))
    {
        return builder.record_late(task, &input);
    }
    match input {
        Input::Decide { review, by, via, request, replies, longest_grant_ms } => {
            builder.replies = replies;
            builder.longest_grant = longest_grant_ms.map(Duration::from_millis);
            builder.decide(review, &by, via, *request)
        }
        Input::GuardrailsAnswered { task, replies, .. } => builder.guardrails_answered(task, replies),
        Input::HandlerAnswered { task, digest, answer, .. } => builder.program_answered(task, &digest, answer),
        Input::CallBack { review, task, answer, replies } => {
            builder.replies = replies;
            builder.call_back(review, task, answer)
        }
        Input::ModelAnswered { task, answer, .. } => match builder.handler_asked_by(task) {
            Some(review) => {
                builder.judge_answered(review, &answer);
                Ok(())
            }
            None => builder.model_answered(task, answer),
        },
        Input::ToolReturned { task, result, .. } => builder.tool_returned(task, result),
        Input::TaskFailed { task, failure, .. } if builder.is_inquiry(task) => {
            builder.guardrails_unanswered(task, &failure.message)
        }
        Input::TaskFailed { task, failure, .. } => match builder.handler_asked_by(task) {
            Some(review) => {
                builder.handler_failed(review, &failure);
                Ok(())
            }
            None if builder.is_model_task(task) => builder.model_failed(task, &failure),
            None => builder.tool_failed(task, &failure),
        },
        Input::TaskLost { task, again: true, .. } => builder.call_again(task),
        Input::TaskLost { task, .. } => builder.tool_lost(task, None),
        Input::Fail { task, error, .. } => builder.fail_run(task, error),
        // Deadlines that have passed were applied before.
        Input::Due { task } if builder.is_ended(task) => Ok(()),
        Input::Due { task } => match builder.timed_by(task) {
            Some(review) => {
                builder.warn(review);
                Ok(())
            }
            None => builder.sleep_is_over(task),
        },
        // Voters were already checked again above.
        Input::Recount if recounted => Ok(()),
        Input::Recount | Input::Viewed { .. } => Err(Refusal::Unchanged),
        Input::Cancel { by, reason } => builder.cancel(&by, reason),
        Input::Claim { review, by, via } => builder.claim(review, &by, via),
        Input::Release { review, by, via } => builder.release(review, &by, via),
        Input::Delegate { review, by, via, to, person } => builder.delegate(review, &by, via, &to, person.as_ref()),
        Input::Reassign { review, by, via, from, to, reason } => {
            builder.reassign(review, &by, via, &Reassign { from, to, reason })
        }
        Input::Comment { review, by, via, text } => builder.comment(review, &by, via, text),
        Input::Withdraw { review, by, via, reason } => builder.take_back(review, &by, via, reason.as_deref()),
        Input::Feedback { by, involvement, feedback } => builder.take_feedback(&by, involvement, feedback),
    }
}

/// Returns what guardrails would do with a decision, without making it.
pub fn check(
    flow: &Compiled,
    snapshot: Snapshot,
    review: ReviewId,
    by: &Principal,
    request: &DecisionRequest,
    replies: &[GuardrailReply],
    moment: Moment,
) -> Result<Checked, Refusal> {
    work_limit::within(work_limit::MAX_AT_ONCE, || {
        let mut builder = resume(flow, snapshot, moment);
        builder.replies = replies.to_vec();
        builder.check_only(review, by, request)
    })
}

/// Ends a run without its flow: the input cancels it, or makes it fail. This works even if the flow can no longer be
/// read, or if working with it fails.
pub fn end(snapshot: Snapshot, input: Input, moment: Moment) -> Result<Transition, Refusal> {
    let flow = Compiled::without_nodes(snapshot.state.flow.clone(), snapshot.state.version);
    let mut builder = Builder::resume(&flow, snapshot, moment);
    match input {
        Input::Cancel { by, reason } => builder.cancel(&by, reason)?,
        Input::Fail { task, error, .. } => builder.fail_run(task, error)?,
        _ => return Err(Refusal::Unchanged),
    }
    Ok(builder.finish(None))
}

/// Ends a run that cannot be read completely, of which only the open reviews and the tasks are known: it is cancelled,
/// and has failed for that reason.
pub fn give_up(
    snapshot: Snapshot,
    why: &str,
    tasks: &[TaskId],
    by: &Principal,
    reason: Option<&str>,
    moment: Moment,
) -> Result<Transition, Refusal> {
    let flow = Compiled::without_nodes(snapshot.state.flow.clone(), snapshot.state.version);
    let mut builder = Builder::resume(&flow, snapshot, moment);
    builder.give_up(why, tasks, by, reason)?;
    Ok(builder.finish(None))
}
