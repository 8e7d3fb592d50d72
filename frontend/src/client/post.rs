//! Sends permanent records, such as the start of a run or a comment. If the button is pressed twice, or a request is
//! sent again because its answer was lost, it counts once.

use leptos::prelude::*;
use serde::Serialize;
use shared::error::Problem;

use super::workspace::{Unanswered, Workspace};

/// Returns a callback that sends a body, unless a request is pending, and whether one is. `send` gets the body and its
/// idempotency key. `target` identifies the kind and object of the record.
pub fn use_post<B, A, F>(
    target: impl Into<String>,
    send: impl Fn(B, String) -> F + 'static,
) -> (Callback<B>, Memo<bool>)
where
    B: Clone + Serialize + 'static,
    A: 'static,
    F: Future<Output = Result<A, Problem>> + 'static,
{
    let unanswered = expect_context::<Workspace>().unanswered;
    let target = target.into();
    let action = Action::new_local(move |(body, key): &(B, String)| {
        let (sending, key) = (send(body.clone(), key.clone()), key.clone());
        async move {
            let answer = sending.await;
            if answer.is_ok() {
                // Sending the same again creates another record.
                unanswered.update_value(|unanswered| unanswered.retain(|_, (_, other)| *other != key));
            }
            answer
        }
    });
    let pending = action.pending();
    let post = move |body: B| {
        if pending.get_untracked() {
            return;
        }
        let text = serde_json::to_string(&body).unwrap_or_default();
        if let Some(key) = unanswered.try_update_value(|sent| key_of(sent, target.clone(), text, super::key)) {
            action.dispatch_local((body, key));
        }
    };
    (Callback::new(post), pending)
}

/// The idempotency key for a body; it stays the same while the same body is sent again.
fn key_of(sent: &mut Unanswered, target: String, text: String, new: impl FnOnce() -> String) -> String {
    let key = sent.remove(&target).filter(|(before, _)| *before == text).map_or_else(new, |(_, key)| key);
    sent.insert(target, (text, key.clone()));
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_again_has_the_key_under_which_it_counts_once() {
        let mut sent = Unanswered::new();
        let mut send =
            |of: &str, text: &str, new: &str| key_of(&mut sent, of.to_owned(), text.to_owned(), || new.to_owned());
        let keys =
            [send("1", "a", "1"), send("1", "a", "2"), send("2", "a", "3"), send("1", "b", "4"), send("1", "a", "5")];
        assert_eq!(keys, ["1", "1", "3", "4", "5"]);
        sent.clear();
        assert_eq!(key_of(&mut sent, "1".to_owned(), "a".to_owned(), || "6".to_owned()), "6", "this is another one");
    }
}
