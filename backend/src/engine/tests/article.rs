//! The article flow, from start to end.

use super::*;

/// The flow that the product's page shows.
pub(super) const ARTICLE: &str = r#"
id: article
title: Write, review and publish an article
input:
  type: object
  required: [topic]
  properties:
    topic: { type: string, title: Topic }
agents:
  writer: { model: demo/writer, instructions: You are a careful writer. }
tools:
  publish:
    description: Publish the article
    builtin: demo_publish
    parameters: { type: object, required: [title], properties: { title: { type: string }, text: { type: string } } }
nodes:
  draft:
    agent: writer
    prompt: "Write about {{ topic }}."
    read_keys: [topic]
    write_keys: [draft]
    max_visits: 2
    next: review
  review:
    human:
      prompt: "Please review the draft about {{ topic }}."
      review_keys: [draft]
      edit_keys: [draft]
      options:
        - { id: approve, kind: accept, label: "Looks good, continue" }
        - { id: shorten, kind: correct, label: Needs revision, message: Please make it more concise. }
        - { id: again, kind: correct, label: Something else }
        - { id: reject, kind: stop, label: "Reject, stop the flow" }
      timeout: 24h
      on_timeout: reject
    next: publish
  publish:
    tool: publish
    arguments: { title: "{{ topic }}", text: "{{ draft }}" }
gates:
  before_tool: { publish: { allowed_decisions: [approve, edit, reject], severity: high, reversible: false } }
"#;

#[test]
fn an_article_is_written_corrected_edited_approved_and_published_as_approved() {
    let mut play = Play::start(ARTICLE, json!({ "topic": "the ocean" }));
    assert_eq!(play.kinds(), ["run.started", "step.started"]);
    assert_eq!(play.heard("draft"), [Message::User { text: "Write about the ocean.".to_owned() }]);

    play.model("draft", text("# The ocean"));
    assert_eq!(
        play.kinds(),
        ["model.answered", "step.completed", "step.started", "review.requested", "workflow.waiting"]
    );
    assert_eq!(play.events[0].data["input"], "Write about the ocean.", "all that it was told is in the log");
    assert_eq!(play.status(), RunStatus::WaitingForHuman);
    let first = play.review();
    assert_eq!(first.source, Some(shared::review::Source { node: "draft".parse().unwrap(), visits: 1, max_visits: 2 }));
    insta::assert_json_snapshot!("review", first);

    play.decide(choose("shorten"));
    assert_eq!(play.past(first.id).resolution.as_ref().unwrap().outcome, shared::review::Outcome::Corrected);
    assert_eq!(
        play.heard("draft"),
        [
            Message::User { text: "Write about the ocean.".to_owned() },
            Message::Assistant { text: "# The ocean".to_owned(), calls: Vec::new() },
            Message::User { text: "Please make it more concise.".to_owned() },
        ]
    );
    assert_eq!(play.kinds(), ["review.resolved", "step.completed", "step.started", "run.resumed"]);

    play.model("draft", text("Water."));
    assert_eq!(play.events[0].data["input"], "Write about the ocean.\n\nPlease make it more concise.");
    let second = play.review();
    assert_eq!((second.visit, &second.items[0].value), (Some(2), &json!("Water.")));
    let mut accept = request(&second, choose("approve"));
    accept.edits = object(json!({ "draft": "Water, and salt." }));
    accept.metadata = object(json!({ "campaign": "blue" }));
    play.try_decide(second.id, &ana(), accept).unwrap();
    assert_eq!(play.key("draft"), "Water, and salt.");
    assert_eq!(play.snapshot.state.context.metadata, object(json!({ "campaign": "blue" })));
    insta::assert_json_snapshot!("decision", play.snapshot.state.decisions["review"]);

    let gate = play.review();
    assert_eq!((gate.title.as_str(), gate.actions[0].id.as_str()), ("publish: the ocean", "c1-1"));
    assert_eq!(gate.actions[0].arguments, object(json!({ "title": "the ocean", "text": "Water, and salt." })));
    assert!(play.tasks.is_empty(), "nothing runs before leave is given");
    insta::assert_json_snapshot!("waiting_run", shown_run(Some(&play.flow), &play.snapshot.state));

    let arguments = object(json!({ "title": "The ocean", "text": "Water, and salt." }));
    play.decide(answer_actions([("c1-1", ActionDecision::Edit { arguments: arguments.clone() })]));
    let task = play.task_at("publish");
    assert_eq!(play.tool_work(&task).arguments, arguments);
    play.returned(&task, json!({ "url": "https://example.com/1" }));
    assert_eq!(play.status(), RunStatus::Completed);
    assert_eq!(play.key("publish"), &json!({ "url": "https://example.com/1" }));
    insta::assert_json_snapshot!("last_events", play.events);
    insta::assert_json_snapshot!("completed_run", shown_run(Some(&play.flow), &play.snapshot.state));
}

#[test]
fn what_would_run_must_be_what_was_approved() {
    let mut play = Play::start(ARTICLE, json!({ "topic": "tea" }));
    play.model("draft", text("Leaves."));
    play.decide(choose("approve"));
    play.decide(answer_actions([("c1-1", ActionDecision::APPROVE)]));
    let task = play.task_at("publish");
    let mut state = play.snapshot.state.clone();
    for branch in state.branches.values_mut() {
        if let Phase::Tool { call, .. } = &mut branch.phase {
            call.arguments.insert("title".to_owned(), json!("something else"));
        }
    }
    let refused = work(&play.flow, &state, &task);
    assert!(matches!(refused, Some(Work::Refuse(TaskFailure { retryable: false, .. }))), "{refused:?}");
}

#[test]
fn a_refused_gate_of_a_tool_node_fails_the_run_without_a_second_try() {
    let mut play = Play::start(ARTICLE, json!({ "topic": "tea" }));
    play.model("draft", text("Leaves."));
    play.decide(choose("approve"));
    let message = Some("not today".to_owned());
    play.decide(answer_actions([("c1-1", ActionDecision::Reject { message })]));
    assert_eq!(play.error(), (FlowCode::ToolPermissionDenied, "not today".to_owned()));
    assert_eq!(play.kinds(), ["review.resolved", "step.failed", "run.failed"]);
}

#[test]
fn a_stop_ends_the_run_with_the_comment_else_the_options_message_else_its_label() {
    for (comment, expected) in [(Some("wrong topic"), "wrong topic"), (None, "Reject, stop the flow")] {
        let mut play = Play::start(ARTICLE, json!({ "topic": "tea" }));
        play.model("draft", text("Leaves."));
        let review = play.review();
        let mut stop = request(&review, choose("reject"));
        stop.comment = comment.map(str::to_owned);
        play.try_decide(review.id, &ana(), stop).unwrap();
        assert_eq!(play.error(), (FlowCode::FlowHumanRejected, expected.to_owned()));
        assert!(play.tasks.is_empty());
    }
}

#[test]
fn free_text_beside_options_is_a_correction_with_the_comment_after_it() {
    let mut play = Play::start(ARTICLE, json!({ "topic": "tea" }));
    play.model("draft", text("Leaves."));
    let review = play.review();
    let mut correction = request(&review, say("Mention milk."));
    correction.comment = Some("My aunt insists.".to_owned());
    play.try_decide(review.id, &ana(), correction).unwrap();
    let last = play.heard("draft").pop().unwrap();
    assert_eq!(last, Message::User { text: "Mention milk.\n\nMy aunt insists.".to_owned() });
    assert_eq!(play.snapshot.state.decisions["review"]["text"], "Mention milk.");
    assert_eq!(play.snapshot.state.decisions["review"]["kind"], "correct");
}

#[test]
fn an_input_that_does_not_fit_starts_no_run() {
    let refused = Play::try_start(compile(ARTICLE), json!({ "topic": 5 })).unwrap_err();
    assert_eq!(mistakes(refused)[0].0, "/input/topic");
}
