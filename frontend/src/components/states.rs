//! What stands in for content: nothing there, not loaded yet, could not be loaded.

use gloo_timers::future::TimeoutFuture;
use icondata::Icon as IconData;
use leptos::prelude::*;
use leptos::task::spawn_local;
use shared::error::Problem;
use wasm_bindgen::JsCast;

use super::glyph::Glyph;

/// Nothing there, said kindly, with what to do about it as children.
#[component]
pub fn Empty(
    /// An icon.
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
) -> impl IntoView {
    view! {
        <div class="failed" role="alert">
            <Glyph icon=icondata::LuTriangleAlert />
            {if page { view! { <h1>{title}</h1> }.into_any() } else { view! { <b>{title}</b> }.into_any() }}
            <p>{problem.to_string()}</p>
            {retry.map(|retry| view! { <button class="b" on:click=move |_| retry.run(())>"Try again"</button> })}
        </div>
    }
}

/// What was loaded, once it is there: bars until then, and why it failed with a way to try again. What is shown stays
/// while it is loaded anew.
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

/// Where to look for the first field that is marked as wrong: it may be out of sight. A list has a button to add what it
/// lacks.
pub const MISTAKE: &str = "[aria-invalid=true], .list.bad > button";

/// What can have the focus.
const FOCUSABLE: &str = "input, select, textarea, button, a[href], summary, [tabindex]";

/// Gives the focus to the first place that a selector finds, or to the first thing in it that can have it, once the page
/// is drawn. What is folded away around it is opened.
pub fn focus_on(selector: impl Into<std::borrow::Cow<'static, str>>) {
    let selector = selector.into();
    spawn_local(async move {
        TimeoutFuture::new(0).await;
        let Some(found) = document().query_selector(&selector).ok().flatten() else { return };
        while let Some(folded) = found.closest("details:not([open])").ok().flatten() {
            // Without it there is no way in; to open it cannot fail.
            if folded.set_attribute("open", "").is_err() {
                break;
            }
        }
        let takes_it = found.matches(FOCUSABLE).unwrap_or(false);
        let inside = || found.query_selector(FOCUSABLE).ok().flatten();
        let place = if takes_it { Some(found.clone()) } else { inside().or_else(|| Some(found.clone())) };
        if let Some(place) = place.and_then(|place| place.dyn_into::<web_sys::HtmlElement>().ok()) {
            drop(place.focus());
        }
    });
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
