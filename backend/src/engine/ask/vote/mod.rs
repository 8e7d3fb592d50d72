//! Votes: if a review's policy requires several decisions, each is one vote, and the review resolves as soon as the
//! outcome is certain.
//!
//! [`tally`] counts, [`electorate`] says who may vote, [`words`] describes the state; this module accepts votes, and
//! applies the outcome.

mod electorate;
mod recount;
mod tally;
pub(super) mod void;
mod words;

use shared::JsonMap;
use shared::author::Author;
use shared::decision::{Decision, Shown, Verdict};
use shared::definition::ChoiceKind;
use shared::id::{ReviewId, Username};
use shared::log::ReviewChange;
use shared::review::Review;
use shared::voting::Edited;

use super::decide::verdict::{CheckedVerdict, NodeVerdict, joined};
use super::guardrails::check::PutIn;
use crate::engine::builder::Builder;
use crate::engine::digest;
use crate::engine::question::{Approval, Asked};
use crate::engine::transition::Refusal;
use tally::{VoteFor, VoteOutcome};
use void::void;
pub(super) use words::{refresh, shortage};

impl Builder<'_> {
    /// Takes a vote; a second one of the same voter replaces the first. If it has edits, everybody sees them: earlier
    /// votes are void, and this one stands on the new revision. Whoever has voted counts as somebody who decided the step,
    /// even if their vote is void later, since their edit may stay.
    pub(super) fn vote(&mut self, id: ReviewId, mut vote: Decision, put_in: &PutIn) -> Option<()> {
        let by = Author::from(&vote);
        if let Some(node) = self.reviews.get(&id).and_then(|review| review.node.clone()) {
            self.remember_deciders(&node, [vote.by.clone(), vote.voter().clone()]);
        }
        let changes = self.reviews.get(&id).map(|review| changes(review, &put_in.edits)).unwrap_or_default();
        let edited = !changes.is_empty();
        let over = self.reviews.get(&id).map(|review| replaced(review, &changes)).unwrap_or_default();
        let mut voided = Vec::new();
        let review = self.change_review(id, |review| {
            let voter = vote.voter().clone();
            review.decisions.retain(|decision| *decision.voter() != voter);
            if edited {
                voided = void(review);
                let mut values = JsonMap::new();
                for item in &mut review.items {
                    if let Some(value) = changes.get(&item.key) {
                        values.insert(item.key.clone(), std::mem::replace(&mut item.value, value.clone()));
                    }
                }
                // The record says what the voter saw and changed, even if votes are secret until the end.
                let shown = Shown { revision: vote.revision, digest: std::mem::take(&mut vote.digest), values };
                vote.shown = Some(Box::new(shown));
                review.revision += 1;
                review.digest = digest::of_review(review);
                (vote.revision, vote.digest) = (review.revision, review.digest.clone());
            }
            review.decisions.push(vote);
            if let Some(voting) = &mut review.voting {
                let new = over.into_iter().filter(|new| voting.edited.iter().all(|known| known.key != new.key));
                let new: Vec<_> = new.collect();
                voting.edited.extend(new);
                voting.voided.retain(|name| *name != voter);
            }
            refresh(review);
        })?;
        self.emit_edit_findings(id, put_in);
        if edited {
            let voided = Some(voided).filter(|_| !review.is_secret());
            self.emit_vote(&review, Some(by), ReviewChange::Content { voided, vote: true });
            return self.settle_votes(id);
        }
        self.settle_votes(id)?;
        if self.reviews.get(&id).is_some_and(Review::is_pending) {
            self.emit_vote(&review, Some(by), ReviewChange::Vote);
        }
        Some(())
    }

    /// Resolves a review if the outcome of its votes is certain, once guardrails have asked programs about it. `None` if
    /// nothing waits for it.
    pub(super) fn settle_votes(&mut self, id: ReviewId) -> Option<()> {
        let review = self.reviews.get(&id)?;
        let choice = match tally::outcome(review) {
            VoteOutcome::Open => return Some(()),
            VoteOutcome::Accepted(choice) | VoteOutcome::Refused(choice) => choice,
        };
        let (said, decision, by) = ruling(review, &choice)?;
        // Programs are asked when somebody votes. If people who have not voted lose their right, the votes of the others
        // can decide without another one.
        let question = self.state.question(id).filter(|question| question.pending)?;
        if let Err(Refusal::Unasked { inquiries, .. }) =
            self.refuse_unasked_reply(&question.subject, choice.option.as_deref())
        {
            if !matches!(question.asked, Asked::Guardrails { .. }) {
                self.ask_guardrails_instead(id, Approval::Votes, inquiries);
            }
            return Some(());
        }
        // The shown values were checked when they were put in.
        let put_in = PutIn::checked(decision.edits.clone());
        self.carry_out(id, said, &decision, &put_in, &by)
    }

    /// Emits a change by votes, without their author while votes are secret.
    fn emit_vote(&mut self, review: &Review, by: Option<Author>, change: ReviewChange) {
        self.emit_updated(review, by.filter(|_| !review.is_secret()), change);
    }
}

/// Returns the digests of the values that changes replace. For a value that was edited before, that is not the state's
/// value, whose digest is already known.
fn replaced(review: &Review, changes: &JsonMap) -> Vec<Edited> {
    let items = review.items.iter().filter(|item| changes.contains_key(&item.key));
    items.map(|item| Edited { key: item.key.clone(), replaces: digest::of_value(&item.value) }).collect()
}

/// Returns the edits that differ from the values that are shown.
fn changes(review: &Review, edits: &JsonMap) -> JsonMap {
    let shown = |key: &String| review.items.iter().find(|item| item.key == *key);
    let changed = edits.iter().filter(|(key, value)| shown(key).is_some_and(|item| item.value != **value));
    changed.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// Combines the votes for a choice: their comments and texts in order, the metadata of all votes, and the edits that
/// are shown. The verdict is that of the newest of them. Also returns who cast them.
fn ruling(review: &Review, choice: &VoteFor) -> Option<(CheckedVerdict, Decision, Vec<Username>)> {
    let winners: Vec<_> = review.decisions.iter().filter(|vote| tally::choice(review, vote) == *choice).collect();
    // Nobody sent the combined decision: what each person sent is with their vote.
    let mut decision = Decision { sent: None, shown: None, ..(*winners.last()?).clone() };
    let by = winners.iter().map(|vote| vote.by.clone()).collect();
    let pieces: Vec<_> = winners.iter().flat_map(|vote| [text_of(vote), vote.comment.as_deref()]).collect();
    let text = joined(pieces);
    let comment = joined(winners.iter().map(|vote| vote.comment.as_deref()));
    decision.comment = Some(comment).filter(|comment| !comment.is_empty());
    decision.metadata = review.decisions.iter().flat_map(|vote| vote.metadata.clone()).collect();
    decision.edits = shown_edits(review);
    let option = choice.option.as_ref().and_then(|id| review.options.iter().find(|option| option.id == *id));
    let answer = match (choice.kind, option) {
        (ChoiceKind::Accept, option) => NodeVerdict::Accept(option?.clone()),
        (ChoiceKind::Stop, option) => NodeVerdict::Stop(option?.clone()),
        (ChoiceKind::Correct, Some(option)) => {
            let message = joined([option.message.as_deref(), decision.comment.as_deref()]);
            NodeVerdict::Correct { option: Some(option.clone()), text: None, message }
        }
        (ChoiceKind::Correct, None) => {
            let said = joined(winners.iter().map(|vote| text_of(vote)));
            NodeVerdict::Correct { option: None, text: Some(said), message: text }
        }
    };
    if choice.kind != ChoiceKind::Accept {
        decision.edits.clear();
    }
    Some((CheckedVerdict::Node(answer), decision, by))
}

/// Returns the values that voters have edited, as they are shown now.
pub(super) fn shown_edits(review: &Review) -> JsonMap {
    let shown = |edited: &Edited| review.items.iter().find(|item| item.key == edited.key);
    let edited = review.voting.iter().flat_map(|voting| &voting.edited).filter_map(shown);
    edited.map(|item| (item.key.clone(), item.value.clone())).collect()
}

fn text_of(vote: &Decision) -> Option<&str> {
    match &vote.verdict {
        Verdict::Text { text } => Some(text),
        _ => None,
    }
}
