//! Models against servers that speak their protocols.

use std::sync::Mutex;

use serde_json::{Value, json};
use shared::definition::DemoScript;
use shared::id::RunId;
use wiremock::matchers::{body_partial_json, header, method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

use super::*;
use crate::engine::{Message, ModelToolCall, ToolSpec};

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
    assert_ne!(text, say(&request("demo/writer", vec![user("Write about bees.")])).await.replace("bees", "the ocean"));
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

    let longer = corrected("I need more detail.").await;
    assert!(longer.starts_with(&first) && longer.len() > first.len() + 150, "{longer}");

    let titled = corrected("Find a better title").await;
    assert_ne!(titled.lines().next(), first.lines().next());
    assert_eq!(titled.lines().skip(1).collect::<Vec<_>>(), first.lines().skip(1).collect::<Vec<_>>());
    assert!(corrected("Use the title \"Salt and Light\".").await.starts_with("# Salt and Light\n"));

    assert!(corrected("Please mention whales.").await.contains("whales"));
    assert!(corrected("Make it friendlier").await.contains("friendlier"));
    assert!(corrected("The claim on tides is doubtful").await.contains("the claim on tides is doubtful."));
    let fewer = corrected("Remove the second paragraph.").await;
    assert_eq!(fewer.split("\n\n").count() + 1, first.split("\n\n").count());
    assert!(corrected("This is too short").await.len() > first.len());
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

fn models(server: &MockServer) -> Models {
    priced(server, json!({}))
}

fn priced(server: &MockServer, prices: Value) -> Models {
    let options = Options {
        prices: serde_json::from_value(prices).unwrap(),
        openai_key: Some("sk-very-secret".to_owned()),
        openai_url: Some(format!("{}/v1", server.uri())),
        ..Options::default()
    };
    Models::new(options).unwrap()
}

fn events(chunks: &[Value]) -> ResponseTemplate {
    let mut body: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect::<Vec<_>>().concat();
    body.push_str("data: [DONE]\n\n");
    ResponseTemplate::new(200).set_body_raw(body, "text/event-stream")
}

fn delta(delta: &Value, finish: &Value) -> Value {
    json!({ "id": "1", "model": "m", "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] })
}

#[tokio::test]
async fn a_call_is_priced_once_by_the_settings() {
    let server = MockServer::start().await;
    let answer = [
        delta(&json!({ "content": "Hi" }), &json!("stop")),
        json!({ "id": "1", "model": "m", "choices": [], "usage": { "prompt_tokens": 1000, "completion_tokens": 200, "total_tokens": 1200 } }),
    ];
    Mock::given(method("POST")).respond_with(events(&answer)).mount(&server).await;
    let request = request("openai/gpt-5-mini", vec![user("Hi")]);
    let cost = async |prices: Value| priced(&server, prices).call(&request, &|_| {}).await.unwrap().cost_usd;
    let close = |cost: f64, to: f64| assert!((cost - to).abs() < 1e-12, "{cost} is not {to}");
    close(cost(json!({ "gpt-5-mini": { "input": 0.25, "output": 2.0 } })).await, 0.000_65);
    let both = json!({ "gpt-5-mini": { "input": 9, "output": 9 }, "openai/gpt-5-mini": { "input": 1, "output": 0 } });
    close(cost(both).await, 0.001);
    close(cost(json!({ "gpt-5": { "input": 9, "output": 9 } })).await, 0.0);
}

#[tokio::test]
async fn a_budget_that_could_not_be_kept_stops_the_call() {
    let server = MockServer::start().await;
    let silent = events(&[delta(&json!({ "content": "Hi" }), &json!("stop"))]);
    Mock::given(method("POST")).respond_with(silent).expect(1).mount(&server).await;
    let mut request = request("openai/gpt-5-mini", vec![user("Hi")]);
    request.budget = Some(shared::definition::Budget { tokens: None, cost_usd: Some(0.5) });
    let unknown = models(&server).call(&request, &|_| {}).await.unwrap_err();
    assert!(unknown.message.contains("[prices.\"openai/gpt-5-mini\"]"), "{}", unknown.message);
    let prices = json!({ "gpt-5-mini": { "input": 1, "output": 1 } });
    let uncounted = priced(&server, prices).call(&request, &|_| {}).await.unwrap_err();
    assert!(uncounted.message.contains("does not say how many tokens"), "{}", uncounted.message);
    assert!(!unknown.retryable && !uncounted.retryable);

    request.model = "demo/writer".to_owned();
    assert!(models(&server).call(&request, &|_| {}).await.unwrap().cost_usd.abs() < f64::EPSILON, "demo is free");
}

#[tokio::test]
async fn an_openai_compatible_server_streams_its_text_and_counts_its_tokens() {
    let server = MockServer::start().await;
    Mock::given(method("POST"))
        .and(path("/v1/chat/completions"))
        .and(header("authorization", "Bearer sk-very-secret"))
        // A name that would be taken for another provider's, had the kind not been set.
        .and(body_partial_json(json!({ "model": "claude-like", "stream": true })))
        .respond_with(events(&[
            delta(&json!({ "role": "assistant", "content": "Hello " }), &Value::Null),
            delta(&json!({ "content": "world" }), &Value::Null),
            delta(&json!({}), &json!("stop")),
            json!({ "id": "1", "model": "m", "choices": [], "usage": { "prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9 } }),
        ]))
        .expect(1)
        .mount(&server)
        .await;
    let pieces = Mutex::new(Vec::new());
    let request = request("openai/claude-like", vec![user("Hi")]);
    let answer = models(&server).call(&request, &|piece| pieces.lock().unwrap().push(piece.to_owned())).await.unwrap();
    assert_eq!((answer.text.as_str(), answer.tokens), ("Hello world", 9));
    assert_eq!(*pieces.lock().unwrap(), ["Hello ", "world"]);
}

#[tokio::test]
async fn an_openai_compatible_server_calls_tools_and_sees_their_results() {
    let server = MockServer::start().await;
    let call = |arguments: &str, first: bool| {
        let name = first.then_some("publish");
        let id = first.then_some("call_9");
        json!({ "tool_calls": [{ "index": 0, "id": id, "type": "function", "function": { "name": name, "arguments": arguments } }] })
    };
    Mock::given(method("POST"))
        .and(body_partial_json(json!({
            "tools": [{ "type": "function", "function": { "name": "publish" } }],
            "messages": [
                { "role": "system" },
                { "role": "user", "content": "Go" },
                { "role": "assistant", "tool_calls": [{ "id": "call_8", "function": { "name": "publish" } }] },
                { "role": "tool", "tool_call_id": "call_8", "content": "{\"ok\":false}" },
            ],
        })))
        .respond_with(events(&[
            delta(&call("{\"title\":", true), &Value::Null),
            delta(&call("\"A\"}", false), &Value::Null),
            delta(&json!({}), &json!("tool_calls")),
        ]))
        .expect(1)
        .mount(&server)
        .await;
    let earlier = ModelToolCall {
        provider_id: "call_8".to_owned(),
        tool: "publish".to_owned(),
        arguments: json!({ "title": "B" }),
    };
    let mut request = request(
        "openai/gpt-x",
        vec![
            user("Go"),
            Message::Assistant { text: String::new(), calls: vec![earlier] },
            Message::Tool {
                provider_id: "call_8".to_owned(),
                tool: "publish".to_owned(),
                content: json!({ "ok": false }),
            },
        ],
    );
    request.tools = vec![ToolSpec { name: "publish".to_owned(), description: None, parameters: None }];
    let answer = models(&server).call(&request, &|_| {}).await.unwrap();
    let expected = ModelToolCall {
        provider_id: "call_9".to_owned(),
        tool: "publish".to_owned(),
        arguments: json!({ "title": "A" }),
    };
    assert_eq!(answer.calls, [expected]);
}

#[tokio::test]
async fn anthropic_and_ollama_are_spoken_to_in_their_own_words() {
    let server = MockServer::start().await;
    let events = [
        json!({ "type": "message_start", "message": { "usage": { "input_tokens": 5, "output_tokens": 1 } } }),
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } }),
        json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": "Hello" } }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "content_block_start", "index": 1,
            "content_block": { "type": "tool_use", "id": "toolu_1", "name": "publish", "input": {} } }),
        json!({ "type": "content_block_delta", "index": 1,
            "delta": { "type": "input_json_delta", "partial_json": "{\"title\": \"A\"}" } }),
        json!({ "type": "content_block_stop", "index": 1 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" }, "usage": { "output_tokens": 4 } }),
        json!({ "type": "message_stop" }),
    ];
    let body = events.map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap())).concat();
    Mock::given(path("/v1/messages"))
        .and(header("x-api-key", "ant-key"))
        .and(body_partial_json(json!({ "system": "You are a careful writer.", "stream": true })))
        .respond_with(ResponseTemplate::new(200).set_body_raw(body, "text/event-stream"))
        .mount(&server)
        .await;
    let lines = [
        json!({ "model": "m", "message": { "role": "assistant", "content": "Hel" }, "done": false }),
        json!({ "model": "m", "message": { "role": "assistant", "content": "lo" }, "done": false }),
        json!({ "model": "m", "message": { "role": "assistant", "content": "" }, "done": true, "done_reason": "stop",
            "prompt_eval_count": 5, "eval_count": 4 }),
    ];
    let body = lines.map(|line| format!("{line}\n")).concat();
    Mock::given(path("/api/chat"))
        .and(body_partial_json(json!({ "model": "gpt-like", "stream": true })))
        .respond_with(ResponseTemplate::new(200).set_body_raw(body, "application/x-ndjson"))
        .mount(&server)
        .await;
    let options = Options {
        anthropic_key: Some("ant-key".to_owned()),
        anthropic_url: Some(server.uri()),
        ollama_host: Some(server.address().to_string()),
        ..Options::default()
    };
    let models = Models::new(options).unwrap();
    let answer = models.call(&request("anthropic/m", vec![user("Hi")]), &|_| {}).await.unwrap();
    assert_eq!((answer.text.as_str(), answer.tokens), ("Hello", 9));
    assert_eq!(answer.calls[0].arguments, json!({ "title": "A" }));
    let answer = models.call(&request("ollama/gpt-like", vec![user("Hi")]), &|_| {}).await.unwrap();
    assert_eq!((answer.text.as_str(), answer.tokens), ("Hello", 9));
}

#[tokio::test]
async fn a_failure_says_whether_trying_again_could_help_and_never_the_key() {
    for (status, retryable) in [(400, false), (401, false), (429, true), (500, true), (503, true)] {
        let server = MockServer::start().await;
        let body = json!({ "error": { "message": "bad key sk-very-secret" } });
        Mock::given(method("POST"))
            .respond_with(ResponseTemplate::new(status).set_body_json(body))
            .mount(&server)
            .await;
        let failure = models(&server).call(&request("openai/m", vec![user("Hi")]), &|_| {}).await.unwrap_err();
        assert_eq!((failure.code, failure.retryable), (FlowCode::ModelFailed, retryable), "{status}: {failure:?}");
        assert!(failure.message.contains(&status.to_string()), "{failure:?}");
        assert!(!failure.message.contains("sk-very-secret"), "{failure:?}");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_worth_another_try() {
    let options = Options {
        openai_key: Some("k".to_owned()),
        openai_url: Some("http://127.0.0.1:1/v1".to_owned()),
        ..Options::default()
    };
    let failure =
        Models::new(options).unwrap().call(&request("openai/m", vec![user("Hi")]), &|_| {}).await.unwrap_err();
    assert!(failure.retryable, "{failure:?}");
}

#[tokio::test]
async fn a_missing_key_is_named() {
    let models = Models::new(Options::from_env(|_| None)).unwrap();
    for (model, variable) in [("openai/m", "OPENAI_API_KEY"), ("anthropic/m", "ANTHROPIC_API_KEY")] {
        let failure = models.call(&request(model, vec![user("Hi")]), &|_| {}).await.unwrap_err();
        assert!(!failure.retryable && failure.message.contains(variable), "{failure:?}");
    }
}
