//! Logging out: decisions that are held are sent first, drafts are discarded only after a warning, and whoever is still
//! logged in is told why.

use leptos::prelude::*;

use crate::client::{Session, Workspace, use_api};
use crate::state::drafts::Drafts;
use crate::state::outbox::{Outbox, not_sent};
use crate::state::words;

/// The button that logs out. Cheap to copy into closures.
#[derive(Clone, Copy)]
pub struct LogOut {
    /// Why the person is still logged in. It is shown beside the button, since a notice would cover the button for
    /// another attempt.
    pub stays: RwSignal<Option<String>>,
    /// Whether it is under way.
    pub leaving: Memo<bool>,
    /// The warning that was shown last.
    warned: StoredValue<Option<String>>,
    leave: Action<(), ()>,
    workspace: Workspace,
}

impl LogOut {
    /// Prepares logging out. Call it while a component is created.
    pub fn new() -> Self {
        let session = expect_context::<Session>();
        let api = use_api();
        let workspace = expect_context::<Workspace>();
        let stays = RwSignal::new(None::<String>);
        let leave = Action::new_local(move |(): &()| async move {
            // Unsent decisions can be sent again or taken back before the person leaves.
            match workspace.finish().await {
                Ok(true) => {}
                Ok(false) => return,
                Err(reason) => return stays.set(Some(format!("You are still logged in. {reason}"))),
            }
            match session.leave(api).await {
                Ok(()) => workspace.clear(),
                Err(problem) => {
                    stays.set(Some(format!("You are still logged in. {problem} Log out again in a moment.")));
                }
            }
        });
        Self { stays, leaving: leave.pending(), warned: StoredValue::new(None), leave, workspace }
    }

    /// Forgets what was said before, when the button is shown anew.
    pub fn begin(self) {
        self.stays.set(None);
        self.warned.set_value(None);
    }

    /// Logs out, or warns first of what would be lost.
    pub fn press(self) {
        let warning = self.warning();
        if warning.is_some() && self.warned.with_value(|warned| *warned != warning) {
            self.warned.set_value(warning.clone());
            self.stays.set(warning);
        } else if !self.leaving.get_untracked() {
            self.stays.set(None);
            self.leave.dispatch_local(());
        }
    }

    /// What would be lost; `None` if nothing would.
    fn warning(self) -> Option<String> {
        // Drafts are those of all tabs.
        let drafts = self.workspace.drafts.with_untracked(Drafts::count);
        let unsent = self.workspace.outbox.with_untracked(Outbox::unsent);
        let counts = [
            (!unsent.is_empty()).then(|| not_sent(unsent.len())),
            (drafts > 0).then(|| words::count(drafts, "draft", "drafts")),
        ];
        let lost = counts.into_iter().flatten().collect::<Vec<_>>().join(", ");
        (!lost.is_empty()).then(|| format!("{lost}. Log out again to discard what was not sent."))
    }

    /// The text of the button. Follows how far it has come.
    pub fn says(self) -> &'static str {
        let sends = || self.workspace.outbox.with(|outbox| outbox.unanswered().next().is_some());
        if !self.leaving.get() {
            "Log out"
        } else if sends() {
            "Sending your decisions…"
        } else {
            "Logging out…"
        }
    }
}
