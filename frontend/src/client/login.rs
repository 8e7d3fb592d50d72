//! The session's requests to the server: who is logged in, their current rights, and logging out.

use futures::FutureExt;
use leptos::prelude::*;
use leptos::task::spawn_local;
use shared::api::User;
use shared::error::{Code, Problem};

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
            match self.ask(api).await {
                Some(Ok(user)) => self.entered(user),
                Some(Err(problem)) => self.error.set(Some(problem.to_string())),
                None => {}
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
        let Some(Ok(now)) = self.ask(api).await else { return };
        if self.me.with_untracked(|known| known.as_ref().is_some_and(|known| *known != now)) {
            self.me.set(Some(now));
        }
    }

    /// Asks the server who is logged in. None: somebody has logged in here meanwhile, and the answer is of the session
    /// before.
    pub async fn ask(self, api: Api) -> Option<Result<User, Problem>> {
        let logins = self.logins.get_value();
        let answer = api.me().await;
        (self.logins.get_value() == logins).then_some(answer)
    }

    /// Ends the session at the server. Where that fails, the person is still logged in, here and for whoever uses this
    /// browser next.
    pub async fn leave(self, api: Api) -> Result<(), Problem> {
        match api.logout().await {
            // The session had ended already.
            Ok(()) => {}
            Err(problem) if problem.code == Code::Unauthenticated => {}
            Err(problem) => return Err(problem),
        }
        self.me.set(None);
        self.signed_out.set(true);
        Ok(())
    }
}
