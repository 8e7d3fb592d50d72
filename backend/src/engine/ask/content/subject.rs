//! The current content of the question about each subject.

use shared::definition::Reviewers;
use shared::error::{FlowCode, FlowError};

use super::{Content, human};
use crate::engine::builder::Builder;
use crate::engine::question::Subject;

impl Builder<'_> {
    /// Builds the current content of the question about a subject.
    pub(in crate::engine::ask) fn content(&self, subject: &Subject) -> Result<Content, FlowError> {
        let step = self.state.step_of(subject).ok_or_else(nothing_waits)?;
        match subject {
            Subject::Node { .. } => {
                let human = human(self.flow, &step.node).ok_or_else(|| nothing("the flow has no such human node"))?;
                self.content_of_node(step, human)
            }
            Subject::Calls { .. } | Subject::Specialist { .. } => self.content_of_calls(step, subject),
            Subject::Takeover { by, not_requester, not_same_as, .. } => {
                let (users, not_requester, not_same_as) = (by.clone(), *not_requester, not_same_as.clone());
                let reviewers = Reviewers { users, not_requester, not_same_as, ..Reviewers::default() };
                self.content_of_takeover(step, reviewers).ok_or_else(|| nothing("the flow has no such node"))
            }
            Subject::Ask { .. } | Subject::Handoff { .. } => {
                self.content_of_ask(step, subject).ok_or_else(|| nothing("the step has no such question"))
            }
            Subject::Agent { .. } | Subject::Output { .. } => {
                self.content_of_action(step, subject)?.ok_or_else(|| nothing("no gate holds it back any longer"))
            }
            Subject::Lost { why, .. } => {
                let why = why.as_deref();
                self.content_of_lost(step, subject, why)?.ok_or_else(|| nothing("the step has no such call"))
            }
        }
    }
}

pub(in crate::engine::ask) fn nothing_waits() -> FlowError {
    nothing("nothing waits for the answer")
}

fn nothing(message: &str) -> FlowError {
    FlowError { code: FlowCode::FlowInvalid, message: message.to_owned(), node: None }
}
