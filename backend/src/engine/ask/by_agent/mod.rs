//! Questions that agents ask on their own initiative: what people see, and the consequences of their answers.

mod calls;
mod presentation;
mod proposal;
mod reply;
mod takeover;
#[cfg(test)]
mod tests;
mod words;

use std::borrow::Cow;

use serde_json::{Value, json};
use shared::definition::{OnTimeout, Reviewers, Stakes, Tool, ToolKind};
use shared::error::Mistake;
use shared::review::{AskedBy, ReviewKind};
use shared::run::Step;

use super::content::title;
use super::content::{Content, Rules};
use super::guardrails::check::PutIn;
use crate::engine::ask_builtin::{Ask, DraftToEdit, DraftType, read};
use crate::engine::builder::Builder;
use crate::engine::phase::Phase;
use crate::engine::question::Subject;

use presentation::Relief;
pub(super) use reply::withdrawn;
use words::CONTENT;
pub(super) use words::PAUSE;

struct AskingCall<'a> {
    ask: Ask,
    /// The agent that made the call; `None` for a tool node.
    agent: Option<&'a str>,
    tool: Cow<'a, Tool>,
}

impl Builder<'_> {
    /// Returns the call that asks a question, as far as it can be read.
    fn ask_of<'s>(&'s self, subject: &'s Subject) -> Option<AskingCall<'s>> {
        let (agent, mut calls) = self.state.calls_of(subject);
        let call = calls.next()?;
        let tool = self.flow.of(&self.state.step_of(subject)?.node).tool(&call.tool)?;
        let ToolKind::Builtin(builtin) = tool.kind else { return None };
        Some(AskingCall { ask: read(builtin, &call.arguments).ok()?, agent: agent.map(|agent| agent.name), tool })
    }

    /// Builds the content of the review of a call that asks people.
    pub(super) fn content_of_ask(&self, step: &Step, subject: &Subject) -> Option<Content> {
        let AskingCall { ask, agent, tool } = self.ask_of(subject)?;
        let (asked_by, who) = match (agent, self.state.shown_id()) {
            (Some(agent), _) => (AskedBy::Agent, format!("Agent `{agent}`")),
            (None, Some(_)) => (AskedBy::Step, format!("Step `{}`", step.node.place())),
            (None, None) => (AskedBy::Program, format!("`{}`", self.state.requested_by)),
        };
        let mut shown = presentation::content(agent, &who, ask, &self.relief(step, subject));
        let on_timeout = tool.on_timeout.clone().or_else(|| shown.on_timeout.clone());
        // Whoever waits for the answer to one of these cannot go on without it.
        let waits = matches!(shown.kind, ReviewKind::Escalation | ReviewKind::Checkpoint);
        let default = self.flow.of(&step.node).flow.defaults.timeout.filter(|_| !waits);
        let own_time = tool.timeout.or(default);
        let mut timeout = shown.timeout.or(own_time);
        if agent.is_some() && on_timeout.as_ref().is_some_and(|then| *then.last() == OnTimeout::Approve) {
            // An agent may give people more time. But if a timeout approves, it may not come earlier than the flow's
            // own, nor where the flow has none.
            timeout = own_time.map(|own| shown.timeout.map_or(own, |asked| asked.max(own)));
        }
        if matches!(subject, Subject::Ask { paused: true, .. }) {
            presentation::offer_to_resume(&mut shown.options);
            timeout = None;
        }
        let (title, warnings) = if shown.actions.is_empty() {
            (title::of_prompt(&shown.title, None), self.warnings_about(subject))
        } else {
            (title::of_calls(&shown.actions), self.warnings_about_calls(subject, &shown.actions))
        };
        let reviewers = if shown.reviewers.is_empty() {
            self.reviewers_at(&step.node, &tool.reviewers)
        } else {
            // The roles and users that the agent names replace the tool's; the tool's exclusions still hold.
            let Reviewers { roles, users, .. } = shown.reviewers;
            Reviewers { roles, users, ..tool.reviewers.clone() }
        };
        Some(Content {
            asked_by: Some(asked_by),
            title,
            stakes: Stakes { severity: tool.severity.unwrap_or(shown.stakes.severity), ..shown.stakes },
            reviewers,
            timeout: timeout.filter(|_| shown.kind.blocks()),
            on_timeout,
            rules: Rules { policy: tool.policy.clone(), ..Rules::default() },
            warnings,
            ..shown
        })
    }

    /// Returns how an agent can be relieved of its step.
    fn relief(&self, step: &Step, subject: &Subject) -> Relief {
        let conversation = self.state.phase_of(subject).and_then(Phase::conversation);
        let Some(conversation) = conversation else { return Relief::default() };
        let agents = self.flow.of(&step.node).flow.agents.keys().filter(|name| **name != conversation.agent);
        let schema = conversation.agent_in(self.flow, &step.node).and_then(|agent| agent.output_schema.clone());
        let text = || json!({ "type": "string", "format": "markdown", "minLength": 1 });
        let needs_answer = conversation.works_for().is_some();
        Relief { answer: Some(schema.unwrap_or_else(text)), needs_answer, agents: agents.cloned().collect() }
    }

    /// Checks that an answer can be the result of its call: a draft in JSON must still be valid JSON.
    pub(super) fn check_reply(&self, subject: &Subject, put_in: &PutIn) -> Result<(), Vec<Mistake>> {
        let asked = self.ask_of(subject).map(|asking| asking.ask);
        let is_json = matches!(asked, Some(Ask::Edit(DraftToEdit { content_type: DraftType::Json, .. })));
        let content = put_in.edits.get(CONTENT).and_then(Value::as_str).filter(|_| is_json);
        let read = content.map_or(Ok(Value::Null), serde_json::from_str);
        let wrong = |error| vec![Mistake::new("/edits/content", "invalid", format!("it is not valid JSON: {error}"))];
        read.map(drop).map_err(wrong)
    }
}
