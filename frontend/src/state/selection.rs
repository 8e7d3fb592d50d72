//! Reviews that a person has selected in the inbox to decide them on one page: which of them can be, and what is chosen
//! for each.

use shared::access::Access;
use shared::decision::Decision;
use shared::definition::{ActionKind, ChoiceKind, Severity};
use shared::id::ReviewId;
use shared::review::{Review, ReviewKind};

use super::outbox::Stage;
use super::selection_note::Note;
use super::verdict::{Intent, keys};

/// The most reviews that can be selected: their page shows the whole content of each.
pub const MAX_SELECTED: usize = 20;

/// What this person has done with a review so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Begun {
    /// They have typed or chosen something in it.
    pub drafted: bool,
    /// They have decided it, and the decision is not accepted yet.
    pub sent: bool,
    /// They have voted, or their decision was accepted.
    pub voted: bool,
}

/// Why a review cannot be decided together with others, as the end of a sentence; `None` if it can.
pub fn refusal(review: &Review, access: Access, begun: Begun) -> Option<&'static str> {
    if !review.is_pending() {
        return Some("it is over");
    }
    match access {
        Access::Allowed => {}
        Access::Denied(reason) => return Some(reason),
        Access::Hidden => return Some("you no longer have access to it"),
    }
    if begun.sent {
        return Some("you have decided it already");
    }
    if begun.voted {
        return Some("you have voted already; open it to change your vote");
    }
    if begun.drafted {
        return Some("you have a draft in it; open it to decide");
    }
    // The severity of the review is the highest of its actions.
    if review.stakes.severity == Severity::Critical {
        return Some("critical reviews are decided one at a time");
    }
    match review.kind {
        ReviewKind::Clarification => return Some("it asks a question; open it to answer"),
        ReviewKind::Edit => return Some("it asks for a text; open it to write"),
        ReviewKind::Handoff => return Some("it hands off work; open it to take it"),
        _ => {}
    }
    if !choices(review).is_empty() {
        return None;
    }
    Some(if review.answers_in_words() {
        "it asks for an answer in words; open it to write"
    } else if review.actions.is_empty() {
        "its options have to be filled in; open it to decide"
    } else {
        "its calls cannot simply be approved or rejected; open it to decide each"
    })
}

/// A decision that needs nothing but a click.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlainChoice {
    /// What is sent.
    pub intent: Intent,
    /// Whether it accepts, rather than stops or rejects.
    pub accepts: bool,
    /// Whether it is the usual way to accept or to reject.
    pub usual: bool,
}

/// The decisions on a review that need nothing but a click: options that accept or stop and have no fields, and
/// approving or rejecting all actions if each of them allows that.
pub fn choices(review: &Review) -> Vec<PlainChoice> {
    let first = |accepts: bool| if accepts { review.first_accept() } else { review.first_stop() };
    let of_options = review.options.iter().filter(|option| option.fields.is_none()).filter_map(|option| {
        let accepts = match option.kind {
            ChoiceKind::Accept => true,
            ChoiceKind::Stop => false,
            ChoiceKind::Correct => return None,
        };
        let usual =
            first(accepts).is_some_and(|first| first.id == option.id) && (!accepts || keys::prefers_one(review));
        Some(PlainChoice { intent: Intent::Choose(option.id.clone()), accepts, usual })
    });
    let all_allow = |kind: ActionKind| {
        !review.actions.is_empty() && review.actions.iter().all(|action| action.allowed_decisions.contains(&kind))
    };
    let of_actions = [(Intent::ApproveAll, ActionKind::Approve), (Intent::RejectAll, ActionKind::Reject)];
    let of_actions = of_actions.into_iter().filter(|(_, kind)| all_allow(*kind)).map(|(intent, kind)| PlainChoice {
        intent,
        accepts: kind == ActionKind::Approve,
        usual: true,
    });
    of_options.chain(of_actions).collect()
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewChoice {
    /// What is sent.
    pub intent: Intent,
    /// The revision that was on screen.
    pub revision: u32,
    /// Whether it was made for all reviews at once.
    pub for_all: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Selected {
    id: ReviewId,
    /// Whether it is still selected. If not, its page shows what became of it.
    ticked: bool,
    choice: Option<ReviewChoice>,
}

/// The selected reviews, in the order in which they were selected.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    all: Vec<Selected>,
    /// The note that goes with the decisions for which it was written.
    pub note: Note,
}

impl Selection {
    /// The selected reviews.
    pub fn ticked(&self) -> impl Iterator<Item = ReviewId> {
        self.all.iter().filter(|one| one.ticked).map(|one| one.id)
    }

    /// The reviews on the page of the selection: those that are selected, and those that were until they were decided
    /// or ended.
    pub fn shown(&self) -> Vec<ReviewId> {
        self.all.iter().map(|one| one.id).collect()
    }

    /// Whether this review is selected.
    pub fn has(&self, id: ReviewId) -> bool {
        self.ticked().any(|one| one == id)
    }

    /// Whether no more reviews can be selected.
    pub fn is_full(&self) -> bool {
        self.ticked().count() >= MAX_SELECTED
    }

    /// Selects a review, unless there are too many. The page keeps as many that are no longer selected, so that those
    /// that were decided last can still be undone there; then the oldest of them makes room.
    pub fn tick(&mut self, id: ReviewId) {
        if self.is_full() {
            return;
        }
        if let Some(one) = self.all.iter_mut().find(|one| one.id == id) {
            one.ticked = true;
            return;
        }
        if self.all.len() >= 2 * MAX_SELECTED
            && let Some(over) = self.all.iter().position(|one| !one.ticked)
        {
            self.all.remove(over);
        }
        self.all.push(Selected { id, ticked: true, choice: None });
    }

    pub fn remove(&mut self, id: ReviewId) {
        self.all.retain(|one| one.id != id);
        self.drop_note();
    }

    /// Writes the note for the reviews that are selected now.
    pub fn write_note(&mut self, text: String) {
        self.note = Note { text, reviews: self.ticked().collect() };
    }

    /// Drops the note once none of its reviews is here: it was written for these, and not for the next ones.
    fn drop_note(&mut self) {
        if !self.all.iter().any(|one| self.note.is_for(one.id)) {
            self.note = Note::default();
        }
    }

    /// Removes all reviews and the note.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Whether nothing is chosen or written yet that would be lost without the selection.
    pub fn is_untouched(&self) -> bool {
        self.note.is_blank() && self.all.iter().all(|one| one.choice.is_none())
    }

    pub fn choice(&self, id: ReviewId) -> Option<&ReviewChoice> {
        self.all.iter().find(|one| one.id == id)?.choice.as_ref()
    }

    /// Chooses for a selected review, or takes the choice back with `None`.
    pub fn choose(&mut self, id: ReviewId, choice: Option<ReviewChoice>) {
        if let Some(one) = self.all.iter_mut().find(|one| one.id == id && one.ticked) {
            one.choice = choice;
        }
    }

    /// Chooses for a review as for all others. What was chosen for it alone stays.
    pub fn choose_for_all(&mut self, id: ReviewId, intent: Intent, revision: u32) {
        if self.choice(id).is_none_or(|choice| choice.for_all) {
            self.choose(id, Some(ReviewChoice { intent, revision, for_all: true }));
        }
    }

    /// Whether something is chosen for single reviews.
    pub fn has_single_choices(&self) -> bool {
        self.all.iter().any(|one| one.choice.as_ref().is_some_and(|choice| !choice.for_all))
    }

    pub fn chosen(&self) -> Vec<(ReviewId, ReviewChoice)> {
        self.all.iter().filter_map(|one| Some((one.id, one.choice.clone()?))).collect()
    }

    /// Follows the reviews. `open` returns the revision of one that can be decided here, and `None` for others. Those
    /// are not selected any longer; while the page of the selection is open (`on_page`), it still shows them, and they
    /// are selected again if they can be decided again, for example after an undo, unless there are too many. A choice
    /// for an older revision is dropped: what was chosen was something else.
    pub fn follow(&mut self, on_page: bool, open: impl Fn(ReviewId) -> Option<u32>) {
        let mut again = Vec::new();
        for (index, one) in self.all.iter_mut().enumerate() {
            let revision = open(one.id);
            if revision.is_some() && !one.ticked {
                again.push(index);
            }
            one.ticked &= revision.is_some();
            one.choice.take_if(|choice| revision != Some(choice.revision));
        }
        let room = MAX_SELECTED.saturating_sub(self.ticked().count());
        for index in again.into_iter().take(room) {
            self.all[index].ticked = true;
        }
        if !on_page {
            self.all.retain(|one| one.ticked);
            self.drop_note();
        }
    }
}

/// What this person has done with a review.
pub fn begun(review: &Review, drafted: bool, stage: Option<&Stage>, me: Option<&str>) -> Begun {
    let is_own = |decision: &Decision| me == Some(decision.by.as_str());
    let voted = (review.voting.is_some() || !review.is_pending()) && review.decisions.iter().any(is_own);
    Begun { drafted, sent: stage.is_some_and(|stage| *stage != Stage::Overtaken), voted }
}

#[cfg(test)]
mod tests;
