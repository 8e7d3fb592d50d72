//! Asking, revising, resolving and withdrawing reviews. A review leaves `pending` exactly once: only
//! [`Builder::resolve`], [`Builder::expire`] and [`Builder::withdraw`] do that.

use shared::decision::{Decision, Via};
use shared::definition::{OnTimeout, Policy, Reviewers, Stakes};
use shared::id::{ReviewId, Username};
use shared::log::ReviewChange;
use shared::review::{
    Action, Advice, Item, Outcome, Resolution, Review, ReviewKind, ReviewOption, ReviewStatus, Source, Warning,
};
use shared::run::Step;
use shared::time::Span;
use shared::voting::Edited;

use super::builder::Builder;
use super::guardrail::Rulings;
use super::state::Asked;
use super::transition::TaskKind;
use super::vote::void;
use super::{digest, timer, view};

/// What a person is asked.
#[derive(Debug)]
pub(super) struct Question {
    pub kind: ReviewKind,
    pub title: String,
    pub prompt: String,
    pub stakes: Stakes,
    pub reviewers: Reviewers,
    /// How long it waits; none: for ever.
    pub timeout: Option<Span>,
    /// What happens then; nothing said: reject.
    pub on_timeout: Option<OnTimeout>,
    pub items: Vec<Item>,
    pub options: Vec<ReviewOption>,
    pub free_text: bool,
    pub source: Option<Source>,
    pub actions: Vec<Action>,
    pub rules: Rules,
    /// What handlers said of it before.
    pub advice: Vec<Advice>,
    /// What guardrails would say of it as it stands.
    pub warnings: Vec<Warning>,
}

/// How several decisions become one; by default the first resolves.
#[derive(Debug, Default)]
pub(super) struct Rules {
    pub policy: Policy,
    pub deny: Option<u32>,
    pub blind: bool,
}

impl Builder<'_> {
    /// Asks: a new review, and the task of its deadline where it has one. The task is due at the warning first.
    pub(super) fn ask(&mut self, step: &Step, question: Question) -> Asked {
        let mut review = self.review_of(step, question);
        self.open_voting(&mut review);
        let (id, expires_at) = (review.id, review.expires_at);
        self.emit_requested(&review);
        self.add_review(review);
        let warn_at = expires_at.and_then(|at| timer::warning(self.now, at));
        let due_at = warn_at.or(expires_at);
        let deadline = due_at.map(|at| self.add_task(step, TaskKind::Deadline { review: id }, at, true));
        Asked { review: id, deadline, warn_at }
    }

    /// A handler resolves a review in the commit that makes it: it never waits, and is on the record with its content.
    pub(super) fn resolve_at_once(
        &mut self,
        step: &Step,
        question: Question,
        outcome: Outcome,
        reason: Option<&str>,
        via: Via,
        rulings: &Rulings,
    ) {
        let review = self.review_of(step, Question { timeout: None, ..question });
        self.record(review, outcome, None, reason.map(str::to_owned), via, rulings);
    }

    /// Puts a review on the record that was resolved when it was made; by this decision, where it was somebody's.
    pub(super) fn record(
        &mut self,
        mut review: Review,
        outcome: Outcome,
        decision: Option<Decision>,
        reason: Option<String>,
        via: Via,
        rulings: &Rulings,
    ) {
        review.status = ReviewStatus::Resolved;
        review.decisions.extend(decision.clone());
        review.resolution = Some(Resolution {
            status: ReviewStatus::Resolved,
            outcome,
            by: decision.iter().map(|decision| decision.by.clone()).collect(),
            at: self.now,
            via,
            decision: decision.map(Box::new),
            reason,
            vetoes: Vec::new(),
        });
        rulings.note(&mut review);
        self.emit_requested(&review);
        self.emit_resolved(&review, None);
        let id = review.id;
        self.add_review(review);
        self.tell_rulings(id, rulings);
    }

    /// What is asked, as a pending review.
    pub(super) fn review_of(&mut self, step: &Step, question: Question) -> Review {
        let expires_at = question.timeout.map(|timeout| self.now.after(timeout.0));
        let mut review = Review {
            id: ReviewId(self.ids.uuid()),
            revision: 1,
            digest: String::new(),
            version: 1,
            kind: question.kind,
            status: ReviewStatus::Pending,
            run_id: Some(self.state.id),
            flow: Some(self.state.flow.clone()),
            flow_title: Some(self.state.title.clone()),
            node: Some(step.node.clone()),
            visit: Some(step.visit),
            part: step.part,
            source: question.source,
            title: question.title,
            prompt: question.prompt,
            stakes: question.stakes,
            items: question.items,
            options: question.options,
            free_text: question.free_text,
            actions: question.actions,
            policy: question.rules.policy,
            deny: question.rules.deny,
            blind: question.rules.blind,
            reviewers: question.reviewers,
            barred: Vec::new(),
            voting: None,
            problem: None,
            unreadable: false,
            advice: question.advice,
            warnings: question.warnings,
            claimed_by: None,
            delegations: Vec::new(),
            comments: Vec::new(),
            decisions: Vec::new(),
            resolution: None,
            context: self.state.context.clone(),
            usage: view::usage(&self.state, self.now),
            requested_by: self.state.requested_by.clone(),
            created_at: self.now,
            expires_at,
            on_timeout: expires_at.map(|_| question.on_timeout.unwrap_or(OnTimeout::Reject)),
            escalated: Vec::new(),
        };
        if let Some(part) = step.part {
            review.title = format!("{} ({} of {})", review.title, part.number, part.of);
        }
        review.digest = digest::of_review(&review);
        review
    }

    /// What is shown has changed: a new revision with its digest, and the votes so far are void.
    pub(super) fn revise(&mut self, id: ReviewId, items: Vec<Item>, edited: Vec<Edited>) {
        let mut voided = Vec::new();
        let revised = self.change_review(id, |review| {
            review.items = items;
            if let Some(voting) = &mut review.voting {
                voting.edited = edited;
            }
            review.revision += 1;
            review.digest = digest::of_review(review);
            voided = void(review);
        });
        if let Some(review) = revised {
            let voided = Some(voided).filter(|names| !names.is_empty() && !review.is_secret());
            self.emit_updated(&review, None, ReviewChange::Content { voided, vote: false });
        }
    }

    /// A review is resolved by a decision of these people. Votes are on it already.
    pub(super) fn resolve(
        &mut self,
        asked: Asked,
        outcome: Outcome,
        decision: &Decision,
        by: &[Username],
        rulings: &Rulings,
    ) {
        let review = self.reviews.get(&asked.review);
        let votes: Vec<_> = review
            .iter()
            .flat_map(|review| &review.decisions)
            .flat_map(|vote| [vote.by.clone(), vote.voter().clone()])
            .collect();
        let new = review.is_some_and(|review| review.voting.is_none());
        if let Some(node) = review.and_then(|review| review.node.clone()) {
            let own = [decision.by.clone(), decision.voter().clone()];
            self.remember_deciders(&node, own.into_iter().chain(votes));
        }
        let resolution = Resolution {
            status: ReviewStatus::Resolved,
            outcome,
            by: by.to_vec(),
            at: self.now,
            via: decision.via,
            decision: Some(Box::new(decision.clone())),
            reason: None,
            vetoes: Vec::new(),
        };
        let actor = Some(decision.by.clone());
        self.leave_pending(asked, resolution, new.then(|| decision.clone()), actor, rulings);
    }

    /// A review's time is up.
    pub(super) fn expire(&mut self, asked: Asked, reason: &str, rulings: &Rulings) {
        let resolution = Resolution {
            status: ReviewStatus::Expired,
            outcome: Outcome::Expired,
            by: Vec::new(),
            at: self.now,
            via: Via::Timeout,
            decision: None,
            reason: Some(reason.to_owned()),
            vetoes: Vec::new(),
        };
        self.leave_pending(asked, resolution, None, None, rulings);
    }

    /// The run ended while a review was pending, or somebody took it back.
    pub(super) fn withdraw(&mut self, asked: Asked, via: Via, by: Option<Username>, reason: &str) {
        let resolution = Resolution {
            status: ReviewStatus::Withdrawn,
            outcome: Outcome::Withdrawn,
            by: by.iter().cloned().collect(),
            at: self.now,
            via,
            decision: None,
            reason: Some(reason.to_owned()),
            vetoes: Vec::new(),
        };
        self.leave_pending(asked, resolution, None, by, &Rulings::default());
    }

    fn leave_pending(
        &mut self,
        asked: Asked,
        resolution: Resolution,
        decision: Option<Decision>,
        actor: Option<Username>,
        rulings: &Rulings,
    ) {
        let resolved = self.change_review(asked.review, |review| {
            review.status = resolution.status;
            review.decisions.extend(decision);
            review.claimed_by = None;
            review.problem = None;
            review.resolution = Some(resolution);
            rulings.note(review);
        });
        if let Some(review) = resolved {
            self.emit_resolved(&review, actor);
        }
        self.tell_rulings(asked.review, rulings);
        if let Some(deadline) = asked.deadline {
            self.end_task(deadline);
        }
    }
}
