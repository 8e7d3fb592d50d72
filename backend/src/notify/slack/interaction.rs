//! What people do with messages, as Slack sends it: presses of buttons, and reasons that they give in a dialog. The dialog
//! holds the button that opened it, so the server stores nothing meanwhile.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use shared::review::Review;

use super::super::message;
use super::button::ButtonPress;
use super::text::{MAX_SECTION, fitted, header, plain};

/// The name of the dialog's input, in the block of the same name.
const REASON: &str = "reason";
/// The longest reason that the dialog accepts, in characters: no longer than a comment may be, in bytes.
const MAX_REASON: usize = 2000;
/// The longest title or label of a dialog.
const MAX_LABEL: usize = 24;

/// A press of a button, or a reason for one.
#[derive(Debug, Clone)]
pub struct Interaction {
    /// The person, by their member ID in Slack.
    pub user: String,
    /// The payload of the button, with the reason if they gave one.
    pub press: ButtonPress,
    /// The URL for the reply.
    pub(in super::super) response_url: String,
    /// The secret with which a dialog can be opened for the person within three seconds. Empty after a dialog.
    pub(in super::super) trigger_id: String,
    /// Whether the person gave a reason in a dialog.
    is_from_dialog: bool,
}

/// What a dialog holds.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Held {
    press: ButtonPress,
    url: String,
}

impl Interaction {
    /// Reads the body of a request. `None` if it is neither a press of a button that decides nor a reason for one.
    pub fn read(body: &[u8]) -> Option<Self> {
        let (_, payload) = form_urlencoded::parse(body).find(|(name, _)| name == "payload")?;
        let payload: Value = serde_json::from_str(&payload).ok()?;
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let user = text(&payload["user"]["id"])?;
        match payload["type"].as_str()? {
            "block_actions" => {
                let press = serde_json::from_str(payload["actions"][0]["value"].as_str()?).ok()?;
                let response_url = text(&payload["response_url"]).unwrap_or_default();
                let trigger_id = text(&payload["trigger_id"]).unwrap_or_default();
                Some(Self { user, press, response_url, trigger_id, is_from_dialog: false })
            }
            "view_submission" => {
                let view = &payload["view"];
                let Held { press, url } = serde_json::from_str(view["private_metadata"].as_str()?).ok()?;
                let reason = text(&view["state"]["values"][REASON][REASON]["value"]);
                let press = ButtonPress { asks_reason: false, reason, ..press };
                Some(Self { user, press, response_url: url, trigger_id: String::new(), is_from_dialog: true })
            }
            _ => None,
        }
    }

    /// Returns the response that keeps the dialog open, with what the person typed, and says there why nothing was
    /// decided. `None` if there is no dialog.
    pub fn keep_open(&self, why: &str) -> Option<Value> {
        // Slack shows this as it is, without markup, so escapes would be visible.
        let shown = || fitted(why, MAX_SECTION).0;
        self.is_from_dialog.then(|| json!({ "response_action": "errors", "errors": { REASON: shown() } }))
    }

    pub(in super::super) fn reason_dialog(&self, review: &Review) -> Value {
        let held = Held { press: self.press.clone(), url: self.response_url.clone() };
        let element = json!({
            "type": "plain_text_input", "action_id": REASON, "multiline": true, "max_length": MAX_REASON,
        });
        json!({
            "type": "modal",
            "private_metadata": serde_json::to_string(&held).unwrap_or_default(),
            "title": plain("Give a reason", MAX_LABEL),
            "submit": plain("Decide", MAX_LABEL),
            "close": plain("Cancel", MAX_LABEL),
            "blocks": [
                header(&message::title(review)),
                { "type": "input", "block_id": REASON, "label": plain("Reason", MAX_LABEL), "element": element },
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what the server reads of a payload.
    fn read(payload: &Value) -> Option<Interaction> {
        let body =
            form_urlencoded::Serializer::new(String::new()).append_pair("payload", &payload.to_string()).finish();
        Interaction::read(body.as_bytes())
    }

    #[test]
    fn a_reason_comes_with_the_button_that_asked_for_it() {
        let review: Review = serde_json::from_value(json!({
            "id": "018f0000-0000-7000-8000-000000000001", "revision": 3, "digest": "sha256:aa", "version": 1,
            "kind": "tool_calls", "status": "pending", "title": "Send\u{202e} it?", "prompt": "", "requested_by": "mia",
            "created_at": "2026-11-20T10:00:00Z",
            "actions": [{ "id": "c1", "type": "tool", "name": "send", "arguments": {}, "allowed_decisions": ["reject"] }],
        }))
        .unwrap();
        let value = json!({ "r": review.id, "v": 3, "d": "sha256:aa", "c": "reject", "w": true }).to_string();
        let pressed = json!({
            "type": "block_actions", "user": { "id": "U1" }, "response_url": "https://hooks.slack.com/1",
            "trigger_id": "13.37", "actions": [{ "value": value }],
        });
        let pressed = read(&pressed).expect("a press");
        assert!(pressed.press.asks_reason && pressed.trigger_id == "13.37");
        assert_eq!(pressed.keep_open("No."), None, "there is no dialog yet");
        let mut view = pressed.reason_dialog(&review);
        assert!(view["private_metadata"].as_str().unwrap().chars().count() <= 3000, "{view}");
        assert_eq!(view["blocks"][0]["text"]["text"], "Send&lt;U+202E&gt; it?");
        view["state"] =
            json!({ "values": { "reason": { "reason": { "type": "plain_text_input", "value": "Too soon." } } } });
        let given = json!({ "type": "view_submission", "user": { "id": "U2" }, "view": view });
        let given = read(&given).expect("a reason");
        assert_eq!((given.user.as_str(), given.response_url.as_str()), ("U2", "https://hooks.slack.com/1"));
        assert!(!given.press.asks_reason);
        let kept = json!({ "response_action": "errors", "errors": { "reason": "No<U+202E>." } });
        assert_eq!(given.keep_open("No\u{202e}."), Some(kept));
        let request = json!(given.press.request(&review));
        assert_eq!(request["verdict"]["decisions"]["c1"], json!({ "type": "reject", "message": "Too soon." }));
        assert_eq!((&request["revision"], &request["digest"]), (&json!(3), &json!("sha256:aa")));
    }
}
