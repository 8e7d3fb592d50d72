//! Placeholders for content: empty, loading, or failed to load.

use icondata::Icon as IconData;
use leptos::html;
use leptos::prelude::*;
use leptos::task::spawn_local;
use shared::error::Problem;
use wasm_bindgen::JsCast;

use super::focus::focusable_before;
use super::glyph::Glyph;
use crate::client::{Live, after_paint};

/// Nothing there, said kindly, with what to do about it as children.
#[component]
pub fn Empty(
    icon: IconData,
    /// What is not there.
    #[prop(into)]
    title: String,
    /// Whether it is all that the page shows, and so its heading.
    #[prop(optional)]
    page: bool,
    /// Why, and what to do.
    #[prop(optional)]
    children: Option<Children>,
) -> impl IntoView {
    view! {
        <div class="empty">
            <Glyph icon=icon />
            {if page { view! { <h1>{title}</h1> }.into_any() } else { view! { <b>{title}</b> }.into_any() }}
            {children.map(|children| children())}
        </div>
    }
}

/// Could not be loaded: what went wrong, and a button to try again.
#[component]
pub fn Failed(
    /// What could not be done.
    #[prop(into)]
    title: String,
    /// What the server or the network said.
    problem: Problem,
    /// What "Try again" does.
    #[prop(optional, into)]
    retry: Option<Callback<()>>,
    /// Whether it is all that the page shows, and so its heading.
    #[prop(optional)]
    page: bool,
    /// Where else one can go.
    #[prop(optional)]
    children: Option<Children>,
) -> impl IntoView {
    view! {
        <div class="failed" role="alert">
            <Glyph icon=icondata::LuTriangleAlert />
            {if page { view! { <h1>{title}</h1> }.into_any() } else { view! { <b>{title}</b> }.into_any() }}
            <p>{problem.to_string()}</p>
            {retry.map(|retry| view! { <button class="b" on:click=move |_| retry.run(())>"Try again"</button> })}
            {children.map(|children| children())}
        </div>
    }
}

/// What was loaded, once it is there: bars until then, and why it failed with a way to try again, which is done by itself
/// once a lost connection is back. What is shown stays while it is loaded anew.
#[component]
pub fn Loaded<T, F, V>(
    /// What is loaded.
    from: LocalResource<Result<T, Problem>>,
    /// What could not be done, where it fails.
    failed: &'static str,
    /// How many bars.
    #[prop(default = 6)]
    rows: usize,
    /// How it is shown.
    children: F,
) -> impl IntoView
where
    T: Clone + Send + Sync + 'static,
    F: Fn(T) -> V + Send + Sync + 'static,
    V: IntoView + 'static,
{
    let retry = Callback::new(move |()| from.refetch());
    Live::expect().on_return(move || {
        if from.with_untracked(|loaded| loaded.as_ref().is_some_and(Result::is_err)) {
            from.refetch();
        }
    });
    let content = move || {
        from.get().map(|loaded| match loaded {
            Ok(loaded) => children(loaded).into_any(),
            Err(problem) => view! { <Failed title=failed problem retry /> }.into_any(),
        })
    };
    awaited(rows, Box::new(content))
}

/// Bars until there is content. Of no type, so that it is compiled once.
fn awaited(rows: usize, content: Box<dyn Fn() -> Option<AnyView> + Send + Sync>) -> AnyView {
    let content = StoredValue::new(content);
    view! {
        <Transition fallback=move || view! { <Loading rows /> }>{move || content.with_value(|content| content())}</Transition>
    }
    .into_any()
}

/// Not loaded yet: bars where the content will be.
#[component]
pub fn Loading(
    /// How many bars.
    #[prop(default = 6)]
    rows: usize,
) -> impl IntoView {
    let bars = (0..rows)
        .map(|row| view! { <span class="skeleton" style:width=format!("{}%", 92 - (row * 17) % 48)></span> })
        .collect_view();
    view! { <div class="loading" role="status" aria-label="Loading">{bars}</div> }
}

/// The button below a list that has older pages, and why the last one could not be loaded.
#[component]
pub fn LoadOlder(
    /// Where the next page begins; `None`: there is none.
    next: Memo<Option<String>>,
    /// Loads the page that begins at a cursor.
    older: Action<String, Result<(), Problem>>,
    label: &'static str,
) -> impl IntoView {
    let (busy, answer) = (older.pending(), older.value());
    let refused = move || {
        let problem = answer.with(|answer| answer.as_ref()?.as_ref().err().map(ToString::to_string))?;
        Some(view! { <p class="mistake" role="alert">{problem}</p> })
    };
    let more = NodeRef::<html::Div>::new();
    // All that can have the focus in the list above.
    let list = move || {
        let more = more.get_untracked()?;
        Some(focusable_before(&more.parent_element()?, &more))
    };
    let before = StoredValue::new(None::<usize>);
    let load = move |_| {
        if let Some(next) = next.get_untracked().filter(|_| !busy.get_untracked()) {
            before.set_value(list().map(|list| list.len()));
            older.dispatch_local(next);
        }
    };
    // Who has loaded more goes on with the first of it.
    Effect::new(move |_| {
        if !answer.with(|answer| answer.as_ref().is_some_and(Result::is_ok)) || busy.get() {
            return;
        }
        if let Some(before) = before.try_update_value(Option::take).flatten() {
            spawn_local(async move {
                after_paint().await;
                let first = list().and_then(|list| list.into_iter().nth(before));
                if let Some(first) = first.and_then(|first| first.dyn_into::<web_sys::HtmlElement>().ok()) {
                    drop(first.focus());
                }
            });
        }
    });
    view! {
        <div class="more" node_ref=more>
            <Show when=move || next.with(Option::is_some)>
                // One that is disabled loses the focus.
                <button class="b" aria-disabled=move || busy.get().to_string() on:click=load>{label}</button>
                {refused}
            </Show>
        </div>
    }
}
