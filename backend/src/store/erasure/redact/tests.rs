//! Tests of the removal of a person from stored JSON.

use serde_json::json;

use super::*;

#[test]
fn the_name_and_the_words_of_one_person_go_and_nothing_else() {
    let mut value = json!({
        "actor": "max",
        "data": {
            "from": "max", "status": "approved",
            "review": {
                "voting": {"voters": ["max"], "standing": "max, max.x, x-max and maxi have not voted; max."},
                "prompt": "`max` asks for the max",
                "requested_by": "max",
                "reviewers": {"roles": ["max"], "users": ["max", "zoe"]},
                "claimed_by": {"by": "max", "until": 1},
                "delegations": [{"from": "zoe", "to": "max", "at": 1}],
                "reassignments": [
                    {"by": "max", "at": 1, "from": [{"role": "max"}], "to": {"user": "zoe"}, "reason": "I leave"},
                    {"by": "zoe", "at": 1, "from": [{"user": "max"}], "to": {"role": "max"}, "reason": "max left"},
                ],
                "options": [{"id": "max", "kind": "accept", "label": "max", "message": "as it is"}],
                "comments": [
                    {"by": "max", "at": 1, "text": "approved"},
                    {"by": "zoe", "at": 1, "text": "I say: a long remark, with max"},
                ],
                "decisions": [{
                    "by": "max", "comment": "a long remark", "verdict": {"type": "actions", "decisions": {
                        "c1": {"type": "reject", "message": "too dear"}, "c2": {"type": "respond", "message": "42"},
                    }},
                }],
                "items": [{"key": "k", "value": {"to": "max", "by": "max, zoe", "note": "short"}}],
            },
            "state": {"told": "Reviewer: a long remark!", "max": "max"},
        },
        "people": {"max": ["reviewer"], "zoe": []},
    });
    let mut redaction = Redaction::new("max", "erased-1");
    redaction.redact("entry", &mut value);
    redaction.seek(&|_| false);
    redaction.trace(&mut value);
    let wanted = json!({
        "actor": "erased-1",
        "data": {
            "from": "max", "status": "approved",
            "review": {
                "voting": {
                    "voters": ["erased-1"],
                    "standing": "erased-1, max.x, x-max and maxi have not voted; erased-1.",
                },
                "prompt": "`erased-1` asks for the max",
                "requested_by": "erased-1",
                "reviewers": {"roles": ["max"], "users": ["erased-1", "zoe"]},
                "claimed_by": {"by": "erased-1", "until": 1},
                "delegations": [{"from": "zoe", "to": "erased-1", "at": 1}],
                "reassignments": [
                    {"by": "erased-1", "at": 1, "from": [{"role": "max"}], "to": {"user": "zoe"}, "reason": ERASED},
                    {"by": "zoe", "at": 1, "from": [{"user": "erased-1"}], "to": {"role": "max"}, "reason": "erased-1 left"},
                ],
                "options": [{"id": "max", "kind": "accept", "label": "max", "message": "as it is"}],
                "comments": [
                    {"by": "erased-1", "at": 1, "text": ERASED},
                    {"by": "zoe", "at": 1, "text": "I say: [erased], with max"},
                ],
                "decisions": [{
                    "by": "erased-1", "comment": ERASED, "verdict": {"type": "actions", "decisions": {
                        "c1": {"type": "reject", "message": ERASED}, "c2": {"type": "respond", "message": "42"},
                    }},
                }],
                "items": [{"key": "k", "value": {"to": "max", "by": "erased-1, zoe", "note": "short"}}],
            },
            "state": {"told": "Reviewer: [erased]!", "max": "max"},
        },
        "people": {"erased-1": ["reviewer"], "zoe": []},
    });
    assert_eq!(value, wanted);
    let again = value.clone();
    redaction.redact("entry", &mut value);
    assert_eq!(value, again, "a second time changes nothing");
}

#[test]
fn data_of_users_are_treated_alike_wherever_they_stand() {
    let own = json!({"owner": "ana", "input": "x", "by": "ana", "problem": "ana is away"});
    let decision = json!({"verdict": {"type": "choose", "option": "yes", "fields": own}});
    let answer = json!({"modifications": {"toolArgs": own, "output": own}, "verdict": decision["verdict"]});
    let mut review = json!({
        "decisions": [decision], "resolution": {"decision": decision, "answer": own}, "advice": [{"answer": answer}],
    });
    let mut state = json!({"input": own, "frames": {"f": {"input": own}}, "decisions": {"check": own}});
    let mut row = json!({"inputs": [
        {"launch": {"input": own}}, {"input": {"input": "decide", "request": decision, "owner": "ana"}},
        {"input": {"input": "tool_returned", "result": own}},
    ]});
    let mut redaction = Redaction::new("ana", "erased-1");
    redaction.redact("review", &mut review);
    redaction.redact(super::super::user_data_paths::STATE, &mut state);
    redaction.redact("row", &mut row);
    let text = [review, state, row].map(|value| value.to_string()).join("");
    let kept = json!({"owner": "ana", "input": "x", "by": "erased-1", "problem": "ana is away"}).to_string();
    assert_eq!((text.matches(&kept).count(), text.matches("\"input\":\"x\"").count()), (12, 12), "{text}");
    assert_eq!(text.matches("\"owner\":\"erased-1\"").count(), 1, "a member of the engine's own: {text}");
}

#[test]
fn an_account_loses_what_an_entry_says_of_it() {
    let mut value = json!({"events": [{
        "kind": "user.updated", "actor": "zoe",
        "data": {
            "username": "ana", "email": "ana@example.org", "display_name": "Ana", "active": false,
            "single_sign_on": {"issuer": "https://id", "subject": "7"}, "notifications": {"slack_user_id": "U1"},
        },
    }]});
    Redaction::new("ana", "erased-1").redact("row", &mut value);
    let data = json!({
        "username": "erased-1", "email": ERASED, "display_name": ERASED, "active": false,
        "single_sign_on": {"issuer": "https://id", "subject": ERASED},
    });
    assert_eq!(value["events"][0]["data"], data);
}

#[test]
fn what_was_known_before_they_typed_it_is_not_theirs() {
    let mut said = json!({"by": "ana", "comment": "The letter as it was approved"});
    let mut own = json!({"by": "ana", "comment": "Only I would say this"});
    let mut told = json!({"messages": ["The letter as it was approved", "Ana says: Only I would say this"]});
    let mut redaction = Redaction::new("ana", "erased-1");
    for value in [&mut said, &mut own] {
        redaction.redact("decision", value);
        redaction.seek(&|word| word.starts_with("The letter"));
    }
    redaction.trace(&mut told);
    assert_eq!([&said["comment"], &own["comment"]], [ERASED, ERASED]);
    assert_eq!(told, json!({"messages": ["The letter as it was approved", format!("Ana says: {ERASED}")]}));
}

#[test]
fn a_sign_in_that_was_refused_before_the_account_was_linked_is_theirs() {
    let account = |subject: &str| json!({"issuer": "https://id", "subject": subject});
    let refused =
        |name: &str, subject: &str| json!({"username": name, "reason": "unknown", "single_sign_on": account(subject)});
    let own = ProviderAccount { issuer: "https://id".to_owned(), subject: "7".to_owned() };
    let linked =
        |subject: &str| json!({"username": "max", "email": "max@example.org", "single_sign_on": account(subject)});
    let mut value = json!([
        refused("ana.smith", "7"), refused("ana.smith", "8"), {"single_sign_on": account("7")},
        refused("max", "7"), linked("7"),
    ]);
    let mut names = BTreeSet::new();
    names_with(&own, &value, &mut names);
    assert_eq!(names, BTreeSet::from(["ana.smith".to_owned(), "max".to_owned()]));
    let others = BTreeSet::from(["max".to_owned()]);
    let account_of = OwnAccount { account: &own, others: &others };
    let mut redaction = Redaction::new("ana", "erased-1").with_account(Some(account_of));
    redaction.redact("row", &mut value);
    let wanted = json!([
        refused("erased-1", ERASED), refused("ana.smith", "8"), {"single_sign_on": account(ERASED)},
        refused("max", ERASED), linked(ERASED),
    ]);
    assert_eq!(value, wanted, "Max had the account by mistake, and stays Max");
}
