//! One claimed task: reads its work, executes it, and commits the answer.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::FutureExt;
use serde_json::Value;
use shared::error::{FlowCode, FlowError};
use shared::request::Request;
use tokio_util::sync::CancellationToken;

use super::WorkerOptions;
use crate::engine::{
    self, GuardrailReply, HandlerRequest, Input, ModelAnswer, ModelRequest, ModelUsage, Refusal, RunState, Task,
    TaskFailure, TaskKind, ToolRequest, Work,
};
use crate::flow::guardrail::ask_all;
use crate::flow::on_large_stack;
use crate::limits::{self, Exceeded};
use crate::store::{
    Change, Claimed, CommitError, Error, ExponentialBackoff, Operation, Progress, WorkTable, with_retries,
};
use crate::token_stream::Chunk;

/// The number of lost workers after which a task's step fails. If that also ends the process, the run fails after
/// [`MORE`] more.
pub(super) const MOST_LOST: u32 = 5;
const MORE: u32 = 2;
/// The delay of a task that this server can neither carry out nor give up; a later version may be able to.
const PARKED: Duration = Duration::from_hours(1);

/// The reason why a task yields no input for its run.
enum NoInput {
    /// The task is over.
    Over,
    /// The run was continued by a newer server.
    Newer,
    /// The run or its flow could not be read from the store; the message says why.
    Unreadable(String),
}

impl From<Error> for NoInput {
    fn from(error: Error) -> Self {
        Self::Unreadable(error.to_string())
    }
}

/// Carries out a task, and commits its result. `lost` aborts the work; once there is a result, only the store decides
/// whether it still counts. `abandoned` is cancelled when the result is no longer needed.
pub(super) async fn handle(
    options: Arc<WorkerOptions>,
    claimed: Claimed,
    lost: CancellationToken,
    abandoned: CancellationToken,
) {
    let kind = kind(&claimed.task.kind);
    let begun = options.clock.now();
    if claimed.lost_before {
        tracing::warn!(lost = claimed.lost, "the worker that held this task before was lost, or stopped");
    }
    // A panic in a call must not end the task without a result.
    let answered = AssertUnwindSafe(input(&options, &claimed, &abandoned)).catch_unwind();
    let input = tokio::select! {
        () = lost.cancelled() => {
            tracing::info!("the task is no longer held; its call was aborted");
            count(kind, "lost");
            return;
        }
        answered = answered => answered.unwrap_or_else(|_| {
            tracing::error!("a call panicked");
            let failure = failure(&claimed.task, "the call panicked; see the server's log");
            Ok(failed(&claimed, TaskFailure { uncertain: true, ..failure }))
        }),
    };
    metrics::histogram!("countersign_worker_call_seconds", "kind" => kind)
        .record(options.clock.now().since(begun).as_secs_f64());
    match input {
        Ok(input) => {
            count(kind, result(&input));
            commit(&options, &claimed, input).await;
        }
        Err(NoInput::Over) => {
            tracing::debug!("the task is over");
            count(kind, "over");
        }
        // A call is made only once its run was read.
        Err(NoInput::Newer) => {
            count(kind, "newer");
            hand_over(&options, &claimed, Progress::NotBegun).await;
        }
        Err(NoInput::Unreadable(why)) => park(&options, &claimed, Progress::NotBegun, &why).await,
    }
}

/// Carries out a task, and returns the input for its run.
async fn input(options: &WorkerOptions, claimed: &Claimed, abandoned: &CancellationToken) -> Result<Input, NoInput> {
    let task = &claimed.task;
    let asks = claimed.lost_before && !task.repeatable && task.kind.is_call();
    if asks && claimed.lost < MOST_LOST {
        return Ok(Input::TaskLost { task: task.id, attempt: claimed.attempt, again: false });
    }
    if claimed.lost >= MOST_LOST {
        return Ok(given_up(claimed));
    }
    if !task.kind.is_call() {
        return Ok(Input::Due { task: task.id });
    }
    if claimed.lost_before {
        tell_lost_attempt(options, claimed).await?;
    }
    let store = &options.store;
    // The run may have been continued since the claim.
    let format = with_retries(|| store.format_of(task.run)).await?.ok_or(NoInput::Over)?;
    if format > RunState::FORMAT {
        return Err(NoInput::Newer);
    }
    let state = with_retries(|| store.run(task.run)).await?.ok_or(NoInput::Over)?;
    let flow = match with_retries(|| store.flow_of(&state)).await? {
        Ok(flow) => flow,
        Err(why) => return Ok(end(claimed, FlowCode::FlowUnreadable, why)),
    };
    // One stack for all its templates.
    let work = on_large_stack(|| engine::work(&flow, &state, task));
    Ok(match work.ok_or(NoInput::Over)? {
        Work::Model(mut request) => {
            options.tools.describe(&mut request.tools).await;
            match call_model(options, claimed, &request).await {
                Ok(answer) => Input::ModelAnswered { task: task.id, attempt: claimed.attempt, answer },
                Err(failure) => failed(claimed, failure),
            }
        }
        Work::Tool(request) => {
            match call_tool(options, &request, abandoned).await.and_then(|result| bounded(task, result)) {
                Ok(result) => Input::ToolReturned { task: task.id, attempt: claimed.attempt, result },
                Err(failure) => failed(claimed, failure),
            }
        }
        Work::Ask { handler, review, composed, until } => {
            let review = match composed {
                Some(review) => *review,
                None => with_retries(|| store.review(review)).await?.ok_or(NoInput::Over)?,
            };
            ask(options, claimed, HandlerRequest { task: task.id, handler: *handler, review, until }).await
        }
        Work::Inquire(inquiries) => {
            let answers = ask_all(&*options.programs, &inquiries, None, usize::MAX).await;
            let replies = GuardrailReply::all(&inquiries, answers);
            Input::GuardrailsAnswered { task: task.id, attempt: claimed.attempt, replies }
        }
        Work::Refuse(failure) => failed(claimed, failure),
    })
}

/// Lets the log of the run say that its call is made again, since the worker of the attempt before is gone. If that
/// fails, the call is made all the same.
async fn tell_lost_attempt(options: &WorkerOptions, claimed: &Claimed) -> Result<(), NoInput> {
    let input = Box::new(Input::TaskLost { task: claimed.task.id, attempt: claimed.attempt, again: true });
    let told = options.store.commit(Change::by_server(Operation::Run { run: claimed.task.run, input })).await;
    match told {
        Err(CommitError::Refused(Refusal::TaskOver | Refusal::RunOver)) => Err(NoInput::Over),
        Err(CommitError::NewerFormat(_)) => Err(NoInput::Newer),
        Err(error) => {
            tracing::warn!(%error, "the log of the run does not say that the attempt before was lost");
            Ok(())
        }
        Ok(_) => Ok(()),
    }
}

/// Asks a program that is a handler.
async fn ask(options: &WorkerOptions, claimed: &Claimed, mut request: HandlerRequest) -> Input {
    // Secret votes are hidden from programs too.
    request.review = request.review.seen_by(None);
    let digest = request.review.digest.clone();
    let (task, attempt) = (claimed.task.id, claimed.attempt);
    match options.programs.ask(&request).await {
        Ok(answer) => Input::HandlerAnswered { task, attempt, digest, answer },
        Err(failure) => failed(claimed, failure),
    }
}

/// Gives up a task that keeps losing its workers: its step fails. The run fails instead if the task is a timer, which
/// has no step that could fail, or if failing the step ends the process too.
fn given_up(claimed: &Claimed) -> Input {
    let message = format!(
        "given up: the server ended {} times while it ran this, for an unknown reason; see its log",
        claimed.lost
    );
    tracing::error!(lost = claimed.lost, "a task is given up: the server keeps ending while it runs it");
    if claimed.task.kind.is_call() && claimed.lost < MOST_LOST + MORE {
        failed(claimed, TaskFailure { uncertain: true, ..TaskFailure::new(FlowCode::TaskAbandoned, message) })
    } else {
        end(claimed, FlowCode::TaskAbandoned, message)
    }
}

/// Makes a tool call. If the result is no longer needed, a call of an MCP server is cancelled. Other calls are awaited
/// for the audit log, since closing their connection would undo nothing.
async fn call_tool(
    options: &WorkerOptions,
    request: &ToolRequest,
    abandoned: &CancellationToken,
) -> Result<Value, TaskFailure> {
    tokio::select! {
        called = options.tools.call(request) => called,
        () = abandoned.cancelled(), if matches!(request.request, Request::Mcp { .. }) => {
            let message = "the call was cancelled because its run had ended; it is not known whether it took effect";
            Err(TaskFailure { uncertain: true, ..TaskFailure::new(FlowCode::ToolFailed, message) })
        }
    }
}

async fn call_model(
    options: &WorkerOptions,
    claimed: &Claimed,
    request: &ModelRequest,
) -> Result<ModelAnswer, TaskFailure> {
    let said = AtomicU64::new(0);
    let on_text = |text: &str| {
        options.streams.send(Chunk {
            run: request.run,
            node: request.node.clone(),
            visit: request.visit,
            agent: request.agent.clone(),
            task: claimed.task.id,
            attempt: claimed.attempt,
            offset: said.fetch_add(text.len() as u64, Ordering::Relaxed),
            text: text.to_owned(),
        });
    };
    let begun = options.clock.now();
    let answered = options.models.call(request, &on_text).await;
    let took = options.clock.now().since(begun);
    let duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    match answered {
        Ok(answer) => {
            let answer = ModelAnswer { duration_ms, ..answer };
            if let Err(exceeded) = answer.check_size() {
                return Err(TaskFailure { usage: Some(answer.usage()), ..too_large(&claimed.task, exceeded) });
            }
            Ok(answer)
        }
        Err(failure) => {
            let usage = failure.usage.map(|usage| ModelUsage { duration_ms, ..usage });
            Err(TaskFailure { usage, ..failure })
        }
    }
}

/// Checks a tool's result against the limits of a value. A larger result is an uncertain failure, since the call was
/// made.
fn bounded(task: &Task, result: Value) -> Result<Value, TaskFailure> {
    limits::check(&result).map_err(|exceeded| TaskFailure { uncertain: true, ..too_large(task, exceeded) })?;
    Ok(result)
}

fn too_large(task: &Task, exceeded: Exceeded) -> TaskFailure {
    failure(task, format!("the answer is {exceeded}"))
}

/// Commits a result. While the database is unreachable it tries again, since a result may have cost something. If the
/// result can never be committed, the step fails; if that cannot be committed either, the run fails.
async fn commit(options: &WorkerOptions, claimed: &Claimed, input: Input) {
    let run = claimed.task.run;
    let mut change = Change::by_server(Operation::Run { run, input: Box::new(input) });
    let mut backoff = ExponentialBackoff::default();
    loop {
        let (code, why) = match options.store.commit(change.clone()).await {
            Ok(_) => return,
            Err(CommitError::Refused(refusal @ (Refusal::TaskOver | Refusal::RunOver))) => {
                tracing::debug!(%refusal, "the answer came too late");
                return;
            }
            Err(error @ (CommitError::Unavailable(_) | CommitError::Unknown(_))) => {
                tracing::warn!(%error, "the answer could not be stored; trying again");
                tokio::time::sleep(backoff.next_wait()).await;
                continue;
            }
            Err(CommitError::NewerFormat(_)) => return hand_over(options, claimed, Progress::Begun).await,
            Err(CommitError::Unreadable(why)) => (FlowCode::FlowUnreadable, why),
            Err(CommitError::Failed(why)) => (FlowCode::EngineFailed, why),
            Err(CommitError::Refused(refusal @ Refusal::Invalid(_))) => (FlowCode::EngineFailed, refusal.to_string()),
            Err(error) => {
                tracing::error!(%error, "the answer was refused; the task is retried when its lease expires");
                return;
            }
        };
        let Operation::Run { input, .. } = &change.operation else { return };
        let Some(fallback) = fallback(claimed, input, code, &why) else {
            return park(options, claimed, Progress::Begun, &why).await;
        };
        tracing::error!(%why, "the answer cannot be stored; the step or the run fails instead");
        change = Change::by_server(Operation::Run { run, input: Box::new(fallback) });
    }
}

/// Returns the input to commit in place of one that can never be committed. `None` if there is nothing left to try.
fn fallback(claimed: &Claimed, refused: &Input, code: FlowCode, why: &str) -> Option<Input> {
    match refused {
        Input::Fail { .. } => None,
        Input::ModelAnswered { .. }
        | Input::ToolReturned { .. }
        | Input::HandlerAnswered { .. }
        | Input::GuardrailsAnswered { .. }
            if code == FlowCode::EngineFailed =>
        {
            let message = format!("its result could not be stored: {why}");
            let uncertain = matches!(refused, Input::ToolReturned { .. });
            let usage = match refused {
                Input::ModelAnswered { answer, .. } => Some(answer.usage()),
                _ => None,
            };
            Some(failed(claimed, TaskFailure { uncertain, usage, ..TaskFailure::new(code, message) }))
        }
        _ => Some(end(claimed, code, why.to_owned())),
    }
}

/// Leaves a task to the newer server that has continued its run. This worker was not lost, so it does not count as such.
async fn hand_over(options: &WorkerOptions, claimed: &Claimed, progress: Progress) {
    tracing::warn!("the run was continued by a newer server, which has to carry out its task");
    release(options, claimed, progress, Duration::ZERO).await;
}

/// Defers a task whose run can be neither read nor changed, so that it delays no other task.
async fn park(options: &WorkerOptions, claimed: &Claimed, progress: Progress, why: &str) {
    let (kind, hours) = (kind(&claimed.task.kind), PARKED.as_secs() / 3600);
    tracing::error!(%why, "the run cannot be read or changed; its task is retried in {hours} h");
    count(kind, "parked");
    release(options, claimed, progress, PARKED).await;
}

async fn release(options: &WorkerOptions, claimed: &Claimed, progress: Progress, delay: Duration) {
    let (owner, held) = (&options.terms.owner, [claimed.lease()]);
    if let Err(error) = options.store.release(WorkTable::Tasks, owner, &held, progress, delay).await {
        tracing::warn!(%error, "the task could not be released; it is retried when its lease expires");
    }
}

/// The maximum length of a failure's message, in characters. The message may come from another program.
const MAX_MESSAGE: usize = 4000;

fn failed(claimed: &Claimed, mut failure: TaskFailure) -> Input {
    if let Some((end, _)) = failure.message.char_indices().nth(MAX_MESSAGE) {
        failure.message.truncate(end);
    }
    Input::TaskFailed { task: claimed.task.id, attempt: claimed.attempt, failure }
}

/// Builds the input that fails the run.
fn end(claimed: &Claimed, code: FlowCode, message: String) -> Input {
    let error = FlowError { code, message, node: Some(claimed.task.node.clone()) };
    Input::Fail { task: claimed.task.id, attempt: claimed.attempt, error }
}

fn failure(task: &Task, message: impl Into<String>) -> TaskFailure {
    let code = match task.kind {
        TaskKind::Model { .. } => FlowCode::ModelFailed,
        TaskKind::Ask { .. } | TaskKind::Inquire { .. } => FlowCode::HandlerFailed,
        _ => FlowCode::ToolFailed,
    };
    TaskFailure::new(code, message)
}

fn kind(kind: &TaskKind) -> &'static str {
    match kind {
        TaskKind::Model { .. } => "model",
        TaskKind::Tool { .. } => "tool",
        TaskKind::Ask { .. } => "handler",
        TaskKind::Inquire { .. } => "guardrail",
        TaskKind::Deadline { .. } | TaskKind::Wake { .. } => "timer",
    }
}

fn result(input: &Input) -> &'static str {
    match input {
        Input::TaskFailed { .. } | Input::Fail { .. } => "failed",
        Input::TaskLost { .. } => "lost",
        _ => "ok",
    }
}

fn count(kind: &'static str, result: &'static str) {
    metrics::counter!("countersign_worker_calls_total", "kind" => kind, "result" => result).increment(1);
}
