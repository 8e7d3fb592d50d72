//! One claimed task: what is to be done for it, doing it, and putting the answer in.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::FutureExt;
use serde_json::Value;
use shared::error::FlowCode;
use tokio_util::sync::CancellationToken;

use super::Options;
use crate::engine::{self, Input, ModelAnswer, ModelRequest, Refusal, Task, TaskFailure, TaskKind, Work};
use crate::limits::{self, Exceeded};
use crate::store::{Change, Claimed, CommitError, Error, Operation};
use crate::stream::Chunk;

/// The waits between two tries to reach the database.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// Does what a task asks, and puts the answer in. While it is at work, `lost` breaks it off; once there is an answer,
/// only the store says whether it still counts.
pub(super) async fn handle(options: Arc<Options>, claimed: Claimed, lost: CancellationToken) {
    let kind = kind(&claimed.task.kind);
    let begun = options.clock.now();
    // Whatever panics in a call must not take the task down with it.
    let answered = AssertUnwindSafe(input(&options, &claimed)).catch_unwind();
    let input = tokio::select! {
        () = lost.cancelled() => {
            tracing::info!("the task is held no longer: its call was broken off");
            count(kind, "lost");
            return;
        }
        answered = answered => answered.unwrap_or_else(|_| {
            tracing::error!("a call panicked");
            let failure = failure(&claimed.task, "the call broke down: the server's log says where", false);
            Some(failed(&claimed, TaskFailure { uncertain: true, ..failure }))
        }),
    };
    metrics::histogram!("countersign_worker_call_seconds", "kind" => kind)
        .record(options.clock.now().since(begun).as_secs_f64());
    let Some(input) = input else {
        tracing::debug!("the task is over");
        count(kind, "over");
        return;
    };
    count(kind, result(&input));
    commit(&options, &claimed.task, input).await;
}

/// What there is to tell the run; nothing where the task is over.
async fn input(options: &Options, claimed: &Claimed) -> Option<Input> {
    let task = &claimed.task;
    if !task.kind.is_call() {
        return Some(Input::Due { task: task.id });
    }
    if claimed.lost_before && !task.repeatable {
        return Some(Input::TaskLost { task: task.id, attempt: claimed.attempt });
    }
    let store = &options.store;
    let state = patiently(|| store.run(task.run)).await?;
    let Some(flow) = patiently(|| store.compiled(&state.flow, state.version)).await else {
        let missing = format!("version {} of the flow `{}` is not stored here", state.version, state.flow);
        return Some(failed(claimed, failure(task, missing, false)));
    };
    Some(match engine::work(&flow, &state, task)? {
        Work::Model(request) => match call_model(options, claimed, &request).await {
            Ok(answer) => Input::ModelAnswered { task: task.id, attempt: claimed.attempt, answer },
            Err(failure) => failed(claimed, failure),
        },
        Work::Tool(request) => match options.tools.call(&request).await.and_then(|result| bounded(task, result)) {
            Ok(result) => Input::ToolReturned { task: task.id, attempt: claimed.attempt, result },
            Err(failure) => failed(claimed, failure),
        },
        Work::Refuse(failure) => failed(claimed, failure),
    })
}

async fn call_model(options: &Options, claimed: &Claimed, request: &ModelRequest) -> Result<ModelAnswer, TaskFailure> {
    let said = AtomicU64::new(0);
    let on_text = |text: &str| {
        options.streams.send(Chunk {
            run: request.run,
            node: request.node.clone(),
            visit: request.visit,
            attempt: claimed.attempt,
            offset: said.fetch_add(text.len() as u64, Ordering::Relaxed),
            text: text.to_owned(),
        });
    };
    let begun = options.clock.now();
    let mut answer = options.models.call(request, &on_text).await?;
    answer.check_size().map_err(|exceeded| too_large(&claimed.task, exceeded))?;
    let took = options.clock.now().since(begun);
    answer.duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    Ok(answer)
}

/// What a tool returned, where it is within the limits of a value.
fn bounded(task: &Task, result: Value) -> Result<Value, TaskFailure> {
    limits::check(&result).map_err(|exceeded| too_large(task, exceeded))?;
    Ok(result)
}

fn too_large(task: &Task, exceeded: Exceeded) -> TaskFailure {
    failure(task, format!("the answer is {exceeded}"), false)
}

/// Puts the answer in. The database is given time to come back: an answer that cost something is not thrown away.
async fn commit(options: &Options, task: &Task, input: Input) {
    let change = Change::by_server(Operation::Run { run: task.run, input: Box::new(input) });
    let mut waits = Waits::default();
    loop {
        match options.store.commit(change.clone()).await {
            Ok(_) => return,
            Err(CommitError::Refused(refusal @ (Refusal::TaskOver | Refusal::RunOver))) => {
                tracing::debug!(%refusal, "the answer came too late");
                return;
            }
            Err(error @ (CommitError::Unavailable(_) | CommitError::Database(_) | CommitError::Unknown(_))) => {
                tracing::warn!(%error, "the answer could not be stored; it is tried again");
                tokio::time::sleep(waits.next()).await;
            }
            Err(error) => {
                tracing::error!(%error, "the answer was refused; the task is tried again when its lease has run out");
                return;
            }
        }
    }
}

/// Reads from the store, and waits for a database that is away.
async fn patiently<T, F: Future<Output = Result<T, Error>>>(read: impl Fn() -> F) -> T {
    let mut waits = Waits::default();
    loop {
        match read().await {
            Ok(found) => return found,
            Err(error) => {
                tracing::warn!(%error, "the run could not be read; it is tried again");
                tokio::time::sleep(waits.next()).await;
            }
        }
    }
}

/// Waits that double.
#[derive(Default)]
struct Waits(Option<Duration>);

impl Waits {
    fn next(&mut self) -> Duration {
        let wait = self.0.map_or(FIRST_WAIT, |last| (last * 2).min(LONGEST_WAIT));
        self.0 = Some(wait);
        wait
    }
}

/// The longest message of a failure, in characters: it may be what a program outside said.
const MAX_MESSAGE: usize = 4000;

fn failed(claimed: &Claimed, mut failure: TaskFailure) -> Input {
    if let Some((end, _)) = failure.message.char_indices().nth(MAX_MESSAGE) {
        failure.message.truncate(end);
    }
    Input::TaskFailed { task: claimed.task.id, attempt: claimed.attempt, failure }
}

fn failure(task: &Task, message: impl Into<String>, retryable: bool) -> TaskFailure {
    let code = match task.kind {
        TaskKind::Model { .. } => FlowCode::ModelFailed,
        _ => FlowCode::ToolFailed,
    };
    TaskFailure { code, message: message.into(), retryable, uncertain: false }
}

fn kind(kind: &TaskKind) -> &'static str {
    match kind {
        TaskKind::Model { .. } => "model",
        TaskKind::Tool { .. } => "tool",
        TaskKind::Deadline { .. } | TaskKind::Wake { .. } => "timer",
    }
}

fn result(input: &Input) -> &'static str {
    match input {
        Input::TaskFailed { .. } => "failed",
        Input::TaskLost { .. } => "lost",
        _ => "ok",
    }
}

fn count(kind: &'static str, result: &'static str) {
    metrics::counter!("countersign_worker_calls_total", "kind" => kind, "result" => result).increment(1);
}
