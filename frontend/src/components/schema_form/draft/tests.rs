//! Tests of drafts of fields.

use super::*;
use crate::state::schema::{declared, initial};

fn draft_of(schema: &Value, value: &Value) -> FieldDraft {
    FieldDraft::new(schema, value, &mut Unparsed::default())
}

fn unparsed(draft: &FieldDraft) -> Unparsed {
    let mut texts = Unparsed::default();
    draft.collect_unparsed("", &mut texts);
    texts
}

fn schema() -> Value {
    json!({
        "type": "object",
        "required": ["topic"],
        "properties": {
            "topic": { "type": "string" },
            "words": { "type": "integer", "default": 300 },
            "price": { "type": "number" },
            "urgent": { "type": "boolean" },
            "tags": { "type": "array", "items": { "type": "string" } },
            "author": { "type": "object", "properties": { "name": { "type": "string" } } }
        }
    })
}

#[test]
fn a_value_reads_back_as_it_was() {
    let owner = Owner::new();
    owner.set();
    for value in [
        json!({}),
        json!({ "topic": "", "words": 0, "price": 1.0, "urgent": false, "tags": [], "author": {} }),
        json!({ "topic": "sea", "price": null, "extra": { "deep": [1, 2, { "a": null }] } }),
        json!({ "topic": 5, "tags": "not a list" }),
    ] {
        assert_eq!(draft_of(&schema(), &value).read(), Some(value));
    }
}

#[test]
fn an_untouched_form_has_the_initial_value_and_defaults_are_not_added_to_another() {
    let owner = Owner::new();
    owner.set();
    assert_eq!(draft_of(&schema(), &json!({})).read(), Some(json!({})));
    let list = json!({ "type": "array", "minItems": 2, "items": { "type": "string" } });
    let inner = json!({ "type": "object", "required": ["sure", "rows"], "properties": {
        "sure": { "type": "boolean" }, "rows": list, "words": { "type": "integer", "default": 3 },
    } });
    let outer = json!({ "type": "object", "required": ["needed"], "properties": { "needed": inner, "other": inner } });
    for (schema, starts) in [
        (schema(), json!({ "words": 300 })),
        (outer, json!({ "needed": { "rows": ["", ""], "words": 3 } })),
        (json!({ "type": "object" }), json!({})),
    ] {
        let untouched = initial(&schema);
        assert_eq!(untouched, starts);
        assert_eq!(draft_of(&schema, &untouched).read(), Some(untouched));
    }
}

#[test]
fn a_choice_can_be_taken_back_where_it_may_be_left_out_with_the_object_around_it() {
    let owner = Owner::new();
    owner.set();
    let inner = json!({ "type": "object", "required": ["sure"], "properties": { "sure": { "type": "boolean" } } });
    let outer = json!({ "type": "object", "required": ["needed"], "properties": { "needed": inner, "other": inner } });
    let draft = draft_of(&outer, &json!({}));
    let Content::Object(fields) = &draft.content else { panic!("it has fields") };
    let sure = |(name, inner): &(String, FieldDraft)| {
        let Content::Object(fields) = &inner.content else { panic!("it has fields") };
        let sure = &fields[0].1;
        (name.clone(), sure.required, sure.optional)
    };
    let found: Vec<_> = fields.iter().map(sure).collect();
    assert_eq!(found, [("needed".to_owned(), true, false), ("other".to_owned(), true, true)]);
}

#[test]
fn what_is_no_object_is_said_and_not_dropped() {
    let owner = Owner::new();
    owner.set();
    let draft = draft_of(&json!({ "type": "object" }), &json!({}));
    let Content::Text(text) = &draft.content else { panic!("an object without names is typed") };
    for (typed, sound) in [("[1]", false), ("12", false), ("{\"a\": 1}", true), ("", true)] {
        text.set(typed.into());
        assert_eq!(unparsed(&draft).is_empty(), sound, "{typed}");
    }
    text.set("{ \"a\": 1, ".into());
    assert_eq!(draft.mistake().as_deref(), Some("Not valid JSON: something is missing at its end"));
}

#[test]
fn nothing_ticked_is_no_row() {
    let owner = Owner::new();
    owner.set();
    let options = json!({ "type": "array", "uniqueItems": true, "items": { "enum": ["s", "m", "l"] } });
    let schema = json!({ "type": "object", "required": ["options"], "properties": { "options": options } });
    let draft = draft_of(&schema, &initial(&schema));
    assert_eq!(draft.read(), Some(json!({ "options": [] })));
    let given = json!({ "options": ["l", "s"] });
    assert_eq!(draft_of(&schema, &given).read(), Some(given));
}

#[test]
fn a_half_typed_number_is_kept_and_said() {
    let owner = Owner::new();
    owner.set();
    let draft = draft_of(&json!({ "type": "integer" }), &json!(5));
    let Content::Text(text) = &draft.content else { panic!("a number is typed") };
    text.set("5.".into());
    assert_eq!((unparsed(&draft).is_empty(), draft.read()), (true, Some(json!("5."))));
    assert!(draft.mistake().is_some());
    let kept = draft_of(&json!({ "type": "integer" }), &json!("5."));
    assert_eq!((kept.read(), kept.mistake()), (draft.read(), draft.mistake()), "also when the form is opened again");
    // Without a schema, the text would be one like any other.
    let undeclared = draft_of(&json!({}), &json!(5));
    let Content::Text(text) = &undeclared.content else { panic!("a number is typed") };
    text.set("5.".into());
    assert_eq!((unparsed(&undeclared).get(""), undeclared.read()), (Some("5."), Some(json!(5))));
    let undeclared = draft_of(&json!({ "type": "array" }), &json!([1]));
    let Content::List(rows) = &undeclared.content else { panic!("it has rows") };
    let row = rows.get_untracked().remove(0).draft;
    let Content::Text(text) = &row.content else { panic!("a number is typed") };
    text.set("5.".into());
    assert_eq!(unparsed(&undeclared).get("/0"), Some("5."), "nor in a list of anything");
    let Content::Text(text) = &draft.content else { panic!("a number is typed") };
    text.set("50".into());
    assert_eq!((unparsed(&draft).is_empty(), draft.read()), (true, Some(json!(50))));
}

#[test]
fn a_number_that_only_the_proposed_value_declares_may_become_text() {
    let owner = Owner::new();
    owner.set();
    let schema = declared(None, &json!(10));
    let draft = draft_of(&schema, &json!(10));
    let Content::Text(text) = &draft.content else { panic!("a number is typed") };
    for (typed, is_refused) in [("none", false), ("1,5", true), ("-", true), ("12", false)] {
        text.set(typed.into());
        assert_eq!(draft.mistake().is_some(), is_refused, "{typed}");
        assert!(unparsed(&draft).is_empty(), "{typed}");
        let again = draft_of(&schema, &draft.read().unwrap());
        assert_eq!((again.read(), again.mistake()), (draft.read(), draft.mistake()), "{typed}");
    }
}

#[test]
fn what_is_wrong_is_said_with_the_name_of_its_field() {
    let owner = Owner::new();
    owner.set();
    let schema = json!({ "type": "object", "properties": {
        "zip": { "type": "string", "title": "Postcode", "minLength": 5 },
        "tags": { "type": "array", "items": { "type": "string", "maxLength": 2 } },
    } });
    let flaw = |value: Value| {
        let draft = draft_of(&schema, &value);
        assert!(unparsed(&draft).is_empty(), "it can be read, and so be kept");
        draft.flaw("")
    };
    assert_eq!(flaw(json!({ "zip": "123" })).as_deref(), Some("Postcode: 3 characters; at least 5"));
    assert_eq!(flaw(json!({ "zip": "" })).as_deref(), Some("Postcode: 0 characters; at least 5"));
    assert_eq!(flaw(json!({ "tags": ["ok", "long"] })).as_deref(), Some("tags 2: 4 characters; at most 2"));
    assert_eq!(flaw(json!({ "zip": "12345", "tags": ["ok"] })), None);
    assert_eq!(flaw(json!({})), None, "what is left out is for the server to miss");
}

/// Types a text into the field at a place, given the places of the members around it.
fn type_into(draft: &FieldDraft, members: &[&str], typed: &str) {
    match (&draft.content, members) {
        (Content::Text(text), []) => text.set(typed.to_owned()),
        (Content::Object(fields), [first, rest @ ..]) => {
            let (_, field) = fields.iter().find(|(name, _)| name == first).expect("it is a field");
            type_into(field, rest, typed);
        }
        (Content::List(rows), [first, rest @ ..]) => {
            type_into(&rows.get_untracked()[first.parse::<usize>().expect("a row")].draft, rest, typed);
        }
        _ => panic!("nothing is typed here"),
    }
}

#[test]
fn json_inside_a_form_that_cannot_be_read_is_there_again_beside_the_other_values() {
    let owner = Owner::new();
    owner.set();
    let row = json!({ "type": "object", "properties": { "name": { "type": "string" }, "more": {} } });
    let schema = json!({ "type": "object", "properties": {
        "title": { "type": "string" }, "a/b": { "type": "object" }, "rows": { "type": "array", "items": row },
    } });
    let proposed = json!({ "title": "Old", "a/b": { "deep": [{}, 1] }, "rows": [{ "name": "x", "more": [1, {}] }], "other": null });
    let draft = draft_of(&schema, &proposed);
    type_into(&draft, &["title"], "New");
    for (members, typed) in [(&["a/b", "deep"][..], "[{}, "), (&["rows", "0", "more"], "[1"), (&["other"], "{")] {
        type_into(&draft, members, typed);
    }
    let (value, texts) = (draft.read().expect("a value"), unparsed(&draft));
    let mut wanted = proposed;
    wanted["title"] = json!("New");
    assert_eq!(value, wanted, "the values of before stand in");
    let kept: Vec<_> = texts.iter().collect();
    assert_eq!(kept, [("/a~1b/deep", "[{}, "), ("/other", "{"), ("/rows/0/more", "[1")]);

    let mut left = texts.clone();
    let again = FieldDraft::new(&schema, &value, &mut left);
    assert_eq!((again.read(), unparsed(&again), left.is_empty()), (Some(value), texts.clone(), true));
    type_into(&again, &["a/b", "deep"], "[]");
    assert_eq!(again.read().expect("a value")["a/b"], json!({ "deep": [] }));

    // A value that would have fields now does not hide the text, and a text whose field is gone is not lost.
    let mut left = texts.clone();
    let newer = json!({ "a/b": { "deep": { "a": 1 } } });
    let newer = FieldDraft::new(&schema, &newer, &mut left);
    assert_eq!(unparsed(&newer).iter().collect::<Vec<_>>(), [("/a~1b/deep", "[{}, ")]);
    assert_eq!(left.iter().map(|(at, _)| at).collect::<Vec<_>>(), ["/other", "/rows/0/more"]);
}
