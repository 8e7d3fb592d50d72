//! Tests the streamed text of agents, and that the output of the run may differ from it after an edit.

use std::time::Duration;

use countersign::{ActionDecision, Choice, Context, Countersign, JsonMap, Review, Running};
use serde_json::{Value, json};
use tokio::time::timeout;

/// A timeout that no step of the test reaches.
const LONG: Duration = Duration::from_secs(30);
const DRAFT: &str = "The moon pulls the sea, and the sea follows it twice a day, wherever there is a coast to see it.";

/// Waits until the run asks people, and returns its first pending review.
async fn asked(running: &mut Running) -> Review {
    let paused = timeout(LONG, running.paused()).await.expect("it comes to a question");
    paused.expect("it can be read").expect("somebody is asked").remove(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_whole_text_of_an_agent_is_heard_while_it_writes_and_what_was_approved_is_given_out() {
    let source = "
id: tides
agents: { writer: { model: demo/writer, demo: { replies: ['DRAFT'] } } }
gates: { before_agent: { writer: true }, before_return: true }
nodes: { draft: { agent: writer, prompt: Write. } }
";
    let flow = countersign::parse(&source.replace("DRAFT", DRAFT)).expect("a flow");
    let countersign = Countersign::options().decider("ana", []).start().await.expect("it starts");
    let mut running = countersign.launch(&flow, json!({}), Context::default()).await.expect("it is launched");
    // The agent writes nothing before it is approved, so a stream that begins here gets the whole text.
    let gate = asked(&mut running).await;
    let mut stream = running.stream();
    countersign.decide(&gate, Choice::approve(), "ana").await.expect("it is decided");
    let mut heard = String::new();
    while heard.len() < DRAFT.len() {
        let chunk = timeout(LONG, stream.next()).await.expect("a piece is heard").expect("it runs");
        assert_eq!((chunk.node.as_str(), chunk.offset), ("draft", heard.len() as u64));
        heard.push_str(&chunk.text);
    }
    assert_eq!(heard, DRAFT);

    let output = asked(&mut running).await;
    assert_eq!(output.actions[0].arguments["draft"], heard.as_str(), "what was heard is what is asked about");
    let arguments: JsonMap = [("draft".to_owned(), Value::from("The sea follows the moon."))].into_iter().collect();
    let edited = Choice::actions([("output", ActionDecision::Edit { arguments: arguments.clone() })]);
    countersign.decide(&output, edited, "ana").await.expect("it is decided");
    let finished = timeout(LONG, running.finished()).await.expect("it ends").expect("it completes");
    assert_eq!(finished.output, arguments, "only what was approved is given out");
    countersign.shutdown().await;
}
