//! The tabs of an item's card: which exist, which one is open, and how keys move between them.

use leptos::prelude::*;
use serde_json::Value;
use shared::error::pointer;
use shared::review::Item;
use wasm_bindgen::JsCast;

use crate::components::review::pane::Pane;
use crate::state::earlier::Since;
use crate::state::verdict::unwritten;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemTab {
    /// The proposed value.
    Read,
    /// A form that changes the value; only while the person may edit it.
    Edit,
    /// The edited value: from the draft, or as accepted once the review is resolved.
    Edited,
    /// The difference between the proposed and the edited value.
    Changes,
    /// The difference from an earlier value.
    Since,
}

/// The states that determine the tabs of a card.
#[derive(Clone, Copy)]
pub struct ItemStates {
    /// Whether the person may edit the value now.
    pub may_edit: Memo<bool>,
    pub over: Memo<bool>,
    /// The edited value: from the draft, or as accepted once the review is resolved. `None` without an edit.
    pub edited: Memo<Option<Value>>,
    /// An earlier value that differs, and since when.
    pub before: Memo<Option<(Since, Value)>>,
    pub mistakes: Memo<Vec<String>>,
}

/// The open tab, and whether it was changed.
#[derive(Clone, Copy)]
pub struct OpenTab {
    pub tab: RwSignal<ItemTab>,
    /// Whether the open tab has changed since the card was created. Only then does an opened form take the focus.
    pub chosen: StoredValue<bool>,
}

/// Creates the tab state of a card, which follows the states of the value.
pub fn use_tab(pane: Pane, item: StoredValue<Item>, states: ItemStates) -> OpenTab {
    let ItemStates { may_edit, over, edited, before, mistakes } = states;
    // A required text starts in its editor, and so does one with a text that cannot be read, but without the focus, so that a
    // person can keep walking through the list.
    let unfinished = item.with_value(|item| {
        let draft = pane.workspace.draft_now(pane.id);
        draft.unparsed.has(&pointer(["edits", item.key.as_str()]))
            || pane.review.with_untracked(|review| unwritten(review, &draft).any(|blank| blank.key == item.key))
    });
    let tab = RwSignal::new(if unfinished && may_edit.get_untracked() { ItemTab::Edit } else { ItemTab::Read });
    let chosen = StoredValue::new(false);
    Effect::new(move |before: Option<ItemTab>| {
        let now = tab.get();
        if before.is_some_and(|before| before != now) {
            chosen.set_value(true);
        }
        now
    });
    // An edit from before, or from another tab, is sent with the decision, so it is shown first.
    Effect::new(move |had: Option<bool>| {
        let has = edited.with(Option::is_some);
        if has && had != Some(true) && !over.get_untracked() && tab.get_untracked() == ItemTab::Read {
            tab.set(ItemTab::Changes);
        }
        has
    });
    // A change that arrives while the person reads is shown first; only once, since they may then edit.
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
        // What is sent must be in sight.
        if !possible {
            tab.set(if edited.with(Option::is_some) { ItemTab::Changes } else { ItemTab::Read });
        }
    });
    // Mistakes are shown where they can be corrected.
    Effect::new(move |_| {
        if !mistakes.with(Vec::is_empty) && may_edit.get() {
            tab.set(ItemTab::Edit);
        }
    });
    // Once the review is resolved, the accepted value is what counts.
    Effect::new(move |_| {
        if over.get() && edited.with(Option::is_some) {
            tab.set(ItemTab::Edited);
        }
    });
    // The key for editing opens the first editable item.
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

/// Handles the keys of a tab list: arrow keys, Home and End move the focus, Enter and the space bar open a tab. This is
/// the WAI-ARIA pattern with manual activation, since the editor takes the focus.
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

/// The button of a tab, while `shown` is true.
#[component]
pub fn TabButton(
    tab: RwSignal<ItemTab>,
    own: ItemTab,
    /// The id of the element that the tabs control.
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
