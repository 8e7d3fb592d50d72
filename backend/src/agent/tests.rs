//! Demo models. The other providers are tested in the modules below, against servers with their wire formats.

mod answers;
mod costs;
mod failures;
mod requests;
mod server;
mod wire;

use std::sync::Mutex;

use serde_json::{Value, json};
use shared::definition::DemoScript;
use shared::id::RunId;

use super::*;
use crate::engine::{Message, ModelToolCall};

fn request(model: &str, messages: Vec<Message>) -> ModelRequest {
    ModelRequest {
        run: RunId(uuid::Uuid::nil()),
        node: "draft".parse().unwrap(),
        visit: 1,
        turn: 1,
        agent: "writer".to_owned(),
        model: model.to_owned(),
        instructions: Some("You are a careful writer.".to_owned()),
        messages,
        tools: Vec::new(),
        reasoning: None,
        temperature: None,
        max_tokens: None,
        budget: None,
        output_schema: None,
        demo: None,
    }
}

fn user(text: &str) -> Message {
    Message::User { text: text.to_owned() }
}

fn assistant(text: &str) -> Message {
    Message::Assistant { text: text.to_owned(), calls: Vec::new() }
}

fn demo() -> Demo {
    Demo::new(Duration::ZERO)
}

async fn say(request: &ModelRequest) -> String {
    demo().call(request, &|_| {}).await.unwrap().text
}

fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

#[tokio::test]
async fn a_demo_model_writes_the_same_prose_about_the_same_topic() {
    let ocean = request("demo/writer", vec![user("Write about the ocean.")]);
    let text = say(&ocean).await;
    assert_eq!(text, say(&ocean).await);
    assert!(text.starts_with("# ") && text.contains("the ocean"), "{text}");
    assert!((100..=220).contains(&words(&text)), "{} words", words(&text));
    assert!(!text.contains('{'), "{text}");
    assert_eq!(say(&request("demo/writer", vec![user("Write about bees.")])).await, text.replace("the ocean", "bees"));
}

#[tokio::test]
async fn a_demo_model_streams_exactly_what_it_answers() {
    let streamed = Mutex::new(String::new());
    let request = request("demo/writer", vec![user("Write about the ocean.")]);
    let answer = demo().call(&request, &|piece| streamed.lock().unwrap().push_str(piece)).await.unwrap();
    assert_eq!(answer.text, *streamed.lock().unwrap());
    assert!(answer.tokens > 100);
}

#[tokio::test]
async fn a_demo_model_does_what_a_correction_asks() {
    let ask = user("Write about the ocean.");
    let first = say(&request("demo/writer", vec![ask.clone()])).await;
    let corrected =
        async |message: &str| say(&request("demo/writer", vec![ask.clone(), assistant(&first), user(message)])).await;

    let shorter = corrected("Please make it more concise.").await;
    assert!(words(&shorter) * 10 <= words(&first) * 6, "{shorter}");
    assert!(words(&shorter) * 10 >= words(&first) * 3, "{shorter}");
    let sentences = shorter.split("\n\n").skip(1).flat_map(|p| p.split_inclusive(". "));
    assert!(sentences.map(str::trim).all(|sentence| first.contains(sentence)), "nothing is invented: {shorter}");

    let told = corrected("Please mention whales.").await;
    assert_eq!(told, format!("{first}\n\nAs asked: Please mention whales."));
}

#[tokio::test]
async fn a_script_plays_its_calls_a_turn_each_and_then_the_reply_of_the_visit() {
    let script: DemoScript = serde_json::from_value(json!({
        "replies": ["first", "second"],
        "tool_calls": [
            { "tool": "search", "arguments": { "q": "x" } },
            [{ "tool": "publish" }, { "tool": "delete" }],
        ],
    }))
    .unwrap();
    let mut request = request("demo/x", vec![user("Go.")]);
    request.demo = Some(script);
    let turn = async |turn, visit| {
        let mut request = request.clone();
        (request.turn, request.visit) = (turn, visit);
        demo().call(&request, &|_| {}).await.unwrap()
    };
    assert_eq!(turn(1, 1).await.calls[0].arguments, json!({ "q": "x" }));
    let two = turn(2, 1).await;
    assert_eq!(two.calls.iter().map(|call| call.tool.as_str()).collect::<Vec<_>>(), ["publish", "delete"]);
    assert_ne!(two.calls[0].provider_id, two.calls[1].provider_id);
    assert_eq!(turn(3, 1).await.text, "first");
    assert_eq!(turn(3, 2).await.text, "second");
    assert_eq!(turn(3, 9).await.text, "second");
}

#[tokio::test]
async fn a_demo_model_answers_in_the_schema_that_is_asked_for() {
    let mut request = request("demo/x", vec![user("Rate this article about bees.")]);
    request.output_schema = Some(json!({
        "type": "object",
        "properties": { "score": { "type": "integer", "minimum": 3 }, "why": { "type": "string" }, "kind": { "enum": ["a", "b"] } },
    }));
    let answer: Value = serde_json::from_str(&say(&request).await).unwrap();
    assert_eq!((&answer["score"], &answer["kind"]), (&json!(3), &json!("a")));
    assert!(answer["why"].is_string());
}
