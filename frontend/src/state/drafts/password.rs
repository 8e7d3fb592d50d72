//! Fields that may contain a password: their text is kept only in the memory of the page.

use serde_json::Value;
use shared::review::Review;

/// Whether a form of this schema has a password field at any depth.
pub fn asks_password(schema: &Value) -> bool {
    match schema {
        Value::Object(keywords) => {
            keywords.get("format").is_some_and(|format| format == "password") || keywords.values().any(asks_password)
        }
        Value::Array(schemas) => schemas.iter().any(asks_password),
        _ => false,
    }
}

/// Whether the forms of this review may ask for a password.
pub fn asked_by(review: &Review) -> bool {
    let options = review.options.iter().filter_map(|option| option.fields.as_ref());
    let actions = review.actions.iter().filter_map(|action| action.schema.as_ref());
    let items = review.items.iter().filter_map(|item| item.schema.as_ref());
    options.chain(actions).chain(items).any(asks_password)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_password_is_seen_wherever_the_schema_asks_for_it() {
        let secret = json!({ "type": "string", "format": "password" });
        let deep =
            json!({ "properties": { "servers": { "items": { "anyOf": [{ "properties": { "key": secret } }] } } } });
        assert!(asks_password(&deep));
        assert!(!asks_password(&json!({ "properties": { "password": { "type": "string", "format": "email" } } })));
    }
}
