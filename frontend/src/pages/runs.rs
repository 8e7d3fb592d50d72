//! The list of runs: filtered by status and flow, newest first, changing in place as runs change.

use leptos::html;
use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::{use_navigate, use_query_map};
use shared::api::RunQuery;
use shared::error::Problem;
use shared::id::RunId;
use shared::run::{RunStatus, RunSummary};
use shared::time::Timestamp;

use crate::client::{Connection, FlowVersion, Live, use_api};
use crate::components::arrival;
use crate::components::glyph::Glyph;
use crate::components::inert::inert;
use crate::components::states::{Empty, LoadOlder, Loaded, Loading};
use crate::components::status::StatusTag;
use crate::components::time::Ago;
use crate::state::ending::{Ending, word};
use crate::state::sentences::sentence;
use crate::state::words;

/// What the list shows.
#[derive(Debug, Clone, Default, PartialEq)]
struct RunFilter {
    status: Option<RunStatus>,
    flow: Option<String>,
}

impl RunFilter {
    fn takes(&self, run: &RunSummary) -> bool {
        self.status.is_none_or(|status| status == run.status)
            && self.flow.as_ref().is_none_or(|flow| flow.as_str() == run.flow.as_str())
    }

    fn query(&self, cursor: Option<String>) -> RunQuery {
        RunQuery { status: self.status, flow: self.flow.clone(), cursor, ..RunQuery::default() }
    }

    fn address(&self) -> String {
        format!("/runs{}", shared::client::query_string(&self.query(None)))
    }
}

/// How far the list has been loaded.
#[derive(Debug, Clone, Default, PartialEq)]
struct End {
    /// Of which list this is the end; none: nothing is loaded yet.
    of: Option<RunFilter>,
    /// Where older runs begin; none: all are loaded.
    next: Option<String>,
    /// Runs older than this are not loaded yet; none: all are.
    oldest: Option<Timestamp>,
}

/// The page `/runs`.
#[component]
pub fn RunsPage() -> impl IntoView {
    arrival::title(|| "Runs".to_owned());
    let heading = arrival::heading::<html::H1>();
    let api = use_api();
    let live = Live::expect();
    let query = use_query_map();
    let filter = Memo::new(move |_| {
        query.with(|query| {
            let status = query.get("status");
            RunFilter {
                status: status.as_deref().and_then(RunStatus::of_word),
                flow: query.get("flow").filter(|flow| !flow.is_empty()),
            }
        })
    });
    // Without them the filter by flow stays away, nothing else.
    let flows = LocalResource::new(move || async move { api.flows().await.map(|page| page.items) });
    let flows = Memo::new(move |_| flows.get().and_then(Result::ok).unwrap_or_default());

    live.runs.update_untracked(|runs| runs.list(true));
    on_cleanup(move || live.runs.update_untracked(|runs| runs.list(false)));
    let end = RwSignal::new(End::default());
    let load = move |asked: RunFilter, cursor: Option<String>| async move {
        let mut page = api.runs(&asked.query(cursor)).await?;
        // A page that found nothing may say where to go on.
        while page.items.is_empty()
            && page.next_cursor.is_some()
            && filter.try_with_untracked(|now| *now == asked) == Some(true)
        {
            page = api.runs(&asked.query(page.next_cursor)).await?;
        }
        // Where another filter was chosen meanwhile, its own page says where the list ends.
        let oldest = page.next_cursor.as_ref().and(page.items.last()).map(|oldest| oldest.created_at);
        live.runs.update(|runs| page.items.into_iter().for_each(|run| runs.put(run)));
        if filter.try_with_untracked(|now| *now == asked) == Some(true) {
            end.set(End { of: Some(asked), next: page.next_cursor, oldest });
        }
        Ok::<(), Problem>(())
    };
    let first = LocalResource::new(move || load(filter.get(), None));
    let older = Action::new_local(move |cursor: &String| load(filter.get_untracked(), Some(cursor.clone())));
    // What ended while the connection was lost is in no entry that comes afterwards.
    Effect::new(move |before: Option<bool>| {
        let open = live.connection.get() == Connection::Open;
        if before == Some(false) && open {
            first.refetch();
        }
        open
    });

    let shown = Memo::new(move |_| {
        let (filter, oldest) = (filter.get(), end.with(|end| end.oldest));
        live.runs.with(|runs| {
            let mut rows: Vec<(Timestamp, RunId)> = runs
                .all()
                .filter(|run| filter.takes(run) && oldest.is_none_or(|oldest| run.created_at >= oldest))
                .map(|run| (run.created_at, run.id))
                .collect();
            rows.sort_unstable_by(|one, other| other.cmp(one));
            rows.into_iter().map(|(_, id)| id).collect::<Vec<_>>()
        })
    });
    // A memo, so that the table is not made anew whenever a run comes.
    let none = Memo::new(move |_| shown.with(Vec::is_empty));
    let ready = Memo::new(move |_| end.with(|end| filter.with(|filter| end.of.as_ref() == Some(filter))));
    let list = move |()| {
        move || match (ready.get(), none.get()) {
            (false, _) => view! { <Loading rows=8/> }.into_any(),
            (true, true) => nothing(&filter.get()).into_any(),
            (true, false) => view! { <Rows shown/> }.into_any(),
        }
    };
    let next = Memo::new(move |_| end.with(|end| end.next.clone()).filter(|_| ready.get()));
    view! {
        <section class="page runs">
            <header>
                <h1 node_ref=heading tabindex="-1">"Runs"</h1>
                <RunFilters filter flows/>
                <a href="/flows" class="b">"Start a run"</a>
            </header>
            <div class="in">
                <Loaded from=first failed="The runs could not be loaded" rows=8 children=list/>
                <LoadOlder next older label="Load older runs"/>
            </div>
        </section>
    }
}

/// Chips for the status and a menu for the flow. Each changes the address, so that a view can be kept and sent.
#[component]
fn RunFilters(filter: Memo<RunFilter>, flows: Memo<Vec<FlowVersion>>) -> impl IntoView {
    let navigate = StoredValue::new(use_navigate());
    let go = move |filter: &RunFilter| {
        let options = NavigateOptions { replace: true, scroll: false, ..NavigateOptions::default() };
        navigate.with_value(|navigate| navigate(&filter.address(), options));
    };
    let chip = move |status: Option<RunStatus>| {
        let is = move || filter.with(|filter| filter.status == status);
        view! {
            <button class="chip" aria-pressed=move || is().to_string()
                on:click=move |_| go(&RunFilter { status, ..filter.get_untracked() })>{status.map_or("All", word)}</button>
        }
    };
    let chosen = move |flow: String| {
        go(&RunFilter { flow: Some(flow).filter(|flow| !flow.is_empty()), ..filter.get_untracked() });
    };
    let is_flow = move |flow: &str| filter.with(|filter| filter.flow.as_deref() == Some(flow));
    view! {
        <div class="chips grow" role="group" aria-label="Status">
            {chip(None)}{RunStatus::ALL.iter().map(|status| chip(Some(*status))).collect_view()}
        </div>
        <Show when=move || flows.with(|flows| flows.len() > 1) || filter.with(|filter| filter.flow.is_some())>
            <select class="select" aria-label="Flow" on:change=move |event| chosen(event_target_value(&event))>
                <option value="" prop:selected=move || filter.with(|filter| filter.flow.is_none())>"All flows"</option>
                {move || flows.get().into_iter().map(|flow| {
                    let id = flow.id.to_string();
                    view! { <option value=id.clone() prop:selected=move || is_flow(&id)>{flow.title}</option> }
                }).collect_view()}
            </select>
        </Show>
    }
}

#[component]
fn Rows(shown: Memo<Vec<RunId>>) -> impl IntoView {
    view! {
        <div class="card">
            <table class="table hover runs-table">
                <thead>
                    <tr><th>"Run"</th><th>"Status"</th><th>"Reviews"</th><th>"Started by"</th><th>"Started"</th><th class="num">"Took"</th></tr>
                </thead>
                <tbody><For each=move || shown.get() key=|id| *id let:id><RunRow id/></For></tbody>
            </table>
        </div>
    }
}

#[component]
fn RunRow(id: RunId) -> impl IntoView {
    let live = Live::expect();
    let run = Memo::new(move |_| live.runs.with(|runs| runs.get(id).cloned()));
    let took = move |run: &RunSummary| {
        let end = run.ended_at.unwrap_or_else(|| live.now.get());
        words::duration_ms(u64::try_from(end.since(run.created_at).as_millis()).unwrap_or(u64::MAX))
    };
    move || {
        run.get().map(|run| {
            let pending = run.pending_reviews as usize;
            // What people stopped is told without the code.
            let error = run.error.as_ref().map(|error| match Ending::of(Some(error)) {
                Some(_) => view! { <span class="sub">{sentence(&error.message)}</span> }.into_any(),
                None => view! { <span class="sub stop">{error.to_string()}</span> }.into_any(),
            });
            let timed = run.clone();
            view! {
                <tr>
                    <td class="run-name">
                        <a href=format!("/runs/{id}")>{inert(&run.title)}</a>
                        <span class="sub">{run.flow.to_string()}" v"{run.version}" · "<span class="mono">{words::tail(id)}</span></span>
                        {error}
                    </td>
                    <td class="run-status"><StatusTag status=run.status error=run.error.clone()/></td>
                    <td class="run-pending">{(pending > 0).then(|| view! {
                        <span class="tag warn"><Glyph icon=icondata::LuUserRound/>{words::count(pending, "pending", "pending")}</span>
                    })}</td>
                    <td class="run-by soft">{run.requested_by.to_string()}</td>
                    <td class="run-at soft nowrap"><Ago at=run.created_at/></td>
                    <td class="run-took soft num nowrap">{move || took(&timed)}</td>
                </tr>
            }
        })
    }
}

/// An empty list says what to do about it.
fn nothing(filter: &RunFilter) -> impl IntoView + use<> {
    if *filter == RunFilter::default() {
        return view! {
            <Empty icon=icondata::LuWorkflow title="Nothing has run yet">
                <p>"A run is one execution of a flow. Choose a flow, fill in its form, and watch it run here."</p>
                <a href="/flows" class="b primary">"Choose a flow"</a>
            </Empty>
        }
        .into_any();
    }
    let what = match filter.status {
        Some(RunStatus::Running) => "Nothing is running right now",
        Some(RunStatus::WaitingForHuman) => "No run is waiting for a person",
        Some(RunStatus::Failed) => "No run has failed",
        _ => "No matches",
    };
    view! {
        <Empty icon=icondata::LuListFilter title=what>
            <p>"Runs that match appear here automatically."</p>
            <a href="/runs" class="b">"Show all runs"</a>
        </Empty>
    }
    .into_any()
}
