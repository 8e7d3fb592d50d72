//! A list of rows of one schema: add, remove, and move up or down. The content of a row can be any field, which is
//! passed in.

use leptos::prelude::*;

use super::draft::{Content, FieldDraft, ListRow};
use super::place::{FieldPlace, heading, messages_at};
use super::schema::Kind;
use crate::components::glyph::Glyph;
use crate::components::inert::{inert, named};

/// Renders a field, given its key and place.
type FieldView = fn(&FieldDraft, &str, FieldPlace) -> AnyView;

/// Renders a list. `name` is its key; `field` renders the content of a row.
pub fn list_view(draft: &FieldDraft, name: &str, place: FieldPlace, field: FieldView) -> AnyView {
    let (Content::List(rows), Kind::List { min, max, .. }) = (&draft.content, &draft.shape.kind) else {
        return ().into_any();
    };
    let (min, max) = (*min, *max);
    let rows = RwSignal::from(rows.clone());
    let said = messages_at(place, false);
    let list = StoredValue::new(draft.clone());
    let add = move |_| {
        if let Some(row) = list.with_value(FieldDraft::new_row) {
            rows.update(|rows| rows.push(row));
        }
    };
    let count = move || rows.with(Vec::len);
    let spoken = draft.shape.title.clone().unwrap_or_else(|| name.to_owned());
    view! {
        <fieldset class="field-group list" class:bad=move || !said.get().is_empty()>
            <legend>{heading(draft, name)}</legend>
            {draft.shape.description.clone().map(|text| view! { <p class="hint">{inert(&text)}</p> })}
            <ol class="list-rows">
                <For each=move || rows.get() key=|row| row.key children=move |row| row_view(&row, rows, min, place, field)/>
            </ol>
            <Show when=move || count() == 0><p class="list-empty">"No rows yet."</p></Show>
            <p class="mistake" aria-live="polite">{said}</p>
            <button type="button" class="b sm" on:click=add
                disabled=move || { place.disabled.get() || count() >= max }
                aria-label=format!("Add a row to {}", named(&spoken))><Glyph icon=icondata::LuPlus/>"Add a row"</button>
        </fieldset>
    }
    .into_any()
}

fn row_view(
    row: &ListRow,
    rows: RwSignal<Vec<ListRow>>,
    min: usize,
    place: FieldPlace,
    field: FieldView,
) -> impl IntoView + use<> {
    let key = row.key;
    let at = Memo::new(move |_| rows.with(|rows| rows.iter().position(|row| row.key == key)).unwrap_or_default());
    let number = move || at.get() + 1;
    let last = move || at.get() + 1 >= rows.with(Vec::len);
    let swap = move |from: usize, to: usize| {
        rows.update(|rows| {
            if from < rows.len() && to < rows.len() {
                rows.swap(from, to);
            }
        });
    };
    let remove = move |_| rows.update(|rows| rows.retain(|row| row.key != key));
    let locked = move || place.disabled.get();
    let place = place.child(Signal::derive(move || at.get().to_string()));
    view! {
        <li class="list-row">
            <span class="list-number" aria-hidden="true">{number}</span>
            <div class="list-field">{field(&row.draft, "", place)}</div>
            <div class="list-tools" role="group" aria-label=move || format!("Row {}", number())>
                <button type="button" class="b ghost sm icon" title="Move up" aria-label=move || format!("Move row {} up", number())
                    disabled=move || { locked() || at.get() == 0 }
                    on:click=move |_| { let at = at.get_untracked(); swap(at, at.saturating_sub(1)); }><Glyph icon=icondata::LuArrowUp/></button>
                <button type="button" class="b ghost sm icon" title="Move down" aria-label=move || format!("Move row {} down", number())
                    disabled=move || { locked() || last() }
                    on:click=move |_| { let at = at.get_untracked(); swap(at, at + 1); }><Glyph icon=icondata::LuArrowDown/></button>
                <button type="button" class="b ghost sm icon" title="Remove" aria-label=move || format!("Remove row {}", number())
                    disabled=move || { locked() || rows.with(Vec::len) <= min } on:click=remove><Glyph icon=icondata::LuTrash2/></button>
            </div>
        </li>
    }
}
