//! One item: read it, edit it, see what you changed, see what changed while you read.

use leptos::html;
use leptos::prelude::*;
use serde_json::Value;
use shared::definition::ContentType;
use shared::error::{Mistake, pointer};
use shared::review::Item;
use wasm_bindgen::JsCast;

use super::guardrails::GuardrailNotes;
use super::pane::Pane;
use super::value::ValueView;
use crate::components::diff::Diff;
use crate::components::focus::{FIELD, focus_within};
use crate::components::inert::inert;
use crate::components::schema_form::SchemaForm;
use crate::state::guardrail_notes::NotePlace;
use crate::state::verdict::{is_at, unwritten};
use crate::state::{extent, record};

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

/// The card of a shown value, with tabs to read it, edit it, and compare its versions.
#[component]
pub fn ItemCard(pane: Pane, item: Item) -> impl IntoView {
    let key = StoredValue::new(item.key.clone());
    let item = StoredValue::new(item);
    let content_type = item.with_value(|item| item.content_type);
    let editable = item.with_value(|item| item.editable);
    let may_edit = Memo::new(move |_| editable && pane.is_open());
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
    let over = Memo::new(move |_| pane.review.with(|review| !review.is_pending()));
    // While it waits: what this person would have. Once it is over, only what the record says was accepted.
    let edited = Memo::new(move |_| {
        let edit = if over.get() {
            key.with_value(|key| pane.review.with(|review| record::accepted_edit(review, key)))
        } else {
            key.with_value(|key| pane.workspace.drafts.with(|drafts| drafts.review(pane.id)?.edits.get(key).cloned()))
        };
        edit.filter(|edit| item.with_value(|item| item.value != *edit))
    });
    let path = pointer(["edits", item.with_value(|item| item.key.clone()).as_str()]);
    let mistakes = Memo::new(move |_| {
        let here = |all: &Vec<Mistake>| -> Vec<String> {
            all.iter().filter(|one| is_at(one, &path)).map(|one| one.message.clone()).collect()
        };
        pane.mistakes.with(here)
    });
    let before = Memo::new(move |_| {
        let before = pane.before.get()?;
        let old = key.with_value(|key| before.items.iter().find(|old| old.key == *key).map(|old| old.value.clone()))?;
        item.with_value(|item| old != item.value).then_some((before.revision, old))
    });
    // An edit of before, or of another tab, is sent with the decision: it is what they see.
    Effect::new(move |had: Option<bool>| {
        let has = edited.with(Option::is_some);
        if has && had != Some(true) && !over.get_untracked() && tab.get_untracked() == ItemTab::Read {
            tab.set(ItemTab::Changes);
        }
        has
    });
    // A change that came while the person was reading is what they see first.
    Effect::new(move |_| {
        if before.with(Option::is_some) && pane.has_changed() {
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
    let kind = match content_type {
        ContentType::Markdown => "markdown",
        ContentType::Text => "text",
        ContentType::Code => "code",
        ContentType::Json => item.with_value(|item| if item.value.is_number() { "number" } else { "data" }),
        ContentType::Table => "table",
        ContentType::Image => "picture",
    };
    let kind = move || if may_edit.get() { format!("{kind}, you may edit") } else { kind.to_owned() };
    let single = move || !may_edit.get() && edited.with(Option::is_none) && before.with(Option::is_none);
    let name = item.with_value(|item| item.label.clone().unwrap_or_else(|| item.key.clone()));
    let panel_name = name.clone();
    let panel = format!("item-{}", item.with_value(|item| item.key.clone()));
    let shown = move || item.with_value(|item| item.value.clone());
    let has_edit = Signal::derive(move || edited.with(Option::is_some));
    let says = move |before: &'static str, after: &'static str| {
        Signal::derive(move || if over.get() { after.to_owned() } else { before.to_owned() })
    };
    view! {
        <section class="card item" aria-label=name.clone() on:focusout=move |_| pane.check()>
            <header>
                {item
                    .with_value(|item| item.label.clone())
                    .map_or_else(|| view! { <code>{key.get_value()}</code> }.into_any(), |label| view! { <b>{inert(&label)}</b> }.into_any())}
                <span class="muted cut">{kind}</span>
                <Show when=move || edited.with(Option::is_some)>
                    <span class="tag accent">{move || if over.get() { "approved with an edit" } else { "edited by you" }}</span>
                </Show>
                <div class="tabs" role="tablist" aria-label=name.clone() hidden=single on:keydown=walk>
                    <TabButton tab panel=panel.clone() own=ItemTab::Read label=says("Read", "Proposed") shown=Signal::stored(true) />
                    <TabButton tab panel=panel.clone() own=ItemTab::Edit label="Edit" shown=may_edit />
                    <TabButton tab panel=panel.clone() own=ItemTab::Edited label=says("Preview", "As approved") shown=has_edit />
                    <TabButton tab panel=panel.clone() own=ItemTab::Changes label=says("Your changes", "Changes") shown=has_edit />
                    <TabButton
                        tab
                        panel=panel.clone()
                        own=ItemTab::Since
                        label=Signal::derive(move || before.with(|b| b.as_ref().map(|(r, _)| format!("Since revision {r}"))).unwrap_or_default())
                        shown=Signal::derive(move || before.with(Option::is_some))
                    />
                </div>
            </header>
            <div class="tab-panel" id=panel.clone() role=move || (!single()).then_some("tabpanel") aria-label=move || (!single()).then(|| panel_name.clone())>
            {move || match tab.get() {
                ItemTab::Read => view! { <ValueView content_type=content_type value=shown() /> }.into_any(),
                ItemTab::Edited => {
                    let value = edited.get().unwrap_or_else(shown);
                    view! { <ValueView content_type=content_type value=value /> }.into_any()
                }
                ItemTab::Edit => view! { <Edit pane=pane item=item.get_value() focus=chosen /> }.into_any(),
                ItemTab::Changes => {
                    let new = edited.get().unwrap_or_else(shown);
                    view! {
                        <Diff content_type=content_type old=shown() new=new />
                        <footer hidden=over>
                            <span class="small muted grow">
                                "Sent with your approval. Both versions stay on the record."
                            </span>
                            <button
                                class="b sm"
                                on:click=move |_| {
                                    let key = key.get_value();
                                    pane.workspace
                                        .write(
                                            &pane.review.get_untracked(),
                                            |draft| drop(draft.edits.shift_remove(&key)),
                                        );
                                }
                            >
                                "Discard changes"
                            </button>
                        </footer>
                    }
                        .into_any()
                }
                ItemTab::Since => {
                    let old = before.get().map(|(_, old)| old).unwrap_or_default();
                    view! { <Diff content_type=content_type old=old new=shown() /> }.into_any()
                }
            }}
            </div>
            <GuardrailNotes pane=pane place=NotePlace::Key(key.get_value()) />
            {move || mistakes.get().into_iter().map(|text| view! { <p class="mistake pad">{text}</p> }).collect_view()}
        </section>
    }
}

/// Arrow keys, Home and End move among the tabs of the list, Enter and the space bar open one: the pattern of WAI-ARIA,
/// without opening at each step, since the editor takes the focus.
fn walk(event: web_sys::KeyboardEvent) {
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

/// The form of an item: a text field for texts, else made from its schema.
#[component]
fn Edit(pane: Pane, item: Item, focus: StoredValue<bool>) -> impl IntoView {
    let draft = pane.workspace.draft_now(pane.id);
    let current = draft.edits.get(&item.key).unwrap_or(&item.value).clone();
    if let Some(reason) = extent::too_large_to_send(&current) {
        return view! { <p class="banner warn">{reason}</p> }.into_any();
    }
    let form = NodeRef::<html::Div>::new();
    Effect::new(move |_| {
        // Where something is wrong, that is gone to.
        let opened = focus.get_value() && pane.mistakes.with_untracked(Vec::is_empty);
        if let (Some(form), true) = (form.get(), opened) {
            focus_within(&form, FIELD);
        }
    });
    let path = pointer(["edits", item.key.as_str()]);
    let plain = item.schema.as_ref().is_none_or(|schema| {
        schema.get("type").and_then(Value::as_str) == Some("string")
            && schema.get("enum").is_none()
            && schema.get("format").is_none()
    });
    let mistakes = Signal::derive(move || pane.mistakes.get());
    let at = path.clone();
    let wrong = Memo::new(move |_| mistakes.with(|mistakes| mistakes.iter().any(|one| is_at(one, &at))));
    let key = item.key.clone();
    let shown = item.value.clone();
    let write = move |value: Value| {
        pane.workspace.write(&pane.review.get_untracked(), |draft| draft.edit(&key, value, &shown));
    };
    if let (Some(text), true) = (current.as_str(), plain) {
        let code = item.content_type == ContentType::Code;
        let node = NodeRef::<html::Textarea>::new();
        Effect::new(move |_| grow_once_shown(node));
        view! {
            <div class="edit" node_ref=form>
                <textarea
                    node_ref=node
                    class="textarea"
                    class:mono=code
                    aria-label=format!("Edit {}", item.label.as_deref().unwrap_or(&item.key))
                    aria-invalid=move || wrong.get().to_string()
                    prop:value=text.to_owned()
                    spellcheck=if code { "false" } else { "true" }
                    on:input=move |event| {
                        write(Value::String(event_target_value(&event)));
                        if let Some(field) = node.get_untracked() {
                            grow(&field);
                        }
                    }
                ></textarea>
            </div>
        }
        .into_any()
    } else {
        let schema = item.schema.clone().unwrap_or_else(|| Value::Object(shared::JsonMap::new()));
        let value = RwSignal::new(current);
        let sound = RwSignal::new(true);
        pane.count_unsound(sound);
        Effect::new(move |previous: Option<()>| {
            let value = value.get();
            if previous.is_some() && sound.get() {
                write(value);
            }
        });
        let label = item.label.clone().unwrap_or_else(|| item.key.clone());
        view! { <div class="edit" node_ref=form><SchemaForm schema=schema value=value errors=mistakes base=path label=label sound=sound /></div> }
                .into_any()
    }
}

/// Makes a text field as high as its text once it is in the page: before that it has no height.
pub fn grow_once_shown(field: NodeRef<html::Textarea>) {
    if let Some(field) = field.get() {
        request_animation_frame(move || grow(&field));
    }
}

/// Makes a text field as high as its text.
fn grow(field: &web_sys::HtmlTextAreaElement) {
    let style = web_sys::HtmlElement::style(field);
    // Setting a known property to a valid value cannot fail.
    drop(style.set_property("height", "auto"));
    drop(style.set_property("height", &format!("{}px", field.scroll_height() + 2)));
}
