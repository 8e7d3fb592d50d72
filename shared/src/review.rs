//! Reviews, as the API shows them and as they are stored: one question to people.

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
pub use crate::reassignment::{Assignee, Reassignment};
use crate::request::Request;
use crate::time::Timestamp;
use crate::usage::Usage;
use crate::voting::Voting;

/// The pause of a review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Paused {
    /// The person who paused it.
    pub by: Username,
    /// The time of the pause; from then on, no deadline applies.
    pub at: Timestamp,
}

/// The status of a review. It leaves `pending` exactly once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ReviewStatus {
    /// Not resolved yet: it accepts decisions and votes.
    Pending,
    /// Decided by people, a handler or a grant.
    Resolved,
    /// Decided by a timer, whatever the outcome.
    Expired,
    /// The run continued without it, or it was withdrawn.
    Withdrawn,
}

/// A question to people.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Review {
    /// A UUIDv7 that the server makes; it stays the same through all revisions.
    pub id: ReviewId,
    /// The revision, which increases when the content changes; a decision names it.
    pub revision: u32,
    /// `sha256:` over the canonical JSON (RFC 8785) of what is shown: kind, title, prompt, items, options, actions and
    /// consequences, and of severity, category, reversible, estimated cost and alternatives those that are said. A
    /// decision names it.
    pub digest: String,
    /// The version, which increases with every change, including votes and claims; folds ignore older or equal ones.
    pub version: u64,
    /// The kind of question.
    pub kind: ReviewKind,
    /// The status of the review.
    pub status: ReviewStatus,
    /// The run that waits.
    pub run_id: Option<RunId>,
    /// The id of the run's flow; missing if a program asked over REST, without a run.
    pub flow: Option<FlowId>,
    /// The flow's title.
    pub flow_title: Option<String>,
    /// The node that asks.
    pub node: Option<NodeId>,
    /// The visit of the node, from 1.
    pub visit: Option<u32>,
    /// The item of a map that it is about, if any.
    pub part: Option<Part>,
    /// Who asks on its own initiative; none if the flow asks: at a human node, at a gate, or for a step taken over.
    pub asked_by: Option<AskedBy>,
    /// The step that a correction runs again, with its visits and their limit.
    pub source: Option<Source>,
    /// A headline of one line, given by the flow or the asker, otherwise made from the prompt or the calls.
    pub title: String,
    /// The question, which never changes.
    pub prompt: String,
    /// Severity, category, reversibility, consequences, cost and alternatives.
    #[serde(flatten)]
    pub stakes: Stakes,
    /// The values that are shown and may be editable; they follow the state.
    #[serde(default)]
    pub items: Vec<Item>,
    /// The options to choose from.
    #[serde(default)]
    pub options: Vec<ReviewOption>,
    /// Whether free text is possible.
    #[serde(default)]
    pub free_text: bool,
    /// The actions that are held back.
    #[serde(default)]
    pub actions: Vec<Action>,
    /// The policy by which decisions become a resolution.
    #[serde(default)]
    pub policy: Policy,
    /// The number of negative votes that ends it.
    pub deny: Option<u32>,
    /// Whether votes are secret until the resolution.
    #[serde(default)]
    pub blind: bool,
    /// The people who may decide.
    #[serde(default)]
    pub reviewers: Reviewers,
    /// People who may not decide, because they decided at the node that `not_same_as` names, or reassigned the review.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub barred: Vec<Username>,
    /// The state of the votes, unless the first decision resolves.
    pub voting: Option<Voting>,
    /// Why currently no one can resolve it, for those who can help.
    pub problem: Option<String>,
    /// Whether its stored data cannot be read, so that no one can decide it; `problem` says why.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unreadable: bool,
    /// The ids of the actions whose approval may be remembered for later calls. No decision is bound to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grantable: Vec<String>,
    /// The claim of the review; advisory.
    pub claimed_by: Option<Claim>,
    /// The delegations, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delegations: Vec<Delegation>,
    /// The reassignments, in order; `reviewers` has the result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reassignments: Vec<Reassignment>,
    /// What handlers said before people were asked, in order. Decisions are not bound to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub advice: Vec<Advice>,
    /// The pause of the review: no deadline applies, and the only options are to continue or to end.
    pub paused: Option<Paused>,
    /// The handler that is asked while people may already decide; none: only people are asked.
    pub asked: Option<AskedHandler>,
    /// What guardrails would say about the current content. Decisions are not bound to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// The comments of people.
    #[serde(default)]
    pub comments: Vec<Comment>,
    /// The decisions of people, in order.
    #[serde(default)]
    pub decisions: Vec<Decision>,
    /// The resolution of the review.
    pub resolution: Option<Resolution>,
    /// The context of the run: user, tenant, session, metadata.
    #[serde(default)]
    pub context: Context,
    /// The usage of the run so far.
    #[serde(default)]
    pub usage: Usage,
    /// The person who launched the run.
    pub requested_by: Username,
    /// The time at which it was requested.
    pub created_at: Timestamp,
    /// The time at which the timer decides.
    pub expires_at: Option<Timestamp>,
    /// What the timer does.
    pub on_timeout: Option<OnTimeout>,
    /// The roles to which it was escalated, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub escalated: Vec<String>,
}

impl Review {
    /// Returns the handler that resolved the review, in words: `a judge`, or the name of a program. `None` for people,
    /// a timer or an `auto` handler.
    pub fn deciding_handler(&self) -> Option<String> {
        let advice = self.deciding_advice()?;
        Some(if advice.via == Via::Judge { "a judge".to_owned() } else { advice.by.clone() })
    }

    /// Returns the advice of the judge or program that resolved the review. `None` for people, a timer or an `auto`
    /// handler.
    pub fn deciding_advice(&self) -> Option<&Advice> {
        let via = self.resolution.as_ref()?.via;
        // A function that passed on to an `auto` handler has the same channel, but gave no answer.
        let decided = |advice: &&Advice| advice.via == via && (via != Via::Auto || advice.answer.is_some());
        self.advice.last().filter(decided)
    }

    /// Whether the actions must be decided one by one: there are several, and the severity is critical.
    pub fn is_one_by_one(&self) -> bool {
        self.actions.len() > 1 && self.stakes.severity == Severity::Critical
    }

    /// Whether an agent gets the instructions of a decision with these answers: one that made a call, or one that may
    /// now begin.
    pub fn passes_on_instructions(&self, decisions: &BTreeMap<String, ActionDecision>) -> bool {
        self.actions.iter().any(|action| match action.action_type {
            ActionType::Agent => {
                matches!(decisions.get(&action.id), Some(ActionDecision::Approve { .. } | ActionDecision::Edit { .. }))
            }
            _ => action.agent.is_some(),
        })
    }

    /// Returns the alternatives to an action.
    pub fn choices_for<'a>(&'a self, action: &'a Action) -> impl Iterator<Item = &'a AlternativeChoice> {
        action.stakes.as_deref().unwrap_or(&self.stakes).choices()
    }

    /// Returns the option that accepts the content as it is: the first one that accepts and is not an alternative.
    pub fn first_accept(&self) -> Option<&ReviewOption> {
        self.options.iter().find(|option| option.kind == ChoiceKind::Accept && !option.alternative)
    }

    /// Whether there are several ways to go on. Only the flow knows which of them counts as an approval.
    pub fn has_several_ways(&self) -> bool {
        self.options.iter().filter(|option| option.kind == ChoiceKind::Accept && !option.alternative).count() > 1
    }

    /// Returns the first option that stops.
    pub fn first_stop(&self) -> Option<&ReviewOption> {
        self.options.iter().find(|option| option.kind == ChoiceKind::Stop)
    }

    /// Whether the review is still pending.
    pub fn is_pending(&self) -> bool {
        self.status == ReviewStatus::Pending
    }

    /// Whether free text is an answer, and not a correction.
    pub fn answers_in_words(&self) -> bool {
        self.actions.is_empty() && (self.options.is_empty() || self.kind == ReviewKind::Clarification)
    }

    /// Removes a claim whose lease has expired.
    pub fn drop_lapsed_claim(&mut self, now: Timestamp) {
        if self.claimed_by.as_ref().is_some_and(|claim| claim.until <= now) {
            self.claimed_by = None;
        }
    }

    /// Returns the holder of each delegated vote, by owner.
    pub fn holders(&self) -> BTreeMap<&Username, &Username> {
        self.delegations.iter().map(|handed| (handed.owner(), &handed.to)).collect()
    }
}

/// The step that a correction runs again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Source {
    /// The node that made the content, to which a correction goes back.
    pub node: NodeId,
    /// The number of visits so far.
    pub visits: u32,
    /// The limit of visits.
    pub max_visits: u32,
}

/// A value that is shown.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Item {
    /// The state key.
    pub key: String,
    /// The label that people read instead of the key.
    pub label: Option<String>,
    /// The format in which it is shown.
    pub content_type: ContentType,
    /// The value; null if the state has none.
    #[serde(serialize_with = "crate::user_data::value")]
    pub value: Value,
    /// Whether it is editable.
    pub editable: bool,
    /// JSON Schema of a changed value.
    #[serde(serialize_with = "crate::user_data::value")]
    pub schema: Option<Value>,
}

/// An option of a review.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReviewOption {
    /// The id that a decision names.
    pub id: String,
    /// The effect of choosing it.
    pub kind: ChoiceKind,
    /// The label that people read.
    pub label: String,
    /// The message to the source step, or the reason why the run ends.
    pub message: Option<String>,
    /// A longer description.
    pub description: Option<String>,
    /// JSON Schema of the option's fields.
    #[serde(serialize_with = "crate::user_data::value")]
    pub fields: Option<Value>,
    /// Whether it is one of the alternatives.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub alternative: bool,
}

/// The kind of action that a gate holds back.
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
    /// The output of a flow, before it is returned.
    Output,
    /// A change of strategy.
    StrategyOverride,
}

/// An action that a gate holds back.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Action {
    /// The id, made by the server; decisions name it.
    pub id: String,
    /// The kind of action.
    #[serde(rename = "type")]
    pub action_type: ActionType,
    /// The tool's, agent's or strategy's name.
    pub name: String,
    /// The agent that requests it.
    pub agent: Option<String>,
    /// The arguments, which are executed exactly as they are.
    #[serde(serialize_with = "crate::user_data::value")]
    pub arguments: JsonMap,
    /// The request exactly as the call sends it, with secrets by name.
    pub request: Option<Request>,
    /// A description of what it does.
    pub description: Option<String>,
    /// JSON Schema of the arguments.
    #[serde(serialize_with = "crate::user_data::value")]
    pub schema: Option<Value>,
    /// The stakes of this action, if the review has several; the review's own stakes cover all of them.
    pub stakes: Option<Box<Stakes>>,
    /// The allowed answers.
    pub allowed_decisions: Vec<ActionKind>,
    /// Whether a guardrail redacted the call; the entry of its execution has the details. No digest covers it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redacted: bool,
}
