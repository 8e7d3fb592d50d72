//! One run, followed live: its position in the flow, its history, its state, and the reviews that it waits for.

mod cancel;
mod data;
mod feedback;
mod header;
mod values;

use leptos::prelude::*;
use leptos_router::hooks::use_params;
use leptos_router::params::Params;
use serde_json::Value;
use shared::JsonMap;
use shared::error::Problem;
use shared::id::RunId;
use shared::run::{Activity, Position, Run, RunSummary};

use self::data::RunData;
use self::feedback::{RunFeedback, Said};
use self::header::{Outcome, RunHeader};
use self::values::{Facts, State};
use crate::components::archived::Archived;
use crate::components::arrival;
use crate::components::graph::FlowGraph;
use crate::components::inert::named;
use crate::components::states::{Empty, Failed, Loading, OutOfDate};
use crate::components::timeline::Timeline;
use crate::state::words;

#[derive(Params, PartialEq)]
struct RunParams {
    id: RunId,
}

#[component]
pub fn RunPage() -> impl IntoView {
    let params = use_params::<RunParams>();
    let id = Memo::new(move |_| params.with(|params| params.as_ref().ok().map(|params| params.id)));
    move || match id.get() {
        Some(id) => view! { <RunView id/> }.into_any(),
        None => view! { <Unknown/> }.into_any(),
    }
}

#[component]
fn RunView(id: RunId) -> impl IntoView {
    let data = RunData::follow(id);
    arrival::title(move || {
        let about = data.run.with(|run| {
            let RunSummary { title, topic, .. } = &run.as_ref()?.summary;
            Some(named(&topic.as_ref().map_or_else(|| title.clone(), |topic| format!("{title} · {topic}"))))
        });
        about.map_or_else(|| "Run".to_owned(), |about| format!("Run: {about}"))
    });
    let here = Memo::new(move |_| data.run.with(Option::is_some));
    let body = move || {
        if here.get() {
            return view! { <Whole data/> }.into_any();
        }
        match data.problem.get() {
            Some(problem) if problem.status == 404 => view! { <Unknown/> }.into_any(),
            Some(Problem { archived: Some(archived), .. }) => view! {
                <Archived title="This run is archived" relation="It is" archived=*archived>
                    <a href="/runs" class="b">"Go to the runs"</a>
                </Archived>
            }
            .into_any(),
            Some(problem) => {
                let retry = Callback::new(move |()| data.load());
                view! { <Failed title="The run could not be loaded" problem retry/> }.into_any()
            }
            None => view! { <div class="in"><Loading rows=10/></div> }.into_any(),
        }
    };
    view! { <section class="page run">{body}</section> }
}

#[component]
fn Whole(data: RunData) -> impl IntoView {
    // Not derived signals, which would copy the whole run and its history each time they are read.
    let (run, report, streams) = (Signal::from(data.run), Signal::from(data.report), Signal::from(data.streams));
    let state = Memo::new(move |_| data.run.with(|run| run.as_ref().map(beside_output).unwrap_or_default()));
    let output = Memo::new(move |_| data.run.with(|run| run.as_ref().and_then(|run| run.output.clone())));
    let has_output = Memo::new(move |_| output.with(|output| output.as_ref().is_some_and(|output| !output.is_empty())));
    let feedback = RunFeedback::of(data);
    let nothing_changed = Signal::stored(std::collections::BTreeSet::new());
    let graph = move || {
        data.graph.get().map(|graph| {
            let label = format!("Graph: {}", data.run.with_untracked(|run| place(run.as_ref())));
            view! { <FlowGraph graph marks=data.marks label/> }
        })
    };
    view! {
        <RunHeader data feedback/>
        <div class="in">
            <div class="run-top">
                <OutOfDate what="This page" problem=data.problem retry=move |()| data.load()/>
                <Outcome data/>
            </div>
            <div class="run-body">
                <section class="card run-graph" aria-label="Graph">
                    <header><b>"Graph"</b></header>
                    <div class="in">{graph}<p class="small soft">{move || data.run.with(|run| place(run.as_ref()))}</p></div>
                </section>
                <section class="card run-story" aria-label="Timeline">
                    <header><b>"Timeline"</b></header>
                    <div class="in"><Timeline run report streams/></div>
                </section>
                <aside class="run-state" aria-label="State">
                    {move || output.get().filter(|output| !output.is_empty()).map(|output| view! {
                        <h2 class="sub">"Output"</h2>
                        <State values=Signal::stored(output) changed=nothing_changed/>
                    })}
                    <Show when=move || !has_output.get() || state.with(|state| !state.is_empty())>
                        <h2 class="sub">{move || if has_output.get() { "Other state" } else { "State" }}</h2>
                        <State values=state changed=data.changed/>
                    </Show>
                    <Facts run/>
                    <Said feedback/>
                </aside>
            </div>
        </div>
    }
}

/// The state of the run and of the called flows that are still running, by key, without what the output shows.
fn beside_output(run: &Run) -> JsonMap {
    let is_shown = |key: &str, value: &Value| run.output.as_ref().and_then(|output| output.get(key)) == Some(value);
    let state = run.state.iter().filter(|(key, value)| !is_shown(key, value));
    let mut keys: JsonMap = state.map(|(key, value)| (key.clone(), value.clone())).collect();
    for (call, inside) in &run.calls {
        let inside = inside.as_object().into_iter().flatten();
        keys.extend(inside.map(|(key, value)| (format!("{call}/{key}"), value.clone())));
    }
    keys
}

/// The positions of the branches, in words.
fn place(run: Option<&Run>) -> String {
    let Some(run) = run else { return String::new() };
    if run.summary.status.is_over() {
        return "Ended".to_owned();
    }
    // A calling branch is left out, since the branches of the called flow are listed.
    let calls = |position: &Position| {
        let call = position.node.call(position.visit);
        run.positions.iter().any(|inside| inside.node.frame() == call)
    };
    let here: Vec<_> = run.positions.iter().filter(|position| !calls(position)).collect();
    // With many branches, their item numbers say little.
    let few = here.len() < 5;
    let mut places = Vec::<(String, usize)>::new();
    for position in here {
        let node = match position.node.place() {
            end if end == "end" => "the output".to_owned(),
            node => node,
        };
        let mut place = match position.activity {
            Activity::Running => format!("{node} runs"),
            Activity::Retrying => format!("{node} is being retried"),
            Activity::Waiting => format!("{node} waits for a person"),
            Activity::Joining => format!("{node} waits for other branches"),
        };
        for visit in words::visit(position.part, position.visit).iter().filter(|_| few) {
            place = format!("{place}, {visit}");
        }
        match places.iter_mut().find(|(known, _)| *known == place) {
            Some((_, times)) => *times += 1,
            None => places.push((place, 1)),
        }
    }
    let places = places.into_iter().map(|(place, times)| if times > 1 { format!("{place} ({times}×)") } else { place });
    places.collect::<Vec<_>>().join("; ")
}

#[component]
fn Unknown() -> impl IntoView {
    view! {
        <Empty icon=icondata::LuSearch title="Run not found" page=true link=("/runs", "Go to the runs")
            text="The link may be old, or the run is one that you may not see: reviewers see the runs whose reviews they may decide, and those that they launched."/>
    }
}
