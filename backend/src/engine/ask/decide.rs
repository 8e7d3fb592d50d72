//! A decision: whether it may be made, whether it fits what was asked, and what it does to the run. Everything is
//! checked before anything is changed.

pub(super) mod effect;
pub(super) mod validate;
pub(super) mod verdict;

use std::collections::BTreeMap;

use shared::access::{Access, Act, Principal, access, voice};
use shared::decision::{ActionDecision, Decision, DecisionRequest, Via};
use shared::error::{Mistake, pointer};
use shared::id::ReviewId;
use shared::request::Request;
use shared::review::{Checked, Review};

use crate::engine::builder::Builder;
use crate::engine::digest;
use crate::engine::question::Subject;
use crate::engine::transition::Refusal;

use effect::Counted;
use verdict::{NodeVerdict, Said};

impl Builder<'_> {
    /// Somebody decides a review.
    pub(in crate::engine) fn decide(
        &mut self,
        id: ReviewId,
        by: &Principal,
        via: Via,
        request: DecisionRequest,
    ) -> Result<(), Refusal> {
        let review = self.pending_review(id, by, Act::Decide)?;
        if request.revision != review.revision || request.digest != review.digest {
            return Err(Refusal::RevisionChanged(Box::new(review.clone())));
        }
        validate::size(&request).map_err(|mistake| Refusal::Invalid(vec![mistake]))?;
        let said = verdict::check(review, &request).map_err(Refusal::Invalid)?;
        self.validate(review, &request).map_err(Refusal::Invalid)?;
        if let (Said::Node(NodeVerdict::Correct { .. }), Some(node)) = (&said, &review.node) {
            let no_source = || {
                let message = "no step could be corrected: choose another option";
                Refusal::Invalid(vec![Mistake::new("/verdict/option", "not_offered", message)])
            };
            let source = self.source(node).ok_or_else(no_source)?;
            if source.visits >= source.max_visits {
                let message = format!("`{}` may be visited {} times, and has been", source.node, source.max_visits);
                return Err(Refusal::VisitLimit(message));
            }
        }
        let put_in = self.put_in(review, &request).map_err(Refusal::Invalid)?;
        let sent = Some(digest::of_request(&request));
        let on_behalf_of = voice(by, review).ok().flatten();
        let votes = review.voting.is_some();
        let requests = match &said {
            Said::Actions(decisions, _) => {
                let subject = &self.state.question(id).ok_or(Refusal::NotFound)?.subject;
                self.check_responses(subject, decisions).map_err(Refusal::Invalid)?;
                self.edited_requests(subject, decisions).map_err(Refusal::Invalid)?
            }
            Said::Node(_) => BTreeMap::new(),
        };
        let granted = match &said {
            Said::Actions(decisions, _) => {
                let review = review.clone();
                self.remembered(&review, by, on_behalf_of.as_ref(), decisions)?
            }
            Said::Node(_) => Vec::new(),
        };
        let DecisionRequest { revision, digest, verdict, edits, comment, metadata } = request;
        let by = by.username.clone();
        let decision = Decision {
            by,
            on_behalf_of,
            at: self.now,
            via,
            revision,
            digest,
            shown: None,
            sent,
            verdict,
            edits,
            comment,
            metadata,
            grant: None,
            requests,
        };
        let done = if votes {
            self.vote(id, decision, &put_in)
        } else {
            let by = std::slice::from_ref(&decision.by);
            self.carry_out(id, said, Counted { decision: &decision, put_in: &put_in, by })
        };
        done.ok_or(Refusal::NotFound)?;
        self.give(granted);
        Ok(())
    }

    /// What guardrails would do with a decision of somebody who may make it.
    pub(in crate::engine) fn check_only(
        &self,
        id: ReviewId,
        by: &Principal,
        request: &DecisionRequest,
    ) -> Result<Checked, Refusal> {
        let review = self.pending_review(id, by, Act::Decide)?;
        if request.revision != review.revision || request.digest != review.digest {
            return Err(Refusal::RevisionChanged(Box::new(review.clone())));
        }
        validate::size(request).map_err(|mistake| Refusal::Invalid(vec![mistake]))?;
        Ok(self.check_decision(review, request))
    }

    /// What the calls will send whose arguments a decision changes.
    pub(in crate::engine::ask) fn edited_requests(
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
        for (call, arguments, node) in calls {
            match self.edited(node, call, arguments) {
                Ok(edited) => requests.extend(edited.request.map(|request| (edited.id, request))),
                Err(why) => {
                    let place = pointer(["verdict", "decisions", &call.id, "arguments"]);
                    mistakes.push(Mistake::new(place, "invalid", why));
                }
            }
        }
        if mistakes.is_empty() { Ok(requests) } else { Err(mistakes) }
    }

    /// A pending review with which somebody may do what they want.
    pub(in crate::engine::ask) fn pending_review<'s>(
        &'s self,
        id: ReviewId,
        by: &Principal,
        act: impl FnOnce(&'s Review) -> Act<'s>,
    ) -> Result<&'s Review, Refusal> {
        let review = self.visible_review(id, by, act)?;
        if !review.is_pending() {
            return Err(Refusal::ReviewResolved(Box::new(review.clone())));
        }
        Ok(review)
    }

    /// A review with which somebody may do what they want, whether pending or not.
    pub(in crate::engine::ask) fn visible_review<'s>(
        &'s self,
        id: ReviewId,
        by: &Principal,
        act: impl FnOnce(&'s Review) -> Act<'s>,
    ) -> Result<&'s Review, Refusal> {
        let own = |review: &&Review| review.run_id == Some(self.state.id);
        let review = self.reviews.get(&id).filter(own).ok_or(Refusal::NotFound)?;
        match access(by, act(review)) {
            Access::Allowed => Ok(review),
            Access::Denied(reason) => Err(Refusal::Forbidden(reason.to_owned())),
            Access::Hidden => Err(Refusal::NotFound),
        }
    }
}
