//! The definition of a flow: an editor with checks while typing, the graph beside it, and saving as a new version.

mod checks;

use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::use_navigate;
use shared::access::Act;
use shared::api::Validation;

use self::checks::{Checks, Mistakes, Status, use_checks};
use super::Known;
use super::template::template;
use crate::client::{FlowVersion, Session, Workspace, use_api};
use crate::components::button::Button;
use crate::components::editor::{Editor, marks};
use crate::components::graph::FlowGraph;
use crate::components::notice::Notifier;
use crate::state::drafts::Drafts;
use crate::state::sentences::sentence;

/// The tab "Definition". It is not created again when the flow is saved, so that the cursor and the undo history stay.
#[component]
pub fn Definition(
    /// The flow's id in the address.
    id: String,
    /// The flow as it was loaded.
    flow: Memo<Known>,
    saved: Callback<FlowVersion>,
) -> impl IntoView {
    let api = use_api();
    let session = expect_context::<Session>();
    let notices = expect_context::<Notifier>();
    let navigate = use_navigate();
    let workspace = expect_context::<Workspace>();
    let newest = Memo::new(move |_| flow.with(|flow| flow.newest));
    let fresh = Memo::new(move |_| flow.with(|flow| flow.shown.is_none()));
    let old = Memo::new(move |_| flow.with(Known::version).filter(|version| *version < newest.get()));
    let source = flow.with_untracked(|flow| match &flow.shown {
        Some(shown) => shown.source.clone().unwrap_or_default(),
        None => template(&id),
    });
    // The draft belongs to the version that it began from, until it is saved as a new one.
    let edited = RwSignal::new((id.clone(), flow.with_untracked(Known::version).unwrap_or(0)));
    let kept = move || {
        let edited = edited.get_untracked();
        workspace.drafts.with_untracked(|drafts| drafts.flow(&edited).map(ToOwned::to_owned))
    };
    let restored = RwSignal::new(kept().is_some());
    let text = RwSignal::new(kept().unwrap_or_else(|| source.clone()));
    let source = RwSignal::new(source);
    let changed = Memo::new(move |_| text.with(|text| source.with(|source| text != source)));
    let jump = RwSignal::new(None);
    let denied = Memo::new(move |_| session.denied(Act::SaveFlow));

    let checks = use_checks(text.into(), denied);
    let Checks { checked, error, checking, .. } = checks;
    Effect::new(move |_| {
        let edited = edited.get();
        workspace.write_flow(&edited, changed.get().then(|| text.get()));
    });
    // Another tab has changed, discarded or saved the draft.
    workspace.on_taken_over(move || {
        let written = kept().unwrap_or_else(|| source.get_untracked());
        if text.with_untracked(|text| *text != written) {
            text.set(written);
        }
    });
    let elsewhere = Memo::new(move |_| {
        let (id, version) = edited.get();
        let others = workspace.drafts.with(|drafts| drafts.versions(&id).collect::<Vec<_>>());
        others.into_iter().filter(|other| *other != version && *other > 0).collect::<Vec<_>>()
    });

    let id = StoredValue::new(id);
    let send = Action::new_local(move |typed: &String| {
        let (id, typed, navigate) = (id.get_value(), typed.clone(), navigate.clone());
        let (before, began) = (newest.get_untracked(), edited.get_untracked());
        async move {
            match api.save_flow(&id, &typed).await {
                Ok(flow) => {
                    notices.good(match flow.version - before.min(flow.version) {
                        0 => format!("No changes: this is still version {before}."),
                        1 => format!("Saved as version {}.", flow.version),
                        _ => format!("Saved as version {}. Other versions were saved in the meantime.", flow.version),
                    });
                    let to = format!("/flows/{id}?tab=definition&version={}", flow.version);
                    // If the page is gone, text typed after the request was sent is not saved, and its draft must stay.
                    let gone = source.try_set(typed.clone()).is_some();
                    let kept = |drafts: &Drafts| drafts.flow(&began).is_some_and(|text| text != typed);
                    if !gone || !workspace.drafts.with_untracked(kept) {
                        workspace.write_flow(&began, None);
                    }
                    if !gone {
                        edited.set((id, flow.version));
                        restored.set(false);
                        checks.retry();
                        saved.try_run(flow);
                        navigate(&to, NavigateOptions { replace: true, scroll: false, ..NavigateOptions::default() });
                    }
                }
                Err(problem) if !problem.errors.is_empty() => {
                    notices.bad("Not saved: the flow has errors.");
                    // Text typed since has a check of its own.
                    if text.try_with_untracked(|text| *text == typed) == Some(true) {
                        let graph = checked.get_untracked().and_then(|checked| checked.graph);
                        checks.take(Validation { valid: false, errors: problem.errors, warnings: Vec::new(), graph });
                    }
                }
                Err(problem) => notices.bad(format!("Not saved. {problem}")),
            }
        }
    });
    let saving = send.pending();
    let can_save = Memo::new(move |_| changed.get() || fresh.get() || old.get().is_some());
    let cannot_save = Signal::derive(move || saving.get() || denied.get().is_some() || !can_save.get());
    let save = move || {
        if !cannot_save.get_untracked() {
            send.dispatch_local(text.get_untracked());
        }
    };
    let shortcut = move |event: web_sys::KeyboardEvent| {
        if (event.ctrl_key() || event.meta_key()) && event.key().eq_ignore_ascii_case("s") {
            event.prevent_default();
            save();
        }
    };
    let line_marks = Memo::new(move |_| {
        checked.with(|checked| checked.as_ref().map(|one| marks(&one.errors, &one.warnings)).unwrap_or_default())
    });
    // The last valid graph stays while a mistake is being typed.
    let graph = Memo::new(move |before: Option<&Option<shared::api::Graph>>| {
        let now = checked.with(|checked| checked.as_ref().and_then(|one| one.graph.clone()));
        now.or_else(|| before.cloned().flatten())
    });
    let stale = move || checked.with(|checked| checked.as_ref().is_some_and(|one| one.graph.is_none()));
    view! {
        <div class="definition" on:keydown=shortcut>
            <div class="definition-edit">
                <div class="definition-bar">
                    <span class="definition-status" role="status" aria-busy=move || checking.get().to_string()><Status checked error/></span>
                    <span class="grow"></span>
                    {move || old.get().map(|old| view! { <span class="tag warn">"version "{old}" of "{newest}</span> })}
                    <Show when=move || { changed.get() && !fresh.get() }>
                        <button class="b sm ghost" on:click=move |_| { text.set(source.get_untracked()); restored.set(false); }>"Discard changes"</button>
                    </Show>
                    <Button class="b sm primary" title="Ctrl+S" press=move |()| save() off=cannot_save>
                        {move || if saving.get() { "Saving…".to_owned() } else if can_save.get() { format!("Save as version {}", newest.get() + 1) } else { "Saved".to_owned() }}
                    </Button>
                </div>
                <Show when=move || { restored.get() && changed.get() }>
                    <p class="banner accent">"Restored unsaved changes."</p>
                </Show>
                {move || elsewhere.get().into_iter().map(|version| {
                    let to = edited.with(|(id, _)| format!("/flows/{id}?tab=definition&version={version}"));
                    view! { <p class="banner"><span>"You have unsaved changes to "<a href=to>"version "{version}</a>"."</span></p> }
                }).collect_view()}
                {move || denied.get().map(|why| view! { <p class="banner">"You can read this flow and try out changes, but you cannot save them. "{sentence(why)}"."</p> })}
                <Editor text marks=line_marks jump label="The flow, as YAML"/>
                <Mistakes checked jump/>
            </div>
            <aside class="definition-picture" aria-label="Graph">
                <h2 class="sub">"Graph"<Show when=move || { stale() && graph.get().is_some() }><span class="tag">"last valid version"</span></Show></h2>
                {move || match graph.get() {
                    Some(graph) => view! { <FlowGraph graph/> }.into_any(),
                    None => view! { <p class="muted small">"The graph appears once the file has been checked and can be read."</p> }.into_any(),
                }}
            </aside>
        </div>
    }
}
