//! The console's connection to the server: `fetch` for calls, one WebSocket for events, and who is logged in.
//! Pages take them from the context, while a component is created: window listeners have none.

mod browser_notifications;
mod decisions;
pub mod early;
mod global_signal;
pub mod http;
mod insist;
pub mod list;
pub mod live;
mod locks;
mod login;
pub mod notifier;
mod on_return;
mod paint;
mod post;
mod saved_views;
pub mod session;
pub mod storage;
pub mod workspace;

use leptos::prelude::*;

pub use browser_notifications::{BrowserNotifications, Permission};
pub use global_signal::GlobalSignal;
pub use http::{Api, FlowVersion, use_api};
pub use insist::insist;
pub use list::ReviewList;
pub use live::{Connection, Live};
pub use notifier::Notifier;
pub use paint::after_paint;
pub use post::use_post;
pub use saved_views::SavedViews;
pub use session::{Session, to_show};
pub use workspace::Workspace;

/// Makes API, session and live socket available to all components below.
pub fn provide_client() {
    notifier::provide_notices();
    let session = Session::new();
    let api = http::api(session);
    provide_context(api);
    provide_context(session);
    let live = Live::new(api, session);
    provide_context(live);
    provide_context(BrowserNotifications::new(live, session));
    provide_context(ReviewList::new(api, live));
    provide_context(SavedViews::new(api, session));
    provide_context(Workspace::new(api, session, live, expect_context::<Notifier>()));
}

/// Creates a new idempotency key.
pub fn key() -> String {
    let part = || {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below 2^32 by its factor")]
        let part = (js_sys::Math::random() * 4_294_967_296.0) as u32;
        part
    };
    format!("{:08x}{:08x}{:08x}{:08x}", part(), part(), part(), part())
}
