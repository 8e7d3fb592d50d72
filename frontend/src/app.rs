//! The application: what every page can ask for (session, API, live socket, notices), and the routes.

use leptos::prelude::*;
use leptos_router::components::{ParentRoute, Redirect, Route, Router, Routes};
use leptos_router::path;

use crate::client::{Live, Session, provide_client};
use crate::components::notice::Notices;
use crate::components::shell::Shell;
use crate::pages::{
    audit::AuditPage, flow::FlowPage, flows::FlowsPage, inbox::InboxPage, login::LoginPage, not_found::NotFoundPage,
    people::PeoplePage, run::RunPage, runs::RunsPage,
};

/// The whole console.
#[component]
pub fn App() -> impl IntoView {
    provide_client();
    view! {
        <Router>
            <Routes fallback=NotFoundPage>
                <Route path=path!("/login") view=LoginPage />
                <ParentRoute path=path!("") view=Inside>
                    <Route path=path!("/") view=|| view! { <Redirect path="/inbox" /> } />
                    // One page for the list and for a deep link, so that opening a review does not build it anew.
                    <ParentRoute path=path!("") view=InboxPage>
                        <Route path=path!("/inbox") view=|| () />
                        <Route path=path!("/reviews/:id") view=|| () />
                    </ParentRoute>
                    <Route path=path!("/runs") view=RunsPage />
                    <Route path=path!("/runs/:id") view=RunPage />
                    <Route path=path!("/flows") view=FlowsPage />
                    <Route path=path!("/flows/:id") view=FlowPage />
                    <Route path=path!("/audit") view=AuditPage />
                    <Route path=path!("/people") view=PeoplePage />
                </ParentRoute>
            </Routes>
        </Router>
        <Notices />
    }
}

/// What only somebody who is logged in sees. Asks who that is, and opens the live socket.
#[component]
fn Inside() -> impl IntoView {
    let session = Session::expect();
    let live = Live::expect();
    session.load();
    Effect::new(move |_| {
        if session.me.with(Option::is_some) {
            live.open();
        } else {
            live.close();
        }
    });
    Shell()
}
