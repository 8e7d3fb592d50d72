//! Asking: what is asked, whom in which order, and what becomes of it. A question is answered exactly once, by a handler,
//! by people, by its timer, or by whoever takes it back; the answer is handed to what waits for it by those above
//! ([`crate::engine::next`]), and nothing here knows what that does with it.
//!
//! Imports the engine's state and the transition that is being made; not nodes, nor what moves a run.

mod calls;
mod claim;
mod content;
mod decide;
mod decision_scope;
mod delegate;
mod gate;
mod grant;
mod guardrail;
mod handled;
mod judge;
mod node;
mod review;
mod timer;
mod title;
mod vote;
mod withdraw;

pub(super) use judge::{ANSWER as JUDGE_ANSWER, judge_of};

use shared::definition::Handler;
use shared::id::ReviewId;
use shared::review::Advice;

use super::builder::Builder;
use super::next::{Answer, Answered};
use super::question::{Question, Subject};

impl Builder<'_> {
    /// Asks about a subject: its handlers in their order, then people.
    pub(super) fn ask(&mut self, subject: Subject) {
        let review = ReviewId(self.ids.uuid());
        self.ask_from(review, subject, 0, Vec::new());
    }

    /// Asks the handler at this place.
    fn ask_from(&mut self, review: ReviewId, subject: Subject, handler: usize, advice: Vec<Advice>) {
        let content = match self.content(&subject) {
            Ok(content) => content,
            Err(error) => return self.answer(subject, Answer::Failed(error)),
        };
        match content::handlers(self.flow, &self.state, &subject).get(handler) {
            Some(Handler::Auto(auto)) => self.handled(review, subject, advice, &auto.into()),
            Some(Handler::Judge(judge)) => self.ask_judge(review, subject, content, handler, advice, judge),
            Some(Handler::Webhook(_) | Handler::Slack(_)) => self.ask_from(review, subject, handler + 1, advice),
            Some(Handler::Human | Handler::Cli) | None => self.ask_people(review, subject, content, handler, advice),
        }
    }

    /// A handler passed on: the next one is asked.
    fn pass_on(&mut self, question: Question, advice: Advice) {
        let Question { review, subject, handler, advice: mut said, .. } = question;
        said.push(advice);
        self.ask_from(review, subject, handler + 1, said);
    }

    /// The answer to a question is on its way.
    fn answer(&mut self, subject: Subject, answer: Answer) {
        self.answers.push_back(Answered { subject, answer });
    }
}
