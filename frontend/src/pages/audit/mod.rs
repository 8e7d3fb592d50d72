//! The audit log: who did what, when, and on which content. Newest first, with a filter in the address. For admins.

mod detail;
mod filter;
mod seal;

use leptos::html;
use leptos::prelude::*;
use shared::access::{Access, Act};
use shared::api::AuditQuery;
use shared::log::Entry;

use self::detail::Detail;
use self::filter::{AuditFilter, AuditFilters};
use self::seal::Seal;
use crate::client::{Session, use_api};
use crate::components::arrival;
use crate::components::glyph::Glyph;
use crate::components::inert::inert;
use crate::components::list_filter::use_filter;
use crate::components::pages::{PagedList, use_pages};
use crate::components::states::{Empty, Loading, Refresh};
use crate::components::time::At;
use crate::state::story::{EventTone, describe};
use crate::state::words;

#[component]
pub fn AuditPage() -> impl IntoView {
    let session = expect_context::<Session>();
    let access = Memo::new(move |_| session.access(Act::ReadAudit));
    move || match access.get() {
        Access::Allowed => view! { <Audit/> }.into_any(),
        Access::Denied(_) => view! {
            <Empty icon=icondata::LuShield title="The audit log is for admins" page=true
                text="The audit log shows all activity. Ask an admin for access." link=("/inbox", "Go to the inbox")/>
        }
        .into_any(),
        Access::Hidden => view! { <Loading/> }.into_any(),
    }
}

#[component]
fn Audit() -> impl IntoView {
    let api = use_api();
    let (filter, go) = use_filter::<AuditFilter>("/audit");
    arrival::title(|| "Audit".to_owned());
    let heading = arrival::heading::<html::H1>();
    let fetch = move |asked: AuditFilter, cursor: Option<String>| async move {
        api.audit(&AuditQuery { cursor, ..asked.query() }).await
    };
    let pages = use_pages(filter, fetch, |entry: &Entry| entry.event.at);
    let none = Memo::new(move |_| pages.with(|entries, _| entries.is_empty()));
    let rows = move || pages.with(|entries, _| entries.iter().cloned().enumerate().collect::<Vec<_>>());
    let list = move || {
        if none.get() {
            return view! {
                <Empty icon=icondata::LuListFilter title="No matches" text="Remove a filter or widen the dates." link=("/audit", "Show all")/>
            }
            .into_any();
        }
        view! {
            <ol class="card audit-list">
                // Entries of one commit have the same time, so the cursor is part of the key.
                <For each=rows key=|(at, entry)| (*at, entry.cursor.clone()) let:row>
                    <EntryRow entry=row.1/>
                </For>
            </ol>
        }
        .into_any()
    };
    let export = move |format: &'static str| move || filter.with(|filter| filter.export(format));
    view! {
        <section class="page audit">
            <header>
                <h1 node_ref=heading tabindex="-1" class="grow">"Audit"</h1>
                <Refresh press=move |()| pages.again()/>
                <a class="b" href=export("csv") download="audit.csv"><Glyph icon=icondata::LuDownload/>"CSV"</a>
                <a class="b" href=export("jsonl") download="audit.jsonl"><Glyph icon=icondata::LuDownload/>"JSONL"</a>
                <Seal/>
                <AuditFilters filter go/>
            </header>
            <div class="in">
                <PagedList pages failed="The audit log could not be loaded" older="Load older entries">{list}</PagedList>
            </div>
        </section>
    }
}

#[component]
fn EntryRow(entry: Entry) -> impl IntoView {
    let open = RwSignal::new(false);
    let (what, tone) = describe(&entry);
    let class = match tone {
        EventTone::Go => "dot-mark go",
        EventTone::Again => "dot-mark warn",
        EventTone::Stop => "dot-mark stop",
        EventTone::Plain => "dot-mark",
    };
    let event = &entry.event;
    let (at, kind) = (event.at, event.kind.as_str());
    let run = event.run_id.map(words::tail);
    let who = match event.author() {
        Some(author) => view! { <b>{words::authors_first(&[author], None)}</b> }.into_any(),
        None => view! { <span class="muted">"Countersign"</span> }.into_any(),
    };
    let entry = StoredValue::new(entry);
    view! {
        <li class:open=open>
            <button class="audit-row" aria-expanded=move || open.get().to_string() on:click=move |_| open.update(|open| *open = !*open)>
                <Glyph icon=icondata::LuChevronRight/>
                <At at/>
                <span class="audit-what"><i class=class aria-hidden="true"></i>{who}" "{inert(&what)}</span>
                <span class="audit-run">{run.map(|run| view! { "run "<code>{run}</code> })}</span>
                <code>{kind}</code>
            </button>
            <Show when=move || open.get()><Detail entry/></Show>
        </li>
    }
}
