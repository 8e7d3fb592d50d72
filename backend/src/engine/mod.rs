//! The engine: what a run does next. Pure: `(flow, snapshot, input, moment) -> transition or refusal`. It never awaits,
//! never reads a clock, never touches a database; the same inputs give the same transition, so a logged run can be
//! replayed and checked.
//!
//! Imports `shared`, `crate::clock` (for [`Moment`]) and `crate::flow` only.

mod advance;
mod answer;
mod ask;
mod ask_builtin;
mod builder;
mod cancel;
mod carrier;
mod conversation;
mod digest;
mod edges;
mod emit;
mod ending;
mod event;
mod feedback;
mod input;
mod invoke;
mod item;
mod late_results;
mod launch;
mod looked;
pub(crate) mod model_call;
mod next;
mod nodes;
mod phase;
mod question;
mod request;
mod retry;
mod roster;
mod ruling;
mod scope;
mod spent;
mod state;
mod steps;
mod team;
mod transition;
mod upgrade;
mod view;
mod work;

#[cfg(test)]
mod tests;

pub use crate::flow::guardrail::{GuardrailAnswer, GuardrailPrograms, Inquiry};
pub use carrier::{Carrier, is_carrier, question_of};
pub use conversation::{Conversation, Message, ToolCall, ToolCallState};
pub use digest::of_inquiry as digest_of_inquiry;
pub use input::{HandlerAnswer, Input, Launch, ModelAnswer, ModelToolCall, TaskFailure};
pub use looked::Looked;
pub use phase::{Branch, Phase};
pub use question::{Approval, Asked, Question, Subject, Timer};
#[cfg(test)]
pub use request::request_of;
pub use state::{Frame, RunOutcome, RunState, Unanswered};
pub use transition::{Granted, Refusal, Snapshot, Task, TaskKind, Transition};
pub use view::{given_out, report, run as view, summary};
pub use work::{HandlerRequest, ModelRequest, ToolRequest, ToolSpec, Work, of as work};

use builder::Builder;
use shared::access::Principal;
use shared::decision::DecisionRequest;
use shared::id::{ReviewId, TaskId};
use shared::review::Checked;

use crate::clock::Moment;
use crate::flow::Compiled;

/// Starts a run, and goes as far as it can without anybody.
pub fn launch(flow: &Compiled, launch: Launch, grants: Vec<Granted>, moment: Moment) -> Result<Transition, Refusal> {
    let mut builder = launch::start(flow, launch, moment)?;
    builder.grants = grants;
    builder.advance();
    Ok(builder.finish(None))
}

/// Applies an input to a run, and goes as far as it can without anybody. Deadlines that have passed come first, then the
/// votes of those who have lost their right: where there were such, the transition is to be committed even if the input
/// itself is refused ([`Transition::refused`]).
pub fn apply(flow: &Compiled, snapshot: Snapshot, input: Input, moment: Moment) -> Result<Transition, Refusal> {
    let mut builder = resume(flow, snapshot, moment);
    let expired = expire_overdue(&mut builder);
    let recounted = recount(&mut builder, matches!(input, Input::Recount));
    if expired || recounted {
        builder.advance();
    }
    match carry_out(&mut builder, input, recounted) {
        Ok(()) => {
            builder.advance();
            Ok(builder.finish(None))
        }
        Err(refusal) if expired || recounted => Ok(builder.finish(Some(refusal))),
        Err(refusal) => Err(refusal),
    }
}

/// Goes on with a run as the store read it, whatever its format.
fn resume(flow: &Compiled, snapshot: Snapshot, moment: Moment) -> Builder<'_> {
    let mut builder = Builder::resume(flow, snapshot, moment);
    if builder.state.format < RunState::FORMAT {
        builder.record_requests();
    }
    builder
}

/// Lets the time of everything that is over be over, the earliest first. Says whether there was something.
fn expire_overdue(builder: &mut Builder<'_>) -> bool {
    let mut expired = false;
    while builder.expire_overdue() {
        expired = true;
        builder.deliver();
    }
    expired
}

/// Looks again at who may vote; `all`: also where people are only named. Says whether anything changed.
fn recount(builder: &mut Builder<'_>, all: bool) -> bool {
    let mut changed = false;
    for review in builder.to_recount(all) {
        changed |= builder.recount(review);
        builder.deliver();
    }
    changed
}

/// Either refuses the input, with nothing changed, or carries it out.
fn carry_out(builder: &mut Builder<'_>, input: Input, recounted: bool) -> Result<(), Refusal> {
    if let Some((task, Some(_))) = input.task()
        && (builder.state.outcome.is_some() || builder.state.unanswered.contains_key(&task))
    {
        return builder.record_late(task, &input);
    }
    match input {
        Input::Decide { review, by, via, request, looked } => {
            builder.looked = looked;
            builder.decide(review, &by, via, *request)
        }
        Input::GuardrailsAnswered { task, looked, .. } => builder.guardrails_answered(task, looked),
        Input::HandlerAnswered { task, digest, answer, .. } => builder.program_answered(task, &digest, answer),
        Input::CallBack { review, task, answer, looked } => {
            builder.looked = looked;
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
        Input::TaskFailed { task, failure, .. } if builder.is_look(task) => {
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
        // The server says that somebody's rights have changed: they were looked at before.
        Input::Recount if recounted => Ok(()),
        Input::Recount => Err(Refusal::Unchanged),
        Input::Cancel { by, reason } => builder.cancel(&by, reason),
        Input::Claim { review, by, via } => builder.claim(review, &by, via),
        Input::Release { review, by, via } => builder.release(review, &by, via),
        Input::Delegate { review, by, via, to, person } => builder.delegate(review, &by, via, &to, person.as_ref()),
        Input::Comment { review, by, via, text } => builder.comment(review, &by, via, text),
        Input::Withdraw { review, by, via, reason } => builder.take_back(review, &by, via, reason.as_deref()),
        Input::Feedback { by, involvement, feedback } => builder.take_feedback(&by, involvement, feedback),
        Input::View { review, by } => builder.viewed(review, &by),
    }
}

/// What guardrails would do with a decision, without making it.
pub fn check(
    flow: &Compiled,
    snapshot: Snapshot,
    review: ReviewId,
    by: &Principal,
    request: &DecisionRequest,
    looked: &[Looked],
    moment: Moment,
) -> Result<Checked, Refusal> {
    let mut builder = resume(flow, snapshot, moment);
    builder.looked = looked.to_vec();
    builder.check_only(review, by, request)
}

/// Ends a run without its flow: the input cancels it, or lets it fail. This works where the flow cannot be read any more,
/// and where working with it fails.
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

/// Ends a run of which something cannot be read, and of which nothing is known but its open reviews and its tasks:
/// somebody cancels it, and it has failed for that reason.
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
