//! The inbox: the list, with the open review beside it (see `review`).

mod current;
mod default_view;
mod keys;
mod summary;

use leptos::html;
use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::components::Outlet;
use leptos_router::hooks::{use_location, use_navigate};
use shared::api::ReviewQuery;
use shared::client::query_string;
use shared::id::ReviewId;

use self::current::keep_current;
use self::default_view::use_filter;
use self::keys::{Keys, use_keys};
use self::summary::{Arrivals, Summary};
use super::lazy::load_review_ahead;
use super::review::back_to_the_list;
use crate::client::{Live, ReviewList};
use crate::components::arrival;
use crate::components::filters::InboxFilters;
use crate::components::glyph::Glyph;
use crate::components::queue::{Queue, ToMoreUrgent};
use crate::components::scroll::came_back;
use crate::components::selecting::{Selecting, SelectionBar};
use crate::components::states::{Empty, Failed, Loading, OutOfDate};
use crate::state::inbox::{Inbox, address};

/// The path of the list.
const INBOX: &str = "/inbox";

/// The list of reviews (`/inbox`), and beside it the review that is open (`/reviews/{id}`).
#[component]
pub fn InboxPage() -> impl IntoView {
    let live = expect_context::<Live>();
    let list = expect_context::<ReviewList>();
    let navigate = StoredValue::new(use_navigate());
    let location = use_location();
    let on_selected = Memo::new(move |_| location.pathname.with(|path| path == address::SELECTED));
    let reading = Memo::new(move |_| location.pathname.with(|path| path.starts_with("/reviews/")) || on_selected.get());
    let open = Memo::new(move |_| location.pathname.with(|path| address::review_at(path)));
    let heading = arrival::heading::<html::H1>();
    provide_context(Heading(heading));
    let selecting = Selecting::new(on_selected);
    provide_context(selecting);
    let at = RwSignal::new(open.get_untracked());
    let field = NodeRef::<html::Input>::new();

    let go = move |path: &str, query: &ReviewQuery, replace: bool| {
        let options = NavigateOptions { replace, scroll: false, ..NavigateOptions::default() };
        navigate.with_value(|navigate| navigate(&format!("{path}{}", query_string(query)), options));
    };
    let untouched = move || {
        at.get_untracked().is_none() && selecting.selection.with_untracked(|selection| selection.shown().is_empty())
    };
    let query = use_filter(untouched, Callback::new(move |filter| go(INBOX, &filter, true)));
    let search = Memo::new(move |_| query.with(query_string));
    let change = move |(query, replace): (ReviewQuery, bool)| go(&location.pathname.get_untracked(), &query, replace);
    let filtered = Memo::new(move |_| query.with(|query| *query != ReviewQuery::default()));
    // An open review that is in the list is shown there, so the list keeps its position.
    let is_listed = open.get_untracked().is_some_and(|id| live.inbox.with_untracked(|inbox| inbox.index(id).is_some()));
    if !came_back() && !is_listed {
        list.begin_at_top();
    }
    keep_current(query);
    Effect::new(move |_| live.inbox.update(|inbox| inbox.read_now(open.get())));
    on_cleanup(move || live.inbox.update(Inbox::leave));

    let numbers = Memo::new(move |_| live.inbox.with(Inbox::numbers));
    let total = Memo::new(move |_| {
        if filtered.get() {
            list.facets.with(|facets| facets.as_ref().map(|facets| facets.total)).filter(|_| list.counted.get())
        } else {
            numbers.get().map(|numbers| numbers.pending)
        }
    });

    let read = Callback::new(move |id: ReviewId| {
        // Opening one review after another replaces the history entry, so that Back returns to the list.
        go(&format!("/reviews/{id}"), &query.get_untracked(), open.get_untracked().is_some());
    });
    Effect::new(move |_| {
        if let Some(id) = open.get() {
            at.set(Some(id));
        }
    });
    let decide_selected =
        Callback::new(move |()| go(address::SELECTED, &query.get_untracked(), open.get_untracked().is_some()));
    let back = back_to_the_list();
    use_keys(Keys { at, open, on_selected, selecting, search_field: field, read, decide: decide_selected, back });

    let (above, scroller) = (RwSignal::new(0), NodeRef::<html::Div>::new());
    // Memos, so that a change of one row does not create the list again, which would lose its position and the focus.
    let is_read = Memo::new(move |_| live.inbox.with(|inbox| inbox.window().is_read()));
    let none = Memo::new(move |_| live.inbox.with(|inbox| inbox.window().rows().is_empty()));
    // The rows come first; the code of the review pane is loaded once they are there.
    Effect::new(move |_| {
        if is_read.get() {
            load_review_ahead();
        }
    });
    let clear = Callback::new(move |()| change((ReviewQuery::default(), false)));
    let again = Callback::new(move |()| list.again());
    let not_loaded = move || {
        let problem = list.error.get()?;
        Some(view! { <Failed title="The inbox could not be loaded" problem retry=again /> })
    };
    let partly = Signal::derive(move || list.error.get().filter(|_| is_read.get()));
    view! {
        <div class="inbox" class:reading=reading>
            <section class="list" class:outdated=move || list.outdated.get() aria-label="Inbox" aria-busy=move || list.busy.get().to_string()>
                <header>
                    <div class="list-title">
                        <h1 node_ref=heading tabindex="-1">"Inbox "<small><Summary filtered total /></small></h1>
                        <a class="b sm ghost to-decided" href="/decided" title="Decided by me" aria-label="Decided by me">
                            <Glyph icon=icondata::LuHistory />
                            <span>"Decided by me"</span>
                        </a>
                        <ToMoreUrgent above scroller />
                    </div>
                    <InboxFilters query change=change field />
                    <OutOfDate what="The list" problem=partly retry=again />
                </header>
                <Arrivals />
                {move || match (is_read.get(), none.get()) {
                    (false, _) if list.error.with(Option::is_some) => not_loaded.into_any(),
                    (false, _) => view! { <Loading rows=9 /> }.into_any(),
                    // Nothing is said of a filter before the server has answered.
                    (true, true) if list.outdated.get() => view! { <Loading rows=9 /> }.into_any(),
                    (true, true) => view! { <NothingListed filtered clear /> }.into_any(),
                    (true, false) => view! { <Queue open at search total above scroller /> }.into_any(),
                }}
                <SelectionBar on_page=on_selected open=decide_selected />
            </section>
            <Outlet />
        </div>
    }
}

/// The notice in place of an empty list.
#[component]
fn NothingListed(filtered: Memo<bool>, clear: Callback<()>) -> impl IntoView {
    move || {
        if filtered.get() {
            view! {
                <Empty icon=icondata::LuSearch title="No matches" text="No pending reviews match these filters.">
                    <button class="b" on:click=move |_| clear.run(())>"Show all"</button>
                </Empty>
            }
            .into_any()
        } else {
            let text = "New reviews appear here automatically.";
            view! { <Empty icon=icondata::LuCheckCheck title="Nothing is waiting for you" text /> }.into_any()
        }
    }
}

/// The heading of the list, which is focused when a person returns to it.
#[derive(Clone, Copy)]
struct Heading(NodeRef<html::H1>);

/// The placeholder beside the list while no review is open.
#[component]
pub fn IdlePane() -> impl IntoView {
    let live = expect_context::<Live>();
    arrival::counted_title(
        move || live.inbox.with(Inbox::numbers).map_or(0, |numbers| numbers.blocking()),
        || "Inbox".to_owned(),
    );
    arrival::focus_on_arrival(expect_context::<Heading>().0);
    view! {
        <article class="read idle">
            <Empty icon=icondata::LuInbox title="Choose a review to read it">
                <p><kbd>"j"</kbd>" and "<kbd>"k"</kbd>" move, "<kbd>"x"</kbd>" selects, "<kbd>"?"</kbd>" shows all keys."</p>
            </Empty>
        </article>
    }
}
