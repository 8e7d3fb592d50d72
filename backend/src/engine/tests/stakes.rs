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
