//! One flow: starting it, reading and editing its definition, and its versions.

mod definition;
mod launch;
mod template;

use leptos::html;
use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::{use_navigate, use_params_map, use_query_map};
use shared::access::Act;
use shared::error::Problem;

use self::definition::Definition;
use self::launch::LaunchTab;
use crate::client::{FlowVersion, Session, use_api};
use crate::components::arrival;
use crate::components::inert::{inert, named};
use crate::components::listeners::while_shown;
use crate::components::states::{Empty, Loaded};
use crate::components::time::Ago;

/// The version of a flow that the address requests.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FlowAddress {
    /// The number of the version; `None` for the newest.
    version: Option<u32>,
    /// Whether the flow is new and not saved yet.
    new: bool,
}

/// What the page knows of the flow.
#[derive(Debug, Clone, PartialEq)]
struct Known {
    /// The version that is shown; `None` if the flow is not saved yet.
    shown: Option<FlowVersion>,
    /// The number of the newest version.
    newest: u32,
    /// The address for which it was loaded.
    wanted: FlowAddress,
}

impl Known {
    fn version(&self) -> Option<u32> {
        self.shown.as_ref().map(|shown| shown.version)
    }
}

#[component]
pub fn FlowPage() -> impl IntoView {
    let params = use_params_map();
    let id = Memo::new(move |_| params.with(|params| params.get("id")).unwrap_or_default());
    move || view! { <OneFlow id=id.get()/> }
}

#[component]
fn OneFlow(id: String) -> impl IntoView {
    let api = use_api();
    let query = use_query_map();
    let id = StoredValue::new(id);
    let known = RwSignal::new(None::<Known>);
    let wanted = Memo::new(move |before: Option<&FlowAddress>| {
        let now = query.with(|query| FlowAddress {
            version: query.get("version").and_then(|version| version.parse().ok()),
            new: query.get("new").is_some(),
        });
        // If the address names the version on screen, such as one just saved, it is not loaded again: that would remove
        // the editor.
        let is_shown = |before: &&FlowAddress| {
            known.with_untracked(|known| {
                let known = known.as_ref().filter(|known| known.wanted == **before && known.shown.is_some());
                known.is_some_and(|known| known.version() == now.version.or(Some(known.newest)))
            })
        };
        before.filter(is_shown).cloned().unwrap_or(now)
    });
    let loaded = LocalResource::new(move || {
        let (id, wanted) = (id.get_value(), wanted.get());
        async move {
            let newest = match api.flow(&id, None).await {
                Ok(newest) => newest,
                Err(problem) if problem.status == 404 => {
                    return Ok(wanted.new.then_some(Known { shown: None, newest: 0, wanted }));
                }
                Err(problem) => return Err(problem),
            };
            let number = newest.version;
            let shown = match wanted.version {
                Some(version) if version != number => match api.flow(&id, Some(version)).await {
                    Err(problem) if problem.status == 404 => return Ok(None),
                    other => other?,
                },
                _ => newest,
            };
            Ok::<_, Problem>(Some(Known { shown: Some(shown), newest: number, wanted }))
        }
    });
    let session = expect_context::<Session>();
    let reads = Memo::new(move |_| session.may(Act::SeeSource));
    let tab = Memo::new(move |_| {
        let (tab, writing) = query.with(|query| (query.get("tab"), query.get("new").is_some()));
        let unsaved = known.with(|known| known.as_ref().is_some_and(|known| known.shown.is_none()));
        (tab.as_deref() == Some("definition") || writing || unsaved) && reads.get()
    });
    arrival::title(move || {
        let title = known.with(|known| known.as_ref()?.shown.as_ref().map(|shown| shown.title.clone()));
        format!("Flow: {}", title.map_or_else(|| id.get_value(), |title| named(&title)))
    });
    let saved = Callback::new(move |saved: FlowVersion| {
        known.update(|known| {
            if let Some(known) = known {
                known.newest = saved.version;
                known.shown = Some(saved);
            }
        });
    });
    // Created again after loading, but not after saving.
    let body = move |flow: Option<Known>| {
        known.set(flow.clone());
        let Some(flow) = flow else {
            return view! {
                <Empty icon=icondata::LuSearch title="Flow not found" page=true text="The link may be old, or the version was never saved."
                    link=("/flows", "Go to the flows")/>
            }
            .into_any();
        };
        let flow = Memo::new(move |_| known.get().unwrap_or_else(|| flow.clone()));
        view! {
            <FlowHeader flow id=id.get_value() definition=tab/>
            {move || match (tab.get(), flow.with_untracked(|flow| flow.shown.clone())) {
                (false, Some(shown)) => view! { <LaunchTab flow=shown/> }.into_any(),
                _ => view! { <Definition id=id.get_value() flow saved/> }.into_any(),
            }}
        }
        .into_any()
    };
    view! {
        <section class="page flow">
            <Loaded from=loaded failed="The flow could not be loaded" rows=8 children=body/>
        </section>
    }
}

/// The title, versions and tabs. The heading is not created again when a version is saved, as it would take the focus.
#[component]
fn FlowHeader(flow: Memo<Known>, id: String, definition: Memo<bool>) -> impl IntoView {
    let navigate = StoredValue::new(use_navigate());
    let id = StoredValue::new(id);
    let newest = Memo::new(move |_| flow.with(|flow| flow.newest));
    let version = Memo::new(move |_| flow.with(Known::version));
    let address = move |definition: bool, version_of: Option<u32>| {
        let mut query = Vec::new();
        if definition {
            query.push("tab=definition".to_owned());
        }
        let version = version_of.or_else(|| version.get().filter(|version| *version != newest.get()));
        query.extend(version.map(|version| format!("version={version}")));
        let query = if query.is_empty() { String::new() } else { format!("?{}", query.join("&")) };
        format!("/flows/{}{query}", id.get_value())
    };
    let to_version = move |version: String| {
        let options = NavigateOptions { scroll: false, ..NavigateOptions::default() };
        let to = untrack(|| address(definition.get_untracked(), version.parse().ok()));
        navigate.with_value(|navigate| navigate(&to, options));
    };
    let title = Memo::new(move |_| {
        flow.with(|flow| flow.shown.as_ref().map_or_else(|| id.get_value(), |shown| shown.title.clone()))
    });
    let heading = arrival::heading::<html::H1>();
    let facts = move || {
        let (newest, Some(shown)) = flow.with(|flow| (flow.newest, flow.shown.clone())) else {
            return view! { <span class="tag warn">"not saved yet"</span> }.into_any();
        };
        let by = shown.saved_by.as_ref().map_or_else(|| "saved ".to_owned(), |by| format!("saved by {by} "));
        let digest = shown.digest.strip_prefix("sha256:").unwrap_or(&shown.digest).chars().take(8).collect::<String>();
        view! {
            <select class="select version" aria-label="Version" on:change=while_shown(move |event| to_version(event_target_value(&event)))>
                {(1..=newest).rev().map(|version| view! {
                    <option value=version.to_string() selected=version == shown.version>
                        {format!("v{version}{}", if version == newest { ", newest" } else { "" })}
                    </option>
                }).collect_view()}
            </select>
            <span class="soft">{by}<Ago at=shown.saved_at/></span>
            <code class="muted" title=shown.digest.clone()>{digest}</code>
        }
        .into_any()
    };
    // Plain links: those of the router would mark the current page without regard to the query.
    let session = expect_context::<Session>();
    let tabs = move || {
        // The rights are checked first: when they are lost, the page and its signals may be gone.
        (session.may(Act::SeeSource) && version.get().is_some()).then(|| view! {
        <nav class="tabs" aria-label="Sections">
            <a href=move || address(false, None) aria-current=move || (!definition.get()).then_some("page")>"Launch"</a>
            <a href=move || address(true, None) aria-current=move || definition.get().then_some("page")>"Definition"</a>
        </nav>
    })
    };
    view! {
        <header class="flow-head">
            <div class="grow">
                <nav class="crumbs" aria-label="Breadcrumb">
                    <a href="/flows">"Flows"</a><span aria-hidden="true">"›"</span><span class="mono cut">{id.get_value()}</span>
                </nav>
                <h1 node_ref=heading tabindex="-1">{move || inert(&title.get())}</h1>
                <div class="facts">{facts}</div>
            </div>
            {tabs}
        </header>
    }
}
