//! Leave that is given by nobody who waits for an answer: by a handler, a timer, a grant, or by the end of the run. Where
//! guardrails ask programs about what it lets happen, a worker asks them first, and nothing counts until they have answered;
//! then the same leave is given again, with their answers known. Of what a person decides they are asked before it is written
//! ([`Refusal::Unasked`]).

use shared::JsonMap;
use shared::decision::Via;
use shared::id::{ReviewId, TaskId};
use shared::review::AskedHandler;

use super::asking::Asking;
use crate::engine::builder::Builder;
use crate::engine::looked::{Looked, answer_to};
use crate::engine::phase::Phase;
use crate::engine::question::{Asked, Leave, Question, Subject};
use crate::engine::transition::{Refusal, TaskKind};
use crate::flow::guardrail::{Answer, Inquiry};

impl Builder<'_> {
    /// Guardrails ask programs about leave that is given.
    pub(super) fn ask_guardrails(&mut self, asking: Asking, leave: Leave, inquiries: Vec<Inquiry>) {
        let Some(step) = self.state.step_of(&asking.subject).cloned() else { return };
        let task = self.add_task(&step, TaskKind::Look { review: asking.review }, self.now, true);
        if let Some(inquiry) = inquiries.first() {
            let until = inquiries.iter().map(|inquiry| self.now.after(inquiry.webhook.timeout().0)).max();
            self.tell_asked(&asking, AskedHandler { by: inquiry.guardrail.clone(), via: Via::Webhook, until });
        }
        let asked = Asked::Guardrails { leave, task, inquiries, looked: self.looked.clone() };
        self.state.questions.push(asking.of(asked, None));
    }

    /// The same in place of whoever was asked so far.
    pub(super) fn ask_guardrails_instead(&mut self, review: ReviewId, leave: Leave, inquiries: Vec<Inquiry>) {
        let Some((question, _)) = self.take_asked(review) else { return };
        let asking = self.end_asking(question);
        self.ask_guardrails(asking, leave, inquiries);
    }

    /// The same about the output of the run, for which nobody has to give leave.
    pub(in crate::engine) fn ask_about_end(&mut self, branch: u32, inquiries: Vec<Inquiry>) {
        let (review, subject) = (ReviewId(self.ids.uuid()), Subject::Output { branch });
        let asking = Asking { review, subject, handler: 0, advice: Vec::new(), pending: false };
        self.ask_guardrails(asking, Leave::End, inquiries);
    }

    /// Programs have answered what guardrails asked.
    pub(in crate::engine) fn guardrails_answered(&mut self, task: TaskId, looked: Vec<Looked>) -> Result<(), Refusal> {
        let review = self.handler_asked_by(task).ok_or(Refusal::TaskOver)?;
        let (question, _) = self.take_asked(review).ok_or(Refusal::TaskOver)?;
        let Question { asked: Asked::Guardrails { leave, inquiries, looked: before, .. }, .. } = &question else {
            self.state.questions.push(question);
            return Err(Refusal::TaskOver);
        };
        let leave = leave.clone();
        self.looked = [before.clone(), looked].concat();
        // What was asked is answered, whatever became of it: nothing is asked twice.
        for inquiry in inquiries {
            if answer_to(&self.looked, inquiry).is_none() {
                let reason = "there was no answer".to_owned();
                self.looked.push(Looked::new(inquiry, Answer::Fails { reason }));
            }
        }
        self.end_task(task);
        self.give_leave(question, leave);
        Ok(())
    }

    /// They could not be asked.
    pub(super) fn guardrails_unanswered(&mut self, review: ReviewId, why: &str) {
        let asked = self.state.question(review).map(|question| question.asked.clone());
        let Some(Asked::Guardrails { task, inquiries, .. }) = asked else { return };
        let failed = |inquiry: &Inquiry| Looked::new(inquiry, Answer::Fails { reason: why.to_owned() });
        let looked = inquiries.iter().map(failed).collect();
        // The question was found by this task.
        let _ = self.guardrails_answered(task, looked);
    }

    /// Leave is given again, with what the programs have said.
    fn give_leave(&mut self, question: Question, leave: Leave) {
        let review = question.review;
        if question.pending {
            self.change_review(review, |review| review.asked = None);
        }
        match leave {
            Leave::Auto => self.ask_handler(question.into()),
            Leave::Judge { said } => {
                let heard = self.weigh_again(&question, *said);
                self.go_on(question.into(), heard);
            }
            Leave::Program { said } => {
                let heard = self.weigh_program_again(&question, *said);
                self.go_on(question.into(), heard);
            }
            Leave::Timer => {
                self.state.questions.push(Question { asked: Asked::People, ..question });
                self.time_is_up(review);
            }
            Leave::Grant => {
                let gate = self.gate_of(&question.subject);
                if !gate.is_some_and(|gate| self.is_granted(&question.subject, gate)) {
                    self.ask(question.subject);
                }
            }
            Leave::End => self.end_again(&question.subject),
        }
    }

    /// The run comes to its end again.
    fn end_again(&mut self, subject: &Subject) {
        let branch = subject.branch().and_then(|branch| self.state.branches.remove(&branch));
        if let Some(Phase::Returning { mut step }) = branch.map(|branch| branch.phase) {
            self.complete_step(&mut step, &JsonMap::new());
        }
    }
}
