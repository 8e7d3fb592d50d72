//! What nodes leave to the state, to the flow's defaults and to its routes.

use super::*;
use shared::review::Outcome;

const MENU: &str = "
id: menu
defaults: { reviewers: { roles: [everyone] }, model: demo/clerk }
routing:
  - { tags: [money], reviewers: { roles: [finance] } }
  - { tags: [money, law], reviewers: { roles: [legal] } }
agents: { clerk: { tools: [look], output_schema: { type: object, properties: { menu: { type: array } } } } }
tools: { look: { http: { url: 'https://example.com' }, idempotent: true, ask_permission: true } }
nodes:
  ask: { agent: clerk, prompt: What is there?, write_keys: [menu], next: pick }
  pick: { human: { prompt: Which?, options_key: menu, allow_free_text: false, on_reject: law }, tags: [money], next: law }
  law: { human: { prompt: Fine? }, tags: [law], next: own }
  own: { human: { prompt: Sure?, reviewers: { roles: [boss] } }, tags: [law] }
";

fn start(menu: &Value) -> Play {
    let mut play = Play::start(MENU, json!({}));
    play.model("ask", calls([("look", json!({ "long": "x".repeat(9000) }))]));
    let gate = play.review();
    assert_eq!(gate.reviewers.roles, ["everyone"], "a gate that names nobody");
    play.try_decide(gate.id, &person("all", &["reviewer", "everyone"]), request(&gate, say("No."))).unwrap();
    play.model("ask", text(&json!({ "menu": menu }).to_string()));
    play
}

#[test]
fn a_timer_that_approves_stops_where_no_option_accepts() {
    let flow = MENU.replace("on_reject: law }", "timeout: 1h, on_timeout: approve }");
    let late = |menu: Value| {
        let mut play = Play::start(&flow, json!({}));
        play.model("ask", text(&json!({ "menu": menu }).to_string()));
        play.now = play.review().expires_at.unwrap();
        let task = *play.tasks.keys().next().unwrap();
        play.apply(Input::Due { task });
        play
    };
    let chosen = late(json!(["Soup", { "id": "no", "label": "Nothing", "kind": "stop" }]));
    assert_eq!(chosen.review().title, "Fine?", "the first option that accepts is taken");
    let stopped = late(json!([{ "id": "no", "label": "Nothing", "kind": "stop" }]));
    assert_eq!(stopped.error().0, FlowCode::FlowHumanRejected);
}

#[test]
fn an_agent_writes_the_menu_from_which_a_person_chooses() {
    let mut play = start(&json!([
        "Soup",
        { "id": "b", "label": "Bread", "description": "Fresh", "kind": "accept" },
        { "id": "no", "label": "Nothing", "kind": "stop" },
    ]));
    let review = play.review();
    let offered: Vec<_> = review.options.iter().map(|option| (&*option.id, &*option.label)).collect();
    assert_eq!(offered, [("Soup", "Soup"), ("b", "Bread"), ("no", "Nothing")]);
    assert!(!review.free_text && review.reviewers.roles == ["finance"], "the first route that fits: {review:?}");
    let ann = person("ann", &["reviewer", "finance", "legal", "boss"]);
    let refused = play.try_decide(review.id, &ann, request(&review, say("Rice."))).unwrap_err();
    assert_eq!(mistakes(refused), [("/verdict/type".to_owned(), "not_offered".to_owned())]);
    play.try_decide(review.id, &ann, request(&review, choose("b"))).unwrap();
    assert_eq!(play.past(review.id).resolution.as_ref().unwrap().outcome, Outcome::Accepted);
    let waits = |play: &Play| play.kinds().iter().filter(|kind| **kind == "workflow.waiting").count();
    assert_eq!(waits(&play), 1, "it waits for another review: {:?}", play.kinds());
    let law = play.review();
    assert_eq!(law.reviewers.roles, ["legal"]);
    play.try_decide(law.id, &ann, request(&law, say("Yes."))).unwrap();
    assert_eq!((play.review().reviewers.roles, waits(&play)), (vec!["boss".to_owned()], 1), "its own count first");
}

#[test]
fn a_menu_that_is_none_fails_the_step() {
    for (menu, why) in [
        (json!([]), "expected 1 to 20"),
        (json!(["a", "a"]), "1: the id `a` is empty or used twice"),
        (json!([{ "id": "a" }]), "0: missing field `label`"),
        (json!([{ "id": "a", "label": "Tea" }, "tea "]), "two choices read `tea `"),
    ] {
        let play = start(&menu);
        let (code, message) = play.error();
        assert!(code == FlowCode::FlowCondition && message.contains(why), "{message}");
    }
}

#[test]
fn people_see_what_an_agent_was_told_said_and_called_cut_where_it_is_long() {
    let play = start(&json!(["Soup"]));
    let usage = play.review().usage;
    let [first, last] = &usage.agent_calls[..] else { panic!("{usage:?}") };
    assert_eq!((&*first.input, &*first.tools[0].name), ("What is there?", "look"));
    let arguments = first.tools[0].arguments.as_str().expect("the beginning of it as text");
    assert!(arguments.len() < 4200 && arguments.ends_with('…'), "{}", arguments.len());
    let error = first.tools[0].error.as_deref().unwrap();
    assert!(error.starts_with("TOOL_PERMISSION_DENIED: No."), "{error}");
    assert!(last.input.starts_with("look: ") && last.output.contains("Soup"), "{last:?}");
}

#[test]
fn a_person_is_shown_and_edits_what_the_node_may_read_and_nothing_else() {
    let source = "
id: f
nodes:
  make: { set: { draft: Hello, salary: 9000 }, write_keys: [draft, salary], next: ask }
  ask:
    human:
      prompt: Fine?
      review_keys: [draft, salary]
      edit_keys: [draft, salary]
      options: [{ id: ok, kind: accept, label: Fine }]
    read_keys: [draft]
";
    let mut play = Play::start(source, json!({}));
    let review = play.review();
    let shown: Vec<_> = review.items.iter().map(|item| (&*item.key, item.editable)).collect();
    assert_eq!(shown, [("draft", true)]);
    let edits = object(json!({ "salary": 1 }));
    let sent = DecisionRequest { edits, ..request(&review, choose("ok")) };
    let Err(Refusal::Invalid(mistakes)) = play.try_decide(review.id, &ana(), sent) else { panic!() };
    assert_eq!(mistakes[0].path, "/edits/salary");
    play.decide(choose("ok"));
    assert_eq!((play.status(), play.key("salary")), (RunStatus::Completed, &json!(9000)));
}
