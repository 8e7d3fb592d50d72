//! Somebody takes a review back while its run goes on. Nobody decided, so nothing that was asked may happen: the branch
//! goes on as after a refusal. A human node stops, or goes to `on_reject`; calls are rejected, with the reason.

use shared::JsonMap;
use shared::access::{Act, Principal};
use shared::decision::Via;
use shared::definition::ChoiceKind;
use shared::id::ReviewId;

use super::builder::Builder;
use super::call::unanswered;
use super::decide::waits_for;
use super::decision_scope::Remembered;
use super::state::{Branch, Phase};
use super::transition::Refusal;

impl Builder<'_> {
    /// Somebody takes a review back.
    pub(super) fn take_back(
        &mut self,
        id: ReviewId,
        by: &Principal,
        via: Via,
        reason: Option<&str>,
    ) -> Result<(), Refusal> {
        let review = self.pending_review(id, by, Act::Withdraw)?.clone();
        let asked = self.asked(id).ok_or(Refusal::NotFound)?;
        let (number, Branch { phase, .. }) = self.take_branch(waits_for(id)).ok_or(Refusal::NotFound)?;
        let given = reason.map(str::trim).filter(|reason| !reason.is_empty());
        let reason = given.unwrap_or("the review was withdrawn");
        self.withdraw(asked, via, Some(by.username.clone()), reason);
        match phase {
            Phase::Human { mut step, .. } => {
                let nothing = JsonMap::new();
                let remembered = Remembered {
                    option: None,
                    kind: Some(ChoiceKind::Stop),
                    text: None,
                    comment: given,
                    edits: &nothing,
                    metadata: &nothing,
                    by: std::slice::from_ref(&by.username),
                    at: self.now,
                    via,
                };
                self.remember(&step.node, &remembered);
                step.note = Some("withdrawn".to_owned());
                self.stop(number, step, reason.to_owned());
            }
            phase => {
                let rulings = self.rule_phase(&phase, &unanswered(&review, false, reason));
                self.actions_decided(number, phase, review.id, rulings, None);
            }
        }
        Ok(())
    }
}
