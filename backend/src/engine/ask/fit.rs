//! Checks a decision against its review, whoever made it: a person, a judge, a program.

use std::collections::BTreeMap;

use shared::JsonMap;
use shared::decision::{ActionDecision, DecisionRequest, Modifications, ProgramAnswer, Verdict, Via};
use shared::error::{Mistake, pointer};
use shared::id::NodeId;
use shared::request::Request;
use shared::review::{ActionType, Changes, Review};

use super::content::calls::answer_all;
use super::decide::effect::chosen;
use super::decide::verdict::{CheckedVerdict, NodeVerdict};
use super::decide::{validate, verdict};
use super::guardrails::check::PutIn;
use super::handlers::outcome::HandlerDecision;
use crate::engine::builder::Builder;
use crate::engine::question::Subject;
use crate::engine::transition::Refusal;

/// A decision that fits its review.
#[derive(Debug)]
pub(super) struct Fitting {
    pub said: CheckedVerdict,
    /// The values that it puts in, as guardrails have left them.
    pub put_in: PutIn,
    /// The requests of the calls whose arguments it changes, by the action's id.
    pub requests: BTreeMap<String, Request>,
}

impl Builder<'_> {
    /// Checks that a decision, and what it adds to the metadata of the run, is not too large.
    pub(super) fn check_size(&self, request: &DecisionRequest) -> Result<(), Refusal> {
        let checked = validate::size(request).and_then(|()| self.check_added(&request.metadata));
        checked.map_err(|mistake| Refusal::Invalid(vec![mistake]))
    }

    /// Checks a decision completely: that its verdict is one that is offered, and that the values that it puts in are
    /// valid and not blocked.
    pub(super) fn fit(
        &self,
        review: &Review,
        subject: &Subject,
        request: &DecisionRequest,
    ) -> Result<Fitting, Refusal> {
        self.check_size(request)?;
        let said = verdict::check(review, request).map_err(Refusal::Invalid)?;
        self.validate(review, request).map_err(Refusal::Invalid)?;
        if let (CheckedVerdict::Node(NodeVerdict::Correct { .. }), Some(node)) = (&said, &review.node) {
            let no_source = || {
                let message = "there is no step to correct: choose another option";
                Refusal::Invalid(vec![Mistake::new("/verdict/option", "not_offered", message)])
            };
            let source = self.source(node).ok_or_else(no_source)?;
            // If the human node has no visits left either, the corrected content could not be shown, and the run would
            // fail.
            for (node, visits, max_visits) in
                [Some((&source.node, source.visits, source.max_visits)), self.only_visits(node)].into_iter().flatten()
            {
                if visits >= max_visits {
                    return Err(Refusal::VisitLimit(format!("`{node}` has used all of its {max_visits} visits")));
                }
            }
        }
        let put_in = self.put_in(review, request)?;
        let requests = match &said {
            CheckedVerdict::Actions(decisions, instructions) => {
                self.check_responses(subject, decisions).map_err(Refusal::Invalid)?;
                // Whoever asks makes the calls, so there is nothing to render.
                let requests = match subject {
                    Subject::Ask { .. } => BTreeMap::new(),
                    _ => self.edited_requests(subject, decisions).map_err(Refusal::Invalid)?,
                };
                self.refuse_unasked(review, subject, decisions, instructions.as_deref())?;
                requests
            }
            CheckedVerdict::Node(verdict) => {
                self.check_reply(subject, &put_in).map_err(Refusal::Invalid)?;
                self.refuse_unasked_reply(subject, chosen(verdict).map(|option| option.id.as_str()))?;
                if matches!(subject, Subject::Takeover { .. }) {
                    self.check_written(review, &put_in).map_err(Refusal::Invalid)?;
                }
                BTreeMap::new()
            }
        };
        Ok(Fitting { said, put_in, requests })
    }

    /// Returns a node with its visits so far and their maximum; `None` if it redirects to another node when they are
    /// used up.
    fn only_visits<'n>(&self, id: &'n NodeId) -> Option<(&'n NodeId, u32, u32)> {
        let node = self.flow.node(id).filter(|node| node.on_visit_limit.is_none())?;
        Some((id, self.state.visits.get(id).copied().unwrap_or(0), node.max_visits()))
    }

    /// Renders the requests of the calls whose arguments a decision changes, by the action's id.
    fn edited_requests(
        &self,
        subject: &Subject,
        decisions: &BTreeMap<String, ActionDecision>,
    ) -> Result<BTreeMap<String, Request>, Vec<Mistake>> {
        let (mut requests, mut mistakes) = (BTreeMap::new(), Vec::new());
        let node = self.state.step_of(subject).map(|step| &step.node);
        let calls = self.state.calls_of(subject).1.filter_map(|call| match decisions.get(&call.id) {
            Some(ActionDecision::Edit { arguments }) => Some((call, arguments, node?)),
            _ => None,
        });
        let place = self.state.step_of(subject).zip(subject.branch());
        for (call, arguments, node) in calls {
            let edited = self.edited(node, call, arguments).and_then(|edited| {
                if let Some((step, branch)) = place {
                    self.check_team_change(step, branch, &edited)?;
                    self.check_state_key(step, &edited)?;
                }
                Ok(edited)
            });
            match edited {
                Ok(edited) => requests.extend(edited.request.map(|request| (edited.id, request))),
                Err(why) => {
                    let place = pointer(["verdict", "decisions", &call.id, "arguments"]);
                    mistakes.push(Mistake::new(place, "invalid", why));
                }
            }
        }
        if mistakes.is_empty() { Ok(requests) } else { Err(mistakes) }
    }

    /// Checks a yes or no of a handler, with the changes that it makes. A no always fits. A yes does not fit if each
    /// action needs its own answer.
    pub(super) fn fit_yes_or_no(
        &self,
        review: &Review,
        subject: &Subject,
        approves: bool,
        comment: Option<String>,
        changes: &Changes,
        via: Via,
    ) -> Result<HandlerDecision, Refusal> {
        let metadata = JsonMap::new();
        if approves && review.is_one_by_one() {
            let message = "one of these actions is critical, so each needs its own answer, in a `verdict`";
            return Err(mistake("/approved", message));
        }
        if !approves || (changes.is_empty() && !review.actions.is_empty()) {
            let said = said(review, approves, comment.as_deref()).map_err(|why| mistake("/approved", why))?;
            if let CheckedVerdict::Actions(decisions, _) = &said {
                self.refuse_unasked(review, subject, decisions, None)?;
            }
            return Ok(HandlerDecision { said, put_in: PutIn::default(), comment, metadata, via });
        }
        let Fitting { said, put_in, .. } = self.fit(review, subject, &approval(review, changes)?)?;
        Ok(HandlerDecision { said, put_in, comment, metadata, via })
    }

    /// Checks the decision of a program: a verdict as of a person, or yes or no.
    pub(super) fn fit_program(
        &self,
        review: &Review,
        subject: &Subject,
        answer: &ProgramAnswer,
        via: Via,
    ) -> Result<HandlerDecision, Refusal> {
        let ProgramAnswer { verdict, edits, comment, metadata, approved, reason, modifications, .. } = answer.clone();
        match (verdict, approved) {
            (Some(verdict), None) if reason.is_none() && modifications.is_none() => {
                let (revision, digest) = (review.revision, review.digest.clone());
                let request = DecisionRequest { revision, digest, verdict, edits, comment, metadata };
                let Fitting { said, put_in, .. } = self.fit(review, subject, &request)?;
                let DecisionRequest { comment, metadata, .. } = request;
                Ok(HandlerDecision { said, put_in, comment, metadata, via })
            }
            (None, Some(approved)) if edits.is_empty() && comment.is_none() && metadata.is_empty() => {
                let changes = changes(review, modifications.unwrap_or_default())?;
                if !approved && !changes.is_empty() {
                    return Err(mistake("/modifications", "edits are not possible with a rejection"));
                }
                self.fit_yes_or_no(review, subject, approved, reason, &changes, via)
            }
            _ => Err(mistake(
                "",
                "answer with `verdict` (and `edits`, `comment`, `metadata`), or with `approved` (and `reason`, \
                 `modifications`)",
            )),
        }
    }
}

/// Turns yes or no into a verdict. With options, it is the first accept option, or a stop option or a refusal. With
/// actions, all that may be are approved, or all are rejected. `Err` says why nothing can be approved.
pub(super) fn said(review: &Review, approves: bool, reason: Option<&str>) -> Result<CheckedVerdict, String> {
    if !review.actions.is_empty() {
        return Ok(CheckedVerdict::Actions(answer_all(&review.actions, approves, reason), None));
    }
    let option = if approves { review.first_accept() } else { review.first_stop() };
    Ok(CheckedVerdict::Node(match (approves, option.cloned()) {
        (true, Some(option)) => NodeVerdict::Accept(option),
        (true, None) => {
            return Err("nothing can be approved here: there is no option of kind `accept`".to_owned());
        }
        (false, Some(option)) => NodeVerdict::Stop(option),
        (false, None) => NodeVerdict::Refuse,
    }))
}

fn mistake(path: &str, message: impl Into<String>) -> Refusal {
    Refusal::Invalid(vec![Mistake::new(path, "invalid", message.into())])
}

/// Returns the decision of a person who would approve with these changes.
fn approval(review: &Review, changes: &Changes) -> Result<DecisionRequest, Refusal> {
    let Changes { arguments, edits, instructions } = changes;
    let verdict = if review.actions.is_empty() {
        if !arguments.is_empty() || instructions.is_some() {
            return Err(mistake("", "there are no actions here, so there is no agent to instruct"));
        }
        let option = review
            .first_accept()
            .ok_or_else(|| mistake("/approved", "there is no option of kind `accept`"))?
            .id
            .clone();
        Verdict::Choose { option, fields: JsonMap::new() }
    } else {
        let mut decisions = answer_all(&review.actions, true, None);
        decisions.extend(
            arguments.iter().map(|(id, arguments)| (id.clone(), ActionDecision::Edit { arguments: arguments.clone() })),
        );
        Verdict::Actions { decisions, instructions: instructions.clone() }
    };
    let (revision, digest) = (review.revision, review.digest.clone());
    Ok(DecisionRequest { revision, digest, verdict, edits: edits.clone(), comment: None, metadata: JsonMap::new() })
}

/// Converts the modifications of a program into changes like a judge's.
fn changes(review: &Review, modifications: Modifications) -> Result<Changes, Refusal> {
    let Modifications { tool_args, output, instructions } = modifications;
    let mut changes = Changes { instructions, ..Changes::default() };
    if let Some(tool_args) = tool_args {
        let [action] = &review.actions[..] else {
            return Err(mistake("/modifications/toolArgs", "there is not exactly one action: answer with `verdict`"));
        };
        let mut arguments = action.arguments.clone();
        arguments.extend(tool_args);
        changes.arguments.insert(action.id.clone(), arguments);
    }
    if let Some(output) = output {
        change_output(review, &mut changes, output)?;
    }
    Ok(changes)
}

/// Adds new values for an output to the changes of a handler: as edits, or merged into the output that a flow is about
/// to return. `Err` if the review is about something else: arguments of a call are no output.
pub(super) fn change_output(review: &Review, changes: &mut Changes, output: JsonMap) -> Result<(), Refusal> {
    match &review.actions[..] {
        [] => changes.edits.extend(output),
        [action] if action.action_type == ActionType::Output => {
            changes.arguments.entry(action.id.clone()).or_insert_with(|| action.arguments.clone()).extend(output);
        }
        _ => {
            return Err(mistake(
                "/modifications/output",
                "this review has no output: change the arguments of the action",
            ));
        }
    }
    Ok(())
}
