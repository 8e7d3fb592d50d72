//! The chain of handlers: each is asked in turn, and decides or passes on; after the last come people.

use shared::definition::Handler;
use shared::id::ReviewId;

use super::asking::{Asking, Heard};
use super::content::handlers;
use crate::engine::builder::Builder;
use crate::engine::input::{ModelAnswer, TaskFailure};
use crate::engine::next::Answer;
use crate::engine::question::Subject;

impl Builder<'_> {
    /// Asks about a subject: its handlers in their order, then people.
    pub(in crate::engine) fn ask(&mut self, subject: Subject) {
        let review = ReviewId(self.ids.uuid());
        self.ask_handler(Asking { review, subject, handler: 0, advice: Vec::new() });
    }

    /// Asks the handler at its place.
    fn ask_handler(&mut self, asking: Asking) {
        let content = match self.content(&asking.subject) {
            Ok(content) => content,
            Err(error) => return self.answer(asking.subject, Answer::Failed(error)),
        };
        match handlers(self.flow, &self.state, &asking.subject).get(asking.handler) {
            Some(Handler::Auto(auto)) => self.handled(asking, content, &auto.into()),
            Some(Handler::Judge(judge)) => self.ask_judge(asking, content, judge),
            // Refused when a flow is saved: nobody can be asked there.
            Some(Handler::Webhook(_) | Handler::Slack(_) | Handler::Cli) => self.ask_next(asking),
            Some(Handler::Human) | None => self.ask_people(asking, content),
        }
    }

    fn ask_next(&mut self, asking: Asking) {
        self.ask_handler(Asking { handler: asking.handler + 1, ..asking });
    }

    /// A judge has answered.
    pub(in crate::engine) fn judge_answered(&mut self, review: ReviewId, answer: &ModelAnswer) {
        let said = self.read_judge(review, answer);
        if let Some((asking, heard)) = said {
            self.go_on(asking, heard);
        }
    }

    /// The call of a judge failed.
    pub(in crate::engine) fn judge_failed(&mut self, review: ReviewId, why: &TaskFailure) {
        let said = self.retry_judge(review, why);
        if let Some((asking, heard)) = said {
            self.go_on(asking, heard);
        }
    }

    /// A handler has had its time.
    pub(super) fn handler_timed_out(&mut self, review: ReviewId) {
        if let Some((asking, heard)) = self.judge_timed_out(review) {
            self.go_on(asking, heard);
        }
    }

    /// A handler decides, or the next is asked.
    fn go_on(&mut self, mut asking: Asking, heard: Heard) {
        match heard {
            Heard::Decides(advice, handled) => {
                asking.advice.push(advice);
                match self.content(&asking.subject) {
                    Ok(content) => self.handled(asking, content, &handled),
                    Err(error) => self.answer(asking.subject, Answer::Failed(error)),
                }
            }
            Heard::Passes(advice) => {
                asking.advice.push(advice);
                self.ask_next(asking);
            }
        }
    }
}
