//! The session's requests to the server: who is logged in, their current rights, and logging out.

use futures::FutureExt;
use leptos::prelude::*;
use leptos::task::spawn_local;

use super::http::{Api, use_api};
use super::session::Session;

impl Session {
    /// Asks the server who is logged in, unless that is known. Call it while a component is created.
    pub fn load(self) {
        if self.me.with_untracked(Option::is_some) {
            return;
        }
        let api = use_api();
        let mut asking = Box::pin(async move {
            match api.me().await {
                Ok(user) => self.entered(user),
                Err(problem) => self.error.set(Some(problem.to_string())),
            }
        });
        // Where the page has the answer already, nothing is shown that waits for it.
        if (&mut asking).now_or_never().is_none() {
            spawn_local(asking);
        }
    }

    /// Asks the server what the person may do now. Also tells whether they are still logged in: a session that has
    /// ended, or is of somebody else by now, is noticed by how the API answers.
    pub async fn refresh(self, api: Api) {
        // Where it cannot be asked, what was known stays; the connection is then lost anyway.
        let Ok(now) = api.me().await else { return };
        if self.me.with_untracked(|known| known.as_ref().is_some_and(|known| *known != now)) {
            self.me.set(Some(now));
        }
    }

    /// Ends the session at the server, and forgets the person here even if that fails.
    pub async fn leave(self, api: Api) {
        // Also where the server cannot be reached: this browser shows nothing more.
        drop(api.logout().await);
        self.me.set(None);
        self.signed_out.set(true);
    }
}
