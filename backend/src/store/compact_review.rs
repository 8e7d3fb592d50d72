//! Reviews as they are stored: without members that have their default value. A waiting run consists mostly of its
//! review, which is stored both in its own row and in the log.
//!
//! An omitted member is read as its default. So the default of a member of [`Review`] must never change: that would
//! change stored reviews. A new default needs a new member.

use std::sync::LazyLock;

use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::{Value, json};
use shared::JsonMap;
use shared::review::Review;

use super::Error;

/// The default values of the members that may be omitted.
static EMPTY: LazyLock<JsonMap> = LazyLock::new(|| {
    let id = uuid::Uuid::nil();
    let asked = json!({
        "id": id, "revision": 1, "digest": "", "version": 1, "kind": "approval", "status": "pending", "title": "",
        "prompt": "", "requested_by": "nobody", "created_at": "1970-01-01T00:00:00Z",
    });
    let empty = serde_json::from_value::<Review>(asked.clone()).and_then(serde_json::to_value);
    match empty.expect("these members make a review") {
        Value::Object(members) => members.into_iter().filter(|(name, _)| asked.get(name).is_none()).collect(),
        _ => JsonMap::new(),
    }
});

/// Returns the members of a review that differ from their defaults. They can be read as a [`Review`] again.
pub(super) fn compact(review: &Review) -> Result<JsonMap, Error> {
    match serde_json::to_value(review) {
        Ok(Value::Object(members)) => {
            Ok(members.into_iter().filter(|(name, value)| EMPTY.get(name) != Some(value)).collect())
        }
        Ok(_) => Err(Error::Stored(format!("review {} is not an object", review.id))),
        Err(error) => Err(Error::Stored(error.to_string())),
    }
}

/// A review that is already JSON, serialised without default values.
#[derive(Debug, Clone, Copy)]
pub(super) struct Compact<'a>(pub &'a JsonMap);

impl Serialize for Compact<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        // Both have their members in the order of the type, so most defaults are found without a search.
        let mut defaults = EMPTY.iter().peekable();
        for (name, value) in self.0 {
            let next = defaults.next_if(|(next, _)| *next == name).map(|(_, default)| default);
            let default = next.or_else(|| EMPTY.get(name));
            if default != Some(value) {
                map.serialize_entry(name, value)?;
            }
        }
        map.end()
    }
}

pub(super) fn expand(review: &mut JsonMap) {
    for (name, value) in &*EMPTY {
        if !review.contains_key(name) {
            review.insert(name.clone(), value.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_review_is_the_same_after_it_was_stored() {
        let review: Review = serde_json::from_value(json!({
            "id": uuid::Uuid::max(), "revision": 2, "digest": "sha256:00", "version": 3, "kind": "edit",
            "status": "pending", "title": "A title", "prompt": "Go on?", "requested_by": "ada",
            "created_at": "2026-01-01T00:00:00Z", "free_text": true, "severity": "high",
            "options": [{"id": "yes", "kind": "accept", "label": "Yes"}],
        }))
        .expect("a review");
        let thin = compact(&review).expect("an object");
        assert!(thin.contains_key("options") && thin.contains_key("free_text") && !thin.contains_key("items"));
        assert_eq!(serde_json::from_value::<Review>(Value::Object(thin.clone())).expect("a review"), review);
        let typed = serde_json::to_value(&review).expect("JSON");
        let typed = Compact(typed.as_object().expect("an object"));
        assert_eq!(serde_json::to_value(typed).expect("JSON"), Value::Object(thin.clone()));
        // Restored members stand after all others, and not in the order of the type.
        let mut whole = thin.clone();
        expand(&mut whole);
        assert_eq!(Value::Object(whole.clone()), serde_json::to_value(&review).expect("JSON"));
        assert_eq!(serde_json::to_value(Compact(&whole)).expect("JSON"), Value::Object(thin));
    }
}
