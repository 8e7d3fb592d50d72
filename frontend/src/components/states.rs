//! Placeholders for content: empty, loading, or failed to load.

use icondata::Icon as IconData;
use leptos::html;
use leptos::prelude::*;
use leptos::task::spawn_local;
use shared::error::Problem;
use wasm_bindgen::JsCast;

use super::arrival;
use super::button::Button;
use super::focus::focusable_before;
use super::glyph::Glyph;
use super::inert::inert_code;
use crate::client::{Live, after_paint};

/// A notice that there is nothing to show, with advice.
#[component]
pub fn Empty(
    icon: IconData,
    /// What is missing.
    #[prop(into)]
    title: String,
    /// Whether this is all that the page shows; then the title is the page's name and heading.
    #[prop(optional)]
    page: bool,
    /// The reason, or what to do about it.
    #[prop(optional)]
    text: Option<&'static str>,
    /// Where to go on: an address, and the words for it.
    #[prop(optional)]
    link: Option<(&'static str, &'static str)>,
    /// Further advice.
    #[prop(optional)]
    children: Option<Children>,
) -> impl IntoView {
    if page {
        let title = title.clone();
        arrival::title(move || title.clone());
    }
    view! {
        <div class="empty">
            <Glyph icon=icon />
            {heading(title, page)}
            {text.map(|text| view! { <p>{text}</p> })}
            {link.map(|(href, words)| view! { <a href=href class="b">{words}</a> })}
            {children.map(|children| children())}
        </div>
    }
}

/// A title, as the heading of the page if that shows nothing else.
fn heading(title: String, page: bool) -> AnyView {
    if !page {
        return view! { <b>{title}</b> }.into_any();
    }
    let heading = arrival::heading::<html::H1>();
    view! { <h1 node_ref=heading tabindex="-1">{title}</h1> }.into_any()
}

/// A notice that something could not be loaded, with the error and a button to try again.
#[component]
pub fn Failed(
    /// What has failed.
    #[prop(into)]
    title: String,
    problem: Problem,
    /// Called by "Try again".
    #[prop(into)]
    retry: Callback<()>,
    /// Whether this is all that the page shows; then the title is the page's heading.
    #[prop(optional)]
    page: bool,
    #[prop(optional)] children: Option<Children>,
) -> impl IntoView {
    view! {
        <div class="failed" role="alert">
            <Glyph icon=icondata::LuTriangleAlert />
            {heading(title, page)}
            <p>{inert_code(&problem.to_string())}</p>
            <button class="b" on:click=move |_| retry.run(())>"Try again"</button>
            {children.map(|children| children())}
        </div>
    }
}

/// A banner above content that could not be reloaded, while `problem` is set.
#[component]
pub fn OutOfDate(
    /// What is shown, as the subject of a sentence.
    what: &'static str,
    /// The error of the last load.
    #[prop(into)]
    problem: Signal<Option<Problem>>,
    /// Called by "Try again".
    #[prop(into)]
    retry: Callback<()>,
) -> impl IntoView {
    // A memo, so that the same error of another attempt is not announced again.
    let says = Memo::new(move |_| {
        problem.with(|problem| problem.as_ref().map(|problem| format!("{what} may be out of date: {problem}")))
    });
    move || {
        says.get().map(|says| {
            view! {
                <div class="banner warn partly" role="alert">
                    <span class="grow">{inert_code(&says)}</span>
                    <button class="b sm" on:click=move |_| retry.run(())>"Try again"</button>
                </div>
            }
        })
    }
}

/// Content that is loaded: bars until it is there, or the error with a button to try again; another attempt also starts
/// when a lost connection is back. Earlier content stays visible during a reload.
#[component]
pub fn Loaded<T, F, V>(
    from: LocalResource<Result<T, Problem>>,
    /// The title of the error if loading fails.
    failed: &'static str,
    /// The number of bars.
    #[prop(default = 6)]
    rows: usize,
    /// Set to whether it is loading.
    #[prop(optional)]
    busy: Option<RwSignal<bool>>,
    /// Renders the content.
    children: F,
) -> impl IntoView
where
    T: Clone + Send + Sync + 'static,
    F: Fn(T) -> V + Send + Sync + 'static,
    V: IntoView + 'static,
{
    let retry = Callback::new(move |()| from.refetch());
    expect_context::<Live>().on_return(move || {
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
    awaited(rows, busy.unwrap_or_default(), Box::new(content))
}

/// Bars until there is content. Not generic, so that it is compiled only once.
fn awaited(rows: usize, busy: RwSignal<bool>, content: Box<dyn Fn() -> Option<AnyView> + Send + Sync>) -> AnyView {
    let content = StoredValue::new(content);
    view! {
        <Transition fallback=move || view! { <Loading rows /> } set_pending=busy>{move || content.with_value(|content| content())}</Transition>
    }
    .into_any()
}

/// A button that loads a page again, for content that does not follow the log.
#[component]
pub fn Refresh(
    /// Whether it is loading.
    #[prop(optional, into)]
    busy: Signal<bool>,
    /// Loads it again.
    #[prop(into)]
    press: Callback<()>,
) -> impl IntoView {
    view! {
        <Button class="b icon" off=busy press=press title="Refresh" label="Refresh"><Glyph icon=icondata::LuRefreshCw /></Button>
    }
}

/// Bars in the place of content that is still loading.
#[component]
pub fn Loading(
    /// The number of bars.
    #[prop(default = 6)]
    rows: usize,
) -> impl IntoView {
    let bars = (0..rows)
        .map(|row| view! { <span class="skeleton" style:width=format!("{}%", 92 - (row * 17) % 48)></span> })
        .collect_view();
    view! { <div class="loading" role="status" aria-label="Loading">{bars}</div> }
}

/// The button below a list that has older pages, and the error of the last attempt.
#[component]
pub fn LoadOlder(
    /// The cursor of the next page; `None` if there is none.
    next: Memo<Option<String>>,
    /// Loads the page at a cursor.
    older: Action<String, Result<(), Problem>>,
    label: &'static str,
) -> impl IntoView {
    let (busy, answer) = (older.pending(), older.value());
    let refused = move || {
        let problem = answer.with(|answer| answer.as_ref()?.as_ref().err().map(ToString::to_string))?;
        Some(view! { <p class="mistake" role="alert">{inert_code(&problem)}</p> })
    };
    let more = NodeRef::<html::Div>::new();
    // The focusable elements of the list above; `None` if the page is gone.
    let list = move || {
        let more = more.try_get_untracked().flatten()?;
        Some(focusable_before(&more.parent_element()?, &more))
    };
    let before = StoredValue::new(None::<usize>);
    let load = move |()| {
        if let Some(next) = next.get_untracked() {
            before.set_value(list().map(|list| list.len()));
            older.dispatch_local(next);
        }
    };
    // After a load, the focus moves to the first new element.
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
                <Button class="b" off=busy press=load>{label}</Button>
                {refused}
            </Show>
        </div>
    }
}
