//! The list of runs: filtered and searched, newest first, changing in place as runs change.

mod filter;

use std::collections::BTreeSet;

use leptos::html;
use leptos::prelude::*;
use shared::access::Act;
use shared::api::{Page, RunQuery};
use shared::id::RunId;
use shared::run::{RunStatus, RunSummary};
use shared::time::Timestamp;

use self::filter::RunFilters;
use crate::client::{Live, Session, use_api};
use crate::components::arrival;
use crate::components::glyph::Glyph;
use crate::components::inert::{inert, inert_code};
use crate::components::list_filter::use_filter;
use crate::components::pages::{PagedList, use_pages};
use crate::components::states::{Empty, Refresh};
use crate::components::status::StatusTag;
use crate::components::time::{Ago, begin_of_day};
use crate::state::ending::Ending;
use crate::state::run_filter::{RunFilter, takes};
use crate::state::runs::Runs;
use crate::state::sentences::sentence;
use crate::state::words;

/// The number of new runs after which the list is loaded again.
const GROWTH: usize = 200;
/// The number of runs that such a load keeps even if fewer were loaded; older ones are loaded on request.
const ENOUGH: usize = 200;

#[component]
pub fn RunsPage() -> impl IntoView {
    arrival::title(|| "Runs".to_owned());
    let heading = arrival::heading::<html::H1>();
    let api = use_api();
    let live = expect_context::<Live>();
    let session = expect_context::<Session>();
    let may_launch = Memo::new(move |_| session.may(Act::Launch));
    let (filter, go) = use_filter::<RunFilter>("/runs");
    let asked = Memo::new(move |_| filter.with(|filter| filter.query(begin_of_day)));
    let has_words = Memo::new(move |_| asked.with(RunQuery::has_words));
    live.runs.update_untracked(|runs| runs.list(true));
    on_cleanup(move || live.runs.update_untracked(|runs| runs.list(false)));
    let fetch = move |asked: RunQuery, cursor: Option<String>| async move {
        let page = api.runs(&RunQuery { cursor, ..asked }).await?;
        let items = page.items.iter().map(|run| (run.created_at, run.id)).collect();
        live.runs.update(|runs| page.items.into_iter().for_each(|run| runs.put_loaded(run)));
        Ok(Page { items, next_cursor: page.next_cursor })
    };
    // Before the response to the new filter arrives.
    Effect::watch(move || asked.track(), move |(), _, _| live.runs.update_untracked(Runs::unload), false);
    let pages = use_pages(asked, fetch, |(created_at, _): &(Timestamp, RunId)| *created_at);
    live.on_renewal(move || pages.again());

    let shown = Memo::new(move |_| {
        let (asked, me) = (asked.get(), session.username());
        // Runs older than the last loaded one may be incomplete, so they are not shown.
        let oldest = pages.with(|loaded, more| loaded.last().map(|(at, _)| *at).filter(|_| more));
        // Only the server knows which runs have the words.
        let found = asked
            .has_words()
            .then(|| pages.with(|loaded, _| loaded.iter().map(|(_, id)| *id).collect::<BTreeSet<_>>()));
        live.runs.with(|runs| {
            let mut rows: Vec<(Timestamp, RunId)> = runs
                .all()
                .filter(|run| takes(&asked, run, me.as_ref()) && oldest.is_none_or(|oldest| run.created_at >= oldest))
                .filter(|run| found.as_ref().is_none_or(|found| found.contains(&run.id)))
                .map(|run| (run.created_at, run.id))
                .collect();
            rows.sort_unstable_by(|one, other| other.cmp(one));
            rows.into_iter().map(|(_, id)| id).collect::<Vec<_>>()
        })
    });
    // The list grows at its top. Loaded again from there, it loses as many runs at its end; they are loaded on request.
    let newer = Memo::new(move |_| {
        let newest = pages.with(|loaded, _| loaded.first().map(|(at, _)| *at));
        let is_newer = |id: &&RunId| {
            let created_at = live.runs.with(|runs| runs.get(**id).map(|run| run.created_at));
            newest.is_none_or(|newest| created_at.is_some_and(|at| at > newest))
        };
        shown.with(|shown| shown.iter().take_while(is_newer).count())
    });
    // A reload that is under way is waited for: where runs start faster than a list is loaded, none would ever end.
    Effect::new(move |before: Option<(bool, usize)>| {
        let (is_settled, newer) = (pages.is_settled(), newer.get());
        let (was_settled, at_load) = before.unwrap_or_default();
        // Runs that the server no longer lists stay newer, and are no reason to load the list again and again.
        let at_load = if is_settled && !was_settled { newer } else { at_load };
        if is_settled && newer >= at_load + GROWTH {
            let loaded = untrack(|| pages.with(|loaded, _| loaded.len()));
            pages.again_at_most(loaded.max(ENOUGH));
        }
        (is_settled, at_load)
    });
    // A memo, so that the table is not created again for each new run.
    let none = Memo::new(move |_| shown.with(Vec::is_empty));
    view! {
        <section class="page runs">
            <header>
                <h1 node_ref=heading tabindex="-1">"Runs"</h1>
                <RunFilters filter go/>
                // New runs with the words are not added by themselves.
                <Show when=move || has_words.get()><Refresh press=move |()| pages.again()/></Show>
                <Show when=move || may_launch.get()><a href="/flows" class="b">"Launch a run"</a></Show>
            </header>
            <div class="in">
                <PagedList pages failed="The runs could not be loaded" older="Load older runs">
                    {move || if none.get() { nothing(&filter.get(), may_launch.get()).into_any() } else { view! { <Rows shown/> }.into_any() }}
                </PagedList>
            </div>
        </section>
    }
}

#[component]
fn Rows(shown: Memo<Vec<RunId>>) -> impl IntoView {
    view! {
        <div class="card">
            <table class="table hover runs-table">
                <thead>
                    <tr><th>"Run"</th><th>"Status"</th><th>"Reviews"</th><th>"Launched by"</th><th>"Launched"</th><th class="num">"Duration"</th></tr>
                </thead>
                <tbody><For each=move || shown.get() key=|id| *id let:id><RunRow id/></For></tbody>
            </table>
        </div>
    }
}

#[component]
fn RunRow(id: RunId) -> impl IntoView {
    let live = expect_context::<Live>();
    let run = Memo::new(move |_| live.runs.with(|runs| runs.get(id).cloned()));
    let took = move |run: &RunSummary| match run.ended_at {
        Some(end) => words::duration_ms(u64::try_from(end.since(run.created_at).as_millis()).unwrap_or(u64::MAX)),
        None => words::so_far(live.now.get(), run.created_at),
    };
    move || {
        run.get().map(|run| {
            let pending = run.pending_reviews as usize;
            // If people stopped the run, the error code is left out.
            let error = run.error.as_ref().map(|error| match Ending::of(Some(error)) {
                Some(_) => view! { <span class="sub">{inert_code(&sentence(&error.message))}</span> }.into_any(),
                None => view! { <span class="sub stop">{inert_code(&error.to_string())}</span> }.into_any(),
            });
            let timed = run.clone();
            let topic = run.topic.as_ref().map(|topic| view! { " · "{inert(topic)} });
            view! {
                <tr>
                    <td class="run-name">
                        <a href=format!("/runs/{id}")>{inert(&run.title)}{topic}</a>
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

/// The notice in place of an empty list, with what to do about it.
fn nothing(filter: &RunFilter, may_launch: bool) -> impl IntoView + use<> {
    if *filter == RunFilter::default() {
        let text = if may_launch {
            "A run is one execution of a flow. Choose a flow, fill in its form, and watch it run here."
        } else {
            "A run is one execution of a flow. Runs that concern you appear here."
        };
        return view! {
            <Empty icon=icondata::LuWorkflow title="Nothing has run yet" text>
                {may_launch.then(|| view! { <a href="/flows" class="b primary">"Choose a flow"</a> })}
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
    let text = if filter.q.is_some() {
        "Each word must begin a word of the flow, the topic, the person's name or the id. Runs that were archived are not found."
    } else {
        "Runs that match appear here automatically."
    };
    view! { <Empty icon=icondata::LuListFilter title=what text link=("/runs", "Show all runs")/> }.into_any()
}
