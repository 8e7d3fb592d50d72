//! Reviews that a person has selected in the inbox to decide them on one page: which of them can be, and what is chosen
//! for each.

use shared::access::Access;
use shared::decision::Decision;
use shared::definition::{ActionKind, ChoiceKind, Severity};
use shared::id::ReviewId;
use shared::review::{Review, ReviewKind};

use super::outbox::Stage;
use super::verdict::{Intent, keys};

/// The most reviews that can be selected: their page shows the whole content of each.
pub const MOST: usize = 20;

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
        ReviewKind::Handoff => return Some("it hands over work; open it to take it"),
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
    /// The note that goes with each decision.
    pub note: String,
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
        self.ticked().count() >= MOST
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
        if self.all.len() >= 2 * MOST
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

    /// Drops the note once nothing is selected: it was written for these reviews, and not for the next ones.
    fn drop_note(&mut self) {
        if self.all.is_empty() {
            self.note.clear();
        }
    }

    /// Removes all reviews and the note.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Whether nothing is chosen or written yet that would be lost without the selection.
    pub fn is_untouched(&self) -> bool {
        self.note.trim().is_empty() && self.all.iter().all(|one| one.choice.is_none())
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
    /// are selected again if they can be decided again, for example after an undo, unless there are too many. A choice for an older revision is
    /// dropped: what was chosen was something else.
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
        let room = MOST.saturating_sub(self.ticked().count());
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
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::state::fixtures::{calls, resolved, review};

    fn refused(review: &Review) -> Option<&'static str> {
        refusal(review, Access::Allowed, Begun::default())
    }

    fn says(patch: Value) -> &'static str {
        refused(&review(1, 1, patch)).unwrap_or("it can")
    }

    #[test]
    fn only_what_needs_no_more_than_a_click_is_decided_with_others() {
        assert_eq!(says(json!({})), "it can");
        assert_eq!(refused(&calls(1, 1)), None);
        assert_eq!(says(json!({ "severity": "high" })), "it can");
        let cases = [
            (json!({ "severity": "critical" }), "critical"),
            (json!({ "kind": "clarification" }), "question"),
            (json!({ "kind": "edit" }), "text"),
            (json!({ "kind": "handoff" }), "hands over"),
            (json!({ "options": [] }), "in words"),
            (
                json!({ "options": [
                    { "id": "ok", "kind": "accept", "label": "Approve", "fields": { "type": "object" } },
                    { "id": "again", "kind": "correct", "label": "Again" },
                ] }),
                "filled in",
            ),
        ];
        for (patch, expected) in cases {
            assert!(says(patch.clone()).contains(expected), "{patch}: {}", says(patch.clone()));
        }
        let mut calls = calls(1, 1);
        calls.actions[0].allowed_decisions = vec![ActionKind::Edit, ActionKind::Respond];
        assert!(refused(&calls).unwrap().contains("open it to decide each"));
    }

    #[test]
    fn what_cannot_be_decided_now_is_not_selected() {
        assert!(refused(&resolved(1, 2, "tom")).unwrap().contains("over"));
        let review = review(1, 1, json!({}));
        assert_eq!(refusal(&review, Access::Denied("you are barred"), Begun::default()), Some("you are barred"));
        for begun in [
            Begun { drafted: true, ..Begun::default() },
            Begun { sent: true, ..Begun::default() },
            Begun { voted: true, ..Begun::default() },
        ] {
            assert!(refusal(&review, Access::Allowed, begun).is_some(), "{begun:?}");
        }
    }

    #[test]
    fn the_plain_choices_are_those_of_the_review_itself() {
        let of = |review: &Review| -> Vec<_> {
            choices(review).into_iter().map(|choice| (choice.intent, choice.accepts, choice.usual)).collect()
        };
        let choose = |id: &str| Intent::Choose(id.to_owned());
        assert_eq!(of(&review(1, 1, json!({}))), [(choose("approve"), true, true), (choose("reject"), false, true)]);
        assert_eq!(of(&calls(1, 1)), [(Intent::ApproveAll, true, true), (Intent::RejectAll, false, true)]);
        let mut no_reject = calls(1, 1);
        no_reject.actions[0].allowed_decisions = vec![ActionKind::Approve];
        assert_eq!(of(&no_reject), [(Intent::ApproveAll, true, true)], "not every call can be rejected");
    }

    #[test]
    fn a_choice_is_dropped_when_its_review_changes_or_ends() {
        let ids = [1, 2, 3].map(|number| review(number, 1, json!({})).id);
        let choice = |revision| Some(ReviewChoice { intent: Intent::ApproveAll, revision, for_all: false });
        let mut selection = Selection::default();
        for id in ids {
            selection.tick(id);
            selection.choose(id, choice(1));
        }
        let now = |id: ReviewId| if id == ids[0] { None } else { Some(if id == ids[1] { 2 } else { 1 }) };
        selection.follow(true, now);
        assert_eq!(selection.chosen(), [(ids[2], choice(1).unwrap())], "one has ended, another has changed");
        assert_eq!(selection.ticked().collect::<Vec<_>>(), ids[1..]);
        assert_eq!(selection.shown(), ids, "its page says what became of it");
        selection.choose(ids[0], choice(1));
        assert_eq!(selection.choice(ids[0]), None, "nothing is chosen for what is over");

        // Undone, it can be decided again.
        selection.follow(true, |_| Some(1));
        assert!(selection.has(ids[0]) && selection.choice(ids[0]).is_none());
        selection.follow(false, now);
        assert_eq!(selection.shown(), ids[1..], "away from its page, nothing is kept");
    }

    #[test]
    fn the_number_of_selected_reviews_has_a_limit() {
        let mut selection = Selection::default();
        for number in 0..=u8::try_from(MOST).unwrap() {
            selection.tick(review(number, 1, json!({})).id);
        }
        assert_eq!((selection.ticked().count(), selection.is_full()), (MOST, true));
        let first = selection.shown()[0];
        selection.remove(first);
        assert!(!selection.has(first) && !selection.is_full());
    }

    #[test]
    fn what_is_decided_makes_room_for_others_and_stays_for_a_while() {
        let ids: Vec<_> = (0..=u8::try_from(2 * MOST).unwrap()).map(|number| review(number, 1, json!({})).id).collect();
        let mut selection = Selection::default();
        let tick = |selection: &mut Selection, ids: &[ReviewId]| ids.iter().for_each(|id| selection.tick(*id));
        tick(&mut selection, &ids[..MOST]);
        selection.follow(true, |id| (id != ids[1]).then_some(1));
        assert!(!selection.is_full());
        tick(&mut selection, &ids[MOST..=MOST]);
        assert!(selection.has(ids[MOST]) && selection.is_full());
        assert_eq!(selection.shown(), ids[..=MOST], "its decision can still be undone");
        selection.follow(true, |_| None);
        tick(&mut selection, &ids[MOST + 1..]);
        assert_eq!(selection.shown(), ids[1..], "the oldest has made room");
        selection.follow(true, |_| Some(1));
        assert_eq!(selection.ticked().count(), MOST, "also if everything can be decided again");
    }

    #[test]
    fn what_is_chosen_for_all_replaces_no_choice_for_one() {
        let ids = [1, 2].map(|number| review(number, 1, json!({})).id);
        let mut selection = Selection::default();
        for id in ids {
            selection.tick(id);
        }
        assert!(selection.is_untouched());
        selection.choose(ids[0], Some(ReviewChoice { intent: Intent::RejectAll, revision: 1, for_all: false }));
        assert!(!selection.is_untouched());
        let mut for_all = |intent: &Intent| {
            for id in ids {
                selection.choose_for_all(id, intent.clone(), 1);
            }
            selection.chosen().into_iter().map(|(_, choice)| choice.intent).collect::<Vec<_>>()
        };
        assert_eq!(for_all(&Intent::ApproveAll), [Intent::RejectAll, Intent::ApproveAll]);
        assert_eq!(for_all(&Intent::RejectAll), [Intent::RejectAll, Intent::RejectAll], "the other is still open");
    }
}
