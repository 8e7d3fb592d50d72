//! Feedback in a transaction: given on a run, and read for the agents that request it.

use shared::access::{Involvement, Principal};
use shared::feedback::{Feedback, NewFeedback};
use shared::id::RunId;

use super::super::db::Conn;
use super::super::{CommitError, Committed, Error};
use super::group::Group;
use crate::clock::Moment;
use crate::engine::Input;
use crate::flow::Compiled;

impl Group {
    /// Reads the newest feedback on agents that request it. Makes no query if there are none.
    pub async fn load_feedback(&mut self, conn: &mut Conn) -> Result<(), Error> {
        let wanted = self.compiled.values().flat_map(|flow| flow.wanted_feedback()).collect();
        self.feedback = conn.newest_feedback(&wanted).await?;
        Ok(())
    }

    /// The feedback for the agents of a flow.
    pub fn feedback_on(&self, flow: &Compiled) -> Vec<Feedback> {
        let wanted: Vec<_> = flow.wanted_feedback().collect();
        let is_wanted =
            |said: &&Feedback| wanted.iter().any(|(flow, agent, _)| *flow == said.flow && *agent == said.agent);
        self.feedback.iter().filter(is_wanted).cloned().collect()
    }

    pub fn give_feedback(
        &mut self,
        by: Option<&Principal>,
        run: RunId,
        involvement: Involvement,
        feedback: NewFeedback,
        moment: Moment,
    ) -> Result<Committed, CommitError> {
        let person = by.cloned().ok_or(CommitError::Unauthenticated)?;
        self.apply(by, run, Input::Feedback { by: person, involvement, feedback }, moment)?;
        let given = self.out.feedback.last().cloned().ok_or(CommitError::NotFound)?;
        Ok(Committed::Feedback { feedback: Box::new(given) })
    }
}
