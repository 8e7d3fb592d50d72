//! The shared parts of fields: their place, heading, and messages. Below every kind of field.

use leptos::prelude::*;
use shared::error::Mistake;

use super::draft::FieldDraft;
use crate::components::inert::inert;
use crate::state::verdict::is_at;

/// Where a field is, and what is said of it.
#[derive(Clone, Copy)]
pub struct FieldPlace {
    /// Its JSON pointer; changes when rows move.
    pub path: Signal<String>,
    /// What the server said, of all fields.
    pub errors: Signal<Vec<Mistake>>,
    /// Whether nothing can be changed now.
    pub disabled: Signal<bool>,
}

impl FieldPlace {
    /// The place of a field or row in this one.
    pub fn child(self, segment: Signal<String>) -> Self {
        let path = self.path;
        let escaped = move || segment.get().replace('~', "~0").replace('/', "~1");
        Self { path: Signal::derive(move || format!("{}/{}", path.get(), escaped())), ..self }
    }
}

/// The ids and states that label, input and message share.
#[derive(Clone, Copy)]
pub struct FieldParts {
    /// The id of the input.
    pub id: StoredValue<String>,
    /// Whether something must be given.
    pub required: bool,
    /// What is wrong; empty: nothing.
    pub wrong: Memo<String>,
    /// Whether nothing can be changed now.
    pub disabled: Signal<bool>,
    /// Set when the reader has left the input: a half-typed number is no mistake yet.
    pub left: RwSignal<bool>,
}

impl FieldParts {
    /// The id of the input, as text.
    pub fn id(self) -> String {
        self.id.get_value()
    }

    /// The id of the label of a group.
    pub fn label(self) -> String {
        self.id.with_value(|id| format!("{id}-label"))
    }

    /// The ids of what is said below it.
    pub fn help(self) -> String {
        self.id.with_value(|id| format!("{id}-help {id}-error"))
    }

    /// Whether something is wrong, as the attribute says it.
    pub fn invalid(self) -> String {
        self.wrong.with(|wrong| !wrong.is_empty()).to_string()
    }
}

/// The heading of a group: title, key beside it, what it is for.
pub fn heading(draft: &FieldDraft, name: &str) -> impl IntoView + use<> {
    let title = draft.shape.title.clone().unwrap_or_else(|| name.to_owned());
    let key = (!name.is_empty() && !reads_alike(&title, name))
        .then(|| view! { <code class="field-key">{inert(name)}</code> });
    let required = draft.required.then(|| view! { <span class="field-required">"required"</span> });
    view! { <span class="field-title">{inert(&title)}</span>{key}{required} }
}

/// Whether a title says nothing beyond the key: but for capitals and spaces it is the same.
fn reads_alike(title: &str, key: &str) -> bool {
    let letters = |text: &str| {
        let text: String = text.chars().filter(|c| !c.is_whitespace() && !matches!(c, '_' | '-')).collect();
        text.to_lowercase()
    };
    letters(title) == letters(key)
}

/// What the server said of exactly this place.
pub fn messages_at(place: FieldPlace, below: bool) -> Memo<String> {
    Memo::new(move |_| {
        place.path.with(|path| {
            let here = |one: &&Mistake| one.path == *path || (below && is_at(one, path));
            place
                .errors
                .with(|errors| errors.iter().filter(here).map(|one| one.message.as_str()).collect::<Vec<_>>().join(" "))
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
