//! Nested flows: a flow inside a flow, with people inside.

use super::*;
use crate::flow::Library;

const POLISH: &str = r#"
id: polish
title: Polish a text
input: { type: object, required: [text], properties: { text: { type: string }, tone: { type: string, default: plain } } }
output: [text]
agents: { editor: { model: demo/editor, tools: [look_up] } }
tools: { look_up: { http: { url: "https://x" }, ask_permission: true } }
nodes:
  edit: { agent: editor, prompt: "Make this {{ tone }}: {{ text }}", write_keys: [text], next: review }
  review:
    human:
      prompt: "Is this {{ input.tone }} enough? ({{ visit }})"
      review_keys: [text]
      edit_keys: [text]
      options:
        - { id: fine, label: Fine }
        - { id: again, kind: correct, label: Again, message: "Once more, please." }
        - { id: no, kind: stop, label: Not at all }
"#;

const LETTER: &str = r#"
id: letter
agents: { writer: { model: demo/writer, tools: [] } }
nodes:
  draft: { agent: writer, prompt: "Write.", next: polish }
  polish: { flow: { id: polish, input: { text: "{{ draft }}", tone: warm } }, write_keys: [text], next: review }
  review:
    human:
      prompt: "Send it?"
      review_keys: [text]
      corrects: polish
      options: [{ id: send, label: Send }, { id: redo, kind: correct, label: Redo, message: "Shorter." }]
"#;

/// Compiles the last flow, which may call those before it.
fn compile_all(sources: &[&str]) -> Compiled {
    let (last, before) = sources.split_last().unwrap();
    let mut library = Library::default();
    for source in before {
        library.add(Arc::new(compile_among(source, &library)));
    }
    compile_among(last, &library)
}

fn compile_among(source: &str, library: &Library) -> Compiled {
    let checked = flow::read(source).check(&flow::Here { library: Some(library), ..flow::Here::default() });
    assert!(checked.errors.is_empty(), "{:#?}", checked.errors);
    Compiled::calling(checked.flow.unwrap(), 1, library).unwrap()
}

fn letter() -> Play {
    let mut play = Play::try_start(compile_all(&[POLISH, LETTER]), json!({})).unwrap();
    play.model("draft", text("Dear all"));
    play
}

#[test]
fn a_flow_runs_inside_another_with_keys_decisions_and_visits_of_its_own() {
    let mut play = letter();
    let heard = play.heard("polish:1/edit");
    assert_eq!(heard, [Message::User { text: "Make this warm: Dear all".to_owned() }]);
    play.model("polish:1/edit", text("Dearest all"));
    let inner = play.review();
    assert_eq!(inner.node.as_deref(), Some("polish:1/review"));
    assert_eq!((inner.title.as_str(), inner.prompt.as_str()), ("Is this warm enough? (1)", "Is this warm enough? (1)"));
    assert_eq!(inner.source.as_ref().map(|source| &*source.node), Some("polish:1/edit"));
    // A correction runs the step inside again, whose agent sees its own last answer.
    play.decide(choose("again"));
    let heard = play.heard("polish:1/edit");
    assert_eq!(heard.len(), 3);
    assert_eq!(heard[1], Message::Assistant { text: "Dearest all".to_owned(), calls: Vec::new() });
    play.model("polish:1/edit", text("My dearest"));
    let again = play.review();
    assert_eq!(again.prompt, "Is this warm enough? (2)");
    let mut edited = request(&again, choose("fine"));
    edited.edits = object(json!({ "text": "My dear" }));
    play.try_decide(again.id, &ana(), edited).unwrap();
    // The output of the flow is the node's result; nothing else of the flow remains.
    assert_eq!(play.key("text"), "My dear");
    assert_eq!(play.key("tone"), &Value::Null);
    assert!(play.snapshot.state.frames.is_empty() && play.snapshot.state.decisions.is_empty());
    let outer = play.review();
    assert_eq!((outer.node.as_deref(), &outer.items[0].value), (Some("review"), &json!("My dear")));
    let done = |node: &str| play.steps().into_iter().filter(|step| step.0 == node).count();
    assert_eq!((done("polish:1/edit"), done("polish:1/review"), done("polish")), (2, 2, 1));
}

#[test]
fn a_called_flow_is_corrected_as_a_whole_and_begins_anew() {
    let mut play = letter();
    play.model("polish:1/edit", text("One"));
    play.decide(choose("fine"));
    play.decide(choose("redo"));
    let heard = play.heard("polish:2/edit");
    assert_eq!(heard, [Message::User { text: "Make this warm: Dear all".to_owned() }]);
    let inside = scope::of(
        &play.flow,
        &play.snapshot.state,
        &"polish:2/edit".parse().unwrap(),
        scope::Visit { number: 1, ..scope::Visit::default() },
    );
    assert_eq!(inside.0["correction"], "Shorter.", "what is wanted can be read inside");
    play.model("polish:2/edit", text("Two"));
    assert_eq!(play.review().prompt, "Is this warm enough? (1)", "its visits are its own");
}

#[test]
fn what_is_stopped_inside_fails_the_call_whose_failure_policy_routes() {
    let mut play = letter();
    play.model("polish:1/edit", text("One"));
    let review = play.review();
    play.decide_on(&review, choose("no"));
    assert_eq!((play.status(), play.error().0), (RunStatus::Failed, FlowCode::FlowHumanRejected));

    let caught = LETTER.replace("write_keys: [text]", "write_keys: [text], failure: { then: { goto: review } }");
    let mut play = Play::try_start(compile_all(&[POLISH, &caught]), json!({})).unwrap();
    play.model("draft", text("Dear all"));
    play.model("polish:1/edit", text("One"));
    play.decide(choose("no"));
    assert_eq!(play.review().node.as_deref(), Some("review"));
    assert_eq!(play.key("text"), &Value::Null, "what failed gives nothing");
}

const EACH: &str = r#"
id: each
input: { type: object, properties: { texts: { default: [one, two, three] } } }
tools: { look_up: { http: { url: "https://y" }, ask_permission: true } }
nodes:
  all: { map: { over: texts, as: it, node: polish }, write_keys: [polished], next: after }
  polish: { flow: { id: polish, input: { text: "{{ it }}" } }, write_keys: [text] }
  after: { tool: look_up, arguments: {} }
"#;

#[test]
fn a_map_calls_a_flow_for_each_item_and_their_reviews_wait_side_by_side() {
    let mut play = Play::try_start(compile_all(&[POLISH, EACH]), json!({})).unwrap();
    for (visit, word) in [(2, "Two"), (1, "One"), (3, "Three")] {
        play.model(&format!("polish:{visit}/edit"), text(word));
    }
    let pending = || play.snapshot.reviews.values().filter(|review| review.is_pending());
    let mut titles: Vec<_> = pending().map(|review| review.title.clone()).collect();
    titles.sort();
    assert_eq!(
        titles,
        [
            "Is this plain enough? (1) (1 of 3)",
            "Is this plain enough? (1) (2 of 3)",
            "Is this plain enough? (1) (3 of 3)"
        ]
    );
    let part = pending().find(|review| review.title.contains("(2 of 3)")).unwrap().part.unwrap();
    assert_eq!((part.number, part.of, part.inside), (2, 3, true), "the item is that of the call");
    assert_eq!(Part::again(Some(part), 2), Some(2));
    let reviews: Vec<_> = pending().cloned().collect();
    for review in &reviews {
        play.decide_on(review, choose("fine"));
    }
    assert_eq!(play.key("polished"), &json!(["One", "Two", "Three"]));
    assert_eq!(play.review().title, "look_up");
}

#[test]
fn leave_for_a_tool_of_one_flow_is_none_for_that_of_another_with_the_same_name() {
    let mut play = Play::try_start(compile_all(&[POLISH, EACH]), json!({ "texts": ["one"] })).unwrap();
    play.model("polish:1/edit", calls([("look_up", json!({}))]));
    let gate = play.review();
    assert_eq!(gate.node.as_deref(), Some("polish:1/edit"));
    let remember =
        shared::grant::Remember { scope: shared::grant::GrantScope::Run, for_ms: None, arguments: Vec::new() };
    let allow = ActionDecision::Approve { remember: Some(remember) };
    play.decide_on(&gate, answer_actions([("c1-1", allow)]));
    assert_eq!(play.snapshot.grants[0].grant.tool, "polish/look_up");
    let task = play.call_task("c1-1");
    let work = play.tool_work(&task);
    assert_eq!(work.idempotency_key, format!("{}.polish:1/edit.1.c1-1", play.snapshot.state.id));
    assert!(format!("{:?}", work.tool).contains("https://x"), "the called flow's own tool");
    play.returned(&task, json!("found"));
    // The grant covers the same tool, but not that of the calling flow.
    play.model("polish:1/edit", calls([("look_up", json!({}))]));
    let task = play.call_task("c2-1");
    play.returned(&task, json!("found"));
    play.model("polish:1/edit", text("Done"));
    play.decide(choose("fine"));
    assert_eq!(play.review().title, "look_up");
}

#[test]
fn what_does_not_fit_the_called_flow_is_found_when_it_is_saved_or_fails_at_the_call() {
    let mut library = Library::default();
    library.add(Arc::new(compile(POLISH)));
    let errors = |source: &str| -> Vec<String> {
        let checked = flow::read(source).check(&flow::Here { library: Some(&library), ..flow::Here::default() });
        let line = |mistake: &shared::error::Mistake| mistake.line.is_some();
        assert!(checked.errors.iter().all(line) && checked.warnings.iter().all(line));
        checked.errors.iter().chain(&checked.warnings).map(|one| format!("{} {}", one.path, one.message)).collect()
    };
    let calling = |call: &str| format!("id: f\nnodes:\n  a: {{ flow: {call} }}\n");
    for (call, found) in [
        ("{ id: polisch }", "/nodes/a/flow/id there is no flow `polisch`; did you mean `polish`?"),
        ("{ id: polish, version: 7 }", "/nodes/a/flow/version the newest version of `polish` is 1"),
        ("{ id: f }", "/nodes/a/flow/id `f` calls itself"),
        ("{ id: polish }", "/nodes/a/flow `polish` needs the input `text`"),
        ("{ id: polish, input: { tone: x } }", "/nodes/a/flow/input `polish` needs the input `text`"),
        ("{ id: polish, input: { text: x, ton: y } }", "/nodes/a/flow/input/ton `polish` has no input `ton`"),
    ] {
        let errors = errors(&calling(call));
        assert!(matches!(&errors[..], [one] if one.starts_with(found)), "{call}: {errors:#?}");
    }
    // A flow that would call itself is refused, however many flows are in between.
    library
        .add(Arc::new(Compiled::calling(parsed(&calling("{ id: polish, input: { text: x } }")), 1, &library).unwrap()));
    let back = POLISH.replace("nodes:\n", "nodes:\n  first: { flow: { id: f }, next: edit }\n");
    let found = flow::read(&back).check(&flow::Here { library: Some(&library), ..flow::Here::default() }).errors;
    assert!(found[0].message.contains("cannot call each other"), "{found:?}");

    let wrong = "id: g\nnodes:\n  a: { flow: { id: polish, input: { text: '{{ 7 }}' } } }\n";
    let play = Play::try_start(Compiled::calling(parsed(wrong), 1, &library).unwrap(), json!({})).unwrap();
    let (code, message) = play.error();
    assert_eq!(code, FlowCode::FlowInvalid);
    assert!(
        message.contains("input of the flow `polish` is not valid") && message.contains("/input/text"),
        "{message}"
    );
}

#[test]
fn loops_that_call_loops_end_however_many_visits_they_allow() {
    let inner = "id: inner\nnodes:\n  a: { set: { x: 1 }, max_visits: 10000, on_visit_limit: b, next: a }\n  b: { set: { y: 1 } }\n";
    let outer = "id: outer\nnodes:\n  call: { flow: { id: inner }, max_visits: 10000, next: call }\n";
    let play = Play::try_start(compile_all(&[inner, outer]), json!({})).unwrap();
    let (code, message) = play.error();
    assert_eq!(code, FlowCode::FlowVisitLimit);
    assert!(message.contains("steps without waiting"), "{message}");

    let inner = "id: inner\nnodes:\n  begin: { set: { items: '{{ range(100) | list }}' }, next: each }\n  each: { map: { over: items, as: i, node: ask } }\n  ask: { human: { prompt: '?' } }\n";
    let outer = "id: outer\nnodes:\n  begin: { set: { items: '{{ range(100) | list }}' }, next: each }\n  each: { map: { over: items, as: i, node: call } }\n  call: { flow: { id: inner } }\n";
    let play = Play::try_start(compile_all(&[inner, outer]), json!({})).unwrap();
    assert!(play.error().1.contains("branches at once"), "{:?}", play.error());
    assert!(play.tasks.is_empty() && play.snapshot.reviews.values().all(|review| !review.is_pending()));
}

fn parsed(source: &str) -> shared::definition::Flow {
    flow::check(source).flow.unwrap()
}
