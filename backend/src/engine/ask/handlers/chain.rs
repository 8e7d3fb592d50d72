//! The chain of handlers: each is asked in turn, and decides or passes on; people come last. People may be able to
//! decide earlier: once a handler has said that it answers later, the review is pending, and stays so.

use shared::decision::{ProgramAnswer, Via};
use shared::definition::Handler;
use shared::id::{ReviewId, TaskId};
use shared::review::Advice;

use super::outcome::{AfterHandler, HandlerOutcome};
use crate::engine::ask::content::handlers;
use crate::engine::builder::Builder;
use crate::engine::input::{HandlerAnswer, ModelAnswer, TaskFailure};
use crate::engine::next::QuestionAnswer;
use crate::engine::question::{Asked, Question, Subject};
use crate::engine::transition::Refusal;

impl Builder<'_> {
    /// Asks about a subject: its handlers in their order, then people. Returns the id of the review.
    pub(in crate::engine) fn ask(&mut self, subject: Subject) -> ReviewId {
        let review = ReviewId(self.ids.uuid());
        self.ask_handler(Question::new(review, subject));
        review
    }

    /// Asks the handler at the question's index, or people if there is none. If that fails, the question ends, with its
    /// review if that is pending.
    pub(in crate::engine::ask) fn ask_handler(&mut self, asking: Question) {
        let (pending, subject) = (asking.pending.then_some(asking.review), asking.subject.clone());
        let asked = match handlers(self.flow, &self.state, &asking.subject).get(asking.handler) {
            Some(Handler::Auto(auto)) => self.ask_auto(asking, auto),
            Some(Handler::Judge(judge)) => self.ask_judge(asking, judge),
            Some(Handler::Webhook(_) | Handler::Function(_)) => self.ask_program(asking),
            Some(Handler::Slack(slack)) => self.ask_channel(asking, slack),
            // A person at a terminal is asked as people are.
            Some(Handler::Human | Handler::Cli) | None => self.ask_people(asking, None),
        };
        if let Err(error) = asked {
            if let Some(review) = pending {
                self.withdraw(review, Via::Run, None, &format!("the step has failed: {error}"));
            }
            self.answer(subject, QuestionAnswer::Failed(error));
        }
    }

    /// Handles a failed call to a handler: retries it, or goes on without an answer.
    pub(in crate::engine) fn handler_failed(&mut self, review: ReviewId, why: &TaskFailure) {
        let after = match self.state.question(review).map(|question| &question.asked) {
            Some(Asked::Judge { .. }) => self.retry_judge(review, why),
            Some(Asked::Program { .. }) => self.retry_program(review, why),
            Some(Asked::People | Asked::Channel { .. } | Asked::Guardrails { .. }) | None => None,
        };
        self.go_on_after(after);
    }

    /// Applies the answer of a judge.
    pub(in crate::engine) fn judge_answered(&mut self, review: ReviewId, answer: &ModelAnswer) {
        let after = self.read_judge(review, answer);
        self.go_on_after(after);
    }

    /// Applies the response of a program to the request that asked it.
    pub(in crate::engine) fn program_answered(
        &mut self,
        task: TaskId,
        digest: &str,
        answer: HandlerAnswer,
    ) -> Result<(), Refusal> {
        let after = self.read_program(task, digest, answer)?;
        self.go_on_after(after);
        Ok(())
    }

    /// Applies the callback of a program.
    pub(in crate::engine) fn call_back(
        &mut self,
        id: ReviewId,
        task: TaskId,
        answer: Box<ProgramAnswer>,
    ) -> Result<(), Refusal> {
        let after = self.read_callback(id, task, answer)?;
        self.go_on_after(after);
        Ok(())
    }

    /// Goes on after the deadline of the handler that is asked.
    pub(in crate::engine::ask) fn handler_timed_out(&mut self, review: ReviewId) {
        let Some(question) = self.state.question(review) else { return };
        if let (Some(branch), Some((task, _))) = (question.subject.branch(), question.task()) {
            self.abandon_call(branch, task);
        }
        let Some((question, _)) = self.take_question(review) else { return };
        let outcome = match &question.asked {
            Asked::Program { answers_later, .. } => self.program_timed_out(&question, *answers_later),
            Asked::Channel { .. } => self.channel_timed_out(&question),
            Asked::Judge { .. } | Asked::People | Asked::Guardrails { .. } => self.judge_timed_out(&question),
        };
        self.go_on(question, outcome);
    }

    fn go_on_after(&mut self, after: AfterHandler) {
        if let Some((question, outcome)) = after {
            self.go_on(question, outcome);
        }
    }

    /// Applies the outcome of asking a handler: it decides, the next one is asked, or guardrails ask programs.
    pub(in crate::engine::ask) fn go_on(&mut self, question: Question, outcome: HandlerOutcome) {
        let mut asking = self.end_asking(question);
        match outcome {
            HandlerOutcome::Decides(advice, decided) => {
                self.advise(&mut asking, advice);
                self.handled(asking, *decided);
            }
            HandlerOutcome::Passes(advice) => {
                self.advise(&mut asking, advice);
                self.ask_handler(Question { handler: asking.handler + 1, ..asking });
            }
            HandlerOutcome::Asks(approval, inquiries) => self.ask_guardrails(asking, approval, inquiries),
        }
    }

    /// Keeps the advice of a handler: on the pending review, or with the question.
    fn advise(&mut self, asking: &mut Question, advice: Advice) {
        if asking.pending {
            self.change_review(asking.review, |review| {
                review.advice.push(advice);
                review.asked = None;
            });
        } else {
            asking.advice.push(advice);
        }
    }
}
