//! The decision of a handler. If people were not asked yet, a review is created and resolved in the same commit, so
//! that it is recorded with everything that would have been shown, and no one waits.

use shared::JsonMap;
use shared::decision::Via;
use shared::definition::AutoHandler;
use shared::error::{FlowCode, FlowError};
use shared::review::Review;

use super::outcome::HandlerDecision;
use crate::engine::ask::decide::effect::Counted;
use crate::engine::ask::decide::verdict::CheckedVerdict;
use crate::engine::ask::fit::said;
use crate::engine::ask::guardrails::check::PutIn;
use crate::engine::builder::Builder;
use crate::engine::next::QuestionAnswer;
use crate::engine::question::{Approval, Question};
use crate::engine::transition::Refusal;

impl Builder<'_> {
    /// Lets an `auto` handler decide at once, whatever is asked.
    pub(in crate::engine::ask) fn ask_auto(&mut self, asking: Question, auto: &AutoHandler) -> Result<(), FlowError> {
        let review = self.review_to_show(&asking)?;
        let (approves, reason) = match auto {
            AutoHandler::Approve => (true, None),
            AutoHandler::Reject(reason) => (false, Some(reason.clone())),
        };
        match said(&review, approves, reason.as_deref()) {
            Ok(said) => {
                if let CheckedVerdict::Actions(decisions, _) = &said
                    && let Err(Refusal::Unasked { inquiries, .. }) =
                        self.refuse_unasked(&review, &asking.subject, decisions, None)
                {
                    self.ask_guardrails(asking, Approval::Auto, inquiries);
                    return Ok(());
                }
                let (put_in, metadata) = (PutIn::default(), JsonMap::new());
                self.handled(asking, HandlerDecision { said, put_in, comment: reason, metadata, via: Via::Auto });
                Ok(())
            }
            Err(message) => Err(FlowError { code: FlowCode::FlowInvalid, message, node: review.node }),
        }
    }

    /// Applies the decision of a handler.
    pub(in crate::engine::ask) fn handled(&mut self, asking: Question, decided: HandlerDecision) {
        let review = match self.review_to_show(&asking) {
            Ok(review) => review,
            Err(error) => return self.answer(asking.subject, QuestionAnswer::Failed(error)),
        };
        let HandlerDecision { said, put_in, comment, metadata, via } = decided;
        let (id, subject) = (asking.review, asking.subject);
        let comment = comment.filter(|comment| !comment.trim().is_empty());
        let counted = Counted { put_in: &put_in, comment: comment.as_deref(), metadata: &metadata, via, by: &[] };
        // The decision fits the review, and the review its subject.
        let Some((outcome, answer)) = self.effect(&review, &subject, said, counted) else { return };
        if asking.pending {
            self.resolve_pending(id, outcome, comment, via, answer.findings());
        } else {
            let review = Review { expires_at: None, on_timeout: None, ..review };
            self.record(review, outcome, None, comment, via, answer.findings());
        }
        self.emit_edit_findings(id, &put_in);
        self.answer(subject, answer);
    }
}
