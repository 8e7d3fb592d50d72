//! Tests that a program decides the questions of agents, and gates before agents and outputs.

use std::time::Duration;

use countersign::{ActionDecision, Choice, Context, Countersign, DecideError, Review, Running};
use serde_json::json;
use tokio::time::timeout;

const DESK: &str = "
id: desk
agents:
  clerk:
    model: demo/clerk
    instructions: You are brief.
    tools: [ask, progress, over, stuck]
    demo:
      tool_calls:
        - { tool: ask, arguments: { question: Which size? } }
        - { tool: progress, arguments: { phase: Order, progress: 0.5 } }
        - { tool: over, arguments: { to: desk, reason: Book it. } }
        - { tool: stuck, arguments: { reason: out_of_scope, explanation: Not mine. } }
tools:
  ask: { builtin: ask_human }
  progress: { builtin: checkpoint }
  over: { builtin: handoff }
  stuck: { builtin: escalate }
gates: { before_agent: { clerk: true }, before_return: true }
nodes: { serve: { agent: clerk, prompt: Serve. } }
";

/// Waits until the run asks people, and returns its pending review of this kind.
async fn asked(running: &mut Running, kind: &str) -> Review {
    let paused = timeout(Duration::from_secs(30), running.paused()).await.expect("it comes to a question");
    let paused = paused.expect("it can be read").unwrap_or_else(|| panic!("nobody is asked: {kind}"));
    paused.into_iter().find(|review| review.kind.as_str() == kind).unwrap_or_else(|| panic!("no {kind} waits"))
}

#[tokio::test(flavor = "multi_thread")]
async fn each_of_them_is_decided_through_the_library_and_reaches_the_agent() {
    let flow = countersign::parse(DESK).expect("a flow");
    let countersign = Countersign::options().decider("ana", ["desk"]).start().await.expect("it starts");
    let mut running = countersign.launch(&flow, json!({}), Context::default()).await.expect("it is launched");
    let run = running.id();
    for (kind, choice) in [
        ("agent", Choice::approve().instructions("Be kind.")),
        ("clarification", Choice::text("Large.")),
        ("checkpoint", Choice::option("modify").field("goal", "Only half")),
        ("escalation", Choice::option("agent_continue").field("guidance", "Send it.")),
    ] {
        let review = asked(&mut running, kind).await;
        if kind == "escalation" {
            let refused = countersign.decide(&review, Choice::option("agent_continue"), "ana").await;
            let Err(DecideError::Invalid(mistakes)) = refused else { panic!("{refused:?}") };
            assert_eq!(mistakes[0].path, "/verdict/fields/guidance");
        }
        let decided = countersign.decide(&review, choice, "ana").await;
        let decided = decided.unwrap_or_else(|error| panic!("{kind}: {error}"));
        assert!(decided.resolution.is_some(), "{kind}");
        let again = countersign.decide(&review, Choice::reject("Too late."), "ana").await;
        assert!(matches!(again, Err(DecideError::Over(_))), "{kind}: {again:?}");
    }
    let output = asked(&mut running, "output").await;
    let told = output.actions[0].arguments["serve"].as_str().expect("what the agent was told").to_owned();
    for heard in ["Large.", "Only half", "handed_off", "Send it."] {
        assert!(told.contains(heard), "{heard}: {told}");
    }
    let arguments = json!({ "serve": "Settled." }).as_object().cloned().expect("an object");
    let edited = Choice::actions([("output", ActionDecision::Edit { arguments })]);
    countersign.decide(&output, edited, "ana").await.expect("it is decided");
    let finished = running.finished().await.expect("it completes");
    assert_eq!(finished.output["serve"], "Settled.");

    // The handoff is still pending when the run is over.
    let waiting = countersign.pending(run).await.expect("it can be read");
    assert_eq!(waiting.iter().map(|review| review.kind.as_str()).collect::<Vec<_>>(), ["handoff"]);
    let taken = countersign.decide(&waiting[0], Choice::option("taken"), "ana").await.expect("it is decided");
    assert_eq!(taken.resolution.expect("it is over").by.len(), 1);
    assert!(countersign.pending(run).await.expect("it can be read").is_empty());
    countersign.shutdown().await;
}
