//! Requests, revises, resolves and withdraws reviews. A review leaves `pending` exactly once: only
//! [`Builder::resolve`], [`Builder::resolve_pending`], [`Builder::expire`] and [`Builder::withdraw`] do that.

use shared::author::Author;
use shared::decision::{Decision, Via};
use shared::error::FlowError;
use shared::id::{ReviewId, Username};
use shared::log::ReviewChange;
use shared::review::{Advice, AskedHandler, Item, Outcome, Resolution, Review, ReviewStatus};
use shared::run::Step;
use shared::time::Timestamp;
use shared::voting::Edited;

use super::content::subject::nothing_waits;
use super::content::title;
use super::content::{Content, human};
use super::deadline::warning;
use super::vote::void::{overlay, void};
use crate::engine::builder::Builder;
use crate::engine::carrier;
use crate::engine::next::QuestionAnswer;
use crate::engine::question::{Asked, Question, Subject, Timer};
use crate::engine::ruling::Findings;
use crate::engine::transition::TaskKind;
use crate::engine::{digest, projection};

impl Builder<'_> {
    /// Asks people only: opens a review, or keeps the one that is pending. A channel may tell them.
    pub(super) fn ask_people(&mut self, asking: Question, channel: Option<AskedHandler>) -> Result<(), FlowError> {
        let step = self.state.step_of(&asking.subject).cloned().ok_or_else(nothing_waits)?;
        let id = asking.review;
        let expires_at = if asking.pending {
            // Its content stays as it was asked, whatever the state is now: only the time of people begins.
            let (expires_at, on_timeout) = self.deadline_from_now(self.time_for_people(&asking.subject));
            let told = self.change_review(id, |review| {
                (review.expires_at, review.on_timeout) = (expires_at, on_timeout);
                review.asked = channel;
            });
            if let Some(review) = told {
                self.emit_updated(&review, None, ReviewChange::Asked);
            }
            expires_at
        } else {
            let composed = self.composed(&asking)?;
            let expires_at = composed.expires_at;
            let mut review = Review { asked: channel, ..composed };
            self.open_voting(&mut review);
            self.emit_requested(&review);
            self.add_review(review);
            expires_at
        };
        let timer = self.add_timer(&step, id, expires_at);
        let asked = Asked::People;
        self.state.questions.push(Question { advice: Vec::new(), pending: true, asked, timer, ..asking });
        Ok(())
    }

    /// Asks people again about a review that has stayed pending, until the deadline that it has.
    pub(super) fn ask_people_again(&mut self, question: Question) {
        let expires_at = self.reviews.get(&question.review).and_then(|review| review.expires_at);
        let step = self.state.step_of(&question.subject).cloned();
        let timer = step.and_then(|step| self.add_timer(&step, question.review, expires_at));
        self.state.questions.push(Question { asked: Asked::People, timer, ..question });
    }

    /// Creates the timer of a review with this deadline. It is due at the warning first.
    fn add_timer(&mut self, step: &Step, id: ReviewId, expires_at: Option<Timestamp>) -> Option<Timer> {
        let warn_at = expires_at.and_then(|at| warning(self.now, at));
        let due_at = warn_at.or(expires_at)?;
        Some(Timer { task: self.add_task(step, TaskKind::Deadline { review: id }, due_at, true), warn_at })
    }

    /// Returns the review of a question as it would be opened now.
    pub(super) fn composed(&self, asking: &Question) -> Result<Review, FlowError> {
        let content = self.content(&asking.subject)?;
        let step = self.state.step_of(&asking.subject).ok_or_else(nothing_waits)?;
        Ok(self.review_of(asking.review, step, content, asking.advice.clone()))
    }

    /// Resolves a pending review in the name of a handler.
    pub(super) fn resolve_pending(
        &mut self,
        id: ReviewId,
        outcome: Outcome,
        reason: Option<String>,
        via: Via,
        findings: Option<&Findings>,
    ) {
        let resolution = self.undecided(ReviewStatus::Resolved, outcome, via, None, reason);
        self.leave_pending(id, resolution, None, None, findings);
    }

    /// Records a review that is resolved as soon as it is made; `decision` is `None` if a handler resolved it.
    pub(in crate::engine) fn record(
        &mut self,
        mut review: Review,
        outcome: Outcome,
        decision: Option<Decision>,
        reason: Option<String>,
        via: Via,
        findings: Option<&Findings>,
    ) {
        review.status = ReviewStatus::Resolved;
        if let (Some(node), Some(decision)) = (&review.node, &decision) {
            let by = [decision.by.clone(), decision.voter().clone()];
            self.remember_deciders(node, by);
        }
        review.decisions.extend(decision.clone());
        review.resolution = Some(Resolution {
            by: decision.iter().map(|decision| decision.by.clone()).collect(),
            decision: decision.map(Box::new),
            ..self.undecided(ReviewStatus::Resolved, outcome, via, None, reason)
        });
        if let Some(findings) = findings {
            findings.note(&mut review);
        }
        self.emit_requested(&review);
        self.emit_resolved(review.clone(), None);
        let id = review.id;
        self.add_review(review);
        if let Some(findings) = findings {
            self.emit_decided_findings(id, findings);
        }
    }

    /// Makes a pending review from its content.
    pub(super) fn review_of(&self, id: ReviewId, step: &Step, content: Content, advice: Vec<Advice>) -> Review {
        let (expires_at, on_timeout) = self.deadline_from_now((content.timeout, content.on_timeout));
        let mut review = Review {
            id,
            revision: 1,
            digest: String::new(),
            version: 1,
            kind: content.kind,
            status: ReviewStatus::Pending,
            run_id: None,
            flow: None,
            flow_title: None,
            node: None,
            visit: None,
            part: None,
            asked_by: content.asked_by,
            source: content.source,
            title: content.title,
            prompt: content.prompt,
            stakes: content.stakes,
            items: content.items,
            options: content.options,
            free_text: content.free_text,
            actions: content.actions,
            grantable: content.grantable,
            policy: content.rules.policy,
            deny: content.rules.deny,
            blind: content.rules.blind,
            reviewers: content.reviewers,
            barred: Vec::new(),
            voting: None,
            problem: None,
            unreadable: false,
            advice,
            paused: None,
            asked: None,
            warnings: content.warnings,
            claimed_by: None,
            delegations: Vec::new(),
            reassignments: Vec::new(),
            comments: Vec::new(),
            decisions: Vec::new(),
            resolution: None,
            context: self.state.context.clone(),
            usage: projection::usage(&self.state, self.now),
            requested_by: self.state.requested_by.clone(),
            created_at: self.now,
            expires_at,
            on_timeout,
            escalated: Vec::new(),
        };
        self.name_origin(&mut review, step);
        if let Some(part) = step.part {
            review.title = format!("{} ({} of {})", review.title, part.number, part.of);
        }
        review.digest = digest::of_review(&review);
        review
    }

    /// Sets the run and the node that a review comes from. For a carrier, it sets only the title that was sent.
    fn name_origin(&self, review: &mut Review, step: &Step) {
        let Some(run) = self.state.shown_id() else {
            let title = carrier::title(&self.state.input).and_then(title::of_template);
            review.title = title.unwrap_or_else(|| std::mem::take(&mut review.title));
            return;
        };
        review.run_id = Some(run);
        review.flow = Some(self.state.flow.clone());
        review.flow_title = Some(self.state.title.clone());
        (review.node, review.visit, review.part) = (Some(step.node.clone()), Some(step.visit), step.part);
    }

    /// Updates pending reviews of human nodes: if a shown value has changed, the review gets a new revision, and its
    /// votes so far are void.
    pub(in crate::engine) fn refresh_reviews(&mut self) {
        let is_of_node = |question: &&Question| question.pending && matches!(question.subject, Subject::Node { .. });
        let shown = self.state.questions.iter().filter(is_of_node);
        let shown: Vec<_> = shown.map(|question| (question.review, question.subject.clone())).collect();
        for (id, subject) in shown {
            let Some(step) = self.state.step_of(&subject) else { continue };
            let Some(human) = human(self.flow, &step.node) else { continue };
            let mut items = self.shown_items(step, human);
            let Some(review) = self.reviews.get(&id) else { continue };
            let edited = overlay(review, &mut items);
            if review.items != items {
                self.revise(id, items, edited);
            }
        }
    }

    /// Gives a review new items, with a new revision and digest. Its votes so far are void.
    pub(in crate::engine) fn revise(&mut self, id: ReviewId, items: Vec<Item>, edited: Vec<Edited>) {
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

    /// Resolves a review by a decision in the name of `by`. Votes are on the review already.
    pub(super) fn resolve(
        &mut self,
        id: ReviewId,
        outcome: Outcome,
        decision: &Decision,
        by: &[Username],
        answer: &QuestionAnswer,
    ) {
        let review = self.reviews.get(&id);
        let new = review.is_some_and(|review| review.voting.is_none());
        let resolution = Resolution {
            by: by.to_vec(),
            token: decision.token,
            decision: Some(Box::new(decision.clone())),
            answer: answer.reply().cloned(),
            ..self.undecided(ReviewStatus::Resolved, outcome, decision.via, None, None)
        };
        let author = Some(decision.into());
        self.leave_pending(id, resolution, new.then(|| decision.clone()), author, answer.findings());
    }

    /// Expires a review at its deadline.
    pub(super) fn expire(&mut self, id: ReviewId, reason: &str, answer: &QuestionAnswer) {
        let reason = Some(reason.to_owned());
        let expired = self.undecided(ReviewStatus::Expired, Outcome::Expired, Via::Timeout, None, reason);
        let resolution = Resolution { answer: answer.reply().cloned(), ..expired };
        self.leave_pending(id, resolution, None, None, answer.findings());
    }

    /// Withdraws a question, for a person or because what asked it has ended. If its review was never opened, nothing
    /// is recorded.
    pub(in crate::engine) fn withdraw(&mut self, id: ReviewId, via: Via, by: Option<Author>, reason: &str) {
        let reason = Some(reason.to_owned());
        let resolution = self.undecided(ReviewStatus::Withdrawn, Outcome::Withdrawn, via, by.clone(), reason);
        self.leave_pending(id, resolution, None, by, None);
    }

    /// Returns a resolution without a decision of people.
    fn undecided(
        &self,
        status: ReviewStatus,
        outcome: Outcome,
        via: Via,
        by: Option<Author>,
        reason: Option<String>,
    ) -> Resolution {
        Resolution {
            status,
            outcome,
            token: by.as_ref().and_then(|by| by.token),
            by: by.into_iter().map(|by| by.name).collect(),
            at: self.now,
            via,
            decision: None,
            reason,
            vetoes: Vec::new(),
            answer: None,
        }
    }

    /// Ends a question with its review, and abandons the call of a handler that is still asked.
    fn leave_pending(
        &mut self,
        id: ReviewId,
        resolution: Resolution,
        decision: Option<Decision>,
        by: Option<Author>,
        findings: Option<&Findings>,
    ) {
        let resolved = self.change_review(id, |review| {
            review.status = resolution.status;
            review.decisions.extend(decision);
            review.claimed_by = None;
            review.problem = None;
            review.asked = None;
            review.resolution = Some(resolution);
            if let Some(findings) = findings {
                findings.note(review);
            }
        });
        if let Some(review) = resolved {
            if let Some(node) = &review.node {
                let decided = review.decisions.iter().flat_map(|said| [said.by.clone(), said.voter().clone()]);
                let voided = review.voting.iter().flat_map(|voting| voting.voided.clone());
                self.remember_deciders(node, decided.chain(voided));
            }
            self.emit_resolved(review, by);
        }
        if let Some(findings) = findings {
            self.emit_decided_findings(id, findings);
        }
        if let Some(question) = self.state.question(id)
            && let (Some(branch), Some((task, _))) = (question.subject.branch(), question.task())
        {
            self.abandon_call(branch, task);
        }
        if let Some(place) = self.state.questions.iter().position(|question| question.review == id)
            && let Some(timer) = self.state.questions.remove(place).timer
        {
            self.end_task(timer.task);
        }
    }
}
