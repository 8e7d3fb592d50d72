//! Compiles and runs the example at the beginning of `docs/embed.md`, which is the same line for line.

use countersign::flow::{Agent, Flow, Human, accept, stop};
use countersign::{Choice, Countersign, RunError};
use serde_json::json;

#[tokio::test]
async fn the_example_of_the_page_runs() -> Result<(), Box<dyn std::error::Error>> {
    let printed = shown().await?;
    assert!(printed.contains("ocean"), "{printed}");
    Ok(())
}

#[rustfmt::skip]
async fn shown() -> Result<String, Box<dyn std::error::Error>> {
    let mut printed = String::new();
    macro_rules! println { ($($said:tt)*) => { printed += &format!($($said)*) }; }
    macro_rules! eprintln { ($($said:tt)*) => { printed += &format!($($said)*) }; }

let flow = Flow::new("article")
    .node("draft", Agent::new("writer").prompt("Write about {{ topic }}."))
    .delegates_to_human("review")
    .human(
        "review",
        Human::new("How would you like to proceed?")
            .reviews("draft")
            .option(accept("approve", "Looks good, continue"))
            .option(stop("reject", "Reject, stop the flow")),
    )
    .build()?;                                   // the checks of a flow file; `parse` reads one

let countersign = Countersign::options()         // in a temporary folder that ends with the program
    .reviewer(|_review| async { Choice::option("approve") })
    .start()
    .await?;

match countersign.run(&flow, json!({ "topic": "the ocean" })).await {
    Ok(finished) => println!("{}", finished.output["draft"]),
    Err(RunError::Rejected { failure, .. }) => eprintln!("{}: {}", failure.code, failure.message),
    Err(error) => return Err(error.into()),
}

    Ok(printed)
}

#[test]
fn the_page_has_exactly_this_example() {
    let page = include_str!("../../docs/embed.md");
    let example = page.split("```rust\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an example");
    let mut here = include_str!("page.rs");
    for line in example.lines() {
        let at = here.find(line).unwrap_or_else(|| panic!("`{line}` is not run"));
        here = &here[at + line.len()..];
    }
}
