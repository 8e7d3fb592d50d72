//! Statistics of reviews: key figures, plots over time, and a table by flow, tool, agent, kind or reviewer.

mod filter;
mod plot;
mod table;

use leptos::html;
use leptos::prelude::*;
use leptos_router::hooks::use_query_map;
use shared::access::{ADMIN, DEVELOPER};
use shared::statistics::{Figures, Statistics};

use self::filter::InsightsFilters;
use crate::client::{Live, Session, use_api};
use crate::components::arrival;
use crate::components::states::{Empty, Loaded, Refresh};
use crate::state::insights::{InsightsFilter, bars, percent, took};
use crate::state::words::thousands;

#[component]
pub fn InsightsPage() -> impl IntoView {
    arrival::title(|| "Insights".to_owned());
    let heading = arrival::heading::<html::H1>();
    let api = use_api();
    let session = expect_context::<Session>();
    let live = expect_context::<Live>();
    let query = use_query_map();
    let filter = Memo::new(move |_| query.with(|query| InsightsFilter::read(query)));
    // The grouping of the table does not affect the parts above it.
    let above = Memo::new(move |_| InsightsFilter { split: None, ..filter.get() });
    let now = move || live.now.get_untracked();
    let over_time = LocalResource::new(move || {
        let filter = above.get();
        let asked = filter.query(filter.bar(), now());
        async move { api.statistics(&asked).await.map(|statistics| (filter, statistics)) }
    });
    let by = LocalResource::new(move || {
        let filter = filter.get();
        let asked = filter.query(filter.split(), now());
        async move { api.statistics(&asked).await.map(|statistics| (filter, statistics)) }
    });
    // What is shown while another range is loading belongs to the one before.
    let (busy, by_busy) = (RwSignal::new(false), RwSignal::new(false));
    let refresh = move |()| {
        over_time.refetch();
        by.refetch();
    };
    let whose = move || {
        let has = |role: &str| session.principal().is_some_and(|me| me.has(role));
        if has(ADMIN) {
            "All reviews"
        } else if has(DEVELOPER) {
            "Reviews of flows that you saved, and those that you decided"
        } else {
            "Reviews that you decided"
        }
    };
    let plots = move |(filter, statistics): (InsightsFilter, Statistics)| {
        let Statistics { from, to, figures, groups, .. } = statistics;
        if figures.requests == 0 {
            return nothing(&filter);
        }
        let bars = bars(&groups, filter.bar(), from, to);
        view! {
            {numbers(&figures)}
            <div class="plots">{plot::outcomes(&bars, &figures)}{plot::response_times(&bars, &figures)}</div>
            {more(&figures)}
            <section class="card by" aria-busy=move || by_busy.get().to_string()>
                <header><h2 class="grow">"Breakdown by"</h2>{move || table::tabs(&filter_now(filter.clone(), query))}</header>
                <Loaded from=by failed="The figures could not be loaded" rows=4 busy=by_busy children=|(filter, statistics): (InsightsFilter, Statistics)| {
                    table::groups(&statistics, &filter, filter.split())
                }/>
            </section>
        }
        .into_any()
    };
    view! {
        <section class="page insights">
            <header>
                <h1 node_ref=heading tabindex="-1">"Insights"</h1>
                <InsightsFilters filter/>
                <Refresh busy press=refresh/>
            </header>
            <div class="in" aria-busy=move || busy.get().to_string()>
                <p class="whose small muted">{whose}</p>
                <Loaded from=over_time failed="The figures could not be loaded" rows=10 busy children=plots/>
            </div>
        </section>
    }
}

/// The filter of the plots with the current grouping of the table.
fn filter_now(filter: InsightsFilter, query: Memo<leptos_router::params::ParamsMap>) -> InsightsFilter {
    let split = query.with(|query| InsightsFilter::read(query).split);
    InsightsFilter { split, ..filter }
}

fn numbers(figures: &Figures) -> AnyView {
    let Figures { requests, pending, expired, approval_rate, response_ms, .. } = *figures;
    let tiles = [
        ("Requested", thousands(requests), String::new()),
        ("Approved as asked", percent(approval_rate), "of approved, sent back or edited, and rejected".to_owned()),
        ("Median time to decide", took(response_ms.p50), format!("95th percentile {}", took(response_ms.p95))),
        ("Pending", thousands(pending), String::new()),
        ("Expired", thousands(expired), String::new()),
    ];
    let tiles = tiles.map(|(word, number, beside)| {
        let beside = (!beside.is_empty()).then(|| view! { <dd class="tiny muted">{beside}</dd> });
        view! { <div><dt>{word}</dt><dd>{number}</dd>{beside}</div> }
    });
    view! { <dl class="numbers">{tiles}</dl> }.into_any()
}

/// Figures of judges, guardrails and questions of agents, if there are any.
fn more(figures: &Figures) -> AnyView {
    let list = |title: &'static str, rows: Vec<(String, String)>| {
        if rows.is_empty() {
            return ().into_any();
        }
        let rows = rows.into_iter().map(|(word, number)| view! { <dt>{word}</dt><dd>{number}</dd> }).collect_view();
        view! { <section class="card few"><h2>{title}</h2><dl>{rows}</dl></section> }.into_any()
    };
    let count = |pairs: &[(&str, u64)]| {
        let pairs = pairs.iter().filter(|(_, number)| *number > 0);
        pairs.map(|(word, number)| ((*word).to_owned(), thousands(*number))).collect::<Vec<_>>()
    };
    let judge = figures.judge;
    let judges = count(&[
        ("Asked", judge.asked),
        ("Decided", judge.decided),
        ("Passed on", judge.passed_on),
        ("Could not judge", judge.failed),
        ("Passed on, people agreed", judge.agreed),
        ("Passed on, people did not", judge.disagreed),
    ]);
    let vetoes = figures.vetoes.iter().map(|(name, number)| (name.clone(), thousands(*number))).collect();
    let agents = count(&[
        ("Questions", figures.clarifications),
        ("Drafts to edit", figures.edits.count),
        ("Drafts that were changed", figures.edits.changed),
        ("Checkpoints", figures.checkpoints),
        ("Hand-offs", figures.handoffs),
        ("Escalations", figures.escalations),
    ]);
    let reasons = figures.escalations_by_reason.iter().filter(|(_, number)| **number > 0);
    let reasons = reasons.map(|(reason, number)| (reason.as_str().replace('_', " "), thousands(*number))).collect();
    view! {
        <div class="more-figures">
            {list("Judges", judges)}{list("Blocked by guardrails", vetoes)}{list("Asked by agents", agents)}{list("Why agents escalated", reasons)}
        </div>
    }
    .into_any()
}

fn nothing(filter: &InsightsFilter) -> AnyView {
    let all = InsightsFilter { days: filter.days, split: filter.split, ..InsightsFilter::default() };
    if *filter == all {
        return view! {
            <Empty icon=icondata::LuChartColumn title="No reviews in this period"
                text="Choose a longer period, or come back after the first decision." link=("/inbox", "Go to the inbox")/>
        }
        .into_any();
    }
    view! {
        <Empty icon=icondata::LuListFilter title="No matches" text="Remove a filter or choose a longer period.">
            <a href=all.address() class="b">"Show all"</a>
        </Empty>
    }
    .into_any()
}
