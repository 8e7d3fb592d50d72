//! A form made from a JSON Schema. It keeps types (a number stays a number, a missing key stays missing), shows every
//! key of the value, and has the same value as raw JSON in a second tab. The server validates; its errors appear at the
//! fields that they name.

mod draft;
mod field;
mod list;
mod place;
mod several;

use leptos::prelude::*;
use serde_json::Value;
use shared::error::Mistake;

pub use self::draft::next_key;
use self::draft::{FieldDraft, parse_json};
use self::field::field_view;
use self::place::FieldPlace;
use crate::components::inert::inert_code;
use crate::state::extent;
use crate::state::verdict::is_at;

/// A form for `value`.
///
/// `base` is the JSON pointer of the value in the request, as in the server's mistakes. `sound` becomes `false` while the
/// value cannot hold a text that is half typed, in a field or in the JSON tab; `flaw` is the first mistake that the browser finds, after the title
/// of its field. The form shows the value as it is: one that nobody has changed starts with
/// [`crate::state::schema::initial`].
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
    /// Set to whether the value is what stands in the form.
    #[prop(optional, into)]
    sound: Option<RwSignal<bool>>,
    /// Set to the first mistake in the form.
    #[prop(optional, into)]
    flaw: Option<RwSignal<Option<String>>>,
    /// The text that is not JSON, if any: the form begins with it, and sets it.
    #[prop(optional, into)]
    unread: Option<RwSignal<Option<String>>>,
) -> impl IntoView {
    // A value that is not an object already cannot become one here.
    let is_object =
        schema.get("type").is_some_and(|declared| declared == "object") && value.with_untracked(Value::is_object);
    // Fields for so many values would block the browser for seconds; one text does not.
    if value.with_untracked(|value| extent::has_more_than(value, extent::MAX_FIELDS)) {
        return view! { <JsonAlone value errors base sound flaw unread object=is_object/> }.into_any();
    }
    let draft = RwSignal::new(value.with_untracked(|value| FieldDraft::new(&schema, value)));
    let read = Memo::new(move |_| draft.with(|draft| draft.read().unwrap_or(Value::Null)));
    let raw = RwSignal::new(unread.and_then(|unread| unread.get_untracked()));
    let raw_mistake = mistake_in(raw, is_object);

    Effect::new(move |_| {
        let read = read.get();
        if value.with_untracked(|value| *value != read) {
            value.set(read);
        }
    });
    let schema = StoredValue::new(schema);
    Effect::new(move |_| {
        let now = value.get();
        if read.with_untracked(|read| *read != now) {
            draft.set(schema.with_value(|schema| FieldDraft::new(schema, &now)));
        }
    });
    follow(raw, value, is_object);
    if let Some(unread) = unread {
        let of_field = move || draft.with(FieldDraft::not_json);
        let typed = Memo::new(move |_| raw.get().filter(|_| raw_mistake.with(Option::is_some)).or_else(of_field));
        keep_unread(unread, typed, raw, value);
    }
    if let Some(sound) = sound {
        Effect::new(move |_| sound.set(raw_mistake.with(Option::is_none) && draft.with(FieldDraft::is_sound)));
    }
    if let Some(flaw) = flaw {
        let name = label.clone();
        let first = Memo::new(move |_| raw_mistake.get().or_else(|| draft.with(|draft| draft.flaw(&name))));
        Effect::new(move |_| flaw.set(first.get()));
    }

    let (form_base, raw_base) = (base.clone(), base.clone());
    let here = move || {
        let base = form_base.clone();
        errors.with(|errors| errors.iter().filter(|one| one.path == base).map(|one| one.message.clone()).collect())
    };
    let whole = Memo::new(move |_| -> Vec<String> { here() });
    let has_fields = move || draft.with(|draft| matches!(draft.content, draft::Content::Object(_)));
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
                <button type="button" aria-pressed=move || raw.with(Option::is_some).to_string() on:click=to_json>"JSON"</button>
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
    sound: Option<RwSignal<bool>>,
    flaw: Option<RwSignal<Option<String>>>,
    unread: Option<RwSignal<Option<String>>>,
    object: bool,
) -> impl IntoView {
    let kept = unread.and_then(|unread| unread.get_untracked());
    let raw = RwSignal::new(Some(kept.unwrap_or_else(|| value.with_untracked(pretty))));
    follow(raw, value, object);
    let mistake = mistake_in(raw, object);
    if let Some(unread) = unread {
        let typed = Memo::new(move |_| raw.get().filter(|_| mistake.with(Option::is_some)));
        keep_unread(unread, typed, raw, value);
    }
    if let Some(sound) = sound {
        Effect::new(move |_| sound.set(mistake.with(Option::is_none)));
    }
    if let Some(flaw) = flaw {
        Effect::new(move |_| flaw.set(mistake.get()));
    }
    view! {
        <div class="form">
            <p class="hint">{format!("More than {} values: too many for a form, so they are edited as JSON.", extent::MAX_FIELDS)}</p>
            <RawJson raw value errors base mistake object/>
        </div>
    }
}

/// An editor of the value as JSON text; valid text changes the value at once. The server's mistakes are listed below it,
/// each with its place in the value.
#[component]
fn RawJson(
    raw: RwSignal<Option<String>>,
    value: RwSignal<Value>,
    errors: Signal<Vec<Mistake>>,
    base: String,
    mistake: Memo<Option<String>>,
    object: bool,
) -> impl IntoView {
    let typed = move |text: String| {
        if let Ok(parsed) = parse_json(&text, object) {
            value.set(parsed);
        }
        raw.set(Some(text));
    };
    let mistake_id = format!("raw-json-mistake-{}", next_key());
    let inside = Memo::new(move |_| errors.with(|errors| placed(errors, &base)));
    let rows = move || raw.with(|raw| raw.as_deref().map_or(4, |text| text.lines().count().clamp(4, 24)).to_string());
    view! {
        <div class="field" class:bad=move || mistake.with(Option::is_some)>
            <textarea class="textarea code" aria-label="The value as JSON" spellcheck="false" rows=rows
                prop:value=move || raw.get().unwrap_or_default()
                on:input=move |event| typed(event_target_value(&event))
                aria-invalid=move || mistake.with(Option::is_some).to_string()
                aria-describedby=mistake_id.clone()></textarea>
            <p class="mistake" id=mistake_id aria-live="polite">{mistake}</p>
            {move || inside.get().into_iter().map(|says| view! { <p class="mistake">{inert_code(&says)}</p> }).collect_view()}
        </div>
    }
}

/// The messages of the mistakes in the value at `base`, each after its place in it, such as `/amount`.
fn placed(errors: &[Mistake], base: &str) -> Vec<String> {
    let inside = errors.iter().filter(|one| is_at(one, base)).map(|one| match &one.path[base.len()..] {
        "" => one.message.clone(),
        place => format!("`{place}`: {}", one.message),
    });
    inside.collect()
}

/// Rewrites the JSON text when the value is changed elsewhere. Invalid text stays, as it is not sent.
fn follow(raw: RwSignal<Option<String>>, value: RwSignal<Value>, object: bool) {
    Effect::new(move |_| {
        let now = value.get();
        let says = raw.with_untracked(|raw| parse_json(raw.as_deref()?, object).ok());
        if says.is_some_and(|says| says != now) {
            raw.set(Some(pretty(&now)));
        }
    });
}

/// Keeps the text `typed` that is not JSON in `unread`, and shows one that comes from elsewhere, or the value once the
/// text is mended there.
fn keep_unread(
    unread: RwSignal<Option<String>>,
    typed: Memo<Option<String>>,
    raw: RwSignal<Option<String>>,
    value: RwSignal<Value>,
) {
    Effect::new(move |_| {
        let typed = typed.get();
        if unread.with_untracked(|unread| *unread != typed) {
            unread.set(typed);
        }
    });
    let known = StoredValue::new(None::<String>);
    Effect::new(move |_| {
        let unread = unread.get();
        let before = known.try_update_value(|known| std::mem::replace(known, unread.clone())).flatten();
        if unread.is_some() && typed.with_untracked(|typed| *typed != unread) {
            raw.set(unread);
            return;
        }
        // If it was mended here, or is being typed, the text is another one by now.
        if unread.is_none() && before.is_some() && raw.with_untracked(|raw| *raw == before) {
            raw.set(Some(value.with_untracked(pretty)));
        }
    });
}

fn mistake_in(raw: RwSignal<Option<String>>, object: bool) -> Memo<Option<String>> {
    Memo::new(move |_| raw.with(|raw| raw.as_deref().and_then(|text| parse_json(text, object).err())))
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}
