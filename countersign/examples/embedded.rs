//! A program that runs a flow itself. The reviewer and the tool that publishes are functions.
//!
//! `cargo run -p countersign --example embedded`

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use countersign::flow::{Agent, Flow, Human, InvalidFlow, Tool, accept, correct, definition, function, stop};
use countersign::{Choice, Countersign, Finished, JsonMap, Review, RunError};
use serde_json::{Value, json};

/// Builds a flow in which a draft is reviewed, corrected until it is accepted, and published once the call is approved.
fn flow() -> Result<definition::Flow, InvalidFlow> {
    let parameters = json!({
        "type": "object",
        "required": ["text"],
        "properties": { "text": { "type": "string" } },
    });
    // The call is held back until a reviewer approves it; the function never runs without approval.
    let publish = definition::Tool {
        ask_permission: definition::AskPermission::Switch(true),
        ..function("Publishes the article", parameters)
    };
    Flow::new("article")
        .input(json!({ "type": "object", "required": ["topic"], "properties": { "topic": { "type": "string" } } }))
        .output(["draft", "publish"])
        .node("draft", Agent::new("writer").prompt("Write about {{ topic }}."))
        .max_visits(5)
        .delegates_to_human("review")
        .human(
            "review",
            Human::new("How would you like to proceed?")
                .reviews("draft")
                .option(accept("approve", "Looks good, continue"))
                .option(correct("shorten", "Needs revision", "Please make it more concise."))
                .option(stop("reject", "Reject, stop the flow")),
        )
        .delegates_to("publish")
        .node("publish", Tool::new("publish").settings(publish).argument("text", "{{ draft }}"))
        .build()
}

/// Decides as a reviewer. A real program would ask a person here, in its own window or chat.
fn decide(review: &Review, longest: usize) -> Choice {
    if !review.actions.is_empty() {
        return Choice::approve();
    }
    let draft = review.items.first().and_then(|draft| draft.value.as_str()).unwrap_or_default();
    let tries = review.source.as_ref().map_or(0, |source| source.visits);
    match draft.split_whitespace().count() {
        words if words <= longest => Choice::option("approve").comment(format!("{words} words are fine")),
        _ if tries < 4 => Choice::option("shorten"),
        words => Choice::option("reject").comment(format!("{words} words, still too long")),
    }
}

/// Runs the flow, and returns its result and how many times the article was published. If a reviewer stopped the run,
/// the result is a [`RunError::Rejected`].
pub async fn article(topic: &str, longest: usize) -> anyhow::Result<(Result<Finished, RunError>, u32)> {
    let published = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&published);
    let countersign = Countersign::options()
        .reviewer(move |review| async move { decide(&review, longest) })
        .tool("publish", move |arguments: JsonMap| {
            let count = Arc::clone(&count);
            async move {
                count.fetch_add(1, Ordering::SeqCst);
                let text = arguments.get("text").and_then(Value::as_str).unwrap_or_default();
                Ok::<_, String>(json!({ "bytes": text.len() }))
            }
        })
        .start()
        .await?;
    let ended = countersign.run(&flow()?, json!({ "topic": topic })).await;
    countersign.shutdown().await;
    Ok((ended, published.load(Ordering::SeqCst)))
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example shows what it does")]
async fn main() -> anyhow::Result<()> {
    for longest in [120, 3] {
        match article("the ocean", longest).await?.0 {
            Ok(finished) => {
                println!("published after {} steps: {}", finished.report.steps.len(), finished.output["publish"]);
            }
            Err(RunError::Rejected { failure, .. }) => println!("stopped by a reviewer: {failure}"),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
