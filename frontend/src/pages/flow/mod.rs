//! One flow: start it, read and change its definition, look at its versions.

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
use crate::components::states::{Empty, Loaded};
use crate::components::time::Ago;

/// Which flow, which version of it, and whether it is being written for the first time.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Wanted {
    id: String,
    version: Option<u32>,
    new: bool,
}

/// A flow as the page knows it.
#[derive(Debug, Clone, PartialEq)]
struct Known {
    /// The version that is shown; none: it is not saved yet.
    shown: Option<FlowVersion>,
    /// The number of the newest version.
    newest: u32,
}

/// The page `/flows/:id`.
#[component]
pub fn FlowPage() -> impl IntoView {
    let (params, query) = (use_params_map(), use_query_map());
    let wanted = Memo::new(move |_| Wanted {
        id: params.with(|params| params.get("id")).unwrap_or_default(),
        version: query.with(|query| query.get("version").and_then(|version| version.parse().ok())),
        new: query.with(|query| query.get("new").is_some()),
    });
    move || view! { <OneFlow wanted=wanted.get()/> }
}

#[component]
fn OneFlow(wanted: Wanted) -> impl IntoView {
    let api = use_api();
    let query = use_query_map();
    let asked = wanted.clone();
    let loaded = LocalResource::new(move || {
        let Wanted { id, version, new } = asked.clone();
        async move {
            let newest = match api.flow(&id, None).await {
                Ok(newest) => newest,
                Err(problem) if problem.status == 404 => {
                    return Ok(new.then_some(Known { shown: None, newest: 0 }));
                }
                Err(problem) => return Err(problem),
            };
            let number = newest.version;
            let shown = match version {
                Some(version) if version != number => match api.flow(&id, Some(version)).await {
                    Err(problem) if problem.status == 404 => return Ok(None),
                    other => other?,
                },
                _ => newest,
            };
            Ok::<_, Problem>(Some(Known { shown: Some(shown), newest: number }))
        }
    });
    let known = Memo::new(move |_| loaded.get().and_then(Result::ok).flatten());
    let writing = wanted.new;
    let session = Session::expect();
    let reads = Memo::new(move |_| session.may(Act::SeeSource));
    let tab = Memo::new(move |_| {
        let tab = query.with(|query| query.get("tab"));
        let unsaved = known.with(|known| matches!(known, Some(Known { shown: None, .. })));
        (tab.as_deref() == Some("definition") || writing || unsaved) && reads.get()
    });
    let id = StoredValue::new(wanted.id);
    arrival::title(move || {
        let title = known.with(|known| known.as_ref()?.shown.as_ref().map(|shown| shown.title.clone()));
        format!("Flow: {}", title.unwrap_or_else(|| id.get_value()))
    });
    let body = move |known: Option<Known>| {
        let Some(flow) = known else {
            return view! {
                <Empty icon=icondata::LuSearch title="There is no such flow" page=true>
                    <p>"The link may be old, or the version was never saved."</p>
                    <a href="/flows" class="b">"To the flows"</a>
                </Empty>
            }
            .into_any();
        };
        let shown = flow.shown.clone();
        view! {
            <FlowHeader flow=flow.clone() id=id.get_value() definition=tab/>
            {move || match (tab.get(), &shown) {
                (false, Some(shown)) => view! { <LaunchTab flow=shown.clone()/> }.into_any(),
                _ => view! { <Definition id=id.get_value() shown=shown.clone() newest=flow.newest/> }.into_any(),
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

/// Title, versions and tabs.
#[component]
fn FlowHeader(flow: Known, id: String, definition: Memo<bool>) -> impl IntoView {
    let navigate = StoredValue::new(use_navigate());
    let address = {
        let id = id.clone();
        let version = flow.shown.as_ref().map(|shown| shown.version).filter(|version| *version != flow.newest);
        move |definition: bool, version_of: Option<u32>| {
            let mut query = Vec::new();
            if definition {
                query.push("tab=definition".to_owned());
            }
            query.extend(version_of.or(version).map(|version| format!("version={version}")));
            let query = if query.is_empty() { String::new() } else { format!("?{}", query.join("&")) };
            format!("/flows/{id}{query}")
        }
    };
    let address = StoredValue::new(address);
    let newest = flow.newest;
    let to_version = move |version: String| {
        let options = NavigateOptions { scroll: false, ..NavigateOptions::default() };
        let to = address.with_value(|address| address(definition.get_untracked(), version.parse().ok()));
        navigate.with_value(|navigate| navigate(&to, options));
    };
    let title = flow.shown.as_ref().map_or_else(|| id.clone(), |shown| shown.title.clone());
    let heading = arrival::heading::<html::H1>();
    let versions = flow.shown.as_ref().map(|shown| {
        let at = shown.version;
        let by = shown.saved_by.as_ref().map_or_else(|| "saved ".to_owned(), |by| format!("saved by {by} "));
        let digest = shown.digest.strip_prefix("sha256:").unwrap_or(&shown.digest).chars().take(8).collect::<String>();
        view! {
            <select class="select version" aria-label="Version" on:change=move |event| to_version(event_target_value(&event))>
                {(1..=newest).rev().map(|version| view! {
                    <option value=version.to_string() selected=version == at>
                        {format!("v{version}{}", if version == newest { ", newest" } else { "" })}
                    </option>
                }).collect_view()}
            </select>
            <span class="soft">{by}<Ago at=shown.saved_at/></span>
            <code class="muted" title=shown.digest.clone()>{digest}</code>
        }
    });
    let saved = flow.shown.is_some();
    // Plain links: the router's own mark the page, whatever its query says.
    let session = Session::expect();
    let tabs = move || {
        (saved && session.may(Act::SeeSource)).then(|| view! {
        <nav class="tabs" aria-label="What to do">
            <a href=address.with_value(|address| address(false, None)) aria-current=move || (!definition.get()).then_some("page")>"Launch"</a>
            <a href=address.with_value(|address| address(true, None)) aria-current=move || definition.get().then_some("page")>"Definition"</a>
        </nav>
    })
    };
    view! {
        <header class="flow-head">
            <div class="grow">
                <nav class="crumbs" aria-label="Breadcrumb">
                    <a href="/flows">"Flows"</a><span aria-hidden="true">"›"</span><span class="mono cut">{id}</span>
                </nav>
                <h1 node_ref=heading tabindex="-1">{title}</h1>
                <div class="facts">{versions}{(!saved).then(|| view! { <span class="tag warn">"not saved yet"</span> })}</div>
            </div>
            {tabs}
        </header>
    }
}
