//! A program that runs a flow itself: two reviewers are functions, and so is the tool that publishes.
//!
//! `cargo run -p countersign --example embedded`

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use countersign::flow::{Agent, Flow, Human, InvalidFlow, Tool, accept, correct, definition, function, stop};
use countersign::{Choice, Countersign, Finished, JsonMap, Review, RunError};
use serde_json::{Value, json};

/// A draft is reviewed, corrected until it pleases, and published once that is approved.
fn flow() -> Result<definition::Flow, InvalidFlow> {
    let parameters = json!({
        "type": "object",
        "required": ["text"],
        "properties": { "text": { "type": "string" } },
    });
    // The call is held back until somebody says yes; what was not approved never comes to the function.
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

/// What a reviewer says. A program would ask a person here, in its own window or chat.
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

/// Runs the flow. Answers with the output and how often something was published; what a reviewer stopped is a
/// [`RunError::Rejected`].
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
