//! Grants (remembered approvals): an approval of a call may also approve later ones, which are then approved in the
//! commit that would have asked. A grant covers only what its giver could approve at that moment, and never critical
//! calls.

use std::collections::BTreeMap;

use shared::JsonMap;
use shared::access::{Act, Principal, access};
use shared::decision::{ActionDecision, Decision, Verdict, Via};
use shared::definition::{Gate, Handler};
use shared::error::{Mistake, pointer};
use shared::grant::{Grant, GrantScope, GrantedCall, Remember};
use shared::id::{GrantId, NodeId, ReviewId, Username};
use shared::log::{EventData, GrantUsed, OfGrant};
use shared::review::{Action, Outcome, Review};

use crate::engine::ask::content::{Content, handlers};
use crate::engine::builder::Builder;
use crate::engine::conversation::{CallSite, ToolCall, ToolCallState};
use crate::engine::question::{Approval, Question, Subject};
use crate::engine::request::reads_digest;
use crate::engine::transition::{Granted, Refusal};

/// The maximum number of grants that hold for one run at once.
const MAX_GRANTS: usize = 100;
/// The maximum number of arguments that a grant names.
const MAX_ARGUMENTS: usize = 50;

impl<'f> Builder<'f> {
    /// Returns the grants that a decision gives. `Err` has every reason why it may not.
    pub(in crate::engine) fn remembered(
        &mut self,
        review: &Review,
        by: &Principal,
        on_behalf_of: Option<&Username>,
        decisions: &BTreeMap<String, ActionDecision>,
    ) -> Result<Vec<Granted>, Refusal> {
        let mut mistakes = Vec::new();
        let mut granted = Vec::new();
        for action in &review.actions {
            let Some(ActionDecision::Approve { remember: Some(remember) }) = decisions.get(&action.id) else {
                continue;
            };
            let place = pointer(["verdict", "decisions", &action.id, "remember"]);
            if let Some(why) = self.not_to_be_remembered(review, by, on_behalf_of, action) {
                mistakes.push(Mistake::new(place, "not_allowed", why));
                continue;
            }
            match named(action, remember) {
                Err((index, why)) => {
                    mistakes.push(Mistake::new(format!("{place}/arguments/{index}"), "unknown", why));
                }
                Ok(_) if self.grants.len() + granted.len() >= MAX_GRANTS => {
                    let why = format!("there are already {MAX_GRANTS} remembered approvals here: revoke some");
                    mistakes.push(Mistake::new(place, "too_many", why));
                }
                Ok(arguments) => {
                    let grant = self.new_grant(review, by, action, remember, arguments);
                    granted.push(Granted { grant, giver: by.clone() });
                }
            }
        }
        if mistakes.is_empty() { Ok(granted) } else { Err(Refusal::Invalid(mistakes)) }
    }

    fn new_grant(
        &mut self,
        review: &Review,
        by: &Principal,
        action: &Action,
        remember: &Remember,
        arguments: JsonMap,
    ) -> Grant {
        let call = self.calls_asked(review.id).find(|call| call.id == action.id).cloned();
        let lifetime = self.longest_grant.map_or_else(|| remember.span(), |longest| remember.span().min(longest));
        Grant {
            id: GrantId(self.ids.uuid()),
            tool: tool_at(review.node.as_ref(), &action.name),
            agent: action.agent.clone(),
            arguments,
            gate: call.as_ref().and_then(|call| call.gate).unwrap_or_default(),
            reads: call.and_then(|call| reads_digest(&call.reads)),
            scope: remember.scope,
            flow: self.state.flow.clone(),
            version: self.state.version,
            run_id: self.state.id,
            review_id: review.id,
            given_by: by.username.clone(),
            given_at: self.now,
            expires_at: self.now.after(lifetime),
        }
    }

    fn not_to_be_remembered(
        &self,
        review: &Review,
        by: &Principal,
        on_behalf_of: Option<&Username>,
        action: &Action,
    ) -> Option<&'static str> {
        const NO_GATE: &str = "only an approval of a call that a gate holds back can be remembered";
        // The grant would act with all roles of the person, and outlive the token.
        if by.token {
            return Some("a token can approve only this call: log in to approve later ones too");
        }
        if on_behalf_of.is_some() {
            return Some("a deputy can approve only this call");
        }
        if !review.policy.is_first() {
            return Some("several people decide here, so the approval cannot be remembered");
        }
        let Some(question) = self.state.question(review.id) else { return Some(NO_GATE) };
        let (agent, mut calls) = self.state.calls_of(&question.subject);
        let call = calls.find(|call| call.id == action.id && call.state == ToolCallState::Gated);
        let (Some(call), Some(step)) = (call, self.state.step_of(&question.subject)) else { return Some(NO_GATE) };
        let at = CallSite::new(step, agent);
        self.ungrantable(at, call, self.tool_gate(at, call))
    }

    /// Returns the calls that a review is about.
    pub(in crate::engine::ask) fn calls_asked(&self, review: ReviewId) -> impl Iterator<Item = &ToolCall> {
        self.state.question(review).into_iter().flat_map(|question| self.state.calls_of(&question.subject).1)
    }

    /// Adds the grants of a decision to the transition.
    pub(in crate::engine) fn give(&mut self, granted: Vec<Granted>) {
        for granted in granted {
            let Granted { grant, .. } = &granted;
            let (review, by) = (grant.review_id, grant.given_by.clone().into());
            self.emit(Some(review), Some(by), EventData::GrantMade(OfGrant { grant: Box::new(grant.clone()) }));
            self.given.push(grant.clone());
            self.grants.push(granted);
        }
    }

    /// Approves a call that its gate would hold back, if a grant covers it; returns whether one does. The review that
    /// would have been opened is recorded as resolved. No grant is used if a handler decides at once.
    pub(in crate::engine::ask) fn is_granted(&mut self, subject: &Subject, gate: &'f Gate) -> bool {
        if self.grants.is_empty() {
            return false;
        }
        let (run, now) = (self.state.id, self.now);
        let decides_at_once = matches!(handlers(self.flow, &self.state, subject), [Handler::Auto(_)]);
        let Some(step) = self.state.step_of(subject).cloned().filter(|_| !decides_at_once) else {
            return false;
        };
        let (agent, call) = {
            let (agent, mut calls) = self.state.calls_of(subject);
            let Some(call) = calls.next().cloned() else { return false };
            if self.ungrantable(CallSite::new(&step, agent), &call, Some(gate)).is_some() {
                return false;
            }
            (agent.map(|agent| agent.name.to_owned()), call)
        };
        let (tool, reads) = (tool_at(Some(&step.node), &call.tool), reads_digest(&call.reads));
        let (agent, arguments) = (agent.as_deref(), &call.arguments);
        let made = GrantedCall { tool: &tool, agent, arguments, reads: reads.as_deref() };
        let gate = call.gate.unwrap_or_default();
        let allows = |granted: &&Granted| granted.grant.gate == gate && granted.grant.allows(run, &made, now);
        let all: Vec<Granted> = self.grants.iter().filter(allows).cloned().collect();
        let call = call.id;
        let Some(content) = (!all.is_empty()).then(|| self.content(subject)).and_then(Result::ok) else { return false };
        let id = ReviewId(self.ids.uuid());
        let mut review = self.review_of(id, &step, Content { timeout: None, ..content }, Vec::new());
        review.barred = self.barred_from(&review);
        let may = |granted: &Granted| access(&granted.giver, Act::Decide(&review)).is_allowed();
        let Some(granted) = all.into_iter().find(may) else { return false };
        let grant = &granted.grant;
        let decisions = BTreeMap::from([(call.clone(), ActionDecision::APPROVE)]);
        if let Err(Refusal::Unasked { inquiries, .. }) = self.refuse_unasked(&review, subject, &decisions, None) {
            self.used.push(granted);
            self.ask_guardrails(Question::new(id, subject.clone()), Approval::Grant, inquiries);
            return true;
        }
        let decision = Decision {
            by: grant.given_by.clone(),
            on_behalf_of: None,
            at: now,
            via: Via::Auto,
            token: None,
            revision: review.revision,
            shown: None,
            digest: review.digest.clone(),
            sent: None,
            verdict: Verdict::Actions { decisions: decisions.clone(), instructions: None },
            edits: JsonMap::new(),
            comment: None,
            metadata: JsonMap::new(),
            grant: Some(grant.id),
            requests: BTreeMap::new(),
        };
        let place = match grant.scope {
            GrantScope::Run => "for this run",
            GrantScope::Flow => "for this flow",
        };
        let reason = format!("{} allowed this {place} until {}", grant.given_by, grant.expires_at);
        let used = GrantUsed { grant: Box::new(grant.clone()), call };
        self.emit(Some(review.id), None, EventData::GrantUsed(used));
        let answer = self.rule(&review, subject, &decisions, None);
        self.record(review, Outcome::Decided, Some(decision), Some(reason), Via::Auto, answer.findings());
        self.used.push(granted);
        self.answer(subject.clone(), answer);
        true
    }
}

/// Returns a tool as grants name it. In a nested flow, the calls that lead there come first, since flows may have tools
/// of the same name.
fn tool_at(node: Option<&NodeId>, tool: &str) -> String {
    let place = node.filter(|node| !node.frame().is_empty()).map(NodeId::place);
    let calls = place.as_deref().and_then(|place| place.rsplit_once('/')).map(|(calls, _)| calls);
    calls.map_or_else(|| tool.to_owned(), |calls| format!("{calls}/{tool}"))
}

/// Returns the values that the named arguments have in the approved call. `Err` has the index of a name that cannot be
/// remembered, and why.
fn named(action: &Action, remember: &Remember) -> Result<JsonMap, (usize, String)> {
    let mut values = JsonMap::new();
    for (index, name) in remember.arguments.iter().enumerate() {
        if index >= MAX_ARGUMENTS {
            return Err((index, format!("at most {MAX_ARGUMENTS} arguments can be remembered")));
        }
        let value = action.arguments.get(name);
        let value =
            value.ok_or_else(|| (index, format!("`{}` was called without the argument `{name}`", action.name)))?;
        values.insert(name.clone(), value.clone());
    }
    Ok(values)
}
