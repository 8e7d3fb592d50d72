//! What is done once a lost connection is back.

use std::rc::Rc;

use leptos::prelude::*;

use super::live::{Connection, Live};

impl Live {
    /// Calls `again` whenever the connection is back after it was lost, or opened for the first time, while the component
    /// lives that calls this. Of a short loss only the browser hears: the socket may outlast it.
    pub fn on_return(self, again: impl Fn() + 'static) {
        let again = Rc::new(again);
        let is_open = Memo::new(move |_| self.connection.get() == Connection::Open);
        let online = {
            let again = Rc::clone(&again);
            window_event_listener_untyped("online", move |_| again())
        };
        on_cleanup(move || online.remove());
        Effect::new(move |before: Option<bool>| {
            let now = is_open.get();
            if now && before == Some(false) {
                again();
            }
            now
        });
    }
}
