//! The ways to decide a review: what each button says and does.

use shared::definition::{ActionKind, ChoiceKind};
use shared::review::{ActionType, Review, ReviewOption};
use shared::time::Timestamp;

use leptos::prelude::*;

use super::pane::Pane;
use crate::state::call_effects::Fate;
use crate::state::drafts::Draft;
use crate::state::drafts::chosen::choice;
use crate::state::guardrail_notes::{self, Answered};
use crate::state::outbox::held_until;
use crate::state::sentences::listed;
use crate::state::verdict::{self, Intent, keys};
use crate::state::{call_effects, calls, effects, votes};

/// A way to decide a review, as a button.
#[derive(Debug, Clone, PartialEq)]
pub struct Act {
    /// What is sent.
    pub intent: Intent,
    /// The text of the button.
    pub says: String,
    /// The effect.
    pub does: String,
    /// The key that does the same.
    pub key: Option<String>,
    /// The CSS class of the button.
    pub class: &'static str,
    /// Why it cannot be chosen now.
    pub barred: Option<String>,
    /// Whether the button opens a form instead of deciding.
    pub opens: bool,
}

/// Beside an option that accepts, while there is a text that could also ask for a change.
const ONLY_A_NOTE: &str = "Your text is sent only as a note.";

/// The ways to decide the review of a pane with its draft. Follows both.
pub fn acts(pane: Pane) -> Vec<Act> {
    pane.with_draft(|draft| pane.review.with(|review| acts_of(pane, review, draft)))
}

/// The ways to decide a review with a draft.
pub fn acts_of(pane: Pane, review: &Review, draft: &Draft) -> Vec<Act> {
    let filled = pane.filled();
    let mut acts = of_options(review, draft, filled.as_ref());
    if filled.is_none() {
        acts.extend(of_text(review, draft));
        acts.extend(pane.checked.with(|checked| of_calls(review, draft, checked)));
    }
    acts
}

/// The buttons of the options, or only that of the option whose form is open.
fn of_options(review: &Review, draft: &Draft, filled: Option<&ReviewOption>) -> Vec<Act> {
    let no_correction = effects::no_correction(review);
    // The form right above says it already.
    let is_said = filled.is_some() && review.voting.is_none();
    let may_be_change = asks_for_change(review, draft);
    let shown = |(_, option): &(usize, &ReviewOption)| filled.is_none_or(|filled| filled.id == option.id);
    let act = |(index, option): (usize, &ReviewOption)| {
        let opens = option.fields.is_some() && filled.is_none();
        let says = verdict::option_says(review, draft, option);
        let first = keys::prefers_one(review) && review.first_accept().is_some_and(|first| first.id == option.id);
        let accepts = option.kind == ChoiceKind::Accept;
        let unwritten = accepts && verdict::unwritten(review, draft).next().is_some();
        Act {
            intent: Intent::Choose(option.id.clone()),
            says: if opens { format!("{says}…") } else { says },
            does: {
                let does = match option.description {
                    Some(_) if is_said => String::new(),
                    _ => votes::does(review, accepts, effects::of_option(review, option)),
                };
                // Whoever typed a change must not take the first button for the one that asks for it.
                if accepts && may_be_change { format!("{} {ONLY_A_NOTE}", sentence_end(&does)) } else { does }
            },
            key: if filled.is_some() { Some("Ctrl ⏎".into()) } else { keys::of_option(review, index) },
            class: match option.kind {
                ChoiceKind::Accept if first || filled.is_some() => "b go",
                ChoiceKind::Stop => "b stop",
                _ => "b",
            },
            barred: if unwritten {
                Some(verdict::UNWRITTEN.to_owned())
            } else {
                no_correction.clone().filter(|_| option.kind == ChoiceKind::Correct)
            },
            opens,
        }
    };
    review.options.iter().enumerate().filter(shown).map(act).collect()
}

/// Whether the text of the draft could ask for a change.
fn asks_for_change(review: &Review, draft: &Draft) -> bool {
    let may = review.free_text && !review.answers_in_words() && effects::no_correction(review).is_none();
    may && !draft.text.trim().is_empty()
}

/// The button that sends the text, as an answer or to ask for a change.
fn of_text(review: &Review, draft: &Draft) -> Option<Act> {
    let alone = review.options.is_empty();
    let (class, does) = if review.answers_in_words() {
        let is_answer = alone || (review.free_text && !draft.text.trim().is_empty());
        is_answer.then(|| (if alone { "b go" } else { "b" }, effects::of_text(review)))?
    } else {
        let is_change = !alone && asks_for_change(review, draft);
        is_change.then(|| ("b", votes::does(review, false, effects::of_text(review))))?
    };
    Some(Act {
        intent: Intent::Text,
        says: verdict::says(review, draft, &Intent::Text),
        does,
        key: Some("Ctrl ⏎".into()),
        class,
        barred: None,
        opens: false,
    })
}

/// The buttons of the calls: one that decides them as chosen, and one that rejects them all.
fn of_calls(review: &Review, draft: &Draft, checked: &Answered) -> Vec<Act> {
    let Some(first) = review.actions.first() else { return Vec::new() };
    let all = review.actions.len();
    let one_by_one = review.is_one_by_one();
    let number = |kind| review.actions.iter().filter(|action| choice(action, draft) == Some(kind)).count();
    let rejected = number(ActionKind::Reject);
    let refuses = rejected == all;
    let runs_nothing = rejected + number(ActionKind::Respond) == all;
    let blocked = guardrail_notes::blocked(review, draft, checked);
    let in_vain = !refuses && blocked.len() + rejected == all;
    let (intent, says) = verdict::actions_say(review, draft);
    let waits = intent == Intent::Actions && review.actions.iter().any(|action| choice(action, draft).is_none());
    let decides = Act {
        intent,
        says,
        does: match verdict::follows(review, draft) {
            _ if refuses => call_effects::sentence(review, Fate::Rejected { reason: false }),
            _ if runs_nothing && first.action_type == ActionType::Tool => {
                call_effects::sentence(review, Fate::Answered)
            }
            _ if in_vain => call_effects::sentence(review, Fate::Blocked),
            _ if !blocked.is_empty() => {
                let names: Vec<String> = blocked.iter().map(|action| calls::named(review, action)).collect();
                call_effects::sentence(review, Fate::PartlyBlocked(&listed(&names)))
            }
            Some(consequence) => consequence,
            _ => call_effects::sentence(review, Fate::Approved),
        },
        key: Some("a".into()),
        class: match (refuses, in_vain) {
            (true, _) => "b stop",
            (_, true) => "b",
            _ => "b go",
        },
        barred: waits
            .then(|| if one_by_one { verdict::one_by_one(review) } else { "Each call needs an answer.".to_owned() }),
        opens: false,
    };
    let rejects = (!refuses && !one_by_one).then(|| rejects_all(review, draft));
    [decides].into_iter().chain(rejects).collect()
}

/// The button that rejects all calls.
fn rejects_all(review: &Review, draft: &Draft) -> Act {
    Act {
        intent: Intent::RejectAll,
        says: verdict::says(review, draft, &Intent::RejectAll),
        does: call_effects::sentence(review, Fate::Rejected { reason: !draft.text.trim().is_empty() }),
        key: Some("r".into()),
        class: "b stop",
        barred: None,
        opens: false,
    }
}

/// A text with a full stop at its end, unless it ends with punctuation.
pub fn sentence_end(text: &str) -> String {
    if text.is_empty() || text.ends_with(['.', '?', '!', '…', '”']) { text.to_owned() } else { format!("{text}.") }
}

/// How long the decision could be undone if it were made now, as a sentence. The time may be short, as it ends before
/// the deadline.
pub fn time_to_undo(review: &Review, now: Timestamp) -> String {
    let seconds = (held_until(review, now).0 - now.0) / 1_000_000;
    if seconds > 0 { format!(" {seconds}\u{a0}s to undo before it is sent.") } else { " Sent at once.".to_owned() }
}
