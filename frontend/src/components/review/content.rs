//! The content of a review: the question, its values and its actions, and the options that describe themselves.

use leptos::prelude::*;
use serde_json::Value;
use shared::review::{Action, Item, ReviewOption};

use super::action::ActionCard;
use super::item::ItemCard;
use super::options::options;
use super::pane::Pane;
use crate::components::inert::inert_code;
use crate::components::markdown::Markdown;
use crate::state::{distinction, words};

/// What the person is asked, and what they read before they decide.
#[component]
pub fn Content(pane: Pane) -> impl IntoView {
    let review = pane.review;
    let prompt = Memo::new(move |_| review.with(|review| distinction::prompt(review).map(ToOwned::to_owned)));
    let asks = Memo::new(move |_| review.with(|review| words::who_asks(review)));
    let items = Memo::new(move |_| review.with(|review| review.items.clone()));
    let actions = Memo::new(move |_| review.with(|review| review.actions.clone()));
    // The bar has room for the description of one option at a time.
    let described = Memo::new(move |_| {
        let is_described = |option: &ReviewOption| option.description.is_some();
        review.with(|review| if review.options.iter().any(is_described) { review.options.clone() } else { Vec::new() })
    });
    view! {
        <div class="prompt">
            {move || asks.get().map(|asks| view! { <p class="asks small muted">{inert_code(&asks)}</p> })}
            {move || prompt.get().map(|prompt| view! { <Markdown text=prompt /> })}
        </div>
        <For each=move || items.get() key=item_key let:item>
            <ItemCard pane=pane item=item />
        </For>
        <For each=move || actions.get() key=action_key let:action>
            <ActionCard pane=pane action=action />
        </For>
        {move || described.with(|described| (!described.is_empty()).then(|| options(described, pane.card_role())))}
    }
}

/// The key of a card, which is rendered again only when its content changes.
fn item_key(item: &Item) -> (String, String, bool) {
    (item.key.clone(), item.value.to_string(), item.editable)
}

fn action_key(action: &Action) -> (String, String) {
    (action.id.clone(), Value::Object(action.arguments.clone()).to_string())
}
