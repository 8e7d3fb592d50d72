//! The application: what every page can ask for (session, API, live socket, notices), and which address shows which page.

use leptos::prelude::*;

use crate::client::address::{NavigateOptions, use_location, use_navigate};
use crate::client::{Live, Session, provide_client};
use crate::components::notice::Notices;
use crate::components::shell::Shell;
use crate::pages::{
    audit::AuditPage, flow::FlowPage, flows::FlowsPage, inbox::InboxPage, login::LoginPage, not_found::NotFoundPage,
    people::PeoplePage, run::RunPage, runs::RunsPage,
};

/// What an address shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Page {
    Login,
    Home,
    /// For the list and for a deep link, so that opening a review does not build it anew.
    Inbox,
    Runs,
    Run,
    Flows,
    Flow,
    Audit,
    People,
    Unknown,
}

impl Page {
    fn at(path: &str) -> Self {
        let mut parts = path.split('/').filter(|part| !part.is_empty());
        match (parts.next(), parts.next(), parts.next()) {
            (None, ..) => Self::Home,
            (Some("login"), None, _) => Self::Login,
            (Some("inbox"), None, _) | (Some("reviews"), Some(_), None) => Self::Inbox,
            (Some("runs"), None, _) => Self::Runs,
            (Some("runs"), Some(_), None) => Self::Run,
            (Some("flows"), None, _) => Self::Flows,
            (Some("flows"), Some(_), None) => Self::Flow,
            (Some("audit"), None, _) => Self::Audit,
            (Some("people"), None, _) => Self::People,
            _ => Self::Unknown,
        }
    }

    fn view(self) -> AnyView {
        match self {
            Self::Login => view! { <LoginPage /> }.into_any(),
            Self::Home => {
                use_navigate()("/inbox", NavigateOptions { replace: true, scroll: true });
                ().into_any()
            }
            Self::Inbox => view! { <InboxPage /> }.into_any(),
            Self::Runs => view! { <RunsPage /> }.into_any(),
            Self::Run => view! { <RunPage /> }.into_any(),
            Self::Flows => view! { <FlowsPage /> }.into_any(),
            Self::Flow => view! { <FlowPage /> }.into_any(),
            Self::Audit => view! { <AuditPage /> }.into_any(),
            Self::People => view! { <PeoplePage /> }.into_any(),
            Self::Unknown => view! { <NotFoundPage /> }.into_any(),
        }
    }
}

/// The whole console.
#[component]
pub fn App() -> impl IntoView {
    provide_client();
    let address = use_location();
    let page = Memo::new(move |_| address.pathname.with(|path| Page::at(path)));
    // The frame stays while the pages in it change.
    let alone = Memo::new(move |_| Some(page.get()).filter(|page| matches!(page, Page::Login | Page::Unknown)));
    view! {
        {move || match alone.get() {
            Some(page) => dynamic(move || page.view()),
            None => dynamic(move || view! { <Inside page=page /> }),
        }}
        <Notices />
    }
}

/// What only somebody who is logged in sees. Asks who that is, and opens the live socket.
#[component]
fn Inside(page: Memo<Page>) -> impl IntoView {
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
    view! {
        <Shell>
            {move || {
                let page = page.get();
                dynamic(move || page.view())
            }}
        </Shell>
    }
}

#[cfg(test)]
mod tests {
    use super::Page;

    #[test]
    fn addresses_show_their_pages() {
        let all =
            ["/", "/login", "/inbox", "/reviews/1", "/runs/", "/runs/1", "/flows/a", "/people", "/runs/1/2", "/x"];
        let shown = all.map(Page::at);
        assert_eq!(
            shown,
            [
                Page::Home,
                Page::Login,
                Page::Inbox,
                Page::Inbox,
                Page::Runs,
                Page::Run,
                Page::Flow,
                Page::People,
                Page::Unknown,
                Page::Unknown
            ]
        );
    }
}
