//! What is at stake, as people are shown it.

use super::*;
use shared::definition::Severity;

const PAY: &str = "
id: pay
nodes:
  ask:
    human:
      prompt: Pay?
      options: [{ id: ok, label: Yes }]
      severity: '{% if amount > 100 %}critical{% else %}low{% endif %}'
      category: '{{ input.kind }}'
      consequences: ['{{ amount }} EUR leave the account.', It cannot be undone.]
      estimated_cost: { amount: '{{ amount * 1.5 }}', currency: EUR }
      alternatives: ['Pay {{ amount / 2 }} now.']
";

#[test]
fn what_is_at_stake_at_a_human_node_follows_from_the_state_when_it_is_asked() {
    let stakes = Play::start(PAY, json!({ "amount": 200, "kind": "invoice" })).review().stakes;
    assert_eq!(stakes.consequences, ["200 EUR leave the account.", "It cannot be undone."]);
    assert_eq!(json!(stakes.alternatives), json!(["Pay 100.0 now."]));
    let cost = stakes.estimated_cost.map(|cost| cost.amount);
    assert_eq!((stakes.severity, stakes.category.as_deref(), cost), (Severity::Critical, Some("invoice"), Some(300.0)));

    for (wrong, why) in
        [("'{% if amount > 100 %}critical", "'{% if amount > 100 %}grave"), ("amount * 1.5", "input.unknown")]
    {
        let (code, message) =
            Play::start(&PAY.replace(wrong, why), json!({ "amount": 200, "kind": "invoice" })).error();
        assert_eq!(code, FlowCode::FlowCondition, "{message}");
    }
}

const REFUND: &str = "
id: refund
agents: { clerk: { model: demo/clerk, tools: [refund] } }
tools: { refund: { http: { url: 'https://example.com' } } }
gates:
  before_tool:
    refund:
      allowed_decisions: [approve]
      alternatives:
        - { id: voucher, description: 'Send a voucher of {{ arguments.amount }}.', tradeoffs: Slower }
        - Say sorry.
nodes:
  serve: { agent: clerk, prompt: Serve., next: pay }
  pay: { tool: refund, arguments: { amount: '{{ 7 }}' }, next: ask }
  ask:
    human:
      prompt: Close it?
      options: [{ id: again, kind: correct, label: Again, message: Again. }, { id: ok, label: Yes }, { id: no, kind: stop, label: No }]
      alternatives: [{ id: later, description: 'Close it on {{ input.day }}.', tradeoffs: It stays open. }]
      timeout: 1h
      on_timeout: approve
    next: [{ to: wait, when: decision.alternative == 'later' }, { to: close, else: true }]
  wait: { set: { said: '{{ decisions.ask.alternative }} {{ pay.decision.alternative }}' } }
  close: { set: { said: '{{ decisions.ask.alternative }}' } }
";

fn instead(review: &Review, alternative: &str) -> Verdict {
    let message = Some("Be kind.".to_owned());
    let choose = ActionDecision::Choose { alternative: alternative.to_owned(), message };
    answer_actions([(&review.actions[0].id, choose)])
}

#[test]
fn an_alternative_can_be_chosen_in_place_of_a_call_or_beside_options() {
    let mut play = Play::start(REFUND, json!({ "day": "Monday" }));
    play.model("serve", calls([("refund", json!({ "amount": 20 }))]));
    let review = play.review();
    let refused = play.try_decide(review.id, &ana(), request(&review, instead(&review, "sorry"))).unwrap_err();
    assert_eq!(mistakes(refused), [("/verdict/decisions/c1-1/alternative".to_owned(), "unknown".to_owned())]);
    play.decide(instead(&review, "voucher"));
    let heard = play.heard("serve").pop();
    let Some(Message::Tool { content, .. }) = heard else { panic!("{heard:?}") };
    let told = json!({ "decision": {
        "alternative": "voucher", "description": "Send a voucher of 20.", "tradeoffs": "Slower", "message": "Be kind.",
    } });
    assert_eq!(content, told, "the call was not made, whatever answers its gate takes");

    play.model("serve", text("Done."));
    let review = play.review();
    play.decide(instead(&review, "voucher"));
    assert_eq!(play.key("pay")["decision"]["alternative"], "voucher", "a tool node writes it");
    let review = play.review();
    let offered: Vec<_> = review.options.iter().map(|option| (&*option.id, option.alternative)).collect();
    assert_eq!(offered, [("again", false), ("ok", false), ("later", true), ("no", false)]);
    assert_eq!(review.options[2].label, "Close it on Monday.");

    let mut late = play.again();
    late.now = late.now.after(Duration::from_hours(2));
    let timer = *late.tasks.keys().next().unwrap();
    late.apply(Input::Due { task: timer });
    assert_eq!(late.key("said"), &json!(null), "what approves takes no alternative");
    play.decide(choose("later"));
    assert_eq!(play.key("said"), &json!("later voucher"));
}

#[test]
fn what_is_at_stake_is_in_the_digest_of_the_review_that_shows_it() {
    let asked = |source: &str| {
        let mut play = Play::start(source, json!({ "day": "Monday" }));
        play.model("serve", calls([("refund", json!({ "amount": 20 }))]));
        play.review().digest
    };
    assert_ne!(asked(REFUND), asked(&REFUND.replace("tradeoffs: Slower", "tradeoffs: Faster")));
    assert_ne!(asked(REFUND), asked(&REFUND.replace("Say sorry.", "Wait.")));
    assert_eq!(asked(REFUND), asked(&REFUND.replace("Close it on", "Close on")), "another review shows that");
    let stakes = |stakes: &str| {
        asked(&REFUND.replace(
            "      alternatives:\n        - { id: v",
            &format!("      {stakes}\n      alternatives:\n        - {{ id: v"),
        ))
    };
    let said = [
        "severity: medium",
        "severity: high",
        "reversible: false",
        "category: money",
        "estimated_cost: { amount: '{{ arguments.amount }}', currency: EUR }",
        "estimated_cost: { amount: '{{ arguments.amount * 2 }}', currency: EUR }",
    ];
    let digests: BTreeSet<_> = said.iter().map(|said| stakes(said)).collect();
    assert_eq!(digests.len(), said.len(), "two reviews that show different stakes have different digests");
    assert_eq!(stakes(said[0]), asked(REFUND), "what is usual need not be said");
}

#[test]
fn what_people_could_not_tell_apart_once_it_is_rendered_fails_the_step() {
    let beside = |text: &str| {
        REFUND.replace("        - Say sorry.\n", &format!("        - {{ id: other, description: '{text}' }}\n"))
    };
    let called = |source: &str| {
        let mut play = Play::start(source, json!({ "day": "Monday" }));
        play.model("serve", calls([("refund", json!({ "amount": 20 }))]));
        play
    };
    let (code, message) = called(&beside("send a  voucher of {{ 10 * 2 }}.")).error();
    assert_eq!(code, FlowCode::FlowCondition);
    assert_eq!(message, "two choices read `send a  voucher of 20.`: people could not tell them apart");
    assert_eq!(called(&beside("Send one of {{ 10 * 2 }}.")).review().stakes.choices().count(), 2);

    let asked = REFUND.replace("Close it on {{ input.day }}.", "{{ input.day }}");
    let mut play = Play::start(&asked, json!({ "day": "Ye\u{200B}s" }));
    play.model("serve", text("Done."));
    play.decide(instead(&play.review(), "voucher"));
    let (code, message) = play.error();
    assert!(code == FlowCode::FlowCondition && message.contains("choices read `Ye"), "{message}");
}
