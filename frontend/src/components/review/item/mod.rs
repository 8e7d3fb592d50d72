//! One item: its value, an editor, and comparisons with the edit or with earlier content.

mod edit;
mod tabs;

use leptos::prelude::*;
use shared::definition::ContentType;
use shared::error::{Mistake, pointer};
use shared::review::Item;

use self::edit::Edit;
use self::tabs::{ItemStates, ItemTab, OpenTab, TabButton, use_tab, walk};
use super::guardrails::GuardrailNotes;
use super::pane::Pane;
use super::value::ValueView;
use crate::components::diff::Diff;
use crate::components::inert::{inert, inert_code};
use crate::components::listeners::while_shown;
use crate::state::guardrail_notes::NotePlace;
use crate::state::unparsed::Unparsed;
use crate::state::verdict::is_at;
use crate::state::{earlier, record};

/// The card of an item, with tabs to read it, edit it, and compare its versions.
#[component]
pub fn ItemCard(pane: Pane, item: Item) -> impl IntoView {
    let key = StoredValue::new(item.key.clone());
    let item = StoredValue::new(item);
    let content_type = item.with_value(|item| item.content_type);
    let editable = item.with_value(|item| item.editable);
    let may_edit = Memo::new(move |_| editable && pane.is_open());
    let over = Memo::new(move |_| pane.review.with(|review| !review.is_pending()));
    // While the review is pending, the edit in the draft; afterwards, only the accepted edit on record.
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
        let (read, round) = (pane.before.get(), pane.round.get());
        let now = pane.review.get();
        key.with_value(|key| earlier::value(key, &now, read.as_deref(), round.as_deref()))
    });
    let OpenTab { tab, chosen } = use_tab(pane, item, ItemStates { may_edit, over, edited, before, mistakes });
    let kind = item.with_value(kind);
    let kind = move || {
        let says = [kind, may_edit.get().then_some("you may edit")];
        says.into_iter().flatten().collect::<Vec<_>>().join(", ")
    };
    let single = move || !may_edit.get() && edited.with(Option::is_none) && before.with(Option::is_none);
    let name = item.with_value(|item| item.label.clone().unwrap_or_else(|| item.key.clone()));
    let panel_name = name.clone();
    let panel = format!("item-{}-{}", pane.id, item.with_value(|item| item.key.clone()));
    let shown = move || item.with_value(|item| item.value.clone());
    let has_edit = Signal::derive(move || edited.with(Option::is_some));
    let says = move |before: &'static str, after: &'static str| {
        Signal::derive(move || if over.get() { after.to_owned() } else { before.to_owned() })
    };
    view! {
        <section class="card item" role=pane.card_role() aria-label=name.clone() on:focusout=while_shown(move |_| pane.check())>
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
                        label=Signal::derive(move || before.with(|before| before.as_ref().map(|(since, _)| since.label(pane.session.username().as_deref()))).unwrap_or_default())
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
                                "Sent with your approval. Both versions stay in the audit log."
                            </span>
                            <button
                                class="b sm"
                                on:click=move |_| {
                                    let key = key.get_value();
                                    pane.workspace
                                        .write(
                                            &pane.review.get_untracked(),
                                            |draft| {
                                                draft.edits.shift_remove(&key);
                                                draft.unparsed.set(&pointer(["edits", key.as_str()]), Unparsed::default());
                                            },
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
            {move || mistakes.get().into_iter().map(|text| view! { <p class="mistake pad">{inert_code(&text)}</p> }).collect_view()}
        </section>
    }
}

/// The kind of an item, where it says something: a plain text is one in sight, and a name may say it already.
fn kind(item: &Item) -> Option<&'static str> {
    let kind = match item.content_type {
        ContentType::Markdown => "markdown",
        ContentType::Text => return None,
        ContentType::Code => "code",
        ContentType::Json if item.value.is_number() => "number",
        ContentType::Json => "data",
        ContentType::Table => "table",
        ContentType::Image => "picture",
    };
    let name = item.label.as_deref().unwrap_or(&item.key);
    (!name.trim().eq_ignore_ascii_case(kind)).then_some(kind)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_kind_is_said_only_where_the_name_does_not_say_it() {
        let said = |key: &str, label: Option<&str>, content_type: &str| {
            let item =
                json!({ "key": key, "label": label, "content_type": content_type, "value": "x", "editable": true });
            kind(&serde_json::from_value(item).unwrap())
        };
        assert_eq!(said("text", Some("Text"), "text"), None);
        assert_eq!(said("article", None, "text"), None);
        assert_eq!(said("code", None, "code"), None);
        assert_eq!(said("patch", Some("Code"), "code"), None);
        assert_eq!(said("patch", None, "code"), Some("code"));
    }
}
