//! The decisions that a message in Slack offers, with buttons and with reactions. It offers none unless it shows
//! everything that would be decided, and people can tell the buttons apart.

use serde_json::{Value, json};
use shared::definition::{ActionKind, ChoiceKind, Severity, read_twice};
use shared::review::{Review, ReviewOption};

use super::super::message;
use super::button::{ButtonChoice, ButtonPress};
use super::content::parts;
use super::text::{MAX_LABEL, OPEN, fitted, plain};

/// The largest number of buttons that decide or lead to an answer.
const MAX_BUTTONS: usize = 8;
/// The longest value of a button that Slack accepts, in characters.
const MAX_VALUE: usize = 2000;
/// What follows the label of an option on a button that leads to where it is answered.
const TO_ANSWER: &str = ": open to answer";

/// What follows the label of what stops on a button that asks for a reason first.
const WITH_REASON: &str = ": give a reason";

/// A button that decides, or leads to where an option is answered.
pub(super) struct Button {
    /// The label in one line. It may be too long for the button.
    label: String,
    /// Whether it accepts or stops; `None` if it does neither.
    kind: Option<ChoiceKind>,
    /// What it decides; `None` if it opens the review, because its option needs input.
    pub press: Option<ButtonPress>,
}

impl Button {
    fn deciding(review: &Review, chosen: ButtonChoice, label: &str, kind: Option<ChoiceKind>) -> Self {
        let press = ButtonPress {
            review: review.id,
            revision: review.revision,
            digest: review.digest.clone(),
            chosen,
            asks_reason: false,
            reason: None,
        };
        Self { label: message::one_line(label, usize::MAX), kind, press: Some(press) }
    }

    /// The button that does the same as this one, after it has asked for a reason. `None` unless this one stops.
    fn with_reason(&self) -> Option<Self> {
        let press = self.press.clone().filter(|_| self.kind == Some(ChoiceKind::Stop))?;
        let label = fitted(&self.label, MAX_LABEL - WITH_REASON.len()).0 + WITH_REASON;
        Some(Self { label, kind: None, press: Some(ButtonPress { asks_reason: true, ..press }) })
    }

    fn answering(option: &ReviewOption) -> Self {
        let label = message::one_line(&option.label, usize::MAX);
        let label = fitted(&label, MAX_LABEL - TO_ANSWER.len()).0 + TO_ANSWER;
        Self { label, kind: None, press: None }
    }

    /// The text on the button: its label, cut if it is too long.
    pub fn text(&self) -> String {
        fitted(&self.label, MAX_LABEL).0
    }

    /// Returns the value by which Slack tells that it was pressed.
    fn value(&self) -> Option<String> {
        self.press.as_ref().map(|press| serde_json::to_string(press).unwrap_or_default())
    }

    /// Returns the button as an element of a message, in which `index` is its place.
    pub fn element(&self, index: usize, review: &Review, link: &str) -> Value {
        let text = plain(&self.label, MAX_LABEL);
        let Some(value) = self.value() else {
            return json!({ "type": "button", "action_id": format!("answer-{index}"), "text": text, "url": link });
        };
        let mut button =
            json!({ "type": "button", "action_id": format!("decide-{index}"), "text": text, "value": value });
        match self.kind {
            Some(ChoiceKind::Accept) => button["style"] = json!("primary"),
            Some(ChoiceKind::Stop) => button["style"] = json!("danger"),
            _ => {}
        }
        let asks_reason = self.press.as_ref().is_some_and(|press| press.asks_reason);
        if review.stakes.severity >= Severity::High && !asks_reason {
            let asked = format!("{}: {}", self.label, message::title(review));
            button["confirm"] = json!({
                "title": plain("Are you sure?", 100), "text": plain(&asked, 300),
                "confirm": plain("Yes", 30), "deny": plain("No", 30),
            });
        }
        button
    }
}

/// Returns the buttons that a message can have: for each decision that takes one press, for each option that needs input,
/// and, if there is room, for each decision that stops, with a reason. `None` if they are too many, if Slack would refuse
/// one, or if people could not tell them apart.
pub(super) fn buttons(review: &Review) -> Option<Vec<Button>> {
    let mut all = deciding(review);
    let with_reasons: Vec<Button> = all.iter().filter_map(Button::with_reason).collect();
    all.extend(review.options.iter().filter(|option| !needs_nothing(option)).map(Button::answering));
    if !can_be_shown(&all) {
        return None;
    }
    let without = all.len();
    all.extend(with_reasons);
    if !can_be_shown(&all) {
        all.truncate(without);
    }
    Some(all)
}

/// Whether Slack would accept these buttons, and people could tell them apart.
fn can_be_shown(all: &[Button]) -> bool {
    let texts: Vec<String> = all.iter().map(Button::text).collect();
    let is_distinct = read_twice(texts.iter().map(String::as_str).chain([OPEN])).is_none();
    let is_accepted = texts.iter().all(|text| !text.is_empty())
        && all.iter().filter_map(Button::value).all(|value| value.chars().count() <= MAX_VALUE);
    all.len() <= MAX_BUTTONS && is_distinct && is_accepted
}

/// Returns the buttons of decisions that take one press: options without input, or the same verdict on all actions.
fn deciding(review: &Review) -> Vec<Button> {
    let mut buttons = Vec::new();
    for option in review.options.iter().filter(|option| needs_nothing(option)) {
        let kind = Some(option.kind).filter(|kind| *kind != ChoiceKind::Correct && !option.alternative);
        buttons.push(Button::deciding(review, ButtonChoice::Option(option.id.clone()), &option.label, kind));
    }
    let allowed = |kind| review.actions.iter().all(|action| action.allowed_decisions.contains(&kind));
    // Several critical actions are never decided at once.
    let batch = review.actions.len() > 1;
    let at_once = !batch || review.stakes.severity < Severity::Critical;
    if at_once && !review.actions.is_empty() {
        if allowed(ActionKind::Approve) {
            let label = if batch { "Approve all" } else { "Approve" };
            buttons.push(Button::deciding(review, ButtonChoice::Approve, label, Some(ChoiceKind::Accept)));
        }
        if allowed(ActionKind::Reject) {
            let label = if batch { "Reject all" } else { "Reject" };
            buttons.push(Button::deciding(review, ButtonChoice::Reject, label, Some(ChoiceKind::Stop)));
        }
    }
    buttons
}

/// Returns the button for which an accepting (or stopping) reaction stands. `None` if the message has no such button or
/// if Slack would ask for confirmation, which reactions do not have.
pub(super) fn by_reaction(review: &Review, accepts: bool) -> Option<Button> {
    let wanted = if accepts { ChoiceKind::Accept } else { ChoiceKind::Stop };
    if review.stakes.severity >= Severity::High || !parts(review).1 {
        return None;
    }
    buttons(review)?.into_iter().find(|button| button.kind == Some(wanted))
}

/// Whether an option is chosen without further input. Also optional values must be asked for: a press would leave them
/// out.
fn needs_nothing(option: &ReviewOption) -> bool {
    let says = option.message.as_ref().is_some_and(|message| !message.trim().is_empty());
    option.fields.is_none() && (option.kind != ChoiceKind::Correct || says)
}
