//! A list of rows of one schema: add, remove, and move up or down. The content of a row can be any field, which is
//! passed in.

use leptos::prelude::*;

use super::draft::{Content, FieldDraft, ListRow};
use super::place::{FieldPlace, heading, messages_at};
use crate::components::button::Button;
use crate::components::glyph::Glyph;
use crate::components::inert::{inert, inert_code, named};
use crate::state::schema::Kind;

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
    let add = move |()| {
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
            <p class="mistake" aria-live="polite">{move || inert_code(&said.get())}</p>
            <Button class="b sm" press=add off=Signal::derive(move || count() >= max)
                label=format!("Add a row to {}", named(&spoken))><Glyph icon=icondata::LuPlus/>"Add a row"</Button>
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
    let swap_with_next = move |at: usize| {
        rows.update(|rows| {
            if at + 1 < rows.len() {
                rows.swap(at, at + 1);
            }
        });
    };
    let remove = move |()| rows.update(|rows| rows.retain(|row| row.key != key));
    let spoken = move |words: &'static str| Signal::derive(move || words.replace('#', &number().to_string()));
    let place = place.child(Signal::derive(move || at.get().to_string()));
    view! {
        <li class="list-row">
            <span class="list-number" aria-hidden="true">{number}</span>
            <div class="list-field">{field(&row.draft, "", place)}</div>
            <div class="list-tools" role="group" aria-label=move || format!("Row {}", number())>
                <Button class="b ghost sm icon" title="Move up" label=spoken("Move row # up")
                    off=Signal::derive(move || at.get() == 0)
                    press=move |()| at.get_untracked().checked_sub(1).into_iter().for_each(swap_with_next)><Glyph icon=icondata::LuArrowUp/></Button>
                <Button class="b ghost sm icon" title="Move down" label=spoken("Move row # down")
                    off=Signal::derive(last)
                    press=move |()| swap_with_next(at.get_untracked())><Glyph icon=icondata::LuArrowDown/></Button>
                <Button class="b ghost sm icon" title="Remove" label=spoken("Remove row #")
                    off=Signal::derive(move || rows.with(Vec::len) <= min) press=remove><Glyph icon=icondata::LuTrash2/></Button>
            </div>
        </li>
    }
}
