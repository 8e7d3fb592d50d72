//! The run as lists and the API show it, derived from the state.

use std::collections::BTreeMap;

use shared::JsonMap;
use shared::id::ReviewId;
use shared::review::Review;
use shared::run::{Activity, Position, Report, Run, RunStatus, RunSummary, Step, Usage};
use shared::time::Timestamp;

use super::state::{RunOutcome, RunState};
use crate::flow::Compiled;

/// Derives the status of a run: it waits for a person if it waits for a pending review, and nothing is due, running or
/// retrying.
pub(super) fn status(state: &RunState) -> RunStatus {
    match state.outcome {
        Some(RunOutcome::Completed { .. }) => RunStatus::Completed,
        Some(RunOutcome::Failed { .. }) => RunStatus::Failed,
        Some(RunOutcome::Cancelled { .. }) => RunStatus::Cancelled,
        None => {
            let works = state.branches.values().any(|branch| !branch.phase.tasks().is_empty())
                || state.questions.iter().any(|question| question.task().is_some());
            let asks = state.questions.iter().any(|question| question.pending && question.blocks());
            if asks && !works { RunStatus::WaitingForHuman } else { RunStatus::Running }
        }
    }
}

/// Returns the run as lists show it.
pub fn summary(state: &RunState) -> RunSummary {
    let (ended_at, error) = match &state.outcome {
        Some(RunOutcome::Failed { at, error }) => (Some(*at), Some(error.clone())),
        Some(RunOutcome::Completed { at } | RunOutcome::Cancelled { at, .. }) => (Some(*at), None),
        None => (None, None),
    };
    let pending = state.questions.iter().filter(|question| question.pending).count();
    RunSummary {
        id: state.id,
        flow: state.flow.clone(),
        title: state.title.clone(),
        topic: state.topic.clone(),
        version: state.version,
        status: status(state),
        revision: state.revision,
        requested_by: state.requested_by.clone(),
        created_at: state.created_at,
        updated_at: state.updated_at,
        ended_at,
        pending_reviews: u32::try_from(pending).unwrap_or(u32::MAX),
        error,
    }
}

/// Returns a report of what happened in a run so far.
pub fn report(
    run: &RunSummary,
    output: Option<JsonMap>,
    steps: Vec<Step>,
    reviews: Vec<Review>,
    now: Timestamp,
) -> Report {
    let until = run.ended_at.unwrap_or(now);
    let duration_ms = u64::try_from(until.since(run.created_at).as_millis()).unwrap_or(u64::MAX);
    let RunSummary { id: run_id, version, status, .. } = *run;
    let (flow, error) = (run.flow.clone(), run.error.clone());
    Report { run_id, flow, version, status, output, error, duration_ms, steps, reviews }
}

/// Returns the run as the API shows it.
pub fn shown_run(flow: Option<&Compiled>, state: &RunState) -> Run {
    let cancel_reason = match &state.outcome {
        Some(RunOutcome::Cancelled { reason, .. }) => reason.clone(),
        _ => None,
    };
    let activities = state.activities();
    let open = state.questions.iter().filter(|question| question.pending);
    // The first of each branch: they are inserted in reverse, and the last insertion counts.
    let pending: BTreeMap<u32, ReviewId> =
        open.rev().filter_map(|question| Some((question.subject.branch()?, question.review))).collect();
    let positions = state.branches.iter().map(|(number, branch)| Position {
        node: branch.node.clone(),
        visit: branch.phase.step().map_or(0, |step| step.visit),
        part: branch.phase.step().and_then(|step| step.part),
        activity: activities.get(number).copied().unwrap_or(Activity::Running),
        review: pending.get(number).copied(),
    });
    Run {
        summary: summary(state),
        input: state.input.clone(),
        state: state.keys.clone(),
        calls: state.frames.iter().map(|(call, frame)| (call.clone(), frame.keys.clone().into())).collect(),
        output: flow.and_then(|flow| given_out(flow, state)),
        context: state.context.clone(),
        positions: positions.collect(),
        agents: flow.map(agents).unwrap_or_default(),
        cancel_reason,
    }
}

/// Returns the output of a run; `None` until it has completed.
pub fn given_out(flow: &Compiled, state: &RunState) -> Option<JsonMap> {
    let completed = matches!(state.outcome, Some(RunOutcome::Completed { .. }));
    completed.then(|| output(flow, &state.keys))
}

/// Returns the flow's output keys, as far as its state has them; all keys if the flow names none.
pub(super) fn output(flow: &Compiled, keys: &JsonMap) -> JsonMap {
    match &flow.flow.output {
        None => keys.clone(),
        Some(named) => named.iter().filter_map(|key| Some((key.clone(), keys.get(key)?.clone()))).collect(),
    }
}

/// Returns the usage of the run up to `now`.
pub(super) fn usage(state: &RunState, now: Timestamp) -> Usage {
    Usage {
        agent_calls: state.agent_calls.clone(),
        total_tokens: state.total_tokens,
        total_cost_usd: state.total_cost_usd,
        elapsed_ms: u64::try_from(now.since(state.created_at).as_millis()).unwrap_or(u64::MAX),
    }
}

/// Returns the agents of a flow and of those that it calls, each once.
fn agents(flow: &Compiled) -> Vec<String> {
    let mut names = Vec::new();
    for name in flow.with_called().flat_map(|flow| flow.flow.agents.keys()) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}
