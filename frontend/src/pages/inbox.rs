//! The inbox: the list, beside which `review` shows the review that is read.

use gloo_timers::callback::Timeout;
use leptos::html;
use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::components::Outlet;
use leptos_router::hooks::{use_location, use_navigate, use_query_map};
use shared::access::Principal;
use shared::api::ReviewQuery;
use shared::client::query_string;
use shared::id::ReviewId;
use wasm_bindgen::JsCast;

use super::lazy::load_review_ahead;
use super::review::back_to_the_list;
use crate::client::{Connection, Live, ReviewList, Session};
use crate::components::arrival::{self, Arrival};
use crate::components::filters::InboxFilters;
use crate::components::focus::focus_on;
use crate::components::queue::{Queue, ToMoreUrgent};
use crate::components::shortcuts::is_free;
use crate::components::states::{Empty, Failed, Loading};
use crate::state::inbox::{Inbox, Numbers, address};
use crate::state::words::{count, thousands};

/// How long one stands on a row before it is read, in milliseconds: who walks on is not held up by what they pass.
const PAUSE: u32 = 60;

/// The list of reviews (`/inbox`), and beside it the review that is open (`/reviews/{id}`).
#[component]
pub fn InboxPage() -> impl IntoView {
    let live = Live::expect();
    let session = Session::expect();
    let list = ReviewList::expect();
    let navigate = StoredValue::new(use_navigate());
    let location = use_location();
    let reading = Memo::new(move |_| location.pathname.with(|path| path.starts_with("/reviews/")));
    let open = Memo::new(move |_| {
        location.pathname.with(|path| path.strip_prefix("/reviews/").and_then(|id| id.parse::<ReviewId>().ok()))
    });
    let arrival = Arrival::expect();
    let heading = arrival::heading::<html::H1>();
    provide_context(Heading(heading));
    let at = RwSignal::new(open.get_untracked());
    let field = NodeRef::<html::Input>::new();

    // What is shown stands in the address.
    let parts = use_query_map();
    let query = Memo::new(move |_| {
        parts.with(|parts| address::read(parts.into_iter().map(|(name, value)| (name.as_ref(), value))))
    });
    let search = Memo::new(move |_| query.with(query_string));
    let go = move |path: &str, query: &ReviewQuery, replace: bool| {
        let options = NavigateOptions { replace, scroll: false, ..NavigateOptions::default() };
        navigate.with_value(|navigate| navigate(&format!("{path}{}", query_string(query)), options));
    };
    let change = move |(query, replace): (ReviewQuery, bool)| go(&location.pathname.get_untracked(), &query, replace);
    let filtered = Memo::new(move |_| query.with(|query| *query != ReviewQuery::default()));
    let shown = move || {
        // Also whenever what was told is no beginning any more, and whenever one's rights change.
        live.renewed.track();
        let (query, viewer) = (query.get(), session.principal());
        viewer.map(|viewer| (query, viewer))
    };
    let show = move |shown: Option<(ReviewQuery, Principal)>| {
        if let Some((query, viewer)) = shown {
            list.show(query, viewer);
        }
    };
    // Where the page has the list already, nothing is built that waits for it.
    show(untrack(shown));
    Effect::new(move |before: Option<()>| {
        let shown = shown();
        if before.is_some() {
            show(shown);
        }
    });
    Effect::new(move |_| live.inbox.update(|inbox| inbox.read_now(open.get())));
    on_cleanup(move || live.inbox.update(Inbox::leave));
    let doubtful = Memo::new(move |_| live.inbox.with(Inbox::is_doubtful));
    Effect::new(move |_| {
        if doubtful.get() {
            list.again_soon();
        }
    });
    let changes = Memo::new(move |_| live.inbox.with(Inbox::changes));
    Effect::new(move |before: Option<u64>| {
        let changes = changes.get();
        if before.is_some_and(|before| before != changes) {
            list.count();
        }
        changes
    });
    // Deadlines come nearer and claims run out without anything being told.
    let minute = Memo::new(move |_| live.now.get().0 / 60_000_000);
    let is_open = Memo::new(move |_| live.connection.get() == Connection::Open);
    Effect::new(move |before: Option<(i64, bool)>| {
        let now = (minute.get(), is_open.get());
        let by_clock =
            query.with_untracked(|query| query.due.is_some() || query.age.is_some() || query.assigned.is_some());
        if before.is_some_and(|before| before != now) && now.1 {
            if by_clock || list.error.with_untracked(Option::is_some) {
                list.again();
            }
            list.count();
        }
        now
    });

    let numbers = Memo::new(move |_| live.inbox.with(Inbox::numbers));
    let total = Memo::new(move |_| {
        if filtered.get() {
            list.facets.with(|facets| facets.as_ref().map(|facets| facets.total))
        } else {
            numbers.get().map(|numbers| numbers.pending)
        }
    });
    let summary = move || {
        let Some(numbers) = numbers.get() else { return String::new() };
        let mark =
            if list.facets.with(|facets| facets.as_ref().is_some_and(|facets| facets.at_least)) { "+" } else { "" };
        match total.get().filter(|_| filtered.get()) {
            Some(total) => format!("{}{mark} of {}", thousands(total), numbers.says()),
            None => numbers.says_mine(),
        }
    };
    // What comes is read out, once for all that came together.
    let arrivals = Memo::new(move |before: Option<&(Option<Numbers>, String)>| {
        let now = numbers.get();
        let text = match (before, now) {
            (Some((Some(known), _)), Some(now)) if now.pending > known.pending => {
                let number = usize::try_from(now.pending - known.pending).unwrap_or(usize::MAX);
                format!("{} arrived, {}", count(number, "review", "reviews"), now.says())
            }
            // What was said stays until there is something else to say: what is taken away at once is never read out.
            (Some((known, text)), _) if now == *known => text.clone(),
            _ => String::new(),
        };
        (now, text)
    });

    let read = move |id: ReviewId| {
        // Who reads one after the other goes back to the list by one step.
        go(&format!("/reviews/{id}"), &query.get_untracked(), open.get_untracked().is_some());
    };
    let back = back_to_the_list();
    Effect::new(move |_| {
        if let Some(id) = open.get() {
            at.set(Some(id));
        }
    });
    // Where one walks to is read when one stands there.
    let walk = StoredValue::new_local(None::<Timeout>);
    let read_where_one_is = move || {
        walk.set_value(None);
        if let Some(id) = at.get_untracked().filter(|id| open.get_untracked() != Some(*id)) {
            arrival.keep_focus();
            read(id);
        }
    };
    let step = move |by: isize| {
        let Some(id) = live.inbox.with_untracked(|inbox| inbox.beside(at.get_untracked(), by)) else { return };
        at.set(Some(id));
        focus_row(id);
        // Beside the list there is room to read at once; on a phone the list stays.
        if open.get_untracked().is_some() || wide() {
            walk.set_value(Some(Timeout::new(PAUSE, read_where_one_is)));
        }
    };
    let keys = window_event_listener(leptos::ev::keydown, move |event| {
        if event.key() == "Escape" && !event.default_prevented() {
            let focused =
                document().active_element().and_then(|element| element.dyn_into::<web_sys::HtmlElement>().ok());
            match focused.filter(|element| element.tag_name() != "BODY") {
                Some(element) if !is_free(&event) => drop(element.blur()),
                _ if is_free(&event) && open.get_untracked().is_some() && !wide() => back.run(()),
                _ => {}
            }
            return;
        }
        if !is_free(&event) {
            return;
        }
        match event.key().as_str() {
            "j" | "ArrowDown" if !in_pane(&event) || event.key() == "j" => step(1),
            "k" | "ArrowUp" if !in_pane(&event) || event.key() == "k" => step(-1),
            "/" => drop(field.get_untracked().map(|field| field.focus())),
            // What is on screen is not yet what one has walked to: no key decides it.
            _ if walk.with_value(Option::is_some) => read_where_one_is(),
            "Enter" if on_body(&event) || on_row(&event) => match at.get_untracked() {
                Some(id) if open.get_untracked() != Some(id) => read(id),
                _ => focus_on(".read"),
            },
            _ => return,
        }
        event.prevent_default();
    });
    on_cleanup(move || {
        keys.remove();
        walk.set_value(None);
    });

    let (above, scroller) = (RwSignal::new(0), NodeRef::<html::Div>::new());
    // Memos, so that the list is not made anew, and does not lose its place and the focus, whenever a row changes.
    let is_read = Memo::new(move |_| live.inbox.with(|inbox| inbox.window().is_read()));
    let none = Memo::new(move |_| live.inbox.with(|inbox| inbox.window().rows().is_empty()));
    // The rows are what one came for; whoever opens one finds the rest already there.
    Effect::new(move |_| {
        if is_read.get() {
            load_review_ahead();
        }
    });
    let clear = move |_| change((ReviewQuery::default(), false));
    let empty = move || {
        if filtered.get() {
            view! {
                <Empty icon=icondata::LuSearch title="No matches">
                    <p>"No pending review fits these filters."</p>
                    <button class="b" on:click=clear>"Show all"</button>
                </Empty>
            }
            .into_any()
        } else {
            view! {
                <Empty icon=icondata::LuCheckCheck title="Nothing is waiting for you">
                    <p>"New reviews appear here automatically."</p>
                </Empty>
            }
            .into_any()
        }
    };
    let again = Callback::new(move |()| list.again());
    let unread = move || {
        let problem = list.error.get()?;
        Some(view! { <Failed title="The inbox could not be loaded" problem retry=again /> })
    };
    let partly = move || {
        let problem = list.error.get().filter(|_| is_read.get())?;
        Some(view! {
            <div class="banner warn partly" role="alert">
                <span class="grow">{format!("The list may be out of date: {problem}")}</span>
                <button class="b sm" on:click=move |_| again.run(())>"Try again"</button>
            </div>
        })
    };
    view! {
        <div class="inbox" class:reading=reading>
            <section class="list" aria-label="Inbox" aria-busy=move || list.busy.get().to_string()>
                <header>
                    <div class="list-title">
                        <h1 node_ref=heading tabindex="-1">"Inbox "<small>{summary}</small></h1>
                        <ToMoreUrgent above scroller />
                    </div>
                    <InboxFilters query change=change field />
                    {partly}
                </header>
                <span class="sr" role="status" aria-live="polite">{move || arrivals.get().1}</span>
                {move || match (is_read.get(), none.get()) {
                    (false, _) if list.error.with(Option::is_some) => unread.into_any(),
                    (false, _) => view! { <Loading rows=9 /> }.into_any(),
                    (true, true) => empty().into_any(),
                    (true, false) => view! { <Queue open at search total above scroller /> }.into_any(),
                }}
            </section>
            <Outlet />
        </div>
    }
}

/// The heading of the list, which has the focus when one comes back to it.
#[derive(Clone, Copy)]
struct Heading(NodeRef<html::H1>);

/// Beside the list, while no review is open.
#[component]
pub fn IdlePane() -> impl IntoView {
    let live = Live::expect();
    arrival::counted_title(
        move || live.inbox.with(Inbox::numbers).map_or(0, |numbers| numbers.blocking()),
        || "Inbox".to_owned(),
    );
    arrival::focus_on_arrival(expect_context::<Heading>().0);
    view! {
        <article class="read idle">
            <Empty icon=icondata::LuInbox title="Choose a review to read it">
                <p><kbd>"j"</kbd>" and "<kbd>"k"</kbd>" move, "<kbd>"?"</kbd>" shows all keys."</p>
            </Empty>
        </article>
    }
}

/// Whether list and pane stand beside each other.
fn wide() -> bool {
    let query = window().match_media("(min-width: 761px)").ok().flatten();
    query.is_none_or(|query| query.matches())
}

fn target(event: &web_sys::KeyboardEvent) -> Option<web_sys::Element> {
    event.target()?.dyn_into().ok()
}

/// Whether the focus is in the pane, whose own scrolling the arrow keys do.
fn in_pane(event: &web_sys::KeyboardEvent) -> bool {
    target(event).is_some_and(|target| target.closest(".read").ok().flatten().is_some())
}

/// Whether nothing has the focus that Enter would press.
fn on_body(event: &web_sys::KeyboardEvent) -> bool {
    target(event).is_none_or(|target| target.closest("a, button, summary").ok().flatten().is_none())
}

/// Whether a row of the list has the focus.
fn on_row(event: &web_sys::KeyboardEvent) -> bool {
    target(event).is_some_and(|target| target.closest(".rows .row").ok().flatten().is_some())
}

/// Gives the focus to a row, which stands where it is.
fn focus_row(id: ReviewId) {
    let row = document().get_element_by_id(&format!("row-{id}"));
    if let Some(row) = row.and_then(|row| row.dyn_into::<web_sys::HtmlElement>().ok()) {
        let options = web_sys::FocusOptions::new();
        options.set_prevent_scroll(true);
        // What cannot have the focus leaves it where it is.
        drop(row.focus_with_options(&options));
    }
}
