//! Messages in Slack. There are buttons that decide only if everything that would be decided is shown.

use serde_json::{Value, json};
use shared::log::AnnouncedSubject;
use shared::notification::Occasion;
use shared::review::Review;
use shared::run::RunSummary;
use shared::time::Timestamp;

use super::super::comments::NewComments;
use super::super::email::MailItem;
use super::super::{message, run_message};
use super::content::parts;
use super::decisions::{buttons, by_reaction};
use super::text::{context, escaped, header, open_button, section};

/// The largest number of reviews that one message lists.
const MAX_LISTED: usize = 20;
/// The longest excerpt of a comment, in characters.
const MAX_COMMENT: usize = 500;

/// A message in Slack: a short text, and the blocks that the channel shows.
#[derive(Debug, Clone, PartialEq)]
pub struct SlackMessage {
    /// The text of the notification.
    pub(in super::super) text: String,
    pub(in super::super) blocks: Value,
    /// The blocks if Slack refuses the others: only the headline and the link, so that people are told in any case.
    pub(in super::super) brief: Value,
}

impl SlackMessage {
    fn new(headline: &str, link: &str, blocks: Vec<Value>) -> Self {
        let refused = context("Slack did not accept the rest of this message: open it in the console.");
        let brief = json!([header(headline), refused, actions(&[open_button(link)])]);
        Self { text: escaped(headline), blocks: blocks.into(), brief }
    }

    /// Returns the same message with a line that says which reactions decide, or `None` if no reaction can.
    pub fn with_reactions(&self, review: &Review) -> Option<Self> {
        let label = |accepts, mark| by_reaction(review, accepts).map(|button| format!("{mark} {}", button.text()));
        let labels: Vec<_> = [label(true, '\u{2705}'), label(false, '\u{274c}')].into_iter().flatten().collect();
        let mut blocks = self.blocks.as_array().filter(|_| !labels.is_empty())?.clone();
        let before_buttons = blocks.len().saturating_sub(1);
        blocks.insert(before_buttons, context(&format!("A reaction decides too: {}", labels.join("   "))));
        Some(Self { blocks: blocks.into(), ..self.clone() })
    }
}

/// A message that consists of this text, which must not be foreign.
pub(in super::super) fn words(text: &str) -> SlackMessage {
    let blocks = json!([section(text)]);
    SlackMessage { text: escaped(text), brief: blocks.clone(), blocks }
}

/// One review or run.
pub(in super::super) fn about(item: &MailItem<'_>, now: Timestamp) -> SlackMessage {
    match (item.about, &item.comments) {
        (AnnouncedSubject::Run(run), _) => of_run(&item.headline(), run, &item.link),
        (AnnouncedSubject::Review(review), Some(new)) => comments(new, review, &item.link),
        (AnnouncedSubject::Review(review), None) if item.occasion == Occasion::Resolved => over(review, &item.link),
        (AnnouncedSubject::Review(review), None) => open(item.occasion, review, &item.link, now),
    }
}

/// A run, with its error if it has failed.
fn of_run(headline: &str, run: &RunSummary, link: &str) -> SlackMessage {
    let mut blocks = vec![header(headline), context(&run_message::origin(run))];
    if let Some((place, error)) = run_message::error(run) {
        blocks.extend([context(&place), section(&error.text)]);
        blocks.extend(error.left_out.map(|left_out| context(&left_out)));
    }
    blocks.push(actions(&[open_button(link)]));
    SlackMessage::new(headline, link, blocks)
}

/// A pending review, with buttons for what can be decided here.
pub(in super::super) fn open(occasion: Occasion, review: &Review, link: &str, now: Timestamp) -> SlackMessage {
    let headline = format!("{}: {}", message::verb(Some(occasion), review), message::title(review));
    let mut about = message::origin(review);
    about.extend(message::time_left(review, now).map(|left| format!(" · {left}")));
    about.extend(review.usage.summary().map(|used| format!(" · {used}")));
    let mut blocks = vec![header(&headline), context(&about)];
    let (parts, whole) = parts(review);
    blocks.extend(parts.iter().map(|part| section(part)));
    let buttons = buttons(review).filter(|_| whole);
    if buttons.is_none() {
        blocks.push(context("Not everything fits here: open the review to decide."));
    }
    let buttons = buttons.unwrap_or_default();
    let mut elements: Vec<Value> =
        buttons.iter().enumerate().map(|(index, button)| button.element(index, review, link)).collect();
    elements.push(open_button(link));
    blocks.push(actions(&elements));
    SlackMessage::new(&headline, link, blocks)
}

/// Comments on a pending review, without buttons that decide.
fn comments(comments: &NewComments<'_>, review: &Review, link: &str) -> SlackMessage {
    let headline = format!("{}: {}", message::verb(Some(Occasion::Commented), review), message::title(review));
    let quotation = message::quoted(&comments.newest.text, MAX_COMMENT);
    let mut blocks = vec![header(&headline), context(&message::origin(review)), context(&comments.line())];
    blocks.push(section(&quotation.text));
    blocks.extend(quotation.left_out.map(|left_out| context(&left_out)));
    blocks.push(actions(&[open_button(link)]));
    SlackMessage::new(&headline, link, blocks)
}

/// A review that is over, with its outcome.
pub(in super::super) fn over(review: &Review, link: &str) -> SlackMessage {
    let headline = format!("{}: {}", message::verb(Some(Occasion::Resolved), review), message::title(review));
    let (origin, outcome) = (context(&message::origin(review)), section(&message::outcome(review)));
    SlackMessage::new(&headline, link, vec![header(&headline), origin, outcome, context(link)])
}

/// A review that is still pending, but asked of others than this channel.
pub(in super::super) fn passed_on(review: &Review, link: &str) -> SlackMessage {
    let headline = format!("{}: {}", message::verb(None, review), message::title(review));
    let passed_on = "The review is still open, and others are asked now.";
    // An admin may reassign a review at any time.
    let is_late = review.reassignments.is_empty();
    let said = if is_late { format!("Nobody here decided in time. {passed_on}") } else { passed_on.to_owned() };
    let blocks =
        vec![header(&headline), context(&message::origin(review)), section(&said), actions(&[open_button(link)])];
    SlackMessage::new(&headline, link, blocks)
}

/// A list of several reviews or runs, without buttons that decide.
pub(in super::super) fn digest(items: &[MailItem<'_>], url: &str) -> SlackMessage {
    let headline = message::several(items.iter().map(|item| item.about));
    let mut blocks = vec![header(&headline)];
    for item in items.iter().take(MAX_LISTED) {
        let mut section = section(&item.headline());
        section["accessory"] = open_button(&item.link);
        blocks.push(section);
    }
    let inbox = format!("{url}/inbox");
    if items.len() > MAX_LISTED {
        blocks.push(context(&format!("and {} more: {inbox}", items.len() - MAX_LISTED)));
    }
    SlackMessage::new(&headline, &inbox, blocks)
}

fn actions(elements: &[Value]) -> Value {
    json!({ "type": "actions", "block_id": "review", "elements": elements })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: &str = "https://desk.test/reviews/1";

    /// Returns a review with these options, and with changes to it.
    fn review(options: Value, changes: Value) -> Review {
        let mut review = json!({
            "id": "018f0000-0000-7000-8000-000000000001", "revision": 1, "digest": "sha256:aa", "version": 1,
            "kind": "clarification", "status": "pending", "title": "Help", "prompt": "What now?",
            "requested_by": "mia", "created_at": "2026-11-20T10:00:00Z",
        });
        review["options"] = options;
        let Value::Object(changes) = changes else { panic!("an object") };
        review.as_object_mut().unwrap().extend(changes);
        serde_json::from_value(review).unwrap()
    }

    fn message(review: &Review) -> SlackMessage {
        open(Occasion::Requested, review, LINK, review.created_at)
    }

    /// Returns the blocks of a type.
    fn blocks<'a>(message: &'a SlackMessage, name: &str) -> Vec<&'a Value> {
        message.blocks.as_array().unwrap().iter().filter(|block| block["type"] == name).collect()
    }

    /// Returns the texts of the sections of a message, without escapes of `>`.
    fn sections(message: &SlackMessage) -> Vec<String> {
        let text = |section: &&Value| section["text"]["text"].as_str().unwrap().replace("&gt;", ">");
        blocks(message, "section").iter().map(text).collect()
    }

    /// Returns the buttons of a message: the text, whether it decides, and the link.
    fn buttons(message: &SlackMessage) -> Vec<(&str, bool, Option<&str>)> {
        let elements = blocks(message, "actions")[0]["elements"].as_array().unwrap();
        elements
            .iter()
            .map(|button| (text(&button["text"]), button["value"].is_string(), button["url"].as_str()))
            .collect()
    }

    fn text(object: &Value) -> &str {
        object["text"].as_str().unwrap()
    }

    const OPENS: (&str, bool, Option<&str>) = ("Open", false, Some(LINK));

    #[test]
    fn an_option_that_needs_more_than_a_press_leads_to_where_it_is_answered() {
        let agent = json!({ "type": "object", "required": ["agent"], "properties": { "agent": { "type": "string" } } });
        let note = json!({ "type": "object", "properties": { "note": { "type": "string" } } });
        let options = json!([
            { "id": "delegate", "kind": "accept", "label": "Delegate", "fields": agent },
            { "id": "takeover", "kind": "accept", "label": "Take over", "fields": note },
            { "id": "say", "kind": "correct", "label": "Say what to change" },
            { "id": "stop", "kind": "stop", "label": "Stop" },
        ]);
        let stakes = json!({
            "reversible": false, "estimated_cost": { "amount": 12.5, "currency": "EUR" },
            "alternatives": [{ "id": "voucher", "description": "Send a voucher", "tradeoffs": "Slower" }],
        });
        let message = message(&review(options, stakes));
        let said = message.blocks.to_string();
        for stake in ["This cannot be undone.", "Estimated cost: 12.5 EUR", "Alternative: Send a voucher (Slower)"] {
            assert!(said.contains(stake), "{stake} in {said}");
        }
        assert_eq!(
            buttons(&message),
            [
                ("Stop", true, None),
                ("Delegate: open to answer", false, Some(LINK)),
                ("Take over: open to answer", false, Some(LINK)),
                ("Say what to change: open to answer", false, Some(LINK)),
                ("Stop: give a reason", true, None),
                OPENS,
            ]
        );
    }

    #[test]
    fn a_button_decides_only_what_the_message_shows() {
        let long = format!("{} and delete the originals", "x".repeat(74));
        let mut options = json!([
            { "id": "a", "kind": "accept", "label": "Proceed", "description": "on staging" },
            { "id": "b", "kind": "correct", "label": "Again", "message": "Drop the old tables." },
            { "id": "c", "kind": "stop", "label": long },
            { "id": "d", "kind": "stop", "label": "Stop" },
        ]);
        let shown = message(&review(options.clone(), json!({})));
        let (first, cut) = (format!("> Option: {} and", "x".repeat(74)), format!("{}…", "x".repeat(74)));
        assert_eq!(
            sections(&shown),
            [
                "> What now?",
                "> Option: Proceed\n> on staging",
                "> Option: Again\n> Message: Drop the old tables.",
                &format!("{first}\n> delete the originals"),
            ]
        );
        let cut_with_reason = format!("{}…: give a reason", "x".repeat(59));
        let decides = ["Proceed", "Again", &cut, "Stop", &cut_with_reason, "Stop: give a reason"];
        let decides = decides.map(|label| (label, true, None));
        assert_eq!(buttons(&shown), [&decides[..], &[OPENS]].concat());

        options[0]["description"] = "on production\n".repeat(100).into();
        let review = review(options, json!({}));
        let shown = message(&review);
        assert_eq!(buttons(&shown), [OPENS]);
        assert_eq!(shown.with_reactions(&review), None);
    }

    #[test]
    fn what_buttons_cannot_tell_apart_or_hold_is_decided_in_the_console() {
        let option = |id: &str, label: &str, does: &str| json!({ "id": id, "kind": "accept", "label": label, "description": does });
        let last = "x".repeat(100);
        for options in [
            json!([option("a", "Proceed", "on staging"), option("b", "Proceed", "on production")]),
            json!([option("a", &format!("{last} here"), "Small."), option("b", &format!("{last} there"), "Large.")]),
            json!([option("a", "open", "This decides.")]),
            json!([option("a", " ", "No label.")]),
            json!([option(&"x".repeat(3000), "Proceed", "A long id.")]),
        ] {
            let review = review(options, json!({}));
            let shown = message(&review);
            assert_eq!(buttons(&shown), [OPENS], "{:?}", review.options);
            assert_eq!(shown.with_reactions(&review), None);
        }
    }

    #[test]
    fn a_text_with_escapes_is_no_longer_than_slack_accepts() {
        let escaped = "<".repeat(150);
        let options = json!([{ "id": "a", "kind": "accept", "label": escaped }]);
        let message = message(&review(options, json!({ "title": escaped, "severity": "high" })));
        let button = &blocks(&message, "actions")[0]["elements"][0];
        assert!(button["value"].is_string(), "{button}");
        let header = &blocks(&message, "header")[0]["text"];
        for (object, max) in [(header, 150), (&button["text"], 75), (&button["confirm"]["text"], 300)] {
            assert!(text(object).chars().count() <= max, "{object}");
        }
    }
}
