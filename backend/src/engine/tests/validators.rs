//! Validators: what a response must fulfil, and where a mistake in it is reported.

use super::*;

fn asked(validator: &str, options: &str) -> Play {
    let source = format!(
        r"
id: v
input: {{ type: object, properties: {{ price: {{ type: integer }}, question: {{ type: string }} }} }}
nodes:
  ask:
    human:
      prompt_key: question
      prompt: How much?
      edit_keys: [{{ key: price, schema: {{ type: integer }} }}, {{ key: note, schema: {{ type: string }} }}]
      options: {options}
      validator: {validator}
    write_keys: [answer]
"
    );
    Play::start(&source, json!({ "price": 3 }))
}

fn refused(play: &mut Play, verdict: Verdict, edits: Value) -> Vec<(String, String)> {
    let review = play.review();
    let mut request = request(&review, verdict);
    request.edits = object(edits);
    match play.try_decide(review.id, &ana(), request) {
        Err(Refusal::Invalid(mistakes)) => {
            mistakes.into_iter().map(|mistake| (mistake.path, mistake.message)).collect()
        }
        Err(other) => panic!("{other:?}"),
        Ok(()) => Vec::new(),
    }
}

fn place(path: &str, message: &str) -> Vec<(String, String)> {
    vec![(path.to_owned(), message.to_owned())]
}

#[test]
fn a_response_that_does_not_fulfil_the_condition_is_refused_at_its_field() {
    let mut play = asked("{ when: 'size(response.text) > 3', message: Say more. }", "[]");
    assert_eq!(refused(&mut play, say("no"), json!({})), place("/verdict/text", "Say more."));
    assert_eq!(refused(&mut play, say("five"), json!({})), []);
    assert_eq!(play.key("answer"), "five");

    let options = "[{ id: yes, label: Y }, { id: no, kind: stop, label: N }]";
    let when = "{ when: \"response.option == 'no' || (has(response.edits.price) && response.edits.price > 9)\", message: Too low. }";
    let mut play = asked(when, options);
    assert_eq!(refused(&mut play, choose("yes"), json!({ "price": 5 })), place("/edits/price", "Too low."));
    assert_eq!(refused(&mut play, choose("yes"), json!({})), place("/verdict", "Too low."));
    assert_eq!(refused(&mut play, choose("yes"), json!({ "price": 12, "note": "ok" })), []);
    assert_eq!((play.key("price"), play.key("note")), (&json!(12), &json!("ok")));
}

#[test]
fn a_schema_is_of_the_response_or_of_its_text() {
    let schema = "{ schema: { type: object, properties: { text: { type: string, minLength: 3 }, \
                  edits: { required: [note] } } } }";
    let mut play = asked(schema, "[]");
    let mut found = refused(&mut play, say("no"), json!({}));
    found.sort();
    assert_eq!(
        found,
        [place("/edits/note", "`note` is missing"), place("/verdict/text", "must be at least 3 characters long")]
            .concat()
    );
    assert_eq!(refused(&mut play, say("yes"), json!({ "note": "x" })), []);
    let mut play = asked("{ schema: { type: string, pattern: '^[0-9]+$' } }", "[]");
    assert_eq!(refused(&mut play, say("a lot"), json!({})), place("/verdict/text", "must match the pattern ^[0-9]+$"));
    assert_eq!(refused(&mut play, say("7"), json!({})), []);
}

#[test]
fn a_flow_saved_with_a_schema_that_has_no_bound_goes_on_and_nothing_fits_that_schema() {
    let mut defs = serde_json::Map::from_iter([("d0".to_owned(), json!({ "type": "string" }))]);
    for number in 1..=30 {
        let before = json!({ "$ref": format!("#/$defs/d{}", number - 1) });
        defs.insert(format!("d{number}"), json!({ "allOf": [before, before] }));
    }
    let schema = json!({ "$ref": "#/$defs/d30", "$defs": defs });
    let source = json!({
        "id": "f",
        "nodes": {
            "first": { "human": { "prompt": "Go on?" }, "next": "second" },
            "second": { "human": { "prompt": "What?", "edit_keys": [{ "key": "text", "schema": schema }] } },
        },
    });
    assert!(flow::check(&source.to_string()).errors[0].message.contains("100000 times"), "it is not saved again");
    let mut play =
        Play::try_start(Compiled::new(serde_json::from_value(source).unwrap(), 1).unwrap(), json!({})).unwrap();
    play.decide(say("yes"));
    let review = play.review();
    let edited = DecisionRequest { edits: object(json!({ "text": "x" })), ..request(&review, say("this")) };
    let refused = play.try_decide(review.id, &ana(), edited).unwrap_err();
    assert_eq!(mistakes(refused), [("/edits/text".to_owned(), "invalid".to_owned())]);
    play.decide(say("this"));
    assert_eq!(play.status(), RunStatus::Completed);
}
