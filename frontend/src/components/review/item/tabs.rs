//! The tabs of an item's card: which exist, which one is open, and how keys move among them.

use leptos::prelude::*;
use serde_json::Value;
use shared::review::Item;
use wasm_bindgen::JsCast;

use crate::components::review::pane::Pane;
use crate::state::earlier::Since;
use crate::state::verdict::unwritten;

/// A tab of a card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemTab {
    /// As it stands on the record.
    Read,
    /// A form that changes the value; only while the person may.
    Edit,
    /// As the person would have it; as it was accepted, once that is over.
    Edited,
    /// What is different there.
    Changes,
    /// What changed while they read.
    Since,
}

/// What decides which tabs a card has.
#[derive(Clone, Copy)]
pub struct ItemStates {
    /// Whether the person may change the value now.
    pub may_edit: Memo<bool>,
    /// Whether the review is over.
    pub over: Memo<bool>,
    /// The value as the person would have it; as it was accepted, once that is over.
    pub edited: Memo<Option<Value>>,
    /// What the value was before.
    pub before: Memo<Option<(Since, Value)>>,
    /// What is wrong with it.
    pub mistakes: Memo<Vec<String>>,
}

/// The tab that is open, and whether the person has been at another one.
#[derive(Clone, Copy)]
pub struct OpenTab {
    /// Which one it is.
    pub tab: RwSignal<ItemTab>,
    /// Whether it is another one than at first: a form that is opened takes the focus.
    pub chosen: StoredValue<bool>,
}

/// The tab of a card, which follows what becomes of the value.
pub fn use_tab(pane: Pane, item: StoredValue<Item>, states: ItemStates) -> OpenTab {
    let ItemStates { may_edit, over, edited, before, mistakes } = states;
    // What is to be written is there to be written; whoever walks through the list keeps the focus there all the same.
    let blank = item.with_value(|item| {
        let draft = pane.workspace.draft_now(pane.id);
        pane.review.with_untracked(|review| unwritten(review, &draft).any(|blank| blank.key == item.key))
    });
    let tab = RwSignal::new(if blank && may_edit.get_untracked() { ItemTab::Edit } else { ItemTab::Read });
    let chosen = StoredValue::new(false);
    Effect::new(move |before: Option<ItemTab>| {
        let now = tab.get();
        if before.is_some_and(|before| before != now) {
            chosen.set_value(true);
        }
        now
    });
    // An edit of before, or of another tab, is sent with the decision: it is what they see.
    Effect::new(move |had: Option<bool>| {
        let has = edited.with(Option::is_some);
        if has && had != Some(true) && !over.get_untracked() && tab.get_untracked() == ItemTab::Read {
            tab.set(ItemTab::Changes);
        }
        has
    });
    // A change that came while the person was reading is what they see first; once, since they may edit meanwhile.
    let has_come = Memo::new(move |_| {
        let is_new = |(since, _): &(Since, Value)| !matches!(since, Since::Round(_));
        before.with(|before| before.as_ref().is_some_and(is_new)) && pane.has_changed()
    });
    Effect::new(move |_| {
        if has_come.get() {
            tab.set(ItemTab::Since);
        }
    });
    Effect::new(move |_| {
        let possible = match tab.get() {
            ItemTab::Read => true,
            ItemTab::Edit => may_edit.get(),
            ItemTab::Edited | ItemTab::Changes => edited.with(Option::is_some),
            ItemTab::Since => before.with(Option::is_some),
        };
        if !possible {
            tab.set(ItemTab::Read);
        }
    });
    // What is wrong is shown where it can be mended.
    Effect::new(move |_| {
        if !mistakes.with(Vec::is_empty) && may_edit.get() {
            tab.set(ItemTab::Edit);
        }
    });
    // What was accepted is what counts from then on.
    Effect::new(move |_| {
        if over.get() && edited.with(Option::is_some) {
            tab.set(ItemTab::Edited);
        }
    });
    // The key that edits opens the first value that can be edited.
    let first = item.with_value(|item| {
        pane.review
            .with_untracked(|review| review.items.iter().find(|item| item.editable).map(|first| first.key.clone()))
            == Some(item.key.clone())
    });
    Effect::new(move |previous: Option<()>| {
        pane.edit.track();
        if previous.is_some() && first && may_edit.get_untracked() {
            tab.set(if tab.get_untracked() == ItemTab::Edit { ItemTab::Read } else { ItemTab::Edit });
        }
    });
    OpenTab { tab, chosen }
}

/// Arrow keys, Home and End move among the tabs of the list, Enter and the space bar open one: the pattern of WAI-ARIA,
/// without opening at each step, since the editor takes the focus.
pub fn walk(event: web_sys::KeyboardEvent) {
    let list = event.current_target().and_then(|list| list.dyn_into::<web_sys::Element>().ok());
    let (Some(list), Some(now)) = (list, document().active_element()) else { return };
    let first = || list.first_element_child();
    let last = || list.last_element_child();
    let next = match event.key().as_str() {
        "ArrowRight" => now.next_element_sibling().or_else(first),
        "ArrowLeft" => now.previous_element_sibling().or_else(last),
        "Home" => first(),
        "End" => last(),
        _ => return,
    };
    if let Some(next) = next.and_then(|next| next.dyn_into::<web_sys::HtmlElement>().ok()) {
        event.prevent_default();
        drop(next.focus());
    }
}

/// A button of the tabs, while it can be shown.
#[component]
pub fn TabButton(
    tab: RwSignal<ItemTab>,
    own: ItemTab,
    /// The id of what the tabs show.
    panel: String,
    #[prop(into)] label: Signal<String>,
    #[prop(into)] shown: Signal<bool>,
) -> impl IntoView {
    view! {
        <Show when=move || shown.get()>
            <button
                type="button"
                role="tab"
                aria-selected=move || (tab.get() == own).to_string()
                aria-controls=panel.clone()
                tabindex=move || if tab.get() == own { "0" } else { "-1" }
                on:click=move |_| tab.set(own)
            >
                {label}
            </button>
        </Show>
    }
}
