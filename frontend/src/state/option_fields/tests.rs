//! The values sent with an option, missing ones, and the option whose form is open.

use serde_json::{Value, json};
use shared::time::Timestamp;

use super::*;
use crate::state::fixtures::review;

fn asked(fields: Value) -> Review {
    let option = json!({ "id": "delegate", "kind": "accept", "label": "Delegate", "fields": fields });
    let abort = json!({ "id": "abort", "kind": "stop", "label": "Abort", "fields": { "type": "object" } });
    review(1, 1, json!({ "options": [option, abort] }))
}

fn typed(fields: Value) -> Draft {
    let Value::Object(fields) = fields else { panic!("fields are an object") };
    Draft { fields: [("delegate".to_owned(), fields)].into(), ..Draft::default() }
}

/// The values that would be sent, or the places of the mistakes.
fn checked(asked: &Review, fields: Value) -> Result<Value, Vec<String>> {
    let places = |mistakes: Vec<Mistake>| mistakes.into_iter().map(|one| one.path).collect();
    given(&asked.options[0], &typed(fields)).map(Value::Object).map_err(places)
}

#[test]
fn what_is_needed_is_asked_for_and_what_is_blank_is_not_given() {
    let asked = asked(json!({
        "type": "object", "required": ["agent", "instructions"],
        "properties": { "agent": { "enum": ["writer"] }, "instructions": { "type": "string", "minLength": 5 }, "more": {} },
    }));
    let (agent, instructions) = ("/verdict/fields/agent".to_owned(), "/verdict/fields/instructions".to_owned());
    assert_eq!(checked(&asked, json!({})), Err(vec![agent, instructions.clone()]));
    let missing = Err(vec![instructions]);
    assert_eq!(checked(&asked, json!({ "agent": "writer", "instructions": " ", "more": "" })), missing);
    assert_eq!(checked(&asked, json!({ "agent": "writer", "instructions": "Go." })), missing, "it is too short");
    let shorter = json!({ "agent": "writer", "instructions": "Shorter." });
    assert_eq!(checked(&asked, json!({ "agent": "writer", "instructions": "Shorter.", "more": null })), Ok(shorter));
}

#[test]
fn empty_rows_are_no_answers() {
    let text = json!({ "type": "string", "minLength": 3 });
    let row = json!({ "type": "object", "required": ["name"], "properties": { "name": text, "note": {} } });
    let asked = asked(json!({
        "type": "object", "required": ["options"],
        "properties": {
            "options": { "type": "array", "minItems": 2, "items": text },
            "people": { "type": "array", "items": row },
        },
    }));
    let options = || vec!["/verdict/fields/options".to_owned()];
    for blank in [json!([]), json!([null]), json!(["", " "])] {
        assert_eq!(checked(&asked, json!({ "options": blank })), Err(options()), "{blank}");
    }
    assert_eq!(checked(&asked, json!({ "options": ["one", ""] })), Err(options()), "two are wanted");
    let second = Err(vec!["/verdict/fields/options/1".to_owned()]);
    assert_eq!(checked(&asked, json!({ "options": ["one", "2"] })), second);
    let named = json!({ "options": ["one", "two"], "people": [{ "name": "" }, { "name": "Ana" }] });
    let sent = json!({ "options": ["one", "two"], "people": [{ "name": "Ana" }] });
    assert_eq!(checked(&asked, named), Ok(sent));
    let nameless = json!({ "options": ["one", "two"], "people": [{ "note": "x" }] });
    assert_eq!(checked(&asked, nameless), Err(vec!["/verdict/fields/people/0/name".to_owned()]));
}

#[test]
fn a_form_that_nobody_has_touched_is_sent_with_its_defaults() {
    let asked = asked(json!({ "type": "object", "properties": { "words": { "type": "integer", "default": 300 } } }));
    let sent = given(&asked.options[0], &Draft::default());
    assert_eq!(sent.map(Value::Object), Ok(json!({ "words": 300 })));
    assert_eq!(checked(&asked, json!({ "words": 100 })), Ok(json!({ "words": 100 })));
}

#[test]
fn an_object_that_may_be_left_out_is_sent_once_it_is_begun() {
    let answer = |required: Value| {
        asked(json!({
            "$defs": { "answer": { "type": "object", "required": ["approved", "reason"], "properties": {
                "approved": { "type": "boolean" }, "reason": { "type": "string", "minLength": 3 },
                "copies": { "type": "integer", "default": 1 },
            } } },
            "type": "object", "required": required,
            "properties": { "answer": { "$ref": "#/$defs/answer" }, "instructions": { "type": "string" } },
        }))
    };
    let at = |name: &str| format!("/verdict/fields/answer{name}");
    let optional = answer(json!([]));
    assert_eq!(given(&optional.options[0], &Draft::default()), Ok(JsonMap::new()));
    let instructions = json!({ "instructions": "I call them." });
    assert_eq!(checked(&optional, instructions.clone()), Ok(instructions));
    let begun = json!({ "answer": { "approved": false, "reason": " " } });
    assert_eq!(checked(&optional, begun), Err(vec![at("/reason")]), "references are followed");
    let needed = answer(json!(["answer"]));
    let untouched = given(&needed.options[0], &Draft::default()).expect_err("it asks for more");
    let places: Vec<_> = untouched.into_iter().map(|one| one.path).collect();
    assert_eq!(places, [at("/approved"), at("/reason")], "it is begun by its default");
    let no = json!({ "answer": { "approved": false, "reason": "Too late." } });
    assert_eq!(checked(&needed, no.clone()), Ok(no));
}

#[test]
fn what_is_undone_is_open_again_and_what_was_sent_is_not() {
    let asked = asked(json!({ "type": "object" }));
    let mut draft = typed(json!({ "agent": "writer" }));
    assert_eq!(begun(&asked, &draft, None).as_deref(), Some("delegate"));
    assert_eq!(begun(&review(1, 1, json!({})), &draft, None), None, "it is not offered any more");
    draft.fields.insert("abort".to_owned(), JsonMap::new());
    let request = DecisionRequest {
        revision: 1,
        digest: asked.digest.clone(),
        verdict: Verdict::Choose { option: "abort".into(), fields: JsonMap::new() },
        edits: JsonMap::new(),
        comment: None,
        metadata: JsonMap::new(),
    };
    assert_eq!(begun(&asked, &draft, Some(&request)).as_deref(), Some("abort"), "that one is held back");
    let ended =
        |stage| Sending { stage, ..Sending::held(&asked, request.clone(), "k".into(), "Abort".into(), Timestamp(5)) };
    let open = || Some("delegate".to_owned());
    assert_eq!(after(&asked, &ended(Stage::Held(Timestamp(5))), open()).as_deref(), Some("abort"));
    assert_eq!(after(&asked, &ended(Stage::Sending), open()), None);
}

#[test]
fn the_record_calls_what_was_given_as_the_form_did() {
    let choice = |id: &str, label: &str| json!({ "const": id, "title": label });
    let size = json!({ "oneOf": [choice("s", "Small"), choice("l", "Large")] });
    let items = json!({ "$ref": "#/$defs/size" });
    let asked = asked(json!({ "$defs": { "size": size }, "type": "object", "properties": {
        "options": { "type": "array", "title": "Sizes", "items": items }, "more": { "type": "string" },
    } }));
    let fields = json!({ "options": ["s", "l"], "more": "Soon." });
    let Value::Object(fields) = fields else { panic!("fields are an object") };
    let shown = named(&asked, "delegate", &fields);
    assert_eq!(shown, [("Sizes".to_owned(), json!("Small\nLarge")), ("more".to_owned(), json!("Soon."))]);
    assert_eq!(answers(&asked, "delegate", &fields), "“Small” and “Large”");
    assert_eq!(answers(&asked, "delegate", &JsonMap::new()), "“Delegate”");
    assert_eq!(answers(&asked, "gone", &JsonMap::new()), "“gone”");
}
