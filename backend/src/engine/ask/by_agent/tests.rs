//! What people read when an agent asks them something, kind by kind: every text is in the snapshot, so that a change of
//! one is seen where it is made.

use std::fmt::Write as _;

use serde_json::{Value, json};
use shared::definition::Builtin;

use super::presentation::{self, Relief};
use crate::engine::ask_builtin::read;

/// The text of a review: headline, prompt, contents, and each answer with what choosing it does and asks for.
fn text(builtin: Builtin, arguments: Value, relief: &Relief) -> String {
    let Value::Object(arguments) = arguments else { unreachable!("arguments are an object") };
    let ask = read(builtin, &arguments).unwrap();
    let content = presentation::content(Some("clerk"), "Agent `clerk`", ask, relief);
    let mut text = format!("{}\n\n{}\n", content.title, content.prompt);
    for item in &content.items {
        let label = item.label.as_deref().unwrap_or("(no label)");
        let value = item.value.as_str().map_or_else(|| item.value.to_string(), str::to_owned);
        writeln!(text, "\n{label}:\n{value}").unwrap();
    }
    for option in &content.options {
        let description = option.description.as_deref().unwrap_or("(no description)");
        writeln!(text, "\n[{}] {} ({:?})\n{description}", option.id, option.label, option.kind).unwrap();
        let fields = option.fields.as_ref().and_then(|fields| fields["properties"].as_object());
        for (name, field) in fields.into_iter().flatten() {
            writeln!(text, "  {name}: {}", field["title"].as_str().unwrap_or("(no title)")).unwrap();
        }
    }
    text
}

#[test]
fn a_question_reads_as_its_agent_asked_it() {
    let question = json!({
        "question": "Which address is right?",
        "context": "The order names two.",
        "options": [
            { "id": "home", "label": "Home", "description": "12 Elm Street" },
            { "id": "work", "label": "Work" },
        ],
    });
    insta::assert_snapshot!("question", text(Builtin::AskHuman, question.clone(), &Relief::default()));
    let mut several = question;
    several["multiple"] = true.into();
    insta::assert_snapshot!("question_with_several_answers", text(Builtin::AskHuman, several, &Relief::default()));
}

#[test]
fn a_draft_says_how_sure_its_agent_is_and_where_to_look() {
    let draft = json!({
        "content": "Dear Ana,", "purpose": "an answer to a complaint.", "confidence": 0.4, "focus": ["the tone"],
    });
    insta::assert_snapshot!("draft", text(Builtin::RequestEdit, draft, &Relief::default()));
}

#[test]
fn a_request_for_approval_says_what_each_answer_does() {
    let proposal = json!({
        "description": "Refund order 17", "action": { "name": "refund", "arguments": { "amount": 40 } },
        "alternatives": [{ "id": "voucher", "description": "Send a voucher", "tradeoffs": "Cheaper, but less welcome." }],
    });
    insta::assert_snapshot!("approval", text(Builtin::RequestApproval, proposal.clone(), &Relief::default()));
    let mut with_consequences = proposal;
    with_consequences["consequences"] = json!(["The money leaves the account today."]);
    let text = text(Builtin::RequestApproval, with_consequences, &Relief::default());
    assert!(text.contains("[approve] Approve (Accept)\nThe money leaves the account today.\n"), "{text}");
}

#[test]
fn an_escalation_offers_what_its_step_allows() {
    let escalation = json!({
        "reason": "low_confidence", "explanation": "Two laws disagree.", "assessment": "Either may hold.",
        "attempted": ["read both"], "recommendations": ["ask a lawyer"], "state": { "case": 17 },
    });
    let ask = |relief: &Relief| text(Builtin::Escalate, escalation.clone(), relief);
    insta::assert_snapshot!("escalation_from_outside", ask(&Relief::default()));
    let answer = Some(json!({ "type": "string" }));
    let of_a_step = Relief { answer: answer.clone(), needs_answer: false, agents: vec!["lawyer".to_owned()] };
    insta::assert_snapshot!("escalation_of_a_step", ask(&of_a_step));
    let of_a_member = Relief { answer, needs_answer: true, agents: Vec::new() };
    insta::assert_snapshot!("escalation_of_a_member", ask(&of_a_member));
}

#[test]
fn a_checkpoint_and_a_handoff_say_what_follows() {
    let checkpoint = json!({
        "phase": "collect sources", "progress": 0.6, "done": ["three archives"], "next": ["two interviews"],
        "issues": ["one archive is closed"], "notes": "On time.",
    });
    insta::assert_snapshot!("checkpoint", text(Builtin::Checkpoint, checkpoint, &Relief::default()));
    let handoff = json!({ "to": "support", "reason": "Call the customer", "summary": "She waits since Monday." });
    insta::assert_snapshot!("handoff", text(Builtin::Handoff, handoff, &Relief::default()));
}
