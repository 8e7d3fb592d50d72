//! Withdraws a review while its run continues. Nobody has decided, so nothing that was asked about may take effect: the
//! branch continues as after a rejection. A human node stops, or goes to `on_reject`; calls are rejected, with the
//! reason.

use serde_json::json;
use shared::access::{Act, Principal};
use shared::decision::Via;
use shared::definition::ChoiceKind;
use shared::error::{FlowCode, FlowError};
use shared::id::ReviewId;

use crate::engine::ask::by_agent::withdrawn;
use crate::engine::ask::content::calls::answer_all;
use crate::engine::ask::decision_scope::Remembered;
use crate::engine::builder::Builder;
use crate::engine::next::{NodeAnswer, QuestionAnswer, Then};
use crate::engine::question::Subject;
use crate::engine::ruling::Findings;
use crate::engine::transition::Refusal;

impl Builder<'_> {
    /// Withdraws a review for a person.
    pub(in crate::engine) fn take_back(
        &mut self,
        id: ReviewId,
        by: &Principal,
        via: Via,
        reason: Option<&str>,
    ) -> Result<(), Refusal> {
        let review = self.pending_review(id, by, Act::Withdraw)?.clone();
        let subject = self.state.question(id).ok_or(Refusal::NotFound)?.subject.clone();
        let given = reason.map(str::trim).filter(|reason| !reason.is_empty());
        let reason = given.unwrap_or("the review was withdrawn");
        self.withdraw(id, via, Some(by.into()), reason);
        let answer = match &subject {
            Subject::Node { .. } => {
                let (kind, by) = (Some(ChoiceKind::Stop), std::slice::from_ref(&by.username));
                let remembered = Remembered { kind, comment: given, by, ..Remembered::new(self.now, via) };
                let (note, then) = ("withdrawn".to_owned(), Then::Stop { message: reason.to_owned() });
                QuestionAnswer::Node(NodeAnswer { decision: json!(remembered), note, then })
            }
            Subject::Ask { .. } => QuestionAnswer::Reply(withdrawn(reason), Findings::default()),
            Subject::Takeover { .. } => {
                let node = review.node.clone();
                QuestionAnswer::Failed(FlowError {
                    code: FlowCode::FlowHumanRejected,
                    message: reason.to_owned(),
                    node,
                })
            }
            Subject::Handoff { .. } => return Ok(()),
            _ => self.rule(&review, &subject, &answer_all(&review.actions, false, Some(reason)), None),
        };
        self.answer(subject, answer);
        Ok(())
    }
}
