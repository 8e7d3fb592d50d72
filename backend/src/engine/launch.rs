//! Starts a run: checks its input, and sends the first branch to the start node.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use shared::JsonMap;
use shared::access::Principal;
use shared::error::Mistake;
use shared::feedback::Feedback;
use shared::id::{FlowId, RunId, TokenId, Username};
use shared::log::{EventData, OfRun};
use shared::run::Context;
use shared::topic::topic;

use super::builder::Builder;
use super::next::Arrival;
use super::state::RunState;
use super::transition::Refusal;
use crate::clock::Moment;
use crate::flow::Compiled;
use crate::limits;

/// The start of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunStart {
    /// The new run's id.
    pub run: RunId,
    /// The flow to run; that of a run that carries a question is not stored, and its name begins with `question-`.
    pub flow: FlowId,
    /// The version of the flow.
    pub version: u32,
    /// The input of the run, which the engine checks against the flow's `input`.
    #[serde(default, skip_serializing_if = "JsonMap::is_empty")]
    #[serde(serialize_with = "shared::user_data::members")]
    pub input: JsonMap,
    /// User, tenant, session and metadata of the run, which templates see as `context`.
    #[serde(default, skip_serializing_if = "shared::is_default")]
    pub context: Context,
    /// Whether decisions leave the given `context.metadata` unchanged. False in launches from before this rule.
    #[serde(default)]
    pub keeps_metadata: bool,
    /// The user who starts the run.
    pub requested_by: Username,
    /// The token with which they start it; `None` for a session, and in launches of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<TokenId>,
    /// The users and their roles, if the flow needs them; recorded beside the launch.
    #[serde(skip)]
    pub people: Option<Arc<[Principal]>>,
    /// The newest feedback on the flow's agents that receive it; recorded beside the launch.
    #[serde(skip)]
    pub feedback: Vec<Feedback>,
}

/// Creates a run. Members that the input leaves out get the `default` of its schema; its properties become state keys.
pub(super) fn start(flow: &Compiled, launch: RunStart, moment: Moment) -> Result<Builder<'_>, Refusal> {
    for (place, members) in [("/input", &launch.input), ("/context/metadata", &launch.context.metadata)] {
        limits::check_map(members)
            .map_err(|exceeded| Refusal::Invalid(vec![Mistake::new(place, "invalid", exceeded.to_string())]))?;
    }
    let input = checked_input(flow, launch.input).map_err(Refusal::Invalid)?;
    let Some(start) = flow.flow.start().cloned() else {
        return Err(Refusal::Invalid(vec![Mistake::new("/flow", "invalid", "the flow has no nodes")]));
    };
    let state = RunState {
        format: RunState::FORMAT,
        id: launch.run,
        flow: launch.flow,
        title: flow.flow.title().to_owned(),
        topic: topic(&input),
        version: launch.version,
        revision: 0,
        requested_by: launch.requested_by,
        token: launch.token,
        created_at: moment.now,
        updated_at: moment.now,
        keys: state_keys(flow, &input),
        launch_metadata: launch.keeps_metadata.then(|| launch.context.metadata.keys().cloned().collect()),
        input,
        context: launch.context,
        decisions: std::collections::BTreeMap::new(),
        visits: std::collections::BTreeMap::new(),
        answers: std::collections::BTreeMap::new(),
        branches: std::collections::BTreeMap::new(),
        questions: Vec::new(),
        next_branch: 1,
        agent_calls: Vec::new(),
        total_tokens: 0,
        tasks_begun: 0,
        total_cost_usd: 0.0,
        outcome: None,
        unanswered: std::collections::BTreeMap::new(),
        deciders: std::collections::BTreeMap::new(),
        frames: std::collections::BTreeMap::new(),
    };
    let mut builder = Builder::start(flow, state, moment);
    builder.people = launch.people;
    builder.feedback = launch.feedback;
    let by = builder.state.launched_by();
    builder.emit_run(Some(by), |run| EventData::RunStarted(OfRun { run }));
    let first = builder.next_number();
    builder.arrivals.push_back(Arrival::at(first, start));
    Ok(builder)
}

/// Returns the input with defaults, if it fits its flow. `Err` has every mistake, with paths below `/input`.
pub(super) fn checked_input(flow: &Compiled, input: JsonMap) -> Result<JsonMap, Vec<Mistake>> {
    let input = with_defaults(flow, input);
    let mistakes = flow.check_input(&input);
    if mistakes.is_empty() { Ok(input) } else { Err(mistakes) }
}

/// Returns the state keys that an input sets: the properties that its schema lists, or everything if the schema lists
/// none. A key cannot hide a name that the format reserves ([`super::scope`]).
pub(super) fn state_keys(flow: &Compiled, input: &JsonMap) -> JsonMap {
    let listed = properties(flow);
    let becomes_key = |key: &String| listed.is_none_or(|properties| properties.contains_key(key));
    input.iter().filter(|(key, _)| becomes_key(key)).map(|(key, value)| (key.clone(), value.clone())).collect()
}

pub(super) fn properties(flow: &Compiled) -> Option<&JsonMap> {
    flow.flow.input.as_ref()?.get("properties")?.as_object()
}

fn with_defaults(flow: &Compiled, mut input: JsonMap) -> JsonMap {
    for (key, property) in properties(flow).into_iter().flatten() {
        if let Some(default) = property.get("default").filter(|_| !input.contains_key(key)) {
            input.insert(key.clone(), default.clone());
        }
    }
    input
}
