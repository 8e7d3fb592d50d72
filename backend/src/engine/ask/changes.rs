//! What a handler changes of what it approves: it must fit as what a person changes must.

use shared::JsonMap;
use shared::decision::{ActionDecision, DecisionRequest, Verdict};
use shared::definition::ChoiceKind;
use shared::error::Mistake;
use shared::id::ReviewId;
use shared::review::{Changes, Review};

use super::calls::answer_all;
use super::decide::{validate, verdict};
use super::guardrail::PutIn;
use crate::engine::builder::Builder;
use crate::engine::invoke::listed;
use crate::engine::question::Subject;

impl Builder<'_> {
    /// What of the changes goes into the state; or why they cannot be made.
    pub(super) fn fit_changes(&self, id: ReviewId, subject: &Subject, changes: &Changes) -> Result<PutIn, String> {
        if changes.is_empty() {
            return Ok(PutIn::default());
        }
        let step = self.state.step_of(subject).ok_or("nothing waits for the answer")?;
        let content = self.content(subject).map_err(|error| error.to_string())?;
        let review = self.review_of(id, step, content, Vec::new());
        let request = request(&review, changes)?;
        self.fit(&review, subject, &request).map_err(|mistakes| listed(&mistakes))
    }

    fn fit(&self, review: &Review, subject: &Subject, request: &DecisionRequest) -> Result<PutIn, Vec<Mistake>> {
        validate::size(request).map_err(|mistake| vec![mistake])?;
        verdict::check(review, request)?;
        self.validate(review, request)?;
        if let Verdict::Actions { decisions, .. } = &request.verdict {
            self.edited_requests(subject, decisions)?;
        }
        self.put_in(review, request)
    }
}

/// The decision of a person who would approve with these changes.
fn request(review: &Review, changes: &Changes) -> Result<DecisionRequest, String> {
    let Changes { arguments, edits, instructions } = changes;
    let verdict = if review.actions.is_empty() {
        if !arguments.is_empty() || instructions.is_some() {
            return Err("there are no actions here, and nobody hears instructions".to_owned());
        }
        let accept = review.options.iter().find(|option| option.kind == ChoiceKind::Accept);
        let option = accept.ok_or("there is no option of kind `accept`")?.id.clone();
        Verdict::Choose { option, fields: JsonMap::new() }
    } else {
        let mut decisions = answer_all(&review.actions, true, None);
        decisions.extend(
            arguments.iter().map(|(id, arguments)| (id.clone(), ActionDecision::Edit { arguments: arguments.clone() })),
        );
        Verdict::Actions { decisions, instructions: instructions.clone() }
    };
    let (revision, digest) = (review.revision, review.digest.clone());
    Ok(DecisionRequest { revision, digest, verdict, edits: edits.clone(), comment: None, metadata: JsonMap::new() })
}
