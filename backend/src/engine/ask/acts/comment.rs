//! Comments on a review.

use shared::access::{Act, Principal};
use shared::decision::Via;
use shared::error::Mistake;
use shared::id::ReviewId;
use shared::log::ReviewChange;
use shared::review::Comment;

use crate::engine::builder::Builder;
use crate::engine::transition::Refusal;

/// The longest comment, in bytes.
const MAX_COMMENT: usize = 10_000;
/// The maximum number of comments on a review: each version of it holds all of them.
const MAX_COMMENTS: usize = 200;

impl Builder<'_> {
    /// Adds the comment of a person to a review.
    pub(in crate::engine) fn comment(
        &mut self,
        id: ReviewId,
        by: &Principal,
        via: Via,
        text: String,
    ) -> Result<(), Refusal> {
        let review = self.pending_review(id, by, Act::Comment)?;
        let mistake = if review.comments.len() >= MAX_COMMENTS {
            Some(("too_many", format!("a review has at most {MAX_COMMENTS} comments")))
        } else if text.trim().is_empty() {
            Some(("required", "the comment is empty".to_owned()))
        } else if text.len() > MAX_COMMENT {
            Some(("too_long", format!("longer than {MAX_COMMENT} bytes")))
        } else {
            None
        };
        if let Some((code, message)) = mistake {
            return Err(Refusal::Invalid(vec![Mistake::new("/text", code, message)]));
        }
        let comment = Comment { by: by.username.clone(), at: self.now, token: by.token_id, text };
        self.update(id, by, ReviewChange::Comment { via: Some(via) }, |review| review.comments.push(comment));
        Ok(())
    }
}
