//! The application: the context of every page (session, API, live socket, notices), and the routes.

use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::components::{Outlet, ParentRoute, Redirect, Route, Router, Routes};
use leptos_router::path;

use crate::client::{Live, Session, provide_client};
use crate::components::arrival::{Announcer, provide_arrival};
use crate::components::commands::provide_commands;
use crate::components::notice::Notices;
use crate::components::scroll::{provide_scroll_positions, restore_scroll_positions};
use crate::components::shell::Shell;
use crate::pages::inbox::{IdlePane, InboxPage};
use crate::pages::lazy::{LazyPage, LazyPageView};
use crate::pages::login::LoginPage;
use crate::pages::not_found::NotFoundPage;
use crate::pages::palette::Palette;

/// The application of the console.
#[component]
pub fn App() -> impl IntoView {
    provide_client();
    provide_commands();
    provide_scroll_positions();
    view! {
        <Router>
            {provide_arrival()}
            {restore_scroll_positions()}
            <Announcer />
            <Routes fallback=NotFoundPage>
                <Route path=path!("login") view=LoginPage />
                <ParentRoute path=path!("") view=Inside>
                    <Route path=path!("") view=Home />
                    // One page for the list and for deep links: opening a review leaves the list as it is.
                    <ParentRoute path=path!("") view=InboxPage>
                        <Route path=path!("inbox") view=IdlePane />
                        <Route path=path!("inbox/selected") view=|| view! { <LazyPageView page=LazyPage::Selected /> } />
                        <Route path=path!("reviews/:id") view=|| view! { <LazyPageView page=LazyPage::Review /> } />
                    </ParentRoute>
                    <Route path=path!("decided") view=|| view! { <LazyPageView page=LazyPage::Decided /> } />
                    <Route path=path!("runs") view=|| view! { <LazyPageView page=LazyPage::Runs /> } />
                    <Route path=path!("runs/:id") view=|| view! { <LazyPageView page=LazyPage::Run /> } />
                    <Route path=path!("flows") view=|| view! { <LazyPageView page=LazyPage::Flows /> } />
                    <Route path=path!("flows/:id") view=|| view! { <LazyPageView page=LazyPage::Flow /> } />
                    <Route path=path!("insights") view=|| view! { <LazyPageView page=LazyPage::Insights /> } />
                    <Route path=path!("audit") view=|| view! { <LazyPageView page=LazyPage::Audit /> } />
                    <Route path=path!("people") view=|| view! { <LazyPageView page=LazyPage::People /> } />
                </ParentRoute>
            </Routes>
        </Router>
        <Notices />
    }
}

/// Redirects `/` to the inbox.
#[component]
fn Home() -> impl IntoView {
    view! { <Redirect path="/inbox" options=NavigateOptions { replace: true, ..NavigateOptions::default() } /> }
}

/// The parts that require a login. Asks who is logged in, and opens the live socket.
#[component]
fn Inside() -> impl IntoView {
    let session = expect_context::<Session>();
    let live = expect_context::<Live>();
    session.load();
    Effect::new(move |_| {
        if session.me.with(Option::is_some) {
            live.open();
        } else {
            live.close();
        }
    });
    view! {
        <Shell>
            <Outlet />
        </Shell>
        <Show when=move || session.me.with(Option::is_some)>
            <Palette />
        </Show>
    }
}
