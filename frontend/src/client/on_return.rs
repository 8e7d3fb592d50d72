//! Callbacks for when earlier messages are no longer enough, or a lost connection is back.

use std::rc::Rc;

use leptos::prelude::*;

use super::live::{Connection, Live};

impl Live {
    /// Whether lists can be read now: their starting position in the log is known, or the socket cannot be opened.
    /// Anything read before that would soon be reloaded.
    pub fn is_followed(self) -> bool {
        untrack(move || self.follows())
    }

    /// Calls `read` once [`Self::is_followed`] holds, at once or later, while the calling component exists.
    pub fn once_followed(self, read: impl Fn() + 'static) {
        let is_followed = Memo::new(move |before: Option<&bool>| before == Some(&true) || self.follows());
        Effect::new(move |_| {
            if is_followed.get() {
                untrack(&read);
            }
        });
    }

    fn follows(self) -> bool {
        self.renewed.get() > 0 || matches!(self.connection.get(), Connection::Lost { .. })
    }

    /// Calls `again` whenever messages may have been missed, so that earlier data may be out of date: the socket starts
    /// over, is back after a loss, or opens for the first time. Lasts while the calling component exists.
    pub fn on_renewal(self, again: impl Fn() + 'static) {
        let is_open = Memo::new(move |_| self.connection.get() == Connection::Open);
        Effect::new(move |before: Option<(u64, bool)>| {
            let now = (self.renewed.get(), is_open.get());
            if before.is_some_and(|(renewed, was_open)| renewed != now.0 || (now.1 && !was_open)) {
                untrack(&again);
            }
            now
        });
    }

    /// Like [`Self::on_renewal`], and also when the browser reports that it is online again: the socket may outlast a
    /// short loss of the network.
    pub fn on_return(self, again: impl Fn() + 'static) {
        let again = Rc::new(again);
        let online = {
            let again = Rc::clone(&again);
            window_event_listener_untyped("online", move |_| again())
        };
        on_cleanup(move || online.remove());
        self.on_renewal(move || again());
    }
}
