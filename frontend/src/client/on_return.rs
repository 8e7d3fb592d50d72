//! What is done once the messages so far are no longer enough, or a lost connection is back.

use std::rc::Rc;

use leptos::prelude::*;

use super::live::{Connection, Live};

impl Live {
    /// Whether it is known from where on entries follow what is read, or they do not, since the socket cannot be opened.
    /// What is read before is soon read anew.
    pub fn is_followed(self) -> bool {
        untrack(move || self.follows())
    }

    /// Calls `read` once that is so, at once or later, while the component lives that calls this.
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

    /// Calls `again` whenever the messages so far say no longer all that has happened to what was read before: the socket
    /// begins anew, or is back after it was lost, or opened for the first time. While the component lives that calls this.
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

    /// The same, and when the browser says that it is connected again: of a short loss only the browser hears, and the
    /// socket may outlast it.
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
