//! Approvals that no person waits for: by a handler, a timer, a grant, votes that are counted again, or the end of the
//! run. If guardrails ask programs about the effect, a worker asks them first, and the approval counts only after their
//! answers (`answered.rs`). For the decision of a person, they are asked before it is written
//! ([`Refusal::Unasked`](crate::engine::Refusal::Unasked)).

use shared::id::ReviewId;

use crate::engine::builder::Builder;
use crate::engine::question::{Approval, Asked, Question, Subject};
use crate::engine::transition::TaskKind;
use crate::flow::guardrail::Inquiry;

impl Builder<'_> {
    /// Creates the task that asks programs about an approval for guardrails.
    pub(in crate::engine::ask) fn ask_guardrails(
        &mut self,
        asking: Question,
        approval: Approval,
        inquiries: Vec<Inquiry>,
    ) {
        let Some(step) = self.state.step_of(&asking.subject).cloned() else { return };
        let task = self.add_task(&step, TaskKind::Inquire { review: asking.review }, self.now, true);
        let asked = Asked::Guardrails { approval, task, inquiries, replies: self.replies.clone() };
        self.state.questions.push(Question { asked, timer: None, ..asking });
    }

    /// Like [`Self::ask_guardrails`], for a question that is open, in place of whoever is asked at present.
    pub(in crate::engine::ask) fn ask_guardrails_instead(
        &mut self,
        review: ReviewId,
        approval: Approval,
        inquiries: Vec<Inquiry>,
    ) {
        let Some((question, _)) = self.take_question(review) else { return };
        let asking = self.end_asking(question);
        self.ask_guardrails(asking, approval, inquiries);
    }

    /// Like [`Self::ask_guardrails`], about an output of the run that needs no approval.
    pub(in crate::engine) fn ask_about_end(&mut self, branch: u32, inquiries: Vec<Inquiry>) {
        let asking = Question::new(ReviewId(self.ids.uuid()), Subject::Output { branch });
        self.ask_guardrails(asking, Approval::End, inquiries);
    }
}
