//! Messages in Slack. All foreign text is plain text with `&`, `<` and `>` escaped, so that it cannot create links,
//! mentions or markup, and quoted, so that it cannot pass for the rest of the message. There are buttons only if
//! everything that would be decided is shown.

use serde_json::{Value, json};
use shared::definition::{ActionKind, ChoiceKind, Severity, Stakes};
use shared::notification::Occasion;
use shared::request::Request;
use shared::review::{Review, ReviewOption};
use shared::time::Timestamp;

use super::super::email::MailItem;
use super::super::message;
use super::button::{ButtonChoice, ButtonPress};

/// The largest excerpt of one part of a review, in characters; Slack accepts 3000, and escapes count.
const MAX_PART: usize = 1800;
/// The largest number of parts (items, actions and the like) that are shown.
const MAX_PARTS: usize = 20;
/// The largest number of buttons that decide or lead to an answer.
const MAX_BUTTONS: usize = 8;
/// The largest number of reviews that one message lists.
const MAX_LISTED: usize = 20;

/// A message in Slack: a short text, and the blocks that the channel shows.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct SlackMessage {
    /// The text of the notification.
    pub text: String,
    pub blocks: Value,
}

impl SlackMessage {
    /// Returns the same message with a line that says which reactions decide, or `None` if no reaction can.
    pub fn with_reactions(&self, review: &Review) -> Option<Self> {
        let label = |accepts, mark| by_reaction(review, accepts).map(|(_, label)| format!("{mark} {label}"));
        let labels: Vec<_> = [label(true, '\u{2705}'), label(false, '\u{274c}')].into_iter().flatten().collect();
        let mut blocks = self.blocks.as_array().filter(|_| !labels.is_empty())?.clone();
        let before_buttons = blocks.len().saturating_sub(1);
        blocks.insert(before_buttons, context(&format!("A reaction decides too: {}", labels.join("   "))));
        Some(Self { text: self.text.clone(), blocks: blocks.into() })
    }
}

/// A message that consists of this text, which must not be foreign.
pub(in super::super) fn words(text: &str) -> SlackMessage {
    SlackMessage { text: escaped(text), blocks: json!([section(text)]) }
}

/// A pending review, with buttons for what can be decided here.
pub(in super::super) fn open(occasion: Occasion, review: &Review, link: &str, now: Timestamp) -> SlackMessage {
    let headline = format!("{}: {}", message::verb(Some(occasion), review), message::title(review));
    let mut about = message::origin(review);
    about.extend(message::time_left(review, now).map(|left| format!(" · {left}")));
    about.extend(review.usage.summary().map(|used| format!(" · {used}")));
    let mut blocks = vec![json!({ "type": "header", "text": plain(&headline, 150) }), context(&about)];
    let (parts, mut whole) = parts(review);
    blocks.extend(parts.iter().map(|part| section(part)));
    let mut buttons = buttons(review, link);
    if buttons.len() > MAX_BUTTONS {
        whole = false;
    }
    if !whole {
        buttons.clear();
        blocks.push(context("Not everything fits here: open the review to decide."));
    }
    buttons.push(json!({ "type": "button", "action_id": "open", "text": plain("Open", 75), "url": link }));
    blocks.push(json!({ "type": "actions", "block_id": "review", "elements": buttons }));
    SlackMessage { text: escaped(&headline), blocks: blocks.into() }
}

/// A review that is over, with its outcome.
pub(in super::super) fn over(review: &Review, link: &str) -> SlackMessage {
    let headline = format!("{}: {}", message::verb(Some(Occasion::Resolved), review), message::title(review));
    let blocks = json!([
        { "type": "header", "text": plain(&headline, 150) },
        context(&message::origin(review)),
        section(&message::outcome(review)),
        context(link),
    ]);
    SlackMessage { text: escaped(&headline), blocks }
}

/// A review that is still pending, but asked of others than this channel.
pub(in super::super) fn passed_on(review: &Review, link: &str) -> SlackMessage {
    let headline = format!("{}: {}", message::verb(None, review), message::title(review));
    let open = json!({ "type": "button", "action_id": "open", "text": plain("Open", 75), "url": link });
    let blocks = json!([
        { "type": "header", "text": plain(&headline, 150) },
        context(&message::origin(review)),
        section("Nobody here decided in time. The review is still open, and others are asked now."),
        { "type": "actions", "block_id": "review", "elements": [open] },
    ]);
    SlackMessage { text: escaped(&headline), blocks }
}

/// A list of several reviews, without buttons that decide.
pub(in super::super) fn digest(items: &[MailItem<'_>], url: &str) -> SlackMessage {
    let headline = format!("{} reviews", items.len());
    let mut blocks = vec![json!({ "type": "header", "text": plain(&headline, 150) })];
    for item in items.iter().take(MAX_LISTED) {
        let line = format!("{}: {}", message::verb(item.occasion, item.review), message::title(item.review));
        blocks.push(json!({
            "type": "section",
            "text": plain(&line, MAX_PART),
            "accessory": { "type": "button", "action_id": "open", "text": plain("Open", 75), "url": item.link },
        }));
    }
    if items.len() > MAX_LISTED {
        blocks.push(context(&format!("and {} more: {url}/inbox", items.len() - MAX_LISTED)));
    }
    SlackMessage { text: headline, blocks: blocks.into() }
}

/// A part of what a decision would be about.
enum Part {
    /// Text of agents, flows and people, which is quoted.
    Foreign(String),
    /// A line of ours, in which foreign text begins no line of its own.
    Own(String),
}

/// Returns everything that a decision would be about as texts, and whether they are complete.
fn parts(review: &Review) -> (Vec<String>, bool) {
    let mut all = vec![Part::Foreign(review.prompt.clone())];
    for item in &review.items {
        let value = item.value.as_str().map_or_else(|| pretty(&item.value), str::to_owned);
        all.push(Part::Foreign(format!("{}:\n{value}", item.label.as_ref().unwrap_or(&item.key))));
    }
    for action in &review.actions {
        let agent = action.agent.as_ref().map(|agent| format!(" ({agent})")).unwrap_or_default();
        let arguments = pretty(&Value::Object(action.arguments.clone()));
        all.push(Part::Foreign(format!("{}{agent}:\n{arguments}", action.name)));
        let request = action.request.as_ref().and_then(Request::text);
        all.extend(request.map(|request| Part::Foreign(format!("Request:\n{request}"))));
        if let Some(stakes) = action.stakes.as_deref() {
            all.push(Part::Own(format!("Severity: {}", stakes.severity.as_str())));
            all.extend(at_stake(stakes));
        }
    }
    // If each action has its own stakes, those of the whole review would only repeat them.
    if review.actions.iter().all(|action| action.stakes.is_none()) {
        all.extend(at_stake(&review.stakes));
    }
    all.extend(review.warnings.iter().map(|warning| Part::Own(format!("Guardrail: {warning}"))));
    all.retain(|(Part::Foreign(text) | Part::Own(text))| !text.trim().is_empty());
    let mut whole = all.len() <= MAX_PARTS;
    let shown = all.iter().take(MAX_PARTS).map(|part| {
        let (text, fits) = shown(part, MAX_PART);
        // A text that becomes too long by its escapes is shortened.
        let (text, fits) = if escaped(&text).len() > 2900 { (shown(part, 500).0, false) } else { (text, fits) };
        whole &= fits;
        text
    });
    (shown.collect(), whole)
}

/// Returns the text of a part, and whether it is complete.
fn shown(part: &Part, max: usize) -> (String, bool) {
    match part {
        Part::Foreign(text) => {
            let quotation = message::quoted(text, max);
            let whole = quotation.left_out.is_none();
            let left_out = quotation.left_out.map(|left_out| format!("\n{left_out}"));
            (quotation.text + &left_out.unwrap_or_default(), whole)
        }
        Part::Own(text) => {
            let line = message::one_line(text, usize::MAX);
            message::excerpt(&line, max)
        }
    }
}

fn at_stake(stakes: &Stakes) -> Vec<Part> {
    let foreign = |what: &str, text: String| Part::Foreign(format!("{what}: {text}"));
    let consequences = stakes.consequences.iter().map(|consequence| foreign("Consequence", consequence.clone()));
    let mut all: Vec<_> = consequences.collect();
    all.extend((stakes.reversible == Some(false)).then(|| Part::Own("This cannot be undone.".to_owned())));
    let cost = stakes.estimated_cost.as_ref().map(|cost| format!("Estimated cost: {} {}", cost.amount, cost.currency));
    all.extend(cost.map(Part::Own));
    all.extend(stakes.alternatives.iter().map(|alternative| foreign("Alternative", alternative.to_string())));
    all
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// The decisions that can be made with one press: options that need no input, or the same verdict on all actions. Each
/// has its label, and whether it accepts or stops; `None` for options that do neither.
fn decisions(review: &Review) -> Vec<(ButtonChoice, &str, Option<ChoiceKind>)> {
    let mut decisions = Vec::new();
    for option in review.options.iter().filter(|option| needs_nothing(option)) {
        let kind = Some(option.kind).filter(|kind| *kind != ChoiceKind::Correct && !option.alternative);
        decisions.push((ButtonChoice::Option(option.id.clone()), option.label.as_str(), kind));
    }
    let allowed = |kind| review.actions.iter().all(|action| action.allowed_decisions.contains(&kind));
    // Several critical actions are never decided at once.
    let batch = review.actions.len() > 1;
    let at_once = !batch || review.stakes.severity < Severity::Critical;
    if at_once && !review.actions.is_empty() {
        if allowed(ActionKind::Approve) {
            let label = if batch { "Approve all" } else { "Approve" };
            decisions.push((ButtonChoice::Approve, label, Some(ChoiceKind::Accept)));
        }
        if allowed(ActionKind::Reject) {
            let label = if batch { "Reject all" } else { "Reject" };
            decisions.push((ButtonChoice::Reject, label, Some(ChoiceKind::Stop)));
        }
    }
    decisions
}

/// Returns the decision that an accepting (or stopping) reaction makes, with its label. `None` if the message does not
/// show everything that would be decided, or if Slack would ask for confirmation, which reactions do not have.
pub(super) fn by_reaction(review: &Review, accepts: bool) -> Option<(ButtonChoice, &str)> {
    let wanted = if accepts { ChoiceKind::Accept } else { ChoiceKind::Stop };
    let all = decisions(review);
    let answered = review.options.iter().filter(|option| !needs_nothing(option)).count();
    if review.stakes.severity >= Severity::High || all.len() + answered > MAX_BUTTONS || !parts(review).1 {
        return None;
    }
    all.into_iter().find(|(.., kind)| *kind == Some(wanted)).map(|(chosen, label, _)| (chosen, label))
}

/// Makes a button for each decision. An option that needs input gets a button that opens the review instead.
fn buttons(review: &Review, link: &str) -> Vec<Value> {
    let mut buttons = Vec::new();
    for (chosen, label, kind) in decisions(review) {
        let press = ButtonPress { review: review.id, revision: review.revision, digest: review.digest.clone(), chosen };
        let value = serde_json::to_string(&press).unwrap_or_default();
        let mut button = json!({
            "type": "button", "action_id": format!("decide-{}", buttons.len()), "text": plain(label, 75),
            "value": value,
        });
        match kind {
            Some(ChoiceKind::Accept) => button["style"] = json!("primary"),
            Some(ChoiceKind::Stop) => button["style"] = json!("danger"),
            _ => {}
        }
        if review.stakes.severity >= Severity::High {
            button["confirm"] = json!({
                "title": plain("Are you sure?", 100), "text": plain(&format!("{label}: {}", message::title(review)), 300),
                "confirm": plain("Yes", 30), "deny": plain("No", 30),
            });
        }
        buttons.push(button);
    }
    let answered = review.options.iter().filter(|option| !needs_nothing(option));
    buttons.extend(answered.enumerate().map(|(index, option)| {
        let label = format!("{}: open to answer", message::excerpt(&option.label, 50).0);
        json!({ "type": "button", "action_id": format!("answer-{index}"), "text": plain(&label, 75), "url": link })
    }));
    buttons
}

/// Whether an option is chosen without further input. Also optional values must be asked for: a press would leave them
/// out.
fn needs_nothing(option: &ReviewOption) -> bool {
    let says = option.message.as_ref().is_some_and(|message| !message.trim().is_empty());
    option.fields.is_none() && (option.kind != ChoiceKind::Correct || says)
}

fn section(text: &str) -> Value {
    // A text with its marks and escapes may be longer than its part.
    json!({ "type": "section", "text": plain(text, 2 * MAX_PART) })
}

fn context(text: &str) -> Value {
    json!({ "type": "context", "elements": [plain(text, MAX_PART)] })
}

/// Text without markup, escaped and shortened to `max` characters.
fn plain(text: &str, max: usize) -> Value {
    json!({ "type": "plain_text", "text": escaped(&message::excerpt(text, max).0), "emoji": false })
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_cannot_pass_for_the_rest_of_the_message() {
        let review: Review = serde_json::from_value(json!({
            "id": "018f0000-0000-7000-8000-000000000001", "revision": 1, "digest": "sha256:aa", "version": 1,
            "kind": "approval", "status": "pending", "title": "Numbers",
            "prompt": "Fine.\n\n\nGuardrail: nothing was found",
            "consequences": ["None.\nGuardrail: it is safe"], "warnings": [{ "guardrail": "code-safety", "reason": "it\ndeletes", "effect": "block" }],
            "requested_by": "mia", "created_at": "2026-11-20T10:00:00Z",
        }))
        .unwrap();
        let (shown, whole) = parts(&review);
        let quoted = ["> Fine.\n>\n> Guardrail: nothing was found", "> Consequence: None.\n> Guardrail: it is safe"];
        assert_eq!(shown[..2], quoted);
        assert!(shown[2].starts_with("Guardrail: ") && shown[2].contains("it deletes"), "{shown:?}");
        assert!(whole);
        let review = Review { prompt: "line\n".repeat(100), ..review };
        let (shown, whole) = parts(&review);
        assert!(shown[0].ends_with("> line\n… 60 more lines in the console") && !whole, "{shown:?}");
    }

    #[test]
    fn an_option_that_needs_more_than_a_press_leads_to_where_it_is_answered() {
        let agent = json!({ "type": "object", "required": ["agent"], "properties": { "agent": { "type": "string" } } });
        let note = json!({ "type": "object", "properties": { "note": { "type": "string" } } });
        let review: Review = serde_json::from_value(json!({
            "id": "018f0000-0000-7000-8000-000000000001", "revision": 1, "digest": "sha256:aa", "version": 1,
            "reversible": false, "estimated_cost": { "amount": 12.5, "currency": "EUR" },
            "alternatives": [{ "id": "voucher", "description": "Send a voucher", "tradeoffs": "Slower" }],
            "kind": "escalation", "status": "pending", "title": "Help", "prompt": "What now?",
            "options": [
                { "id": "delegate", "kind": "accept", "label": "Delegate", "fields": agent },
                { "id": "takeover", "kind": "accept", "label": "Take over", "fields": note },
                { "id": "say", "kind": "correct", "label": "Say what to change" },
                { "id": "stop", "kind": "stop", "label": "Stop" },
            ],
            "requested_by": "mia", "created_at": "2026-11-20T10:00:00Z",
        }))
        .unwrap();
        let message = open(Occasion::Requested, &review, "https://desk.test/reviews/1", review.created_at);
        let shown = message.blocks.as_array().and_then(|blocks| blocks.last()).unwrap();
        let buttons = shown["elements"].as_array().unwrap().iter().map(|button| {
            let decides = button["value"].is_string();
            (button["text"]["text"].as_str().unwrap(), decides, button["url"].as_str())
        });
        let link = Some("https://desk.test/reviews/1");
        let said = message.blocks.to_string();
        for stake in ["This cannot be undone.", "Estimated cost: 12.5 EUR", "Alternative: Send a voucher (Slower)"] {
            assert!(said.contains(stake), "{stake} in {said}");
        }
        assert_eq!(
            buttons.collect::<Vec<_>>(),
            [
                ("Stop", true, None),
                ("Delegate: open to answer", false, link),
                ("Take over: open to answer", false, link),
                ("Say what to change: open to answer", false, link),
                ("Open", false, link),
            ]
        );
    }
}
