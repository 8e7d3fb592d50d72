//! Short notices that disappear on their own. `components::notice` shows them.

use leptos::prelude::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeTone {
    /// An action of the person succeeded; shown for 5 seconds, like `Plain`.
    Good,
    /// A neutral message, shown for 5 seconds.
    Plain,
    /// An error, shown for 12 seconds.
    Bad,
}

/// A message that is shown for 5 or 12 seconds, or until it is closed.
#[derive(Debug, Clone, PartialEq)]
pub struct Notice {
    /// An increasing number, by which [`Notifier::close`] finds it.
    pub id: u64,
    pub tone: NoticeTone,
    pub text: String,
}

/// The notices that are shown. Cheap to copy into closures.
#[derive(Debug, Clone, Copy)]
pub struct Notifier {
    pub shown: RwSignal<Vec<Notice>>,
    next: StoredValue<u64>,
}

/// Makes the notices available to all components below.
pub fn provide_notices() {
    provide_context(Notifier { shown: RwSignal::new(Vec::new()), next: StoredValue::new(0) });
}

impl Notifier {
    /// Whether a notice with this text is shown.
    pub fn shows(self, text: &str) -> bool {
        self.shown.with_untracked(|shown| shown.iter().any(|notice| notice.text == text))
    }

    /// Shows for 5 seconds that an action of the person succeeded.
    pub fn good(self, text: impl Into<String>) {
        self.show(NoticeTone::Good, text.into());
    }

    /// Shows a neutral message for 5 seconds.
    pub fn say(self, text: impl Into<String>) {
        self.show(NoticeTone::Plain, text.into());
    }

    /// Shows an error for 12 seconds.
    pub fn bad(self, text: impl Into<String>) {
        self.show(NoticeTone::Bad, text.into());
    }

    fn show(self, tone: NoticeTone, text: String) {
        let id = self.next.get_value();
        self.next.set_value(id + 1);
        self.shown.update(|shown| {
            shown.retain(|notice| notice.text != text);
            shown.push(Notice { id, tone, text });
        });
        let stay = if tone == NoticeTone::Bad { 12_000 } else { 5_000 };
        leptos::task::spawn_local(async move {
            gloo_timers::future::TimeoutFuture::new(stay).await;
            self.close(id);
        });
    }

    pub fn close(self, id: u64) {
        self.shown.update(|shown| shown.retain(|notice| notice.id != id));
    }
}
