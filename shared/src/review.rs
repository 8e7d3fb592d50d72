//! Reviews as the API shows them, and as they are stored: one thing that a person is asked.

mod kind;
mod resolution;
mod votes;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use strum::{IntoStaticStr, VariantArray};

use crate::JsonMap;
pub use crate::collaboration::{Advice, AskedHandler, Changes, Claim, Comment, Delegation, Judgement};
use crate::context::{Context, Part};
use crate::decision::{ActionDecision, Decision, Via};
use crate::definition::{
    ActionKind, AlternativeChoice, ChoiceKind, ContentType, OnTimeout, Policy, Reviewers, Severity, Stakes,
};
pub use kind::{AskedBy, ReviewKind};
pub use resolution::{Outcome, Resolution};

pub use crate::guardrail::{Checked, Veto, Warning};
use crate::id::{FlowId, NodeId, ReviewId, RunId, Username};
use crate::request::Request;
use crate::time::Timestamp;
use crate::usage::Usage;
use crate::voting::Voting;

/// That a review was told to wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Paused {
    /// Who said so.
    pub by: Username,
    /// The time of that decision; from then on no deadline runs.
    pub at: Timestamp,
}

/// Where a review stands. It leaves `pending` exactly once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ReviewStatus {
    /// Not resolved yet: it takes decisions and votes.
    Pending,
    /// People decided it, or a handler did, or a grant.
    Resolved,
    /// A timer decided, whatever it then did.
    Expired,
    /// The run went on without it, or somebody took it back.
    Withdrawn,
}

/// One thing that a person is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Review {
    /// A UUIDv7 that the server makes; it stays the same through all revisions.
    pub id: ReviewId,
    /// Raised when the content changes; a decision names it.
    pub revision: u32,
    /// `sha256:` over the canonical JSON (RFC 8785) of what is shown: kind, title, prompt, items, options, actions and
    /// consequences, and of severity, category, reversible, estimated cost and alternatives those that are said. A
    /// decision names it.
    pub digest: String,
    /// Raised by every change, votes and claims too; folds ignore older or equal ones.
    pub version: u64,
    /// What is asked.
    pub kind: ReviewKind,
    /// Where it stands.
    pub status: ReviewStatus,
    /// The run that waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The id of the run's flow; missing where a program asked over REST, without a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<FlowId>,
    /// The flow's title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow_title: Option<String>,
    /// The node that asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeId>,
    /// The visit of it, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visit: Option<u32>,
    /// Which item of a map it is about, where it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
    /// Who asks by itself; none where the flow asks: at a human node, at a gate, of a step that somebody took over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_by: Option<AskedBy>,
    /// How often the step that a correction runs again has been visited, and may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// A headline of one line: given by the flow or by whoever asks, else made from the prompt or the calls.
    pub title: String,
    /// The question; fixed when asked.
    pub prompt: String,
    /// Severity, category, reversibility, consequences, cost and alternatives.
    #[serde(flatten)]
    pub stakes: Stakes,
    /// What is shown and may be edited; follows the state.
    #[serde(default)]
    pub items: Vec<Item>,
    /// What may be chosen.
    #[serde(default)]
    pub options: Vec<ReviewOption>,
    /// Whether free text is possible.
    #[serde(default)]
    pub free_text: bool,
    /// What is held back.
    #[serde(default)]
    pub actions: Vec<Action>,
    /// How decisions become a resolution.
    #[serde(default)]
    pub policy: Policy,
    /// So many negative votes end it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deny: Option<u32>,
    /// Whether votes are shown only afterwards.
    #[serde(default)]
    pub blind: bool,
    /// Who may decide.
    #[serde(default)]
    pub reviewers: Reviewers,
    /// Who may not, because they decided at the node that `not_same_as` names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub barred: Vec<Username>,
    /// How the votes stand, where the first decision does not resolve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voting: Option<Voting>,
    /// Why nobody can resolve it as things are, for those who can help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Whether what is stored of it cannot be read; `problem` says why. Nobody can decide it then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unreadable: bool,
    /// The ids of the actions whose approval may be remembered for later calls. No decision is bound to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grantable: Vec<String>,
    /// Who works on it; advisory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_by: Option<Claim>,
    /// Who handed it to whom, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delegations: Vec<Delegation>,
    /// What was said of it before people were asked, in order. No decision is bound to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub advice: Vec<Advice>,
    /// It was told to wait: no time runs, and only going on or ending is offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<Paused>,
    /// The handler that is asked while people may decide already; none: people alone are asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<AskedHandler>,
    /// What guardrails would say of what is asked, as it stands. No decision is bound to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// What people said beside it.
    #[serde(default)]
    pub comments: Vec<Comment>,
    /// What people decided, in order.
    #[serde(default)]
    pub decisions: Vec<Decision>,
    /// What became of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolution: Option<Resolution>,
    /// The context of the run: user, tenant, session, metadata.
    #[serde(default)]
    pub context: Context,
    /// What the run has used so far.
    #[serde(default)]
    pub usage: Usage,
    /// Who started the run.
    pub requested_by: Username,
    /// When it was asked.
    pub created_at: Timestamp,
    /// When the timer decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// What the timer does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_timeout: Option<OnTimeout>,
    /// The roles to which it was escalated because nobody decided in time, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub escalated: Vec<String>,
}

impl Review {
    /// The handler that resolved it, in words: `a judge`, or the name of a program. None where people, time or an `auto`
    /// handler did.
    pub fn deciding_handler(&self) -> Option<String> {
        let advice = self.deciding_advice()?;
        Some(if advice.via == Via::Judge { "a judge".to_owned() } else { advice.by.clone() })
    }

    /// What a handler said that resolved it: of a judge or a program. None where people, time or an `auto` handler did.
    pub fn deciding_advice(&self) -> Option<&Advice> {
        let via = self.resolution.as_ref()?.via;
        // A function that passed on to an `auto` handler came by the same way, but has answered nothing.
        let decided = |advice: &&Advice| advice.via == via && (via != Via::Auto || advice.answer.is_some());
        self.advice.last().filter(decided)
    }

    /// Whether its actions are answered one by one: several, of which one is critical.
    pub fn is_one_by_one(&self) -> bool {
        self.actions.len() > 1 && self.stakes.severity == Severity::Critical
    }

    /// Whether an agent reads the instructions beside these answers: the one that made the calls, or the one that
    /// begins with them.
    pub fn passes_on_instructions(&self, decisions: &BTreeMap<String, ActionDecision>) -> bool {
        self.actions.iter().any(|action| match action.action_type {
            ActionType::Agent => {
                matches!(decisions.get(&action.id), Some(ActionDecision::Approve { .. } | ActionDecision::Edit { .. }))
            }
            _ => action.agent.is_some(),
        })
    }

    /// What can be chosen in place of an action.
    pub fn choices_for<'a>(&'a self, action: &'a Action) -> impl Iterator<Item = &'a AlternativeChoice> {
        action.stakes.as_deref().unwrap_or(&self.stakes).choices()
    }

    /// The option by which what is asked about is accepted as it is: the first that accepts and is no alternative.
    pub fn first_accept(&self) -> Option<&ReviewOption> {
        self.options.iter().find(|option| option.kind == ChoiceKind::Accept && !option.alternative)
    }

    /// Whether it still waits.
    pub fn is_pending(&self) -> bool {
        self.status == ReviewStatus::Pending
    }

    /// Whether free text is an answer, and no wish that a step runs again.
    pub fn answers_in_words(&self) -> bool {
        self.actions.is_empty() && (self.options.is_empty() || self.kind == ReviewKind::Clarification)
    }

    /// Takes away a claim whose lease has run out.
    pub fn drop_lapsed_claim(&mut self, now: Timestamp) {
        if self.claimed_by.as_ref().is_some_and(|claim| claim.until <= now) {
            self.claimed_by = None;
        }
    }

    /// Who has the vote of each person who handed theirs over.
    pub fn holders(&self) -> BTreeMap<&Username, &Username> {
        self.delegations
            .iter()
            .map(|handed| (handed.on_behalf_of.as_ref().unwrap_or(&handed.from), &handed.to))
            .collect()
    }
}

/// The step that a correction runs again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Source {
    /// The node that made what is reviewed, and that a correction goes back to.
    pub node: NodeId,
    /// How often it has been visited.
    pub visits: u32,
    /// How often it may be.
    pub max_visits: u32,
}

/// One value that is shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Item {
    /// Its state key.
    pub key: String,
    /// What people read instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// How it is shown.
    pub content_type: ContentType,
    /// The value; null where the state has none.
    pub value: Value,
    /// Whether it may be changed.
    pub editable: bool,
    /// JSON Schema of a changed value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
}

/// One thing that may be chosen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReviewOption {
    /// What a decision names.
    pub id: String,
    /// What choosing it does.
    pub kind: ChoiceKind,
    /// What people read.
    pub label: String,
    /// What the source step is told, or why the run ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// More about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON Schema of what goes with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fields: Option<Value>,
    /// Whether it is one of the alternatives: something else than what is asked about.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub alternative: bool,
}

/// What kind of thing a gate holds back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ActionType {
    /// A tool call.
    Tool,
    /// An agent's step.
    Agent,
    /// A new specialist.
    Emergent,
    /// The output of a flow, before it is given.
    Output,
    /// A change of strategy.
    StrategyOverride,
}

/// One thing that a gate holds back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Action {
    /// Made by the server; decisions name it.
    pub id: String,
    /// What it is.
    #[serde(rename = "type")]
    pub action_type: ActionType,
    /// The tool's, agent's or strategy's name.
    pub name: String,
    /// The agent that wants it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// With what; executed exactly so.
    pub arguments: JsonMap,
    /// What the call sends, exactly so; secrets stand in it by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Request>,
    /// What it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON Schema of the arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// What is at stake with it, where the review has several; the review's own stakes are those of all together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stakes: Option<Box<Stakes>>,
    /// The answers that it takes.
    pub allowed_decisions: Vec<ActionKind>,
    /// Whether a guardrail redacted what runs: that is on the record with its execution. No digest has it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redacted: bool,
}
