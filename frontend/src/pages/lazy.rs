//! The pages that the inbox does not need. They are two separate parts of the program, which the browser loads when the
//! first page of a part is opened: the bundler splits the program at the two functions marked here.

#![expect(clippy::unnecessary_wraps, reason = "the error is that of loading the part, which `wasm_split` adds")]

use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos::wasm_split::{SplitLoaderError, wasm_split};
use shared::access::Act;
use shared::error::{Code, Problem};

use super::audit::AuditPage;
use super::decided::DecidedPage;
use super::flow::FlowPage;
use super::flows::FlowsPage;
use super::insights::InsightsPage;
use super::people::PeoplePage;
use super::review::{OpenPane, SelectedPane};
use super::run::RunPage;
use super::runs::RunsPage;
use crate::client::{Live, Session, after_paint};
use crate::components::states::{Failed, Loading};

/// A page whose code is loaded when it is first opened.
#[derive(Debug, Clone, Copy)]
pub enum LazyPage {
    /// The review beside the inbox, which is a part of its own.
    Review,
    /// The selected reviews beside the inbox, which are in the same part.
    Selected,
    Decided,
    Runs,
    Run,
    Flows,
    Flow,
    Insights,
    Audit,
    People,
}

// The functions are untracked, since each page tracks what it shows itself.

#[wasm_split(review, wasm_split_path = ::leptos::wasm_split, fallible, preload(load_review))]
fn review(page: LazyPage) -> Result<AnyView, SplitLoaderError> {
    Ok(untrack(|| match page {
        LazyPage::Selected => view! { <SelectedPane /> }.into_any(),
        _ => view! { <OpenPane /> }.into_any(),
    }))
}

#[wasm_split(pages, wasm_split_path = ::leptos::wasm_split, fallible, preload(load_pages))]
fn page(page: LazyPage) -> Result<AnyView, SplitLoaderError> {
    Ok(untrack(|| match page {
        LazyPage::Review | LazyPage::Selected => ().into_any(),
        LazyPage::Decided => view! { <DecidedPage /> }.into_any(),
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
    /// Loads the part of this page, unless it is loaded. A failure is ignored here: showing the page tries again and
    /// reports it.
    async fn load(self) {
        let _ = match self {
            Self::Review | Self::Selected => load_review().await,
            _ => load_pages().await,
        };
    }

    async fn view(self, again: Callback<()>) -> AnyView {
        let view = match self {
            Self::Review | Self::Selected => review(self).await,
            _ => page(self).await,
        };
        view.unwrap_or_else(|_| view! { <NotLoaded again /> }.into_any())
    }

    /// The heading of the page; `None` if it is known only once the page is loaded.
    fn heading(self) -> Option<&'static str> {
        match self {
            Self::Decided => Some("Decided by me"),
            Self::Runs => Some("Runs"),
            Self::Flows => Some("Flows"),
            Self::Insights => Some("Insights"),
            Self::Audit => Some("Audit"),
            Self::People if untrack(|| expect_context::<Session>().may(Act::ManagePeople)) => Some("People"),
            Self::People => Some("You"),
            Self::Review | Self::Selected | Self::Run | Self::Flow => None,
        }
    }
}

/// Loads the review pane before a review is opened, after the current content is painted.
pub fn load_review_ahead() {
    spawn_local(async {
        after_paint().await;
        LazyPage::Review.load().await;
    });
}

/// Shows a page as soon as its part of the program is loaded.
#[component]
pub fn LazyPageView(page: LazyPage) -> impl IntoView {
    let loaded = LocalResource::new(move || page.load());
    let again = Callback::new(move |()| loaded.refetch());
    // No `Suspense`: it would create a page before it is on screen, when its heading cannot take the focus.
    move || match loaded.get() {
        None => view! { <OnItsWay page /> }.into_any(),
        Some(()) => Suspend::new(page.view(again)).into_any(),
    }
}

/// The placeholder for a page that is being loaded, with the same layout.
#[component]
fn OnItsWay(page: LazyPage) -> impl IntoView {
    if matches!(page, LazyPage::Review | LazyPage::Selected) {
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

/// The error when a part cannot be loaded. Trying again reloads the whole console, since the server may have a newer
/// one without this part. When a lost connection is back, `again` loads only the part.
#[component]
fn NotLoaded(again: Callback<()>) -> impl IntoView {
    expect_context::<Live>().on_return(move || again.run(()));
    let problem = Problem::new(Code::Unavailable)
        .detail("The server could not be reached, or it has a newer version of the console.");
    // If that fails too, the browser shows its own error page.
    let retry = Callback::new(|()| drop(location().reload()));
    view! { <Failed title="This page could not be loaded" problem retry /> }
}
