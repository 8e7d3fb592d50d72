//! The pages that the inbox does not need. They are separate parts of the program, which the browser loads when the
//! first page of a part is opened: the bundler splits the program at the two functions that are marked here.

#![expect(clippy::unnecessary_wraps, reason = "the error is that of loading the part, which `wasm_split` adds")]

use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos::wasm_split::{SplitLoaderError, wasm_split};
use shared::access::Act;
use shared::error::{Code, Problem};

use super::audit::AuditPage;
use super::flow::FlowPage;
use super::flows::FlowsPage;
use super::insights::InsightsPage;
use super::people::PeoplePage;
use super::review::OpenPane;
use super::run::RunPage;
use super::runs::RunsPage;
use crate::client::{Live, Session, after_paint};
use crate::components::states::{Failed, Loading};

/// A page that is loaded when it is opened.
#[derive(Debug, Clone, Copy)]
pub enum LazyPage {
    /// The review beside the inbox, in a part for itself.
    Review,
    Runs,
    Run,
    Flows,
    Flow,
    Insights,
    Audit,
    People,
}

// What the functions build is not followed: a page follows for itself what it shows.

#[wasm_split(review, wasm_split_path = ::leptos::wasm_split, fallible, preload(load_review))]
fn review() -> Result<AnyView, SplitLoaderError> {
    Ok(untrack(|| view! { <OpenPane /> }.into_any()))
}

#[wasm_split(pages, wasm_split_path = ::leptos::wasm_split, fallible, preload(load_pages))]
fn page(page: LazyPage) -> Result<AnyView, SplitLoaderError> {
    Ok(untrack(|| match page {
        LazyPage::Review => ().into_any(),
        LazyPage::Runs => view! { <RunsPage /> }.into_any(),
        LazyPage::Run => view! { <RunPage /> }.into_any(),
        LazyPage::Flows => view! { <FlowsPage /> }.into_any(),
        LazyPage::Flow => view! { <FlowPage /> }.into_any(),
        LazyPage::Insights => view! { <InsightsPage /> }.into_any(),
        LazyPage::Audit => view! { <AuditPage /> }.into_any(),
        LazyPage::People => view! { <PeoplePage /> }.into_any(),
    }))
}

impl LazyPage {
    /// Loads its part, unless it is there. Where that fails, showing it tries again, and says so.
    async fn load(self) {
        let _ = match self {
            Self::Review => load_review().await,
            _ => load_pages().await,
        };
    }

    async fn view(self, again: Callback<()>) -> AnyView {
        let view = match self {
            Self::Review => review().await,
            _ => page(self).await,
        };
        view.unwrap_or_else(|_| view! { <NotLoaded again /> }.into_any())
    }

    /// What its heading says, where that is known before it is there.
    fn heading(self) -> Option<&'static str> {
        match self {
            Self::Runs => Some("Runs"),
            Self::Flows => Some("Flows"),
            Self::Insights => Some("Insights"),
            Self::Audit => Some("Audit"),
            Self::People if untrack(|| Session::expect().may(Act::ManagePeople)) => Some("People"),
            Self::People => Some("You"),
            Self::Review | Self::Run | Self::Flow => None,
        }
    }
}

/// Loads what shows a review before one is opened, once what the page has now is painted.
pub fn load_review_ahead() {
    spawn_local(async {
        after_paint().await;
        LazyPage::Review.load().await;
    });
}

/// A page, as soon as its part of the program is there.
#[component]
pub fn LazyPageView(page: LazyPage) -> impl IntoView {
    let loaded = LocalResource::new(move || page.load());
    let again = Callback::new(move |()| loaded.refetch());
    // No `Suspense`: it makes a page before it is on screen, where its heading cannot take the focus.
    move || match loaded.get() {
        None => view! { <OnItsWay page /> }.into_any(),
        Some(()) => Suspend::new(page.view(again)).into_any(),
    }
}

/// A page whose part is being loaded, laid out as it will be.
#[component]
fn OnItsWay(page: LazyPage) -> impl IntoView {
    if let LazyPage::Review = page {
        return view! { <article class="read"><Loading rows=7 /></article> }.into_any();
    }
    let heading = page.heading().map(|heading| view! { <h1>{heading}</h1> });
    view! {
        <section class="page">
            <header>{heading}</header>
            <div class="in"><Loading rows=8 /></div>
        </section>
    }
    .into_any()
}

/// Trying again loads the whole console: the server may have a newer one, which knows nothing of this one's parts. Once a
/// lost connection is back, the part alone is tried `again`.
#[component]
fn NotLoaded(again: Callback<()>) -> impl IntoView {
    Live::expect().on_return(move || again.run(()));
    let problem = Problem::new(Code::Unavailable)
        .detail("The server could not be reached, or it has a newer version of the console.");
    // Where it cannot be loaded either, the browser says so.
    let retry = Callback::new(|()| drop(location().reload()));
    view! { <Failed title="This page could not be loaded" problem retry /> }
}
