//! Deadlines: a review whose time is up is expired, or escalated, before anything else is heard, whoever comes first to
//! say so. One task a review is its timer: due at the warning, then at the deadline, then at those of an escalation.

use std::time::Duration;

use shared::JsonMap;
use shared::access::REVIEWER;
use shared::decision::Via;
use shared::definition::{ChoiceKind, Escalate, NodeKind, OnTimeout, Reviewers};
use shared::error::FlowCode;
use shared::id::{ReviewId, TaskId};
use shared::log::ReviewChange;
use shared::review::Review;
use shared::run::Step;
use shared::time::Timestamp;

use super::builder::{Builder, failure};
use super::call::unanswered;
use super::decide::waits_for;
use super::decision_scope::Remembered;
use super::guardrail::Rulings;
use super::state::{Asked, Branch, Phase};
use super::transition::{Refusal, TaskKind};

/// A shorter time has no warning.
const SHORT: Duration = Duration::from_mins(5);

impl Builder<'_> {
    /// Expires or escalates every pending review whose deadline has passed, the earliest first. Says whether there was one.
    pub(super) fn expire_overdue(&mut self) -> bool {
        let mut expired = false;
        while let Some(asked) = self.overdue() {
            self.time_is_up(asked);
            expired = true;
        }
        expired
    }

    fn overdue(&self) -> Option<Asked> {
        let all = self.state.branches.values().flat_map(|branch| branch.phase.asked());
        let due = all.filter_map(|asked| {
            let expires_at = self.reviews.get(&asked.review)?.expires_at?;
            (expires_at <= self.now).then_some((expires_at, asked.review, *asked))
        });
        due.min_by_key(|(at, review, _)| (*at, *review)).map(|(_, _, asked)| asked)
    }

    /// A timer's task is due. Deadlines that have passed were applied before this is asked.
    pub(super) fn due(&mut self, task: TaskId) -> Result<(), Refusal> {
        if self.is_ended(task) {
            return Ok(());
        }
        let timed = |phase: &Phase| phase.asked().iter().find(|asked| asked.deadline == Some(task)).copied();
        let found = self.state.branches.values().find_map(|branch| timed(&branch.phase));
        match found.and_then(|asked| Some((asked, self.reviews.get(&asked.review)?.clone()))) {
            Some((asked, review)) => {
                self.warn(asked, &review);
                Ok(())
            }
            None => self.wake(task),
        }
    }

    /// Tells that a deadline is near, where it is, and sets the task to its next time. Where it is not, the clock of
    /// whoever claimed the task is ahead of this one.
    fn warn(&mut self, asked: Asked, review: &Review) {
        let early = asked.warn_at.filter(|at| *at > self.now);
        if asked.warn_at.is_some() && early.is_none() {
            self.emit_expiring(review);
        }
        self.set_timer(asked.review, review.expires_at, early);
    }

    /// A deadline is at another time, with its warning before.
    fn set_timer(&mut self, id: ReviewId, expires_at: Option<Timestamp>, warn_at: Option<Timestamp>) {
        let mut branches = self.state.branches.values_mut();
        let Some(phase) = branches.find(|branch| waits_for(id)(&branch.phase)).map(|branch| &mut branch.phase) else {
            return;
        };
        let step = phase.step().cloned();
        let asked = phase.asked_mut().iter_mut().find(|asked| asked.review == id);
        let (Some(step), Some(asked), Some(expires_at)) = (step, asked, expires_at) else { return };
        asked.warn_at = warn_at;
        if let Some(task) = asked.deadline {
            self.move_task(task, &step, TaskKind::Deadline { review: id }, warn_at.unwrap_or(expires_at), true);
        }
    }

    fn time_is_up(&mut self, asked: Asked) {
        let Some(review) = self.reviews.get(&asked.review).cloned() else { return };
        let on_timeout = review.on_timeout.clone().unwrap_or(OnTimeout::Reject);
        if let OnTimeout::Escalate(next) = on_timeout {
            return self.escalate(asked.review, next);
        }
        let Some((number, Branch { phase, .. })) = self.take_branch(waits_for(asked.review)) else { return };
        let reason = "nobody decided in time".to_owned();
        if on_timeout == OnTimeout::Error {
            self.expire(asked, &reason, &Rulings::default());
            let Some(mut step) = phase.step().cloned() else { return };
            let error = failure(FlowCode::FlowHumanTimeout, &step.node, reason);
            self.failed_step(&mut step, error.clone());
            self.end_phase(&phase, asked);
            self.fail_flow(&step.node, error);
            return;
        }
        match phase {
            Phase::Human { step, .. } => {
                self.expire(asked, &reason, &Rulings::default());
                self.human_timed_out(number, step, on_timeout, reason);
            }
            phase => {
                let decisions = unanswered(&review, on_timeout == OnTimeout::Approve, &reason);
                let rulings = self.rule_phase(&phase, &decisions);
                self.expire(asked, &reason, &rulings);
                self.actions_decided(number, phase, review.id, rulings, None);
            }
        }
    }

    /// Others are asked too, and have their own time from now on, however late the timer is. What is asked stays the
    /// same, so that votes and drafts of those who were asked before still count.
    fn escalate(&mut self, id: ReviewId, next: Escalate) {
        let Escalate { escalate: role, extend, then } = next;
        let expires_at = self.now.after(extend.0);
        let escalated = self.change_review(id, |review| {
            let Reviewers { roles, users, .. } = &mut review.reviewers;
            if roles.is_empty() && users.is_empty() {
                // Nobody named is every reviewer: they are named now, so that they stay.
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

    /// `approve` acts as the first accept option, `reject` as stop; `follow` and `goto` go on without an answer.
    fn human_timed_out(&mut self, number: u32, mut step: Step, on_timeout: OnTimeout, reason: String) {
        let kind = match on_timeout {
            OnTimeout::Approve => Some(ChoiceKind::Accept),
            OnTimeout::Follow | OnTimeout::Goto { .. } => None,
            OnTimeout::Reject | OnTimeout::Error | OnTimeout::Escalate(_) => Some(ChoiceKind::Stop),
        };
        let choice = self.flow.node(&step.node).and_then(|node| match &node.kind {
            NodeKind::Human(human) => human.options.iter().find(|choice| Some(choice.kind) == kind),
            _ => None,
        });
        let nothing = JsonMap::new();
        let remembered = Remembered {
            option: choice.map(|choice| choice.id.as_str()),
            kind,
            text: None,
            comment: None,
            edits: &nothing,
            metadata: &nothing,
            by: &[],
            at: self.now,
            via: Via::Timeout,
        };
        self.remember(&step.node, &remembered);
        step.note = Some(reason.clone());
        match on_timeout {
            OnTimeout::Approve | OnTimeout::Follow => self.finish_step(number, step, &nothing),
            OnTimeout::Goto { goto } => self.leave_for(number, step, &goto),
            OnTimeout::Reject | OnTimeout::Error | OnTimeout::Escalate(_) => self.stop(number, step, reason),
        }
    }

    /// Ends what belongs to a phase that will not be put back: its tasks, and its reviews but the one that expired.
    fn end_phase(&mut self, phase: &Phase, expired: Asked) {
        self.abandon(phase);
        for asked in phase.asked().iter().filter(|asked| **asked != expired).copied() {
            self.withdraw(asked, Via::Run, None, "the run has failed");
        }
    }
}

/// When people are warned of a deadline: before it by a tenth of the time, but by a minute at least and an hour at
/// most. Nobody is warned of a time so short that they have just been told.
pub(super) fn warning(from: Timestamp, deadline: Timestamp) -> Option<Timestamp> {
    let time = deadline.since(from);
    if time < SHORT {
        return None;
    }
    let before = (time / 10).clamp(Duration::from_mins(1), Duration::from_hours(1));
    Some(from.after(time.saturating_sub(before)))
}
