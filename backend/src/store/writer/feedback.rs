//! Feedback in a transaction: read for the agents that request it, and retracted.

use std::collections::BTreeSet;

use shared::access::{Act, Principal};
use shared::feedback::Feedback;
use shared::id::FeedbackId;
use shared::log::{EventData, FeedbackRetracted};

use super::super::db::Conn;
use super::super::{Change, CommitError, Committed, Error, Operation};
use super::group::{ChangeResult, Group};
use super::rights::allow;
use crate::clock::Moment;
use crate::flow::Compiled;

impl Group {
    /// Reads the newest feedback on agents that request it, and the feedback that is to be retracted. Makes no query if
    /// there is none.
    pub async fn load_feedback(&mut self, conn: &mut Conn, changes: &[Change]) -> Result<(), Error> {
        let retracted = changes.iter().filter_map(|change| match change.operation {
            Operation::RetractFeedback(id) => Some(id),
            _ => None,
        });
        let retracted: BTreeSet<FeedbackId> = retracted.collect();
        if !retracted.is_empty() {
            self.retractable = conn.feedback_by_id(retracted).await?;
        }
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

    pub fn retract_feedback(&mut self, by: Option<&Principal>, id: FeedbackId, moment: Moment) -> ChangeResult {
        let at = self.retractable.iter().position(|said| said.id == id).ok_or(CommitError::NotFound)?;
        allow(by, Act::RetractFeedback(&self.retractable[at].by))?;
        let Feedback { flow, agent, .. } = self.retractable.swap_remove(at);
        self.feedback.retain(|said| said.id != id);
        self.out.retracted_feedback.insert(id);
        self.emit(by, &EventData::FeedbackRetracted(FeedbackRetracted { feedback: id, flow, agent }), moment);
        Ok(Committed::Done)
    }
}
