//! Deadlines: a review whose time is up expires or is escalated before any other input is applied, whatever that input
//! is. Each review has one task as its timer: due at the warning, then at the deadline, then at those of an escalation.

use std::collections::BTreeSet;

use serde_json::json;
use shared::JsonMap;
use shared::access::REVIEWER;
use shared::decision::Via;
use shared::definition::{ChoiceKind, Escalate, OnTimeout, Reviewers};
use shared::error::{FlowCode, FlowError};
use shared::id::{ReviewId, TaskId};
use shared::log::ReviewChange;
use shared::review::Review;
use shared::time::Timestamp;

use super::content::calls::answer_all;
use super::deadline::warning;
use super::decision_scope::Remembered;
use super::vote::shown_edits;
use crate::engine::ask_builtin::APPROVE;
use crate::engine::builder::Builder;
use crate::engine::next::{NodeAnswer, QuestionAnswer, Then};
use crate::engine::question::{Approval, Asked, Question, Subject};
use crate::engine::transition::{Refusal, TaskKind};

impl Builder<'_> {
    /// Applies the earliest deadline that has passed and changes something: a pending review expires or escalates, a
    /// handler passes on. Returns whether there was one.
    pub(in crate::engine) fn expire_overdue(&mut self) -> bool {
        let due = self.state.questions.iter().filter_map(|question| {
            let until = self.until(question)?;
            (until <= self.now).then_some((until, question.review))
        });
        let due: BTreeSet<(Timestamp, ReviewId)> = due.collect();
        due.into_iter().any(|(_, review)| self.time_is_up(review))
    }

    pub(in crate::engine) fn timed_by(&self, task: TaskId) -> Option<ReviewId> {
        let is_its = |question: &&Question| question.timer.is_some_and(|timer| timer.task == task);
        self.state.questions.iter().find(is_its).map(|question| question.review)
    }

    /// Emits that a deadline is near if its warning is due, and moves the task to its next time. If nothing is due, the
    /// clock of whoever claimed the task is ahead of this one.
    pub(in crate::engine) fn warn(&mut self, id: ReviewId) {
        if let Some(until) = self.state.question(id).and_then(Question::until) {
            return self.set_timer(id, Some(until), None);
        }
        let Some(review) = self.reviews.get(&id).cloned() else { return };
        let warn_at = self.state.question(id).and_then(|question| question.timer?.warn_at);
        let early = warn_at.filter(|at| *at > self.now);
        if warn_at.is_some() && early.is_none() {
            self.emit_expiring(&review);
        }
        self.set_timer(id, review.expires_at, early);
    }

    /// Moves the task of a timer to a deadline, or to the warning before it.
    fn set_timer(&mut self, id: ReviewId, expires_at: Option<Timestamp>, warn_at: Option<Timestamp>) {
        let subject = self.state.question(id).map(|question| question.subject.clone());
        let step = subject.and_then(|subject| self.state.step_of(&subject).cloned());
        let timer = self.state.question_mut(id).and_then(|question| question.timer.as_mut());
        let (Some(step), Some(timer), Some(expires_at)) = (step, timer, expires_at) else { return };
        timer.warn_at = warn_at;
        let task = timer.task;
        self.move_task(task, &step, TaskKind::Deadline { review: id }, warn_at.unwrap_or(expires_at), true);
    }

    /// Does what follows when the time for a question is up. Returns whether anything does.
    pub(super) fn time_is_up(&mut self, id: ReviewId) -> bool {
        if self.state.question(id).is_some_and(|question| question.asked != Asked::People) {
            self.handler_timed_out(id);
            return true;
        }
        let Some(review) = self.reviews.get(&id).cloned() else { return false };
        let Some(subject) = self.state.question(id).map(|question| question.subject.clone()) else { return false };
        let reason = "nobody decided in time".to_owned();
        let answer = match (review.on_timeout.clone().unwrap_or(OnTimeout::Reject), &subject) {
            (OnTimeout::Escalate(next), _) => {
                self.escalate(id, next);
                return true;
            }
            // They have no time limit.
            (_, Subject::Takeover { .. } | Subject::Handoff { .. } | Subject::Specialist { .. }) => return false,
            (on_timeout, Subject::Ask { .. }) if review.actions.is_empty() || on_timeout == OnTimeout::Error => {
                let option = (on_timeout == OnTimeout::Approve).then_some(APPROVE);
                if let Err(Refusal::Unasked { inquiries, .. }) = self.refuse_unasked_reply(&subject, option) {
                    self.ask_guardrails_instead(id, Approval::Timer, inquiries);
                    return true;
                }
                self.guarded_reply(&subject, option, self.reply_in_time(&subject, &on_timeout))
            }
            (OnTimeout::Error, _) => {
                let node = review.node.clone();
                QuestionAnswer::TimedOut(FlowError { code: FlowCode::FlowHumanTimeout, message: reason.clone(), node })
            }
            (on_timeout, Subject::Node { .. }) => {
                QuestionAnswer::Node(self.node_timed_out(&review, on_timeout, &reason))
            }
            (on_timeout, _) => {
                let decisions = answer_all(&review.actions, on_timeout == OnTimeout::Approve, Some(&reason));
                if let Err(Refusal::Unasked { inquiries, .. }) =
                    self.refuse_unasked(&review, &subject, &decisions, None)
                {
                    self.ask_guardrails_instead(id, Approval::Timer, inquiries);
                    return true;
                }
                self.rule(&review, &subject, &decisions, None)
            }
        };
        self.expire(id, &reason, &answer);
        self.answer(subject, answer);
        true
    }

    /// Escalates a review: people of another role are asked too, with their own time from now on, however late the
    /// timer is. The content stays the same, so that earlier votes and drafts still count.
    fn escalate(&mut self, id: ReviewId, next: Escalate) {
        let Escalate { escalate: role, extend, then } = next;
        let expires_at = self.now.after(extend.0);
        let escalated = self.change_review(id, |review| {
            let Reviewers { roles, users, .. } = &mut review.reviewers;
            if roles.is_empty() && users.is_empty() {
                // If nobody is named, every reviewer may decide: they are named now, so that they still may.
                roles.push(REVIEWER.to_owned());
            }
            if !roles.contains(&role) {
                roles.push(role.clone());
            }
            review.expires_at = Some(expires_at);
            review.on_timeout = Some(*then);
            review.problem = None;
            review.escalated.push(role.clone());
        });
        let escalated = self.admit(id, &role).or(escalated);
        if let Some(review) = escalated {
            self.emit_updated(&review, None, ReviewChange::Escalated { role });
        }
        self.set_timer(id, Some(expires_at), warning(self.now, expires_at));
    }

    /// Returns the answer of a human node after its deadline. `approve` acts as the first accept option, on the content
    /// that is shown by then; `reject` as stop; `follow` and `goto` continue without an answer, so edits of voters do
    /// not count.
    fn node_timed_out(&self, review: &Review, on_timeout: OnTimeout, reason: &str) -> NodeAnswer {
        // The options of `options_key` may turn out to have none that accepts.
        let on_timeout = match on_timeout {
            OnTimeout::Approve if review.first_accept().is_none() => OnTimeout::Reject,
            other => other,
        };
        let kind = match on_timeout {
            OnTimeout::Approve => Some(ChoiceKind::Accept),
            OnTimeout::Follow | OnTimeout::Goto { .. } => None,
            OnTimeout::Reject | OnTimeout::Error | OnTimeout::Escalate(_) => Some(ChoiceKind::Stop),
        };
        let option = match kind {
            Some(ChoiceKind::Accept) => review.first_accept(),
            kind => review.options.iter().find(|option| Some(option.kind) == kind),
        };
        let edits = if on_timeout == OnTimeout::Approve { shown_edits(review) } else { JsonMap::new() };
        let option = option.map(|option| option.id.as_str());
        let remembered = Remembered { option, kind, edits: edits.clone(), ..Remembered::new(self.now, Via::Timeout) };
        let then = match on_timeout {
            OnTimeout::Approve | OnTimeout::Follow => Then::GoOn { edits },
            OnTimeout::Goto { goto } => Then::Goto(goto),
            OnTimeout::Reject | OnTimeout::Error | OnTimeout::Escalate(_) => Then::Stop { message: reason.to_owned() },
        };
        NodeAnswer { decision: json!(remembered), note: reason.to_owned(), then }
    }
}
