//! The session's requests to the server: who is logged in, their current rights, and logging out.

use futures::FutureExt;
use leptos::prelude::*;
use leptos::task::spawn_local;
use shared::api::User;
use shared::error::{Code, Problem};

use super::http::{Api, use_api};
use super::insist::insist;
use super::session::Session;

impl Session {
    /// Asks the server who is logged in, until it answers, unless that is known. Call it while a component is created.
    pub fn load(self) {
        if self.me.with_untracked(Option::is_some) {
            return;
        }
        let api = use_api();
        let mut asking = Box::pin(async move {
            let fail = |problem: &Problem| {
                let problem = Some(problem.to_string());
                // The same error is not announced again.
                if self.error.with_untracked(|known| *known != problem) {
                    self.error.set(problem);
                }
            };
            let goes_on = |problem: &Problem| {
                fail(problem);
                self.me.with_untracked(Option::is_none)
            };
            match insist(async || self.ask(api).await.transpose(), goes_on).await {
                Ok(Some(user)) => self.entered(user),
                Ok(None) => {}
                Err(problem) => fail(&problem),
            }
        });
        // If the page has the response already, it shows no loading state.
        if (&mut asking).now_or_never().is_none() {
            spawn_local(asking);
        }
    }

    /// Asks the server for the current rights of the person. Also finds out whether they are still logged in: the
    /// transport notices if the session has ended, or belongs to somebody else by now.
    pub async fn refresh(self, api: Api) {
        // Without an answer the known rights stay; the connection is lost anyway.
        let Some(Ok(now)) = self.ask(api).await else { return };
        if self.me.with_untracked(|known| known.as_ref().is_some_and(|known| *known != now)) {
            self.me.set(Some(now));
        }
    }

    /// Asks the server who is logged in. `None` if somebody has logged in on this page meanwhile, so that the answer
    /// belongs to the session before.
    pub async fn ask(self, api: Api) -> Option<Result<User, Problem>> {
        let logins = self.logins.get_value();
        let answer = api.me().await;
        (self.logins.get_value() == logins).then_some(answer)
    }

    /// Ends the session on the server. If that fails, the person is still logged in, for anyone who uses this browser
    /// next.
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
