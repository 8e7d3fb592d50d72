//! What stands in for content: nothing there, not loaded yet, could not be loaded.

use icondata::Icon as IconData;
use leptos::prelude::*;
use shared::error::Problem;

use super::glyph::Glyph;

/// Nothing there, said kindly, with what to do about it as children.
#[component]
pub fn Empty(
    /// An icon.
    icon: IconData,
    /// What is not there.
    #[prop(into)]
    title: String,
    /// Why, and what to do.
    #[prop(optional)]
    children: Option<Children>,
) -> impl IntoView {
    view! {
        <div class="empty">
            <Glyph icon=icon />
            <b>{title}</b>
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
    /// Why.
    problem: Problem,
    /// What "Try again" does.
    #[prop(optional, into)]
    retry: Option<Callback<()>>,
) -> impl IntoView {
    view! {
        <div class="failed" role="alert">
            <Glyph icon=icondata::LuTriangleAlert />
            <b>{title}</b>
            <p>{problem.to_string()}</p>
            {retry.map(|retry| view! { <button class="b" on:click=move |_| retry.run(())>"Try again"</button> })}
        </div>
    }
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
