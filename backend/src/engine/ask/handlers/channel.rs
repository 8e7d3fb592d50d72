//! Chat channels in which those who may decide are asked. The review is pending from the beginning, for everyone who
//! may decide it; the message in the channel is created from the log (`crate::notify`). If the handler has a time
//! limit, the next one is asked after it.

use shared::decision::Via;
use shared::definition::{Handler, SlackHandler};
use shared::error::FlowError;
use shared::review::AskedHandler;

use super::outcome::HandlerOutcome;
use crate::engine::ask::content::handlers;
use crate::engine::builder::Builder;
use crate::engine::question::{Asked, Question, Timer};
use crate::engine::transition::TaskKind;

impl Builder<'_> {
    /// Asks in a channel. If it has no time limit, no handler is asked after it, and the deadline of the review holds.
    pub(in crate::engine::ask) fn ask_channel(
        &mut self,
        mut asking: Question,
        slack: &SlackHandler,
    ) -> Result<(), FlowError> {
        let until = slack.timeout.map(|timeout| self.now.after(timeout.0));
        let SlackHandler { channel, reactions, .. } = slack;
        let asked = AskedHandler { by: channel.clone(), via: Via::Slack, until, reactions: *reactions };
        let Some(until) = until else { return self.ask_people(asking, Some(asked)) };
        let Some(step) = self.state.step_of(&asking.subject).cloned() else { return Ok(()) };
        self.open_pending(&mut asking, asked)?;
        let deadline = TaskKind::Deadline { review: asking.review };
        let timer = Some(Timer { task: self.add_task(&step, deadline, until, true), warn_at: None });
        self.state.questions.push(Question { asked: Asked::Channel { until }, timer, ..asking });
        Ok(())
    }

    /// Passes on from a channel in which nobody has decided in time.
    pub(in crate::engine::ask) fn channel_timed_out(&self, question: &Question) -> HandlerOutcome {
        let by = match handlers(self.flow, &self.state, &question.subject).get(question.handler) {
            Some(Handler::Slack(slack)) => slack.channel.clone(),
            _ => "a channel".to_owned(),
        };
        HandlerOutcome::Passes(self.advice(by, Via::Slack, "Nobody there has decided in time."))
    }
}
