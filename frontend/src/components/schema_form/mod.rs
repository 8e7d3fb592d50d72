//! A form made from a JSON Schema. It keeps types (a number stays a number, a missing key stays missing), shows every
//! key of the value, and has the same value as raw JSON in a second tab. The server validates; its errors appear at the
//! fields that they name.

mod draft;
mod field;
mod list;
mod place;
mod raw;
mod several;
mod unparsed;

use leptos::prelude::*;
use serde_json::Value;
use shared::error::Mistake;

use self::draft::FieldDraft;
pub use self::draft::next_key;
use self::field::field_view;
use self::place::FieldPlace;
use self::raw::{RawJson, follow, mistake_in, pretty};
use self::unparsed::{LeftOver, flaw_of, keep_equal, typed};
use crate::components::inert::inert_code;
use crate::state::extent;
use crate::state::unparsed::Unparsed;

/// A form for `value`.
///
/// `base` is the JSON pointer of the value in the request, as in the server's mistakes. `flaw` is the first mistake that
/// the browser finds, after the title of its field. The form shows the value as it is: one that nobody has changed starts
/// with [`crate::state::schema::initial`].
#[component]
pub fn SchemaForm(
    /// The JSON Schema of the value; `{}` for any value.
    #[prop(into)]
    schema: Value,
    /// The value, which is read and written.
    value: RwSignal<Value>,
    /// The mistakes found by the server.
    #[prop(into)]
    errors: Signal<Vec<Mistake>>,
    /// The JSON pointer of the value.
    #[prop(into, optional)]
    base: String,
    /// The label of the field if the schema has no title and is not an object.
    #[prop(into, optional)]
    label: String,
    /// Set to the first mistake in the form.
    flaw: RwSignal<Option<String>>,
    /// The texts that cannot be read, by their places in the value, which has older values there. They are read and
    /// written.
    unparsed: RwSignal<Unparsed>,
) -> impl IntoView {
    // A value that is not an object already cannot become one here.
    let is_object =
        schema.get("type").is_some_and(|declared| declared == "object") && value.with_untracked(Value::is_object);
    // Fields for so many values would block the browser for seconds; one text does not.
    if value.with_untracked(|value| extent::has_more_than(value, extent::MAX_FIELDS)) {
        return view! { <JsonAlone value errors base flaw unparsed object=is_object/> }.into_any();
    }
    let schema = StoredValue::new(schema);
    let whole = move || unparsed.with_untracked(|texts| texts.get("").map(str::to_owned));
    // The draft of the fields, and the texts that have no field.
    let build = move |value: &Value| {
        let mut texts = unparsed.get_untracked();
        texts.take("");
        let draft = schema.with_value(|schema| FieldDraft::new(schema, value, &mut texts));
        (draft, texts)
    };
    let (first, without_field) = value.with_untracked(build);
    let (draft, left) = (RwSignal::new(first), RwSignal::new(without_field));
    let rebuild = move || {
        let (now, without_field) = value.with_untracked(build);
        draft.set(now);
        left.set(without_field);
    };
    let read = Memo::new(move |_| draft.with(|draft| draft.read().unwrap_or(Value::Null)));
    let raw = RwSignal::new(whole());
    let raw_mistake = mistake_in(raw, is_object);

    keep_equal(value, read, move |_| rebuild());
    follow(raw, value, is_object);
    let typed = typed(move || raw.get().filter(|_| raw_mistake.with(Option::is_some)), Some(draft), left);
    keep_equal(unparsed, typed, move |now| {
        // Only the form shows the texts of fields.
        let stays = raw.with_untracked(Option::is_some) && now.is_empty();
        raw.set(whole().or_else(|| stays.then(|| value.with_untracked(pretty))));
        rebuild();
    });
    let name = label.clone();
    let first = Memo::new(move |_| {
        raw_mistake.get().or_else(|| draft.with(|draft| draft.flaw(&name))).or_else(|| flaw_of(left))
    });
    Effect::new(move |_| flaw.set(first.get()));

    let (own_base, raw_base) = (base.clone(), base.clone());
    let whole = Memo::new(move |_| {
        let is_own = |one: &&Mistake| one.path == own_base;
        errors.with(|errors| errors.iter().filter(is_own).map(|one| one.message.clone()).collect::<Vec<_>>())
    });
    let has_fields = move || draft.with(|draft| matches!(draft.content, draft::Content::Object(_)));
    // The value does not have the texts that cannot be read.
    let is_half_typed = Memo::new(move |_| raw.with(Option::is_none) && typed.with(|texts| !texts.is_empty()));
    let to_json = move |_| raw.set(Some(pretty(&value.get_untracked())));
    let to_form = move |_| {
        if raw_mistake.with_untracked(Option::is_none) {
            raw.set(None);
        }
    };

    view! {
        <div class="form">
            <div class="form-tabs tabs" role="group" aria-label="How to edit">
                <button type="button" aria-pressed=move || raw.with(Option::is_none).to_string() on:click=to_form
                    disabled=move || raw_mistake.with(Option::is_some)>"Form"</button>
                <button type="button" aria-pressed=move || raw.with(Option::is_some).to_string() on:click=to_json
                    disabled=move || is_half_typed.get()>"JSON"</button>
            </div>
            <Show when=move || raw.with(Option::is_none) && has_fields() && whole.with(|whole| !whole.is_empty())>
                <ul class="form-errors" role="alert">
                    {move || whole.get().into_iter().map(|message| view! { <li>{inert_code(&message)}</li> }).collect_view()}
                </ul>
            </Show>
            <Show
                when=move || raw.with(Option::is_none)
                fallback=move || view! { <RawJson raw value errors base=raw_base.clone() mistake=raw_mistake object=is_object/> }
            >
                {
                    let (base, label) = (base.clone(), label.clone());
                    move || {
                        let place = FieldPlace { path: Signal::stored(base.clone()), errors };
                        field_view(&draft.get(), &label, place)
                    }
                }
            </Show>
            <LeftOver left/>
        </div>
    }
    .into_any()
}

/// A JSON editor for a value with too many parts for a form.
#[component]
fn JsonAlone(
    value: RwSignal<Value>,
    errors: Signal<Vec<Mistake>>,
    base: String,
    flaw: RwSignal<Option<String>>,
    unparsed: RwSignal<Unparsed>,
    object: bool,
) -> impl IntoView {
    let text = move |texts: &Unparsed| texts.get("").map_or_else(|| value.with_untracked(pretty), str::to_owned);
    let without_field = |texts: &Unparsed| {
        let mut left = texts.clone();
        left.take("");
        left
    };
    let raw = RwSignal::new(Some(unparsed.with_untracked(text)));
    let left = RwSignal::new(unparsed.with_untracked(without_field));
    follow(raw, value, object);
    let mistake = mistake_in(raw, object);
    let typed = typed(move || raw.get().filter(|_| mistake.with(Option::is_some)), None, left);
    keep_equal(unparsed, typed, move |now| {
        raw.set(Some(text(now)));
        left.set(without_field(now));
    });
    Effect::new(move |_| flaw.set(mistake.get().or_else(|| flaw_of(left))));
    view! {
        <div class="form">
            <p class="hint">{format!("More than {} values: too many for a form, so they are edited as JSON.", extent::MAX_FIELDS)}</p>
            <RawJson raw value errors base mistake object/>
            <LeftOver left/>
        </div>
    }
}
