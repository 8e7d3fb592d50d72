//! The shared parts of fields: their place, heading and messages.

use leptos::prelude::*;
use shared::error::Mistake;

use super::draft::FieldDraft;
use crate::components::inert::inert;
use crate::state::verdict::is_at;

/// The place of a field in the form, with the server's mistakes.
#[derive(Clone, Copy)]
pub struct FieldPlace {
    /// The field's JSON pointer, which changes when rows move.
    pub path: Signal<String>,
    /// The server's mistakes in all fields.
    pub errors: Signal<Vec<Mistake>>,
}

impl FieldPlace {
    /// The place of a field or row inside this one.
    pub fn child(self, segment: Signal<String>) -> Self {
        let path = self.path;
        let escaped = move || segment.get().replace('~', "~0").replace('/', "~1");
        Self { path: Signal::derive(move || format!("{}/{}", path.get(), escaped())), ..self }
    }
}

/// The ids and states that a field's label, input and message share.
#[derive(Clone, Copy)]
pub struct FieldParts {
    pub id: StoredValue<String>,
    pub required: bool,
    /// The messages of the field's mistakes; empty if there are none.
    pub wrong: Memo<String>,
    /// Whether the person has left the input. Until then, a half-typed number is not reported.
    pub left: RwSignal<bool>,
}

impl FieldParts {
    pub fn id(self) -> String {
        self.id.get_value()
    }

    /// The id of the label, for a group of inputs.
    pub fn label(self) -> String {
        self.id.with_value(|id| format!("{id}-label"))
    }

    /// The ids of the hint and the message, for `aria-describedby`.
    pub fn help(self) -> String {
        self.id.with_value(|id| format!("{id}-help {id}-error"))
    }

    /// The value of `aria-invalid`.
    pub fn invalid(self) -> String {
        self.wrong.with(|wrong| !wrong.is_empty()).to_string()
    }
}

/// The title of a field, with its key if that differs, and whether it is required.
pub fn heading(draft: &FieldDraft, name: &str) -> impl IntoView + use<> {
    let title = draft.shape.title.clone().unwrap_or_else(|| name.to_owned());
    let key = (!name.is_empty() && !reads_alike(&title, name))
        .then(|| view! { <code class="field-key">{inert(name)}</code> });
    let required = draft.required.then(|| view! { <span class="field-required">"required"</span> });
    view! { <span class="field-title">{inert(&title)}</span>{key}{required} }
}

/// Whether a title equals the key, apart from case, spaces, `_` and `-`.
fn reads_alike(title: &str, key: &str) -> bool {
    let letters = |text: &str| {
        let text: String = text.chars().filter(|c| !c.is_whitespace() && !matches!(c, '_' | '-')).collect();
        text.to_lowercase()
    };
    letters(title) == letters(key)
}

/// The server's messages for this place, joined; with `below`, also those for places inside it.
pub fn messages_at(place: FieldPlace, below: bool) -> Memo<String> {
    Memo::new(move |_| {
        place.path.with(|path| {
            let here = |one: &&Mistake| one.path == *path || (below && is_at(one, path));
            // The label right above says what is missing.
            let says = |one: &Mistake| match one.code.as_str() {
                "required" if one.path == *path => "This is required.".to_owned(),
                _ => one.message.clone(),
            };
            place.errors.with(|errors| errors.iter().filter(here).map(says).collect::<Vec<_>>().join(" "))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_shown_only_where_the_title_says_something_else() {
        for (title, key) in [("Claims", "claims"), ("Unit price", "unit_price"), ("Unit price", "unitPrice")] {
            assert!(reads_alike(title, key), "{title} {key}");
        }
        assert!(!reads_alike("What for", "what"));
    }
}
