//! One field: its label, its input, and its errors.

use leptos::prelude::*;

use super::draft::{Content, FieldDraft, next_key};
use super::list::list_view;
use super::place::{FieldParts, FieldPlace, heading, messages_at};
use super::several::boxes;
use crate::components::inert::{inert, inert_code, named};
use crate::components::listeners::while_shown;
use crate::state::schema::{FieldChoice, Kind};

/// The maximum number of radio buttons, and of characters in their labels together; beyond it, a menu is used.
const MAX_RADIOS: (usize, usize) = (4, 44);

/// Renders a field of any kind. `name` is its key, shown if the schema has no title.
pub fn field_view(draft: &FieldDraft, name: &str, place: FieldPlace) -> AnyView {
    match &draft.content {
        Content::Object(_) => object_view(draft, name, place),
        Content::List(_) => list_view(draft, name, place, field_view),
        _ => leaf_view(draft, name, place),
    }
}

fn object_view(draft: &FieldDraft, name: &str, place: FieldPlace) -> AnyView {
    let Content::Object(fields) = &draft.content else { return ().into_any() };
    let children: Vec<AnyView> =
        fields.iter().map(|(name, field)| field_view(field, name, place.child(Signal::stored(name.clone())))).collect();
    if name.is_empty() {
        return view! { <div class="fields">{children}</div> }.into_any();
    }
    let said = messages_at(place, false);
    view! {
        <fieldset class="field-group">
            <legend>
                {heading(draft, name)}
                // Fields inside that are required count only once somebody has begun it.
                {(!draft.required).then(|| view! { <span class="field-required">"optional"</span> })}
            </legend>
            {draft.shape.description.clone().map(|text| view! { <p class="hint">{inert(&text)}</p> })}
            <p class="mistake" aria-live="polite">{move || inert_code(&said.get())}</p>
            <div class="fields">{children}</div>
        </fieldset>
    }
    .into_any()
}

fn leaf_view(draft: &FieldDraft, name: &str, place: FieldPlace) -> AnyView {
    let id = format!("field-{}", next_key());
    // A text that could not be read is still there when the form is opened again.
    let is_read = matches!(draft.shape.kind, Kind::Number { .. } | Kind::Json { .. });
    let left = RwSignal::new(is_read && untrack(|| draft.mistake()).is_some());
    let said = messages_at(place, true);
    let own = StoredValue::new(draft.clone());
    let wrong = Memo::new(move |_| {
        let typed = if left.get() { own.with_value(FieldDraft::mistake) } else { None };
        typed.unwrap_or_else(|| said.get())
    });
    let parts = FieldParts { id: StoredValue::new(id.clone()), required: draft.required, wrong, left };
    let expected = match &draft.shape.kind {
        Kind::Json { expected: Some(expected), .. } => {
            Some(format!("JSON. The schema expects {expected}; the value is something else."))
        }
        Kind::Json { expected: None, .. } => Some("JSON".to_owned()),
        _ => None,
    };
    let help = [draft.shape.description.clone(), expected].into_iter().flatten().collect::<Vec<_>>().join(" ");
    let input = input_view(draft, name, parts);
    let (help_id, error_id) = (format!("{id}-help"), format!("{id}-error"));
    // Radio buttons are a group, and a label would name only one of them.
    let title = if is_group(draft) {
        view! { <div class="field-label" id=format!("{id}-label")>{heading(draft, name)}</div> }.into_any()
    } else {
        view! { <label class="field-label" for=id>{heading(draft, name)}{counter(draft)}</label> }.into_any()
    };
    view! {
        // Enter counts as leaving the field, so that its mistake is shown.
        <div class="field" class:bad=move || !wrong.get().is_empty() on:keydown=move |event| if event.key() == "Enter" { left.set(true) }>
            {title}
            <p class="hint" id=help_id>{inert(&help)}</p>
            {input}
            <p class="mistake" id=error_id aria-live="polite">{move || inert_code(&wrong.get())}</p>
        </div>
    }
    .into_any()
}

/// The number of characters used of a limited text, once more than half are used.
fn counter(draft: &FieldDraft) -> Option<impl IntoView + use<>> {
    let Kind::Text { max: Some(max), .. } = draft.shape.kind else { return None };
    let Content::Text(text) = draft.content.clone() else { return None };
    Some(view! { <span class="field-count">{move || {
        let count = text.with(|text| text.chars().count() as u64);
        (count * 2 > max).then(|| format!("{count} of {max}"))
    }}</span> })
}

fn is_group(draft: &FieldDraft) -> bool {
    match &draft.shape.kind {
        Kind::Switch | Kind::Several(_) => true,
        Kind::Choice(choices) => few(choices),
        _ => false,
    }
}

fn few(choices: &[FieldChoice]) -> bool {
    choices.len() <= MAX_RADIOS.0
        && choices.iter().map(|choice| choice.label.chars().count()).sum::<usize>() <= MAX_RADIOS.1
}

fn input_view(draft: &FieldDraft, name: &str, parts: FieldParts) -> AnyView {
    match (&draft.shape.kind, &draft.content) {
        (Kind::Switch, Content::Switch(on)) => {
            let choices = vec![("Yes".to_owned(), Some(true)), ("No".to_owned(), Some(false))];
            radios(choices, on, draft.optional, parts)
        }
        (Kind::Choice(choices), Content::Choice(at)) if few(choices) => {
            let labels = choices.iter().enumerate().map(|(at, choice)| (choice.label.clone(), Some(at))).collect();
            radios(labels, at, draft.optional, parts)
        }
        (Kind::Choice(choices), Content::Choice(at)) => menu(choices, at.clone(), parts),
        (Kind::Several(choices), Content::Several(ticked)) => boxes(choices, ticked, parts),
        (kind, Content::Text(text)) => text_input(kind, text.clone(), draft, name, parts),
        _ => ().into_any(),
    }
}

/// A row of radio buttons that look like one control; a field that may be left out also has "Not set".
fn radios<T>(
    mut choices: Vec<(String, Option<T>)>,
    chosen: &ArcRwSignal<Option<T>>,
    optional: bool,
    parts: FieldParts,
) -> AnyView
where
    T: Copy + PartialEq + Send + Sync + 'static,
{
    if optional {
        choices.push(("Not set".to_owned(), None));
    }
    let group = parts.id();
    let radio = |(label, value): (String, Option<T>)| {
        let (is, set) = (chosen.clone(), chosen.clone());
        view! {
            <label class="radio">
                <input type="radio" name=group.clone()
                    prop:checked=move || is.get() == value
                    on:change=while_shown(move |_| { set.set(value); parts.left.set(true); })/>
                <span>{inert(&label)}</span>
            </label>
        }
    };
    view! {
        <div class="radios" role="radiogroup" aria-labelledby=format!("{group}-label") aria-describedby=parts.help()
            aria-required=parts.required.to_string() aria-invalid=move || parts.invalid()>
            {choices.into_iter().map(radio).collect_view()}
        </div>
    }
    .into_any()
}

fn menu(choices: &[FieldChoice], at: ArcRwSignal<Option<usize>>, parts: FieldParts) -> AnyView {
    let chosen = at.clone();
    let is_chosen = move |index: usize| {
        let at = at.clone();
        move || at.get() == Some(index)
    };
    let nothing = if parts.required { "Choose one" } else { "Not set" };
    let none = chosen.clone();
    view! {
        <select class="select" id=parts.id()
            aria-describedby=parts.help() aria-required=parts.required.to_string() aria-invalid=move || parts.invalid()
            on:change=while_shown(move |event| { chosen.set(event_target_value(&event).parse().ok()); parts.left.set(true); })>
            <option value="" prop:selected=move || none.get().is_none()>{nothing}</option>
            {choices
                .iter()
                .enumerate()
                .map(|(index, choice)| {
                    view! { <option value=index.to_string() prop:selected=is_chosen(index)>{named(&choice.label)}</option> }
                })
                .collect_view()}
        </select>
    }
    .into_any()
}

fn text_input(kind: &Kind, text: ArcRwSignal<String>, draft: &FieldDraft, name: &str, parts: FieldParts) -> AnyView {
    let (get, set) = (text.clone(), text.clone());
    let typed = move |event| set.set(event_target_value(&event));
    let example = draft.shape.example.clone().map(|example| format!("for example {}", named(&example)));
    let example = if matches!(kind, Kind::Json { .. }) { None } else { example };
    // A row of a list has no visible label, so its input needs a name.
    let spoken = (name.is_empty() && draft.shape.title.is_none()).then_some("Value");
    let (input, mode) = match kind {
        Kind::Line { input, .. } => (*input, "text"),
        Kind::Number { integer: true, .. } => ("text", "numeric"),
        Kind::Number { .. } => ("text", "decimal"),
        Kind::Text { code, .. } => return lines(text, *code, 4, example, spoken, parts),
        _ => return lines(text, true, 2, example, spoken, parts),
    };
    let class = if matches!(kind, Kind::Number { .. }) { "input number" } else { "input" };
    view! {
        <input class=class type=input id=parts.id() inputmode=mode placeholder=example autocomplete="off"
            prop:value=get on:input=typed on:blur=while_shown(move |_| parts.left.set(true))
            aria-label=spoken aria-describedby=parts.help() aria-required=parts.required.to_string() aria-invalid=move || parts.invalid()/>
    }
    .into_any()
}

fn lines(
    text: ArcRwSignal<String>,
    code: bool,
    least: usize,
    example: Option<String>,
    spoken: Option<&'static str>,
    parts: FieldParts,
) -> AnyView {
    let (get, set, size) = (text.clone(), text.clone(), text);
    let rows = move || size.with(|text| text.lines().count().clamp(least, 20)).to_string();
    view! {
        <textarea class="textarea" class:code=code id=parts.id() rows=rows placeholder=example aria-label=spoken
            spellcheck=if code { "false" } else { "true" }
            prop:value=get on:input=move |event| set.set(event_target_value(&event))
            on:blur=while_shown(move |_| parts.left.set(true))
            aria-describedby=parts.help() aria-required=parts.required.to_string() aria-invalid=move || parts.invalid()></textarea>
    }
    .into_any()
}
