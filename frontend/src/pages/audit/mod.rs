//! The record: who did what, when, and on which content. Newest first, filtered by the address. For admins.

mod detail;
mod filter;
mod seal;

use crate::client::address::use_query_map;
use leptos::prelude::*;
use leptos::task::spawn_local;
use shared::access::{Access, Act};
use shared::api::AuditQuery;
use shared::error::Problem;
use shared::log::Entry;

use self::detail::Detail;
use self::filter::{Filter, Filters};
use self::seal::Seal;
use crate::client::{Session, use_api};
use crate::components::glyph::Glyph;
use crate::components::states::{Empty, Failed, Loading};
use crate::components::time::full;
use crate::state::story::{Tone, told};

/// What has been loaded for one filter.
#[derive(Debug, Clone, Default, PartialEq)]
struct Loaded {
    ready: bool,
    busy: bool,
    problem: Option<Problem>,
    entries: Vec<Entry>,
    next: Option<String>,
}

/// The page `/audit`.
#[component]
pub fn AuditPage() -> impl IntoView {
    let session = Session::expect();
    let access = Memo::new(move |_| session.access(Act::ReadAudit));
    move || {
        match access.get() {
        Access::Allowed => view! { <Audit/> }.into_any(),
        Access::Denied(_) => view! {
            <Empty icon=icondata::LuShield title="The audit is for admins">
                <p>"It shows everything that everybody did, whatever it was about. What you decided yourself stays in your reviews; an admin can look up the rest for you."</p>
                <a href="/inbox" class="b">"To the inbox"</a>
            </Empty>
        }
        .into_any(),
        Access::Hidden => view! { <Loading/> }.into_any(),
    }
    }
}

#[component]
fn Audit() -> impl IntoView {
    let api = use_api();
    let query = use_query_map();
    let filter = Memo::new(move |_| query.with(Filter::from_address));
    let loaded = RwSignal::new(Loaded::default());
    let turn = StoredValue::new(0_u64);
    let load = move |more: bool| {
        let cursor = if more { loaded.with_untracked(|loaded| loaded.next.clone()) } else { None };
        let query = AuditQuery { cursor, ..filter.get_untracked().query() };
        turn.update_value(|turn| *turn += 1);
        let mine = turn.get_value();
        loaded.update(|loaded| {
            loaded.busy = true;
            loaded.problem = None;
        });
        spawn_local(async move {
            let answer = api.audit(&query).await;
            // Another filter has been chosen, or the page has gone.
            if turn.try_get_value() != Some(mine) {
                return;
            }
            loaded.update(|loaded| {
                loaded.busy = false;
                match answer {
                    Ok(page) => {
                        loaded.ready = true;
                        if !more {
                            loaded.entries.clear();
                        }
                        loaded.entries.extend(page.items);
                        loaded.next = page.next_cursor;
                    }
                    Err(problem) => loaded.problem = Some(problem),
                }
            });
        });
    };
    Effect::new(move |_| {
        filter.track();
        loaded.update(|loaded| loaded.ready = false);
        load(false);
    });
    let ready = Memo::new(move |_| loaded.with(|loaded| loaded.ready));
    let problem = Memo::new(move |_| loaded.with(|loaded| loaded.problem.clone()));
    let none = Memo::new(move |_| loaded.with(|loaded| loaded.entries.is_empty()));
    let body = move || {
        if let (Some(problem), false) = (problem.get(), ready.get()) {
            let retry = Callback::new(move |()| load(false));
            return view! { <Failed title="The audit could not be loaded" problem retry/> }.into_any();
        }
        if !ready.get() {
            return view! { <Loading rows=10/> }.into_any();
        }
        if none.get() {
            return view! {
                <Empty icon=icondata::LuListFilter title="Nothing on record is like this">
                    <p>"Take away a filter, or make the time longer."</p>
                    <a href="/audit" class="b">"Show everything"</a>
                </Empty>
            }
            .into_any();
        }
        view! {
            <ol class="card audit-list">
                // One commit may tell several things.
                <For each=move || loaded.with(|loaded| loaded.entries.clone().into_iter().enumerate()) key=|(at, entry)| (*at, entry.cursor.clone()) let:row>
                    <Row entry=row.1/>
                </For>
            </ol>
        }
        .into_any()
    };
    let export = move |format: &'static str| move || filter.with(|filter| filter.export(format));
    view! {
        <section class="page audit">
            <header>
                <h1 class="grow">"Audit"</h1>
                <a class="b" href=export("csv") download="audit.csv"><Glyph icon=icondata::LuDownload/>"CSV"</a>
                <a class="b" href=export("jsonl") download="audit.jsonl"><Glyph icon=icondata::LuDownload/>"JSONL"</a>
                <Seal/>
                <Filters filter/>
            </header>
            <div class="in">
                {body}
                <Show when=move || { ready.get() && loaded.with(|loaded| loaded.next.is_some()) }>
                    <div class="more">
                        <button class="b" disabled=move || loaded.with(|loaded| loaded.busy) on:click=move |_| load(true)>"Load older entries"</button>
                        {move || problem.get().map(|problem| view! { <p class="mistake" role="alert">{problem.to_string()}</p> })}
                    </div>
                </Show>
            </div>
        </section>
    }
}

#[component]
fn Row(entry: Entry) -> impl IntoView {
    let open = RwSignal::new(false);
    let (what, tone) = told(&entry);
    let class = match tone {
        Tone::Go => "dot-mark go",
        Tone::Again => "dot-mark warn",
        Tone::Stop => "dot-mark stop",
        Tone::Plain => "dot-mark",
    };
    let event = &entry.event;
    let (at, kind) = (event.at, event.kind.as_str());
    // A run's id begins with its time: the end tells runs apart.
    let run = event.run_id.map(|run| run.to_string().chars().skip(28).collect::<String>());
    let who = match &event.actor {
        Some(actor) => view! { <b>{actor.to_string()}</b> }.into_any(),
        None => view! { <span class="muted">"Countersign"</span> }.into_any(),
    };
    let entry = StoredValue::new(entry);
    view! {
        <li class:open=move || open.get()>
            <button class="audit-row" aria-expanded=move || open.get().to_string() on:click=move |_| open.update(|open| *open = !*open)>
                <Glyph icon=icondata::LuChevronRight/>
                <time datetime=at.to_string()>{full(at)}</time>
                <span class="audit-what"><i class=class aria-hidden="true"></i>{who}" "{what}</span>
                <span class="audit-run">{run.map(|run| view! { "run "<code>{run}</code> })}</span>
                <code>{kind}</code>
            </button>
            <Show when=move || open.get()><Detail entry/></Show>
        </li>
    }
}
