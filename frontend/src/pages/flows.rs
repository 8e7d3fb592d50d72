//! The catalogue of flows: what each is for, what it looks like, and a button to start it.

use crate::client::address::use_navigate;
use crate::state::case;
use leptos::prelude::*;
use leptos::task::spawn_local;
use shared::access::Act;
use shared::error::Problem;
use shared::id::FlowId;

use crate::client::{FlowVersion, Session, use_api};
use crate::components::dialog::Dialog;
use crate::components::glyph::Glyph;
use crate::components::graph::{FlowGraph, glyph};
use crate::components::states::{Empty, Failed, Loading};
use crate::components::time::Ago;
use crate::state::table::Table;
use crate::state::words;

/// Flows up to this many are drawn in the catalogue.
const MAX_PICTURES: usize = 40;

type Details = RwSignal<Table<FlowId, FlowVersion>>;

/// The page `/flows`.
#[component]
pub fn FlowsPage() -> impl IntoView {
    let api = use_api();
    let session = Session::expect();
    let flows = RwSignal::new(None::<Result<Vec<FlowVersion>, Problem>>);
    // Lists leave out definition and picture: they come one by one, and the cards fill up.
    let details: Details = RwSignal::new(Table::default());
    let search = RwSignal::new(String::new());
    let creating = RwSignal::new(false);
    let load = move || {
        spawn_local(async move {
            let answer = api.flows().await.map(|page| page.items);
            let ids: Vec<FlowId> = answer.iter().flatten().take(MAX_PICTURES).map(|flow| flow.id.clone()).collect();
            flows.set(Some(answer));
            for id in ids {
                if let Ok(flow) = api.flow(&id, None).await {
                    details.update(|details| details.insert(id, flow));
                }
            }
        });
    };
    load();
    let found = move || {
        let words = case::lower(&search.get());
        flows.with(|flows| {
            let flows = flows.as_ref()?.as_ref().ok()?;
            let takes =
                |flow: &&FlowVersion| words.split_whitespace().all(|word| haystack(flow, details).contains(word));
            Some(flows.iter().filter(takes).cloned().collect::<Vec<_>>())
        })
    };
    let many = move || flows.with(|flows| flows.as_ref().and_then(|flows| flows.as_ref().ok()).map_or(0, Vec::len));
    let body = move || match flows.with(|flows| flows.as_ref().map(|flows| flows.as_ref().err().cloned())) {
        None => view! { <Loading rows=8/> }.into_any(),
        Some(Some(problem)) => {
            let retry = Callback::new(move |()| load());
            view! { <Failed title="The flows could not be loaded" problem retry/> }.into_any()
        }
        Some(None) if many() == 0 => view! { <NoFlows creating/> }.into_any(),
        Some(None) => view! {
            <Show when=move || found().is_some_and(|found| found.is_empty())>
                <Empty icon=icondata::LuSearch title="No flow is like this"><p>"Try fewer words."</p></Empty>
            </Show>
            <ul class="flow-cards">
                <For each=move || found().unwrap_or_default() key=|flow| (flow.id.clone(), flow.version) let:flow>
                    <FlowCard flow details/>
                </For>
            </ul>
        }
        .into_any(),
    };
    view! {
        <section class="page flows">
            <header>
                <h1>"Flows"</h1>
                <Show when=move || { many() > 3 } fallback=|| view! { <span class="grow"></span> }>
                    <label class="flow-search grow">
                        <Glyph icon=icondata::LuSearch/><span class="sr">"Search flows"</span>
                        <input type="search" placeholder="Search by title, word or tag" prop:value=move || search.get()
                            on:input=move |event| search.set(event_target_value(&event))/>
                    </label>
                </Show>
                <Show when=move || session.may(Act::SaveFlow)>
                    <button class="b" on:click=move |_| creating.set(true)><Glyph icon=icondata::LuPlus/>"New flow"</button>
                </Show>
            </header>
            <div class="in">{body}</div>
            <NewFlow open=creating/>
        </section>
    }
}

fn haystack(flow: &FlowVersion, details: Details) -> String {
    let tags = details.with(|details| tags(details.get(&flow.id)).join(" "));
    let description = flow.description.as_deref().unwrap_or_default();
    case::lower(&format!("{} {} {description} {tags}", flow.id, flow.title))
}

fn tags(flow: Option<&FlowVersion>) -> Vec<String> {
    flow.and_then(|flow| flow.definition.as_ref()).map(|flow| flow.tags.clone()).unwrap_or_default()
}

/// How many nodes of each kind a flow has, in the order of their kinds' names.
fn kinds(flow: Option<&FlowVersion>) -> Vec<(String, usize)> {
    let mut kinds: Table<String, usize> = Table::default();
    let graph = flow.and_then(|flow| flow.graph.as_ref());
    for node in graph.iter().flat_map(|graph| &graph.nodes).filter(|node| node.kind != "end") {
        *kinds.or_default(node.kind.clone()) += 1;
    }
    kinds.into_iter().collect()
}

#[component]
fn FlowCard(flow: FlowVersion, details: Details) -> impl IntoView {
    let session = Session::expect();
    let id = flow.id.clone();
    let detail = Memo::new(move |_| details.with(|details| details.get(&id).cloned()));
    let href = format!("/flows/{}", flow.id);
    let launch = href.clone();
    let title = flow.title.clone();
    view! {
        <li class="card flow-card">
            <a href=href class="flow-picture" tabindex="-1" aria-hidden="true">
                {move || detail.get().map(|detail| match detail.graph {
                    Some(graph) => view! { <FlowGraph graph/> }.into_any(),
                    None => ().into_any(),
                })}
            </a>
            <div class="flow-about">
                <h3><a href=format!("/flows/{}", flow.id)>{flow.title}</a></h3>
                <p class="soft">{flow.description.unwrap_or_default()}</p>
                <div class="flow-kinds">
                    {move || detail.with(|detail| kinds(detail.as_ref())).into_iter().map(|(kind, count)| view! {
                        <span class="kind" >
                            <svg viewBox="-1 -1 14 14" aria-hidden="true"><path d=glyph(&kind)/></svg>{words::count(count, &kind, &format!("{kind}s"))}
                        </span>
                    }).collect_view()}
                    {move || detail.with(|detail| tags(detail.as_ref())).into_iter().map(|tag| view! { <span class="tag">{tag}</span> }).collect_view()}
                </div>
            </div>
            <footer>
                <span class="muted small grow cut"><code>{flow.id.to_string()}</code>" v"{flow.version}" · "<Ago at=flow.saved_at/></span>
                <Show when=move || session.may(Act::Launch)>
                    <a href=launch.clone() class="b sm" aria-label=format!("Launch {title}")><Glyph icon=icondata::LuPlay/>"Launch"</a>
                </Show>
            </footer>
        </li>
    }
}

#[component]
fn NoFlows(creating: RwSignal<bool>) -> impl IntoView {
    let session = Session::expect();
    view! {
        <Empty icon=icondata::LuWorkflow title="There are no flows yet">
            <p>"A flow is a graph of agents, tools and people. Write one here, or put files into the folder that the server loads flows from."</p>
            <Show when=move || session.may(Act::SaveFlow)>
                <button class="b primary" on:click=move |_| creating.set(true)>"Write the first flow"</button>
            </Show>
        </Empty>
    }
}

/// Asks for the id of a new flow and opens the editor with a template.
#[component]
fn NewFlow(open: RwSignal<bool>) -> impl IntoView {
    let navigate = StoredValue::new(use_navigate());
    let id = RwSignal::new(String::new());
    let tried = RwSignal::new(false);
    let mistake = move || {
        let wrong = id.with(|id| id.parse::<FlowId>().err());
        wrong.filter(|_| tried.get()).map(|wrong| format!("A flow's id is {}.", wrong.rule))
    };
    let go = move || {
        tried.set(true);
        if let Ok(id) = id.with_untracked(|id| id.parse::<FlowId>()) {
            open.set(false);
            navigate.with_value(|navigate| {
                navigate(
                    &format!("/flows/{id}?tab=definition&new=1"),
                    crate::client::address::NavigateOptions::default(),
                );
            });
        }
    };
    view! {
        <Dialog open title="New flow">
            <form class="in" on:submit=move |event| { event.prevent_default(); go(); }>
                <label class="field">
                    <span class="label">"Id"</span>
                    <span class="hint">"Its address for ever: a-z, 0-9 and -. The title can change later."</span>
                    <input class="input mono" placeholder="refund-request" autofocus autocomplete="off" spellcheck="false"
                        prop:value=move || id.get() aria-invalid=move || mistake().is_some().to_string()
                        on:input=move |event| id.set(event_target_value(&event).trim().to_owned())/>
                    <span class="mistake" aria-live="polite">{mistake}</span>
                </label>
                <div class="actions"><button class="b primary">"Open the editor"</button></div>
            </form>
        </Dialog>
    }
}
