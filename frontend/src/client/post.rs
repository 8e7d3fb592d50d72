//! Sends what is recorded for good, such as a run that is started or a comment: pressed twice, or sent again because the
//! answer was lost, it counts once.

use leptos::prelude::*;
use serde::Serialize;
use shared::error::Problem;

/// What was sent last and has not arrived, and its idempotency key.
type Unanswered = Option<(String, String)>;

/// A form that records something for good. Cheap to copy into closures.
pub struct Post<B: 'static, A: 'static> {
    action: Action<(B, String), Result<A, Problem>>,
    sent: StoredValue<Unanswered>,
}

impl<B, A> Clone for Post<B, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B, A> Copy for Post<B, A> {}

/// Makes a form that calls `send` with what is sent and its idempotency key.
pub fn use_post<B, A, F>(send: impl Fn(B, String) -> F + 'static) -> Post<B, A>
where
    B: Clone + Serialize + 'static,
    A: 'static,
    F: Future<Output = Result<A, Problem>> + 'static,
{
    let sent = StoredValue::new(None);
    let action = Action::new_local(move |(body, key): &(B, String)| {
        let sending = send(body.clone(), key.clone());
        async move {
            let answer = sending.await;
            if answer.is_ok() {
                // The same, sent once more, is something else. Nothing is where the page has gone.
                sent.try_set_value(None);
            }
            answer
        }
    });
    Post { action, sent }
}

impl<B: Serialize, A> Post<B, A> {
    /// Sends it, unless something is being sent.
    pub fn send(self, body: B) {
        if self.is_pending() {
            return;
        }
        let text = serde_json::to_string(&body).unwrap_or_default();
        if let Some(key) = self.sent.try_update_value(|sent| key_of(sent, text, super::key)) {
            self.action.dispatch_local((body, key));
        }
    }

    /// Whether something is being sent now.
    pub fn is_pending(self) -> bool {
        self.action.pending().get_untracked()
    }

    /// Whether something is being sent.
    pub fn pending(self) -> Memo<bool> {
        self.action.pending()
    }
}

/// The key for a text: the same as long as the same is sent again.
fn key_of(sent: &mut Unanswered, text: String, new: impl FnOnce() -> String) -> String {
    let key = sent.take().filter(|(before, _)| *before == text).map_or_else(new, |(_, key)| key);
    *sent = Some((text, key.clone()));
    key
}

#[cfg(test)]
mod tests {
    use super::key_of;

    #[test]
    fn what_is_sent_again_has_the_key_under_which_it_counts_once() {
        let mut sent = None;
        let mut send = |text: &str, new: &str| key_of(&mut sent, text.to_owned(), || new.to_owned());
        assert_eq!([send("a", "1"), send("a", "2"), send("b", "3"), send("a", "4")], ["1", "1", "3", "4"]);
        sent = None;
        assert_eq!(key_of(&mut sent, "a".to_owned(), || "5".to_owned()), "5", "it has arrived: this is another one");
    }
}
