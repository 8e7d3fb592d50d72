//! The catalogue of flows: the purpose and the graph of each, and a button to start it.

use std::collections::HashMap;

use leptos::html;
use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::use_navigate;
use shared::access::Act;
use shared::id::FlowId;

use crate::client::{FlowVersion, Session, use_api};
use crate::components::arrival;
use crate::components::dialog::Dialog;
use crate::components::glyph::Glyph;
use crate::components::graph::{FlowGraph, glyph};
use crate::components::inert::{inert, named};
use crate::components::states::{Empty, Loaded};
use crate::components::time::Ago;
use crate::state::words;

/// The maximum number of flows whose graphs are drawn in the catalogue.
const MAX_PICTURES: usize = 40;

type Details = Memo<HashMap<FlowId, FlowVersion>>;

#[component]
pub fn FlowsPage() -> impl IntoView {
    arrival::title(|| "Flows".to_owned());
    let heading = arrival::heading::<html::H1>();
    let api = use_api();
    let session = expect_context::<Session>();
    let flows = LocalResource::new(move || async move { api.flows().await.map(|page| page.items) });
    // The list has no definitions or graphs, so those of the first flows are loaded after it.
    let pictures = LocalResource::new(move || {
        let flows = flows.get().and_then(Result::ok).unwrap_or_default();
        async move {
            let flows = flows.iter().take(MAX_PICTURES).map(|flow| async { api.flow(&flow.id, None).await.ok() });
            futures::future::join_all(flows).await.into_iter().flatten().collect::<Vec<_>>()
        }
    });
    let details: Details = Memo::new(move |_| {
        let pictures = pictures.get().unwrap_or_default();
        pictures.into_iter().map(|flow| (flow.id.clone(), flow)).collect()
    });
    let search = RwSignal::new(String::new());
    let creating = RwSignal::new(false);
    let known = Memo::new(move |_| flows.get().and_then(Result::ok).unwrap_or_default());
    let found = Memo::new(move |_| {
        let words = search.get().to_lowercase();
        let takes = |flow: &&FlowVersion| words.split_whitespace().all(|word| haystack(flow, details).contains(word));
        known.with(|flows| flows.iter().filter(takes).cloned().collect::<Vec<_>>())
    });
    let many = move || known.with(Vec::len);
    let body = move |flows: Vec<FlowVersion>| {
        if flows.is_empty() {
            return view! { <NoFlows creating/> }.into_any();
        }
        view! {
            <Show when=move || found.with(Vec::is_empty)>
                <Empty icon=icondata::LuSearch title="No matches" text="Try fewer words."/>
            </Show>
            <ul class="flow-cards">
                <For each=move || found.get() key=|flow| (flow.id.clone(), flow.version) let:flow>
                    <FlowCard flow details/>
                </For>
            </ul>
        }
        .into_any()
    };
    view! {
        <section class="page flows">
            <header>
                <h1 node_ref=heading tabindex="-1">"Flows"</h1>
                <Show when=move || { many() > 3 } fallback=|| view! { <span class="grow"></span> }>
                    <label class="search flow-search">
                        <Glyph icon=icondata::LuSearch/><span class="sr">"Search flows"</span>
                        <input type="search" placeholder="Search by title, word or tag" bind:value=search/>
                    </label>
                </Show>
                <Show when=move || session.may(Act::SaveFlow)>
                    <button class="b" on:click=move |_| creating.set(true)><Glyph icon=icondata::LuPlus/>"New flow"</button>
                </Show>
            </header>
            <div class="in"><Loaded from=flows failed="The flows could not be loaded" rows=8 children=body/></div>
            <NewFlow open=creating/>
        </section>
    }
}

fn haystack(flow: &FlowVersion, details: Details) -> String {
    let tags = details.with(|details| tags(details.get(&flow.id)).join(" "));
    let description = flow.description.as_deref().unwrap_or_default();
    format!("{} {} {description} {tags}", flow.id, flow.title).to_lowercase()
}

fn tags(flow: Option<&FlowVersion>) -> Vec<String> {
    flow.and_then(|flow| flow.definition.as_ref()).map(|flow| flow.tags.clone()).unwrap_or_default()
}

/// The number of nodes of each kind in a flow, ordered by the name of the kind.
fn kinds(flow: Option<&FlowVersion>) -> Vec<(String, usize)> {
    let graph = flow.and_then(|flow| flow.graph.as_ref());
    let nodes = graph.into_iter().flat_map(|graph| &graph.nodes);
    let mut kinds: Vec<String> = nodes.map(|node| node.kind.clone()).filter(|kind| kind != "end").collect();
    kinds.sort();
    kinds.chunk_by(|one, next| one == next).map(|same| (same[0].clone(), same.len())).collect()
}

#[component]
fn FlowCard(flow: FlowVersion, details: Details) -> impl IntoView {
    let session = expect_context::<Session>();
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
                <h2><a href=format!("/flows/{}", flow.id)>{inert(&flow.title)}</a></h2>
                <p class="soft">{inert(&flow.description.unwrap_or_default())}</p>
                <div class="flow-kinds">
                    {move || detail.with(|detail| kinds(detail.as_ref())).into_iter().map(|(kind, count)| view! {
                        <span class="kind" >
                            <svg viewBox="-1 -1 14 14" aria-hidden="true"><path d=glyph(&kind)/></svg>{words::count(count, &kind, &format!("{kind}s"))}
                        </span>
                    }).collect_view()}
                    {move || detail.with(|detail| tags(detail.as_ref())).into_iter().map(|tag| view! { <span class="tag">{inert(&tag)}</span> }).collect_view()}
                </div>
            </div>
            <footer>
                <span class="muted small grow cut"><code>{flow.id.to_string()}</code>" v"{flow.version}" · "<Ago at=flow.saved_at/></span>
                <Show when=move || session.may(Act::Launch)>
                    <a href=launch.clone() class="b sm" aria-label=format!("Launch {}", named(&title))><Glyph icon=icondata::LuPlay/>"Launch"</a>
                </Show>
            </footer>
        </li>
    }
}

#[component]
fn NoFlows(creating: RwSignal<bool>) -> impl IntoView {
    let session = expect_context::<Session>();
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
                navigate(&format!("/flows/{id}?tab=definition&new=1"), NavigateOptions::default());
            });
        }
    };
    view! {
        <Dialog open title="New flow">
            <form class="in" on:submit=move |event| { event.prevent_default(); go(); }>
                <label class="field">
                    <span class="label">"Id"</span>
                    <span class="hint">"Cannot be changed later: 1–100 characters, a-z, 0-9 and -. The title can."</span>
                    <input class="input mono" placeholder="for example refund-request" autofocus autocomplete="off" spellcheck="false"
                        prop:value=id aria-invalid=move || mistake().is_some().to_string()
                        on:input=move |event| id.set(event_target_value(&event).trim().to_owned())/>
                    <span class="mistake" aria-live="polite">{mistake}</span>
                </label>
                <div class="actions"><button class="b primary">"Open the editor"</button></div>
            </form>
        </Dialog>
    }
}
