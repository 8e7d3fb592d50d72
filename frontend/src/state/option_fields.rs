//! What goes with an option: the values that its schema asks for, as they are typed, and what is missing before they can
//! be sent. Whether they fit in every other way is for the server to say.

use serde_json::Value;
use shared::JsonMap;
use shared::decision::Verdict;
use shared::error::{Mistake, pointer};
use shared::review::{Review, ReviewOption};

use super::drafts::Draft;

/// Where a decision has them, as mistakes name the place.
pub const PLACE: &str = "/verdict/fields";

/// What goes with an option as it is typed now, or what is missing. Nothing for an option that takes nothing; what is
/// left blank is not given.
pub fn given(option: &ReviewOption, draft: &Draft) -> Result<JsonMap, Vec<Mistake>> {
    let Some(schema) = &option.fields else { return Ok(JsonMap::new()) };
    let mut fields = draft.fields.get(&option.id).cloned().unwrap_or_default();
    fields.retain(|_, value| !is_blank(value));
    let missing = missing(schema, &fields, PLACE);
    if missing.is_empty() { Ok(fields) } else { Err(missing) }
}

/// What must be there and is not, or is too short.
fn missing(schema: &Value, fields: &JsonMap, place: &str) -> Vec<Mistake> {
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let mut mistakes: Vec<_> = required
        .filter(|name| fields.get(*name).is_none_or(is_blank))
        .map(|name| Mistake::new(format!("{place}{}", pointer([name])), "required", "This is needed."))
        .collect();
    for (name, value) in fields {
        let inner = schema.get("properties").and_then(|properties| properties.get(name));
        let place = format!("{place}{}", pointer([name]));
        match (inner, value) {
            (Some(inner), Value::Object(value)) => mistakes.extend(missing(inner, value, &place)),
            (Some(inner), Value::String(text)) => {
                let least = inner.get("minLength").and_then(Value::as_u64).unwrap_or(0);
                if (text.chars().count() as u64) < least {
                    mistakes.push(Mistake::new(place, "invalid", format!("At least {least} characters.")));
                }
            }
            _ => {}
        }
    }
    mistakes
}

fn is_blank(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.trim().is_empty())
}

/// The option whose form somebody has begun to fill in.
pub fn begun(review: &Review, draft: &Draft) -> Option<String> {
    let begun = |option: &&ReviewOption| option.fields.is_some() && draft.fields.contains_key(&option.id);
    review.options.iter().find(begun).map(|option| option.id.clone())
}

/// What went with the option that was chosen, once a review is over.
pub fn on_record(review: &Review) -> Option<&JsonMap> {
    let decision = review.resolution.as_ref()?.decision.as_deref();
    let said = decision.map(|decision| &decision.verdict);
    match said.or_else(|| review.deciding_advice()?.answer.as_deref()?.verdict.as_ref())? {
        Verdict::Choose { fields, .. } if !fields.is_empty() => Some(fields),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::state::fixtures::review;

    #[test]
    fn what_is_needed_is_asked_for_and_what_is_blank_is_not_given() {
        let asked = review(
            1,
            1,
            json!({ "options": [{ "id": "delegate", "kind": "accept", "label": "Delegate", "fields": {
                "type": "object", "required": ["agent", "instructions"],
                "properties": { "agent": { "enum": ["writer"] }, "instructions": { "type": "string", "minLength": 5 }, "more": {} },
            } }] }),
        );
        let option = &asked.options[0];
        let mut draft = Draft::default();
        let places =
            |draft: &Draft| given(option, draft).unwrap_err().into_iter().map(|one| one.path).collect::<Vec<_>>();
        assert_eq!(places(&draft), ["/verdict/fields/agent", "/verdict/fields/instructions"]);
        let typed = json!({ "agent": "writer", "instructions": " ", "more": "" });
        draft.fields.insert("delegate".into(), typed.as_object().unwrap().clone());
        assert_eq!(places(&draft), ["/verdict/fields/instructions"]);
        draft.fields.get_mut("delegate").unwrap().insert("instructions".into(), json!("Go."));
        assert_eq!(places(&draft), ["/verdict/fields/instructions"], "it is too short");
        draft.fields.get_mut("delegate").unwrap().insert("instructions".into(), json!("Shorter."));
        assert_eq!(
            given(option, &draft),
            Ok(json!({ "agent": "writer", "instructions": "Shorter." }).as_object().unwrap().clone())
        );
        assert_eq!(begun(&asked, &draft).as_deref(), Some("delegate"));
        assert_eq!(begun(&review(1, 1, json!({})), &draft), None, "it is not offered any more");
    }
}
