//! The ways to decide a review: what each button says and does.

use shared::definition::ChoiceKind;
use shared::review::{ActionType, Review, ReviewOption};
use shared::time::Timestamp;

use leptos::prelude::*;

use super::pane::Pane;
use crate::state::drafts::Draft;
use crate::state::drafts::chosen::choice;
use crate::state::outbox::held_until;
use crate::state::sentences::listed;
use crate::state::verdict::{self, Intent, keys};
use crate::state::{action_words, calls, effects, guardrail_notes, votes};

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
const ONLY_A_NOTE: &str = "What you wrote goes along only as a note.";

/// The ways to decide the review of a pane with its draft. Follows both.
pub fn acts(pane: Pane) -> Vec<Act> {
    pane.with_draft(|draft| pane.review.with(|review| acts_of(pane, review, draft)))
}

/// The ways to decide a review with a draft.
pub fn acts_of(pane: Pane, review: &Review, draft: &Draft) -> Vec<Act> {
    let mut acts = Vec::new();
    let written = !draft.text.trim().is_empty();
    let no_correction = effects::no_correction(review);
    let filled = pane.filled().map(|option| option.id);
    let shown = |option: &ReviewOption| filled.as_ref().is_none_or(|filled| *filled == option.id);
    // The form right above says it already.
    let is_said = filled.is_some() && review.voting.is_none();
    // Whoever typed a change must not take the first button for the one that asks for it.
    let may_be_change = written && review.free_text && no_correction.is_none() && !review.answers_in_words();
    for (index, option) in review.options.iter().enumerate().filter(|(_, option)| shown(option)) {
        let opens = option.fields.is_some() && filled.is_none();
        let says = verdict::option_says(review, draft, option);
        let first = keys::prefers_one(review) && review.first_accept().is_some_and(|first| first.id == option.id);
        let accepts = option.kind == ChoiceKind::Accept;
        let unwritten = accepts && verdict::unwritten(review, draft).next().is_some();
        acts.push(Act {
            intent: Intent::Choose(option.id.clone()),
            says: if opens { format!("{says}…") } else { says },
            does: {
                let does = match option.description {
                    Some(_) if is_said => String::new(),
                    _ => votes::does(review, accepts, effects::of_option(review, option)),
                };
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
        });
    }
    if filled.is_some() {
        return acts;
    }
    let text = |class, key: Option<String>, does: &str| Act {
        intent: Intent::Text,
        says: verdict::says(review, draft, &Intent::Text),
        does: does.to_owned(),
        key,
        class,
        barred: None,
        opens: false,
    };
    if review.answers_in_words() {
        if review.options.is_empty() || (written && review.free_text) {
            acts.push(text(
                if review.options.is_empty() { "b go" } else { "b" },
                Some("Ctrl ⏎".into()),
                &effects::of_text(review),
            ));
        }
    } else if !review.options.is_empty() && written && review.free_text && no_correction.is_none() {
        let does = votes::does(review, false, effects::of_text(review));
        acts.push(text("b", Some("Ctrl ⏎".into()), &does));
    }
    if let Some(first) = review.actions.first() {
        let words = action_words::words(first.action_type);
        let one_by_one = review.is_one_by_one();
        let (intent, says) = verdict::actions_say(review, draft);
        let waits = intent == Intent::Actions && review.actions.iter().any(|action| choice(action, draft).is_none());
        let rejected = review.actions.iter().filter(
            |action| matches!(choice(action, draft), Some(kind) if kind == shared::definition::ActionKind::Reject),
        );
        let rejected = rejected.count();
        let refuses = rejected == review.actions.len();
        let answered = review.actions.iter().filter(
            |action| matches!(choice(action, draft), Some(kind) if kind == shared::definition::ActionKind::Respond),
        );
        let runs_nothing = rejected + answered.count() == review.actions.len();
        let blocked = guardrail_notes::blocked(review, draft, &pane.checked.get());
        let in_vain = !refuses && blocked.len() + rejected == review.actions.len();
        let does = match verdict::follows(review, draft) {
            _ if refuses => words.rejected.to_owned(),
            _ if runs_nothing && first.action_type == ActionType::Tool => {
                "Nothing runs; your answer is used as the result.".to_owned()
            }
            _ if in_vain => "Nothing would run: a guardrail would block it.".to_owned(),
            _ if !blocked.is_empty() => {
                let names: Vec<String> = blocked.iter().map(|action| calls::named(review, action)).collect();
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                format!("Approved calls run, but a guardrail would block {}.", listed(&names))
            }
            Some(consequence) => consequence,
            _ if first.action_type == ActionType::Tool => "Approved calls run exactly as shown.".to_owned(),
            _ => format!("It {} exactly as shown.", words.happens),
        };
        acts.push(Act {
            intent,
            says,
            does,
            key: Some("a".into()),
            class: match (refuses, in_vain) {
                (true, _) => "b stop",
                (_, true) => "b",
                _ => "b go",
            },
            barred: waits.then(|| {
                if one_by_one { verdict::one_by_one(review) } else { "Each call needs an answer.".to_owned() }
            }),
            opens: false,
        });
        if !refuses && !one_by_one {
            acts.push(Act {
                says: verdict::says(review, draft, &Intent::RejectAll),
                intent: Intent::RejectAll,
                does: match first.action_type {
                    ActionType::Tool if written && first.agent.is_some() => {
                        "Nothing runs; the agent is told what you wrote."
                    }
                    _ => words.rejected,
                }
                .to_owned(),
                key: Some("r".into()),
                class: "b stop",
                barred: None,
                opens: false,
            });
        }
    }
    acts
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
