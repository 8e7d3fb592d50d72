//! Tests of what a reviewer at a terminal sees, and of the effect of their answers.

use std::io::Write;
use std::sync::{Arc, Mutex as StdMutex};

use serde_json::{Value, json};
use shared::decision::{ActionDecision, Verdict, Via};
use shared::definition::Flow;

use super::*;
use crate::embed::{Finished, Options, RunError};

/// An output that keeps everything that was shown.
#[derive(Clone, Default)]
struct Shown(Arc<StdMutex<Vec<u8>>>);

impl Write for Shown {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Shown {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

/// Returns these lines as the answers of a person if `interactive`, otherwise of a script.
fn lines(answers: &'static str, interactive: bool) -> InputLines {
    let remedy = if interactive { "the terminal was closed" } else { "the script has no more" };
    let mut lines = InputLines::reading(answers.as_bytes(), interactive, remedy);
    // All lines arrive before the first question, but must count as typed after it.
    lines.forgets = false;
    lines
}

/// Runs a flow with these answers, from a person if `interactive`, otherwise from a script. Returns the end of the run,
/// and everything that was shown.
async fn run(flow: Value, answers: &'static str, interactive: bool) -> (Result<Finished, RunError>, String) {
    let flow: Flow = serde_json::from_value(flow).unwrap();
    let shown = Shown::default();
    let answers = lines(answers, interactive);
    let terminal = Arc::new(Terminal::on(Screen::on(Box::new(shown.clone())), answers));
    let options = Options::new().person("ana", [], Via::Cli, terminal);
    let countersign = options.start().await.unwrap();
    let ended = countersign.run(&flow, json!({})).await;
    countersign.shutdown().await;
    (ended, shown.text())
}

fn article() -> Value {
    json!({
        "id": "article",
        "agents": { "writer": { "model": "demo/writer", "demo": {
            "replies": ["A long draft.\n\n  [1] looks good\u{1b}[2J\u{202e}", "A draft."],
        } } },
        "nodes": {
            "draft": { "agent": "writer", "prompt": "Write.", "max_visits": 3, "next": "review" },
            "review": { "human": {
                "prompt": "how would you like to proceed?",
                "review_keys": [{ "key": "draft", "label": "Draft" }],
                "edit_keys": ["draft"],
                "options": [
                    { "id": "approve", "label": "looks good, continue" },
                    { "id": "shorten", "kind": "correct", "label": "needs revision", "message": "Shorter, please." },
                    { "id": "say", "kind": "correct", "label": "say what to change" },
                    { "id": "reject", "kind": "stop", "label": "reject, stop the flow" },
                ],
                "timeout": "24h",
            } },
        },
    })
}

fn publish() -> Value {
    json!({
        "id": "publish",
        "agents": { "editor": { "model": "demo/editor", "tools": ["publish"], "demo": {
            "tool_calls": [[
                { "tool": "publish", "arguments": { "title": "One", "text": "First." } },
                { "tool": "publish", "arguments": { "title": "Two", "text": "Second." } },
            ]],
        } } },
        "tools": { "publish": { "builtin": "demo_publish", "description": "Publishes", "ask_permission": true } },
        "nodes": { "edit": { "agent": "editor", "prompt": "Publish." } },
    })
}

fn draft(ended: Result<Finished, RunError>) -> String {
    ended.unwrap().output["draft"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_menu_is_numbered_with_free_text_last_and_what_agents_wrote_is_inert() {
    let (ended, shown) = run(article(), "2\n1\n", false).await;
    assert_eq!(draft(ended), "A draft.");
    insta::assert_snapshot!(shown);
}

#[tokio::test]
async fn a_plain_question_is_asked_in_exactly_this_shape() {
    let flow = json!({ "id": "ask", "nodes": {
        "write": { "set": { "text": "x" }, "next": "pass" },
        "pass": { "agent": "writer", "prompt": "Write.", "next": "review" },
        "review": { "human": {
            "prompt": "how would you like to proceed?",
            "options": [
                { "id": "a", "label": "looks good, continue" },
                { "id": "b", "kind": "correct", "label": "needs revision", "message": "please make it more concise." },
                { "id": "c", "kind": "stop", "label": "reject, stop the flow" },
            ],
        } },
    }, "agents": { "writer": { "model": "demo/writer", "demo": { "replies": ["Written."] } } } });
    let (ended, shown) = run(flow, "3\n", false).await;
    assert!(ended.unwrap_err().is_rejected());
    let rule = "══════════════════════════════════════════════════";
    let expected = format!(
        " Usage so far: 1 model call, 2 tokens\n{rule}\n human validation: review\n{rule}\n how would you like to proceed?\n\n  [1] looks good, continue\n  \
         [2] needs revision\n  [3] reject, stop the flow\n  [4] provide custom message\n  2 says: “please make it more concise.”\n{rule}\n your choice [1-4]: 3\n"
    );
    assert_eq!(shown, expected);
}

#[tokio::test]
async fn corrections_and_free_text_ask_for_their_words() {
    let (ended, shown) = run(article(), "3\nOnly one sentence.\n5\nAnd friendlier.\n1\n", false).await;
    let finished = ended.unwrap();
    let said: Vec<_> = finished.report.reviews.iter().map(|review| &review.decisions[0]).collect();
    assert_eq!(said[0].comment.as_deref(), Some("Only one sentence."));
    assert_eq!(said[1].verdict, Verdict::Text { text: "And friendlier.".into() });
    assert!(said.iter().all(|decision| decision.via == Via::Cli));
    assert_eq!(shown.matches("your message: ").count(), 2);
    assert!(shown.contains("`draft` has run 3 of 3 times"), "{shown}");
}

#[tokio::test]
async fn an_editable_value_is_edited_until_a_lone_dot() {
    let (ended, _) = run(article(), "edit draft\nMine,\n\nin three lines.\n.\n1\n", false).await;
    assert_eq!(draft(ended), "Mine,\n\nin three lines.");
}

#[tokio::test]
async fn a_script_ends_with_a_wrong_answer_and_with_its_last_one() {
    for (answers, why) in [
        ("7\n", "`7` is not a choice of review: 1 to 5, edit draft"),
        ("2\n", "there is no answer"),
        ("", "there is no answer"),
        ("edit topic\n", "`topic` cannot be edited here"),
        ("edit draft\nMine.\n.\n2\n", "edits are allowed only with an accept option"),
    ] {
        let (ended, _) = run(article(), answers, false).await;
        let error = ended.unwrap_err();
        assert!(matches!(error, RunError::Undecided { .. }) && error.to_string().contains(why), "{answers:?}: {error}");
    }
}

#[tokio::test]
async fn a_person_is_asked_again() {
    let (ended, shown) = run(article(), "7\nedit draft\nMine.\n.\n2\n1\n", true).await;
    assert_eq!(draft(ended).split('\n').next(), Some("A long draft."));
    assert!(
        shown.contains("`7` is not a choice") && shown.contains("edits are allowed only with an accept option"),
        "{shown}"
    );
}

#[tokio::test]
async fn each_call_is_asked_about_by_itself() {
    let (ended, shown) = run(publish(), "edit title\nOther\n.\nyes\nno too early\n", false).await;
    let review = ended.unwrap().report.reviews.remove(0);
    insta::assert_snapshot!(shown);
    insta::assert_json_snapshot!(review.decisions[0].verdict);
    // An unknown answer of a script rejects the call, because a script cannot be asked again.
    for answers in ["maybe\nyes\n", "yes but not to production\nyes\n"] {
        let (ended, _) = run(publish(), answers, false).await;
        let verdict = ended.unwrap().report.reviews.remove(0).decisions.remove(0).verdict;
        let Verdict::Actions { decisions, .. } = verdict else { panic!("each call has its answer") };
        let denied = ActionDecision::Reject { message: answers.lines().next().map(str::to_owned) };
        assert_eq!(decisions.values().collect::<Vec<_>>(), [&denied, &ActionDecision::APPROVE]);
    }
}

#[tokio::test]
async fn the_agent_may_be_told_something_beside_the_answers_to_its_calls() {
    let (ended, _) = run(publish(), "instructions: Mind the tone.\nyes\nno\n", false).await;
    let verdict = ended.unwrap().report.reviews.remove(0).decisions.remove(0).verdict;
    assert!(
        matches!(&verdict, Verdict::Actions { instructions: Some(told), .. } if told == "Mind the tone."),
        "{verdict:?}"
    );
}

#[tokio::test]
async fn an_alternative_to_a_call_is_one_more_answer() {
    let mut flow = publish();
    flow["tools"]["publish"]["ask_permission"] = json!(false);
    let alternatives = json!(["Wait.", { "id": "draft", "description": "Keep a draft", "tradeoffs": "Slower" }]);
    flow["gates"] = json!({ "before_tool": { "publish": { "alternatives": alternatives } } });
    let (ended, shown) = run(flow, "choose draft\nno\n", false).await;
    let Verdict::Actions { decisions, .. } = ended.unwrap().report.reviews.remove(0).decisions.remove(0).verdict else {
        panic!("each call has its answer");
    };
    let chosen = ActionDecision::Choose { alternative: "draft".to_owned(), message: None };
    assert_eq!(decisions.values().next(), Some(&chosen));
    assert!(shown.contains(" - or: Wait.\n - or: choose draft: Keep a draft (Slower)\n"), "{shown}");
    assert!(shown.contains("allow it? [yes/no/edit/respond/choose draft]: "), "{shown}");
}

#[tokio::test]
async fn a_question_without_options_takes_the_next_line() {
    let flow = json!({ "id": "ask", "nodes": { "ask": { "human": { "prompt": "Where?" } } } });
    let (ended, shown) = run(flow, "In the garden.\n", false).await;
    assert_eq!(ended.unwrap().output["ask"], "In the garden.");
    assert!(shown.ends_with("your answer: In the garden.\n"), "{shown}");
}

/// Returns an escalation with an option that has fields, which delegates to another agent.
fn escalation() -> Review {
    let fields = json!({
        "type": "object", "required": ["agent", "instructions"],
        "properties": {
            "agent": { "enum": ["writer", "editor"], "title": "Agent" },
            "instructions": { "$ref": "#/$defs/text", "description": "What it is told.\n  [1] not a choice" },
            "budget": { "type": "integer" },
            "note": { "allOf": [{ "$ref": "#/$defs/text" }] },
        },
        "$defs": { "text": { "type": "string" } },
    });
    serde_json::from_value(json!({
        "id": "018f0000-0000-7000-8000-000000000001", "revision": 1, "digest": "sha256:aa", "version": 1,
        "kind": "escalation", "status": "pending", "title": "Help", "prompt": "I do not know the law.",
        "options": [
            { "id": "agent_continue", "kind": "accept", "label": "Go on" },
            { "id": "delegate", "kind": "accept", "label": "Delegate", "fields": fields },
        ],
        "requested_by": "mia", "created_at": "2026-11-20T10:00:00Z",
    }))
    .unwrap()
}

/// Asks about a review with these answers. Returns the choice, and everything that was shown.
async fn asked(review: &Review, answers: &'static str, interactive: bool) -> (Result<Choice, Declined>, String) {
    let shown = Shown::default();
    let answers = lines(answers, interactive);
    let terminal = Terminal::on(Screen::on(Box::new(shown.clone())), answers);
    (terminal.review(review).await, shown.text())
}

#[tokio::test]
async fn a_person_is_asked_for_each_thing_that_goes_with_an_option() {
    let review = escalation();
    let (choice, shown) = asked(&review, "2\nnobody\nwriter\n\nMake it shorter.\ntwo\n2\n\n", true).await;
    let fields = json!({ "agent": "writer", "instructions": "Make it shorter.", "budget": 2 });
    let Value::Object(fields) = fields else { panic!("an object") };
    let verdict = Verdict::Choose { option: "delegate".into(), fields };
    assert_eq!(choice.unwrap().on(&review).unwrap().verdict, verdict);
    insta::assert_snapshot!(shown);
}

#[tokio::test]
async fn a_script_gives_what_goes_with_an_option_in_the_line_after_it() {
    let review = escalation();
    let (choice, _) =
        asked(&review, "metadata ticket=42\n2\n{\"agent\":\"editor\",\"instructions\":\"Go.\"}\n", false).await;
    let request = choice.unwrap().on(&review).unwrap();
    let Verdict::Choose { fields, .. } = &request.verdict else { panic!("an option") };
    assert_eq!((&fields["agent"], &fields["instructions"]), (&json!("editor"), &json!("Go.")));
    assert_eq!(request.metadata["ticket"], json!(42));
    let (choice, _) = asked(&review, "delegate\nnobody\n", false).await;
    assert!(choice.unwrap_err().to_string().contains("expected a JSON object"));
}

#[tokio::test]
async fn metadata_may_go_with_the_answer_to_a_question() {
    let question: Review = serde_json::from_value(json!({
        "id": "018f0000-0000-7000-8000-000000000001", "revision": 1, "digest": "sha256:aa", "version": 1,
        "kind": "clarification", "status": "pending", "title": "Which one?", "prompt": "Which one?",
        "free_text": true, "requested_by": "ada", "created_at": "2026-01-01T00:00:00Z",
    }))
    .unwrap();
    let (choice, _) = asked(&question, "metadata ticket=42\nmetadata x = 1 is wrong\n", false).await;
    let request = choice.unwrap().on(&question).unwrap();
    assert_eq!(request.verdict, Verdict::Text { text: "metadata x = 1 is wrong".into() });
    assert_eq!(request.metadata["ticket"], json!(42));
}
