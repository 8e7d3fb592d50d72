//! Flows built in Rust.

use serde_json::json;

use super::*;

fn article() -> Flow {
    Flow::new("article")
        .input(json!({ "type": "object", "properties": { "topic": { "type": "string" } } }))
        .node("draft", Agent::new("writer").prompt("Write about {{ topic }}."))
        .delegates_to_human("review")
}

fn review() -> Human {
    Human::new("Please review the draft.")
        .reviews("draft")
        .option(accept("approve", "Looks good"))
        .option(correct("shorten", "Needs revision", "Shorter, please."))
        .option(stop("reject", "Reject"))
}

fn codes(flow: Flow) -> Vec<(String, String)> {
    flow.build().unwrap_err().0.into_iter().map(|mistake| (mistake.path, mistake.code)).collect()
}

fn one(path: &str, code: &str) -> Vec<(String, String)> {
    vec![(path.to_owned(), code.to_owned())]
}

#[test]
fn a_flow_written_in_rust_is_the_one_that_a_file_says() {
    let built = article()
        .human("review", review())
        .delegates_to("publish")
        .node("publish", Tool::new("publish").argument("text", "{{ draft }}").demo_publish())
        .build()
        .unwrap();
    let file = "
id: article
input: { type: object, properties: { topic: { type: string } } }
agents: { writer: { model: demo/writer } }
tools: { publish: { builtin: demo_publish } }
nodes:
  draft: { agent: writer, prompt: 'Write about {{ topic }}.', next: review }
  review:
    human:
      prompt: Please review the draft.
      review_keys: [draft]
      options:
        - { id: approve, label: Looks good }
        - { id: shorten, kind: correct, label: Needs revision, message: 'Shorter, please.' }
        - { id: reject, kind: stop, label: Reject }
    next: publish
  publish: { tool: publish, arguments: { text: '{{ draft }}' } }
";
    assert_eq!(Some(built), crate::flow::check(file).flow);
}

#[test]
fn delegating_to_a_person_and_to_a_node_at_once_is_refused() {
    let publish = || Tool::new("publish").argument("text", "{{ draft }}").demo_publish();
    let both = article().delegates_to("publish").human("review", review()).node("publish", publish());
    assert_eq!(codes(both), one("/nodes/draft/next", "FLOW_INVALID_DELEGATION"));
    let question =
        article().delegates_to("publish").human("review", Human::new("Any words?")).node("publish", publish());
    assert_eq!(codes(question), one("/nodes/draft/next", "FLOW_INVALID_DELEGATION"));
    let in_other_words =
        article().delegates_when("true", "publish").human("review", review()).node("publish", publish());
    assert_eq!(codes(in_other_words), one("/nodes/draft/next/0", "FLOW_INVALID_DELEGATION"));
}

#[test]
fn the_builder_finds_what_the_check_of_a_file_finds() {
    assert_eq!(codes(article()), one("/nodes/draft/next/0/to", "FLOW_INVALID"));
    let node = article().node("review", Set::new().key("a", 1));
    assert_eq!(codes(node), one("/nodes/draft/next", "FLOW_INVALID"));
    assert_eq!(codes(Flow::new("a").delegates_to("b").node("b", Router::new())), one("/nodes", "FLOW_INVALID"));
    assert_eq!(codes(Flow::new("A b").node("b", Router::new())), one("/id", "FLOW_INVALID"));
    assert_eq!(codes(Flow::new("a")), one("/nodes", "FLOW_INVALID"));
}

#[test]
fn whatever_a_file_says_of_a_flow_can_be_said_in_rust() {
    use shared::definition::{Policy, Reviewers, Severity, TeamStrategy};
    let built = Flow::new("pay")
        .returns(json!({ "type": "object" }))
        .defaults(serde_json::from_value(json!({ "timeout": "1h", "model": "demo/m" })).unwrap())
        .guardrails(serde_json::from_value(json!(["secrets"])).unwrap())
        .gates(serde_json::from_value(json!({ "before_return": true })).unwrap())
        .routes(["money"], Reviewers { roles: vec!["finance".to_owned()], ..Reviewers::default() })
        .node("choose", Router::new().by_agent(Agent::new("clerk").prompt("Where to?")))
        .delegates_to("note")
        .delegates_to("skip")
        .node("note", Set::new().key("noted", "yes"))
        .on_visit_limit("skip".parse().unwrap())
        .failure(serde_json::from_value(json!({ "retries": 2 })).unwrap())
        .delegates_to_human("ask")
        .node("skip", Set::new().key("skipped", "yes"))
        .human(
            "ask",
            Human::new("Pay?")
                .prompt_key("question")
                .shows(serde_json::from_value(json!({ "key": "noted", "label": "Noted" })).unwrap())
                .option(accept("yes", "Pay"))
                .severity(Severity::High)
                .consequence("Money moves.")
                .not_requester()
                .policy(Policy::Quorum(2))
                .deny(1)
                .blind()
                .slack("#money", Some("10m".parse().unwrap())),
        )
        .tagged(["money"])
        .delegates_to("talk")
        .node(
            "talk",
            Team::new(TeamStrategy::Debate)
                .member(Agent::new("pro"))
                .member(Agent::new("con"))
                .member(Agent::new("chair"))
                .lead("chair")
                .rounds(2)
                .prompt("Was it right?")
                .emergent(serde_json::from_value(json!({ "enabled": true, "max": 1 })).unwrap()),
        )
        .build();
    let file = "
id: pay
output_schema: { type: object }
defaults: { timeout: 1h, model: demo/m }
guardrails: [secrets]
gates: { before_return: true }
routing: [{ tags: [money], reviewers: { roles: [finance] } }]
agents:
  clerk: { model: demo/clerk }
  pro: { model: demo/pro }
  con: { model: demo/con }
  chair: { model: demo/chair }
nodes:
  choose: { router: { agent: clerk, prompt: Where to? }, next: [note, skip] }
  note: { set: { noted: 'yes' }, on_visit_limit: skip, failure: { retries: 2 }, next: ask }
  skip: { set: { skipped: 'yes' } }
  ask:
    tags: [money]
    human:
      prompt: Pay?
      prompt_key: question
      review_keys: [{ key: noted, label: Noted }]
      options: [{ id: yes, label: Pay }]
      severity: high
      consequences: [Money moves.]
      reviewers: { not_requester: true }
      policy: { quorum: 2 }
      deny: 1
      blind: true
      handlers: [{ slack: { channel: '#money', timeout: 10m } }]
    next: talk
  talk:
    team:
      agents: [pro, con, chair]
      lead: chair
      strategy: debate
      rounds: 2
      prompt: Was it right?
      emergent: { enabled: true, max: 1 }
";
    let read = crate::flow::check(file);
    assert_eq!(read.errors, []);
    assert_eq!(built.ok(), read.flow);
}

#[test]
fn what_is_at_stake_and_what_can_be_chosen_instead_can_be_said_in_rust() {
    use shared::definition::{Severity, TemplateText, Templated};
    let severity = Templated::<Severity>::Template(TemplateText("{{ input.severity }}".to_owned()));
    let built = Flow::new("refund")
        .node(
            "draft",
            Agent::new("clerk")
                .prompt("Which?")
                .max_asks(3)
                .gates(serde_json::from_value(json!({ "before_tool": { "look": true } })).unwrap())
                .tool("look"),
        )
        .tool("look", serde_json::from_value(json!({ "builtin": "ask_human" })).unwrap())
        .delegates_to_human("ask")
        .human(
            "ask",
            Human::new("Pay it?")
                .option(accept("pay", "Pay"))
                .options_only()
                .severity(severity)
                .category("money")
                .reversible(false)
                .estimated_cost(20.0, "EUR")
                .alternative(alternative("voucher", "Send a voucher").tradeoffs("Slower"))
                .alternative("Or call them.")
                .unguarded(),
        )
        .delegates_to_human("pick")
        .human("pick", Human::new("Which one?").options_key("draft"))
        .delegates_to("note")
        .node("note", Set::new().key("how", "{{ decisions.ask.alternative }}"))
        .build();
    let file = "
id: refund
agents: { clerk: { model: demo/clerk, tools: [look], max_asks: 3, gates: { before_tool: { look: true } } } }
tools: { look: { builtin: ask_human } }
nodes:
  draft: { agent: clerk, prompt: Which?, next: ask }
  ask:
    human:
      prompt: Pay it?
      options: [{ id: pay, label: Pay }]
      allow_free_text: false
      severity: '{{ input.severity }}'
      category: money
      reversible: false
      estimated_cost: { amount: 20, currency: EUR }
      alternatives: [{ id: voucher, description: Send a voucher, tradeoffs: Slower }, Or call them.]
      guardrails: false
    next: pick
  pick: { human: { prompt: Which one?, options_key: draft }, next: note }
  note: { set: { how: '{{ decisions.ask.alternative }}' } }
";
    let read = crate::flow::check(file);
    assert_eq!(read.errors, []);
    assert_eq!(built, Ok(read.flow.unwrap()));
}
