//! Repeats an approval after programs have answered what guardrails asked about it: in the same name, and with these
//! answers.

use shared::JsonMap;
use shared::id::TaskId;

use crate::engine::builder::Builder;
use crate::engine::guardrail_reply::{GuardrailReply, answer_to};
use crate::engine::phase::Phase;
use crate::engine::question::{Approval, Asked, Question, Subject};
use crate::engine::transition::Refusal;
use crate::flow::guardrail::{GuardrailAnswer, Inquiry};

impl Builder<'_> {
    /// Applies the answers of programs to guardrails, and repeats the approval.
    pub(in crate::engine) fn guardrails_answered(
        &mut self,
        task: TaskId,
        replies: Vec<GuardrailReply>,
    ) -> Result<(), Refusal> {
        let review = self.handler_asked_by(task).ok_or(Refusal::TaskOver)?;
        let (question, _) = self.take_question(review).ok_or(Refusal::TaskOver)?;
        let Question { asked: Asked::Guardrails { approval, inquiries, replies: before, .. }, .. } = &question else {
            self.state.questions.push(question);
            return Err(Refusal::TaskOver);
        };
        let approval = approval.clone();
        self.replies = [before.clone(), replies].concat();
        // An inquiry without an answer counts as failed, so that nothing is asked twice.
        for inquiry in inquiries {
            if answer_to(&self.replies, inquiry).is_none() {
                let reason = "there was no answer".to_owned();
                self.replies.push(GuardrailReply::new(inquiry, GuardrailAnswer::Fails { reason }));
            }
        }
        self.end_task(task);
        self.approve_again(question, approval);
        Ok(())
    }

    /// Counts all inquiries of a task as failed, since the programs could not be asked.
    pub(in crate::engine) fn guardrails_unanswered(&mut self, task: TaskId, why: &str) -> Result<(), Refusal> {
        let failed =
            |inquiry: &Inquiry| GuardrailReply::new(inquiry, GuardrailAnswer::Fails { reason: why.to_owned() });
        let replies = self.inquiries_of(task).unwrap_or_default().iter().map(failed).collect();
        self.guardrails_answered(task, replies)
    }

    /// Whether a task asks programs for guardrails.
    pub(in crate::engine) fn is_inquiry(&self, task: TaskId) -> bool {
        self.inquiries_of(task).is_some()
    }

    fn inquiries_of(&self, task: TaskId) -> Option<&[Inquiry]> {
        self.state.questions.iter().find_map(|question| match &question.asked {
            Asked::Guardrails { task: its, inquiries, .. } if *its == task => Some(&inquiries[..]),
            _ => None,
        })
    }

    /// Repeats an approval, with the answers of the programs.
    fn approve_again(&mut self, question: Question, approval: Approval) {
        let review = question.review;
        match approval {
            Approval::Auto => self.ask_handler(question),
            Approval::Judge { said, digest } => {
                let outcome = self.weigh_again(&question, *said, &digest);
                self.go_on(question, outcome);
            }
            Approval::Program { said, digest } => {
                let outcome = self.weigh_program(&question, &digest, *said);
                self.go_on(question, outcome);
            }
            Approval::Timer => {
                self.state.questions.push(Question { asked: Asked::People, ..question });
                self.time_is_up(review);
            }
            Approval::Votes => {
                self.ask_people_again(question);
                self.settle_votes(review);
            }
            Approval::Grant => {
                let gate = self.gate_of(&question.subject);
                if !gate.is_some_and(|gate| self.is_granted(&question.subject, gate)) {
                    self.ask(question.subject);
                }
            }
            Approval::End => self.end_again(&question.subject),
        }
    }

    /// Ends the step of the output, so that the run comes to its end again.
    fn end_again(&mut self, subject: &Subject) {
        let branch = subject.branch().and_then(|branch| self.state.branches.remove(&branch));
        if let Some(Phase::Returning { mut step }) = branch.map(|branch| branch.phase) {
            self.complete_step(&mut step, &JsonMap::new());
        }
    }
}
