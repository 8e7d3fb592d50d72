//! Texts that were typed and cannot be read, such as JSON that is not finished: drafts keep them as they are, beside the
//! values of before, and nothing sends a form that has one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use shared::error::Mistake;

/// The message for a text that cannot be read.
pub const UNPARSED: &str = "What is typed here cannot be read yet.";

/// Texts that cannot be read, by their places. In a form, these are JSON pointers into its value: "" for the JSON of the
/// whole form, `/rows/1` for a field. In a draft, each begins with the place of its form.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Unparsed(BTreeMap<String, String>);

impl Unparsed {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(place, text)| (place.as_str(), text.as_str()))
    }

    /// The text at exactly this place.
    pub fn get(&self, place: &str) -> Option<&str> {
        self.0.get(place).map(String::as_str)
    }

    pub fn insert(&mut self, place: impl Into<String>, text: String) {
        self.0.insert(place.into(), text);
    }

    /// Removes the text at exactly this place, and returns it.
    pub fn take(&mut self, place: &str) -> Option<String> {
        self.0.remove(place)
    }

    /// Whether there is a text in the form at `form`.
    pub fn has(&self, form: &str) -> bool {
        self.0.keys().any(|place| within(place, form).is_some())
    }

    /// The texts in the form at `form`, by their places in it.
    pub fn of(&self, form: &str) -> Self {
        let own = self.0.iter().filter_map(|(place, text)| Some((within(place, form)?.to_owned(), text.clone())));
        Self(own.collect())
    }

    /// Replaces the texts in the form at `form` by `texts`, with their places in it.
    pub fn set(&mut self, form: &str, texts: Self) {
        self.0.retain(|place, _| within(place, form).is_none());
        self.0.extend(texts.0.into_iter().map(|(place, text)| (format!("{form}{place}"), text)));
    }

    /// The texts of a form as mistakes in what is sent of it at `sent`.
    pub fn mistakes(&self, sent: &str) -> Vec<Mistake> {
        self.0.keys().map(|place| Mistake::new(format!("{sent}{place}"), "invalid", UNPARSED)).collect()
    }
}

/// The rest of a place that is `form` or inside it.
fn within<'a>(place: &'a str, form: &str) -> Option<&'a str> {
    place.strip_prefix(form).filter(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_has_the_texts_inside_it_and_no_others() {
        let texts =
            |places: &[&str]| Unparsed(places.iter().map(|at| ((*at).to_owned(), format!("{{ {at}"))).collect());
        let mut all = Unparsed::default();
        all.set("/edits/offer", texts(&["", "/rows/1"]));
        all.set("/edits/offer-2", texts(&["/rows/1"]));
        assert_eq!(all.of("/edits/offer"), texts(&["", "/rows/1"]));
        all.set("/edits/offer", texts(&["/rows/0"]));
        assert_eq!(all.iter().map(|(at, _)| at).collect::<Vec<_>>(), ["/edits/offer-2/rows/1", "/edits/offer/rows/0"]);
        assert_eq!(all.of("/edits/offer").mistakes("/sent")[0].path, "/sent/rows/0");
        all.set("/edits/offer", Unparsed::default());
        assert!(!all.has("/edits/offer") && all.has("/edits/offer-2"));
    }
}
