//! The inbox: the list, and the review that is read.

use gloo_timers::future::TimeoutFuture;
use leptos::html;
use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos_router::NavigateOptions;
use leptos_router::components::Outlet;
use leptos_router::hooks::{use_location, use_navigate, use_params};
use leptos_router::params::Params;
use shared::access::Act;
use shared::id::ReviewId;
use wasm_bindgen::JsCast;

use crate::client::{Connection, Live, Session};
use crate::components::arrival::{self, Arrival};
use crate::components::glyph::Glyph;
use crate::components::help::is_free;
use crate::components::queue::Queue;
use crate::components::review::ReviewPane;
use crate::components::states::{Empty, Loading, focus_on};
use crate::state::filter::{Chip, finds};
use crate::state::inbox::{Inbox, Row};
use crate::state::words::count;

/// The inbox.
#[component]
pub fn InboxPage() -> impl IntoView {
    let live = Live::expect();
    let session = Session::expect();
    let navigate = use_navigate();
    let location = use_location();
    let reading = Memo::new(move |_| location.pathname.with(|path| path.starts_with("/reviews/")));
    let open = Memo::new(move |_| {
        location.pathname.with(|path| path.strip_prefix("/reviews/").and_then(|id| id.parse::<ReviewId>().ok()))
    });
    let arrival = Arrival::expect();
    let heading = arrival::heading::<html::H1>();
    provide_context(Heading(heading));
    let at = RwSignal::new(open.get_untracked());
    let chip = RwSignal::new(Chip::All);
    let search = RwSignal::new(String::new());
    let field = NodeRef::<html::Input>::new();

    let rows = Memo::new(move |_| {
        let chip = chip.get();
        // Only the chip that looks at the clock follows it.
        let now = if chip == Chip::DueSoon { live.now.get() } else { live.now.get_untracked() };
        search.with(|search| {
            live.inbox.with(|inbox| {
                let mine = |row: &Row| session.may(Act::Decide(&row.review));
                let shown = |row: &&Row| {
                    // What is open stays, whatever is searched for.
                    Some(row.review.id) == open.get()
                        || (chip.lets_through(&row.review, chip == Chip::Mine && mine(row), now)
                            && finds(&row.review, search))
                };
                inbox.list().into_iter().filter(shown).cloned().collect::<Vec<_>>()
            })
        })
    });
    let loaded = Memo::new(move |_| live.inbox.with(Inbox::is_loaded));
    let mine = Memo::new(move |_| {
        live.inbox.with(|inbox| {
            inbox
                .list()
                .iter()
                .filter(|row| row.review.is_pending() && !row.gone && session.may(Act::Decide(&row.review)))
                .count()
        })
    });
    let summary = move || {
        let pending = live.inbox.with(Inbox::pending);
        let mine = mine.get();
        if !loaded.get() {
            String::new()
        } else if u64::try_from(mine).is_ok_and(|mine| mine == pending) {
            format!("{pending} pending")
        } else {
            format!("{pending} pending, {mine} yours")
        }
    };
    // Rows of what was resolved leave after a while.
    Effect::new(move |_| {
        let now = live.now.get();
        let open = open.get();
        if live.inbox.with_untracked(|inbox| inbox.needs_sweep(now, open)) {
            live.inbox.update(|inbox| inbox.sweep(now, open));
        }
    });
    // What comes is read out, once for all that came together.
    let arrivals = Memo::new(move |before: Option<&(u64, String)>| {
        let pending = live.inbox.with(|inbox| if inbox.is_loaded() { inbox.pending() } else { 0 });
        let text = match before {
            Some((known, _)) if loaded.get_untracked() && pending > *known => {
                let number = usize::try_from(pending - known).unwrap_or(usize::MAX);
                format!("{} arrived, {pending} pending", count(number, "review", "reviews"))
            }
            // What was said stays until there is something else to say: what is taken away at once is never read out.
            Some((known, text)) if pending == *known => text.clone(),
            _ => String::new(),
        };
        (pending, text)
    });

    let read = Callback::new(move |id: ReviewId| {
        navigate(&format!("/reviews/{id}"), NavigateOptions { scroll: false, ..NavigateOptions::default() });
    });
    let back = back_to_the_list();
    Effect::new(move |_| {
        if let Some(id) = open.get() {
            at.set(Some(id));
        }
    });
    // Where one stands is in sight, also after a link.
    Effect::new(move |_| {
        let (true, Some(id)) = (loaded.get(), at.get()) else { return };
        spawn_local(async move {
            TimeoutFuture::new(0).await;
            if let Some(row) = document().get_element_by_id(&format!("row-{id}")) {
                let options = web_sys::ScrollIntoViewOptions::new();
                options.set_block(web_sys::ScrollLogicalPosition::Nearest);
                row.scroll_into_view_with_scroll_into_view_options(&options);
            }
        });
    });
    let step = move |by: isize| {
        let ids: Vec<_> = rows.with_untracked(|rows| rows.iter().map(|row| row.review.id).collect());
        let here = at.get_untracked().and_then(|at| ids.iter().position(|id| *id == at));
        let next = match here {
            Some(here) => here.saturating_add_signed(by).min(ids.len().saturating_sub(1)),
            None => 0,
        };
        let Some(id) = ids.get(next).copied() else { return };
        at.set(Some(id));
        // Beside the list there is room to read at once; on a phone the list stays.
        let reads = open.get_untracked().is_some() || wide();
        if reads && open.get_untracked() != Some(id) {
            arrival.keep_focus();
            read.run(id);
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
            "Enter" if on_body(&event) => match at.get_untracked() {
                Some(id) if open.get_untracked() != Some(id) => read.run(id),
                _ => focus_on(".read"),
            },
            "/" => drop(field.get_untracked().map(|field| field.focus())),
            _ => return,
        }
        event.prevent_default();
    });
    on_cleanup(move || keys.remove());

    // Memos, so that the list is not made anew, and does not lose its place and the focus, whenever a row changes.
    let opening =
        Memo::new(move |_| !loaded.get() && matches!(live.connection.get(), Connection::Opening | Connection::Closed));
    let none = Memo::new(move |_| rows.with(Vec::is_empty));
    let empty = move || {
        let filtered = chip.get() != Chip::All || !search.with(|search| search.trim().is_empty());
        if filtered {
            let clear = move |_| {
                chip.set(Chip::All);
                search.set(String::new());
            };
            view! {
                <Empty icon=icondata::LuSearch title="Nothing fits">
                    <p>"No pending review fits this search."</p>
                    <button class="b" on:click=clear>"Show all"</button>
                </Empty>
            }
            .into_any()
        } else {
            view! {
                <Empty icon=icondata::LuCheckCheck title="Nothing waits for you">
                    <p>"New reviews appear here by themselves."</p>
                </Empty>
            }
            .into_any()
        }
    };
    view! {
        <div class="inbox" class:reading=reading>
            <section class="list" aria-label="Inbox">
                <header>
                    <h1 node_ref=heading tabindex="-1">"Inbox "<small>{summary}</small></h1>
                    <label class="search">
                        <Glyph icon=icondata::LuSearch />
                        <input
                            node_ref=field
                            type="search"
                            placeholder="Search"
                            aria-label="Search the inbox"
                            bind:value=search
                        />
                        <kbd aria-hidden="true">"/"</kbd>
                    </label>
                    <div class="chips" role="group" aria-label="Which reviews">
                        {Chip::ALL
                            .map(|own| {
                                view! {
                                    <button
                                        class="chip"
                                        aria-pressed=move || (chip.get() == own).to_string()
                                        on:click=move |_| chip.set(own)
                                    >
                                        {own.label()}
                                    </button>
                                }
                            })
                            .collect_view()}
                    </div>
                </header>
                <span class="sr" role="status" aria-live="polite">{move || arrivals.get().1}</span>
                {move || match (opening.get(), none.get()) {
                    (true, _) => view! { <Loading rows=9 /> }.into_any(),
                    (_, true) => empty().into_any(),
                    _ => view! { <Queue rows=rows open=open at=at /> }.into_any(),
                }}
            </section>
            <Outlet />
        </div>
    }
}

/// The heading of the list, which has the focus when one comes back to it.
#[derive(Clone, Copy)]
struct Heading(NodeRef<html::H1>);

#[derive(Params, PartialEq)]
struct ReviewParams {
    id: ReviewId,
}

fn back_to_the_list() -> Callback<()> {
    let navigate = use_navigate();
    Callback::new(move |()| navigate("/inbox", NavigateOptions { scroll: false, ..NavigateOptions::default() }))
}

/// Beside the list, while no review is open.
#[component]
pub fn IdlePane() -> impl IntoView {
    let live = Live::expect();
    arrival::counted_title(move || live.inbox.with(Inbox::pending), || "Inbox".to_owned());
    arrival::focus_on_arrival(expect_context::<Heading>().0);
    view! {
        <article class="read idle">
            <Empty icon=icondata::LuInbox title="Choose a review to read it">
                <p><kbd>"j"</kbd>" and "<kbd>"k"</kbd>" move, "<kbd>"?"</kbd>" shows all keys."</p>
            </Empty>
        </article>
    }
}

/// Beside the list, or in its place on a narrow screen: the review that the address names.
#[component]
pub fn OpenPane() -> impl IntoView {
    let params = use_params::<ReviewParams>();
    let id = Memo::new(move |_| params.with(|params| params.as_ref().ok().map(|params| params.id)));
    let back = back_to_the_list();
    move || match id.get() {
        Some(id) => view! { <ReviewPane id=id back=back /> }.into_any(),
        None => view! {
            <article class="read">
                <Empty icon=icondata::LuSearch title="This is not the address of a review">
                    <button class="b" on:click=move |_| back.run(())>"To the inbox"</button>
                </Empty>
            </article>
        }
        .into_any(),
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
