//! The requests that the three kinds of servers get.

use serde_json::{Value, json};
use shared::definition::Effort;

use super::server::{Answer, Heard, Server};
use super::wire::{KEY, WIRES, Wire};
use super::*;
use crate::agent::wire::Wire as _;
use crate::engine::ToolSpec;

/// Returns the request that a server of this kind gets.
async fn sent(wire: Wire, request: &ModelRequest) -> Heard {
    let server = Server::start(Answer::whole(wire.answer(&["Hi"], &[]))).await;
    wire.models(&server).call(request, &|_| {}).await.unwrap();
    server.request()
}

async fn body(wire: Wire, change: impl FnOnce(&mut ModelRequest)) -> Value {
    let mut request = request(&wire.model("m"), vec![user("Hi")]);
    change(&mut request);
    sent(wire, &request).await.body
}

fn tools(request: &mut ModelRequest) {
    request.tools = vec![
        ToolSpec {
            name: "search".to_owned(),
            description: Some("Looks".to_owned()),
            parameters: Some(json!({ "type": "object", "properties": { "q": { "type": "string" } } })),
            mcp: None,
        },
        ToolSpec { name: "publish".to_owned(), description: None, parameters: None, mcp: None },
    ];
}

#[tokio::test]
async fn a_request_goes_where_its_kind_of_server_listens_with_its_key() {
    for wire in WIRES {
        let heard = sent(wire, &request(&wire.model("m"), vec![user("Hi")])).await;
        assert_eq!(heard.path, wire.path());
        assert_eq!(heard.body["stream"], json!(true));
        let key = match wire {
            Wire::OpenAi => format!("authorization: bearer {KEY}\r\n"),
            Wire::Anthropic => format!("x-api-key: {KEY}\r\n"),
            Wire::Ollama => String::new(),
        };
        assert!(heard.head.contains(&key), "{}", heard.head);
        assert_eq!(heard.head.contains(KEY), !key.is_empty());
        assert_eq!(heard.head.contains("anthropic-version: 2023-06-01\r\n"), wire == Wire::Anthropic);
    }
}

#[tokio::test]
async fn the_model_that_is_named_is_the_one_that_is_called() {
    let names = [
        "o3-mini-high",
        "mistral-medium",
        "m-low",
        "m-none",
        "m-max",
        "claude-opus-4-5-xhigh",
        "llama3.2:3b-instruct-q4_K_M",
        "accounts/some/models/m-minimal",
        "a::b",
    ];
    for wire in WIRES {
        for name in names {
            let body = sent(wire, &request(&wire.model(name), vec![user("Hi")])).await.body;
            assert_eq!(body["model"], json!(name), "{wire:?}");
            for effort in ["reasoning_effort", "output_config", "thinking", "think"] {
                assert!(body.get(effort).is_none(), "{wire:?}: {body}");
            }
        }
    }
}

#[tokio::test]
async fn effort_is_a_key_of_the_agent() {
    for (effort, word) in [(Effort::Low, "low"), (Effort::Medium, "medium"), (Effort::High, "high")] {
        for wire in WIRES {
            let mut request = request(&wire.model("o3-mini-high"), vec![user("Hi")]);
            request.reasoning = Some(effort);
            let body = sent(wire, &request).await.body;
            assert_eq!(body["model"], json!("o3-mini-high"), "{wire:?}");
            let told = match wire {
                Wire::OpenAi => &body["reasoning_effort"],
                Wire::Anthropic => {
                    assert_eq!(body["thinking"], json!({ "type": "adaptive" }));
                    &body["output_config"]["effort"]
                }
                Wire::Ollama => &body["think"],
            };
            assert_eq!(told, &json!(word), "{wire:?}");
        }
    }
    let mut request = request("demo/writer", vec![user("Write about bees.")]);
    let without = say(&request).await;
    request.reasoning = Some(Effort::High);
    assert_eq!(say(&request).await, without, "a demo model thinks as hard as it can");
}

#[tokio::test]
async fn limits_of_an_answer_are_named_as_each_server_names_them() {
    for wire in WIRES {
        let body = body(wire, |request| (request.temperature, request.max_tokens) = (Some(0.5), Some(300))).await;
        let (temperature, limit) = match wire {
            Wire::OpenAi | Wire::Anthropic => (&body["temperature"], &body["max_tokens"]),
            Wire::Ollama => (&body["options"]["temperature"], &body["options"]["num_predict"]),
        };
        assert_eq!((temperature, limit), (&json!(0.5), &json!(300)), "{wire:?}: {body}");
    }
    let mut limited = request("openai/m", vec![user("Hi")]);
    limited.max_tokens = Some(300);
    let at = |url: &str| openai::OpenAi::at(&url.parse().unwrap()).body(&limited, "m");
    for url in ["https://api.openai.com/v1", "https://eu.api.openai.com/v1", "https://API.OpenAI.com/"] {
        let body = at(url);
        assert_eq!((&body["max_completion_tokens"], &body["max_tokens"]), (&json!(300), &Value::Null), "{url}");
    }
    for url in ["https://my-api.openai.com.example/v1", "https://myapi.openai.com/v1"] {
        assert_eq!(at(url)["max_tokens"], json!(300), "{url}");
    }

    let silent = body(Wire::OpenAi, |_| {}).await;
    assert!(silent.get("max_tokens").is_none() && silent.get("temperature").is_none(), "{silent}");
    let silent = body(Wire::Ollama, |_| {}).await;
    assert!(silent.get("options").is_none(), "{silent}");
    assert_eq!(body(Wire::Anthropic, |_| {}).await["max_tokens"], json!(32_000), "it wants one");
}

#[tokio::test]
async fn a_conversation_with_several_calls_goes_back_as_each_server_wants_it() {
    let call = |id: &str, tool: &str, arguments: Value| ModelToolCall {
        provider_id: id.to_owned(),
        tool: tool.to_owned(),
        arguments,
    };
    let result = |id: &str, tool: &str, content: Value| Message::Tool {
        provider_id: id.to_owned(),
        tool: tool.to_owned(),
        content,
    };
    let messages = vec![
        user("Go"),
        Message::Assistant {
            text: "I look.".to_owned(),
            calls: vec![call("a", "search", json!({ "q": "x" })), call("b", "publish", json!("{\"broken"))],
        },
        result("a", "search", json!({ "hits": [1] })),
        result("b", "publish", json!("TOOL_FAILED: the arguments are not a JSON object")),
        user("Mind the tone."),
        // An answer without text and calls.
        assistant(""),
        user("Again."),
    ];
    let conversation = async |wire: Wire| {
        body(wire, |request| {
            tools(request);
            request.messages.clone_from(&messages);
        })
        .await
    };
    let broken = "TOOL_FAILED: the arguments are not a JSON object";

    let openai = conversation(Wire::OpenAi).await;
    assert_eq!(
        openai["messages"],
        json!([
            { "role": "system", "content": "You are a careful writer." },
            { "role": "user", "content": "Go" },
            { "role": "assistant", "content": "I look.", "tool_calls": [
                { "id": "a", "type": "function", "function": { "name": "search", "arguments": "{\"q\":\"x\"}" } },
                { "id": "b", "type": "function", "function": { "name": "publish", "arguments": "{}" } },
            ] },
            { "role": "tool", "tool_call_id": "a", "content": "{\"hits\":[1]}" },
            { "role": "tool", "tool_call_id": "b", "content": broken },
            { "role": "user", "content": "Mind the tone." },
            { "role": "assistant", "content": "" },
            { "role": "user", "content": "Again." },
        ])
    );
    let none = json!({ "type": "object", "properties": {} });
    let look = json!({ "type": "object", "properties": { "q": { "type": "string" } } });
    let functions = json!([
        { "type": "function", "function": { "name": "search", "description": "Looks", "parameters": look } },
        { "type": "function", "function": { "name": "publish", "parameters": none } },
    ]);
    assert_eq!(openai["tools"], functions);
    assert_eq!(openai["stream_options"], json!({ "include_usage": true }));

    let anthropic = conversation(Wire::Anthropic).await;
    assert_eq!(anthropic["system"], json!("You are a careful writer."));
    assert_eq!(
        anthropic["messages"],
        json!([
            { "role": "user", "content": [{ "type": "text", "text": "Go" }] },
            { "role": "assistant", "content": [
                { "type": "text", "text": "I look." },
                { "type": "tool_use", "id": "a", "name": "search", "input": { "q": "x" } },
                { "type": "tool_use", "id": "b", "name": "publish", "input": {} },
            ] },
            // All results are in one message, first. There is no empty message, since it would be refused.
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "a", "content": "{\"hits\":[1]}" },
                { "type": "tool_result", "tool_use_id": "b", "content": broken },
                { "type": "text", "text": "Mind the tone." },
                { "type": "text", "text": "Again." },
            ] },
        ])
    );
    assert_eq!(
        anthropic["tools"],
        json!([
            { "name": "search", "description": "Looks", "input_schema": look },
            { "name": "publish", "input_schema": none },
        ])
    );

    let ollama = conversation(Wire::Ollama).await;
    assert_eq!(
        ollama["messages"],
        json!([
            { "role": "system", "content": "You are a careful writer." },
            { "role": "user", "content": "Go" },
            { "role": "assistant", "content": "I look.", "tool_calls": [
                { "function": { "name": "search", "arguments": { "q": "x" } } },
                { "function": { "name": "publish", "arguments": {} } },
            ] },
            { "role": "tool", "tool_name": "search", "content": "{\"hits\":[1]}" },
            { "role": "tool", "tool_name": "publish", "content": broken },
            { "role": "user", "content": "Mind the tone." },
            { "role": "assistant", "content": "" },
            { "role": "user", "content": "Again." },
        ])
    );
    assert_eq!(ollama["tools"], functions);
}

/// One schema that every provider can enforce, and one that only some can.
#[tokio::test]
async fn an_answer_in_a_schema_is_asked_for_in_the_way_that_holds() {
    let exact = json!({ "type": "object", "required": ["score"], "additionalProperties": false,
        "properties": { "score": { "type": "integer" } } });
    let usual = json!({ "type": "object", "required": ["score"], "properties": {
        "score": { "type": "integer", "minimum": 1, "maximum": 5 }, "minimum": { "type": ["string", "null"] } } });
    let open = json!({ "type": "object", "properties": { "edits": { "type": "object" } } });
    let asked = async |wire: Wire, schema: &Value, with_tools: bool| {
        body(wire, |request| {
            request.output_schema = Some(schema.clone());
            if with_tools {
                tools(request);
            }
        })
        .await
    };
    let in_words = |schema: &Value| {
        format!("You are a careful writer.\n\nAnswer with JSON only, which fits this JSON Schema:\n{schema}")
    };

    for (schema, strict) in [(&exact, true), (&usual, false), (&open, false)] {
        let format = asked(Wire::OpenAi, schema, true).await["response_format"].clone();
        let spec = json!({ "name": "answer", "strict": strict, "schema": schema });
        assert_eq!(format, json!({ "type": "json_schema", "json_schema": spec }));
    }

    let narrowed = json!({ "type": "object", "required": ["score"], "additionalProperties": false,
        "properties": { "score": { "type": "integer" }, "minimum": { "type": ["string", "null"] } } });
    for (schema, held) in [(&exact, Some(&exact)), (&usual, Some(&narrowed)), (&open, None)] {
        let body = asked(Wire::Anthropic, schema, true).await;
        let format = held.map(|schema| json!({ "type": "json_schema", "schema": schema }));
        assert_eq!(body.pointer("/output_config/format"), format.as_ref(), "{schema}");
        assert_eq!(body["system"] == json!(in_words(schema)), held.is_none(), "{schema}: {body}");
    }

    for (with_tools, holds) in [(false, true), (true, false)] {
        let body = asked(Wire::Ollama, &usual, with_tools).await;
        assert_eq!(body.get("format"), holds.then_some(&usual), "a form leaves no room for calls");
        assert_eq!(body["messages"][0]["content"] == json!(in_words(&usual)), !holds, "{body}");
    }
}

#[tokio::test]
async fn an_address_may_have_a_query_and_a_slash() {
    let server = Server::start(Answer::whole(Wire::OpenAi.answer(&["Hi"], &[]))).await;
    for (given, asked) in
        [("/v1/", "/v1/chat/completions"), ("/deployed?api-version=1", "/deployed/chat/completions?api-version=1")]
    {
        let url = Some(format!("{}{given}", server.url));
        let options = ModelOptions { openai_key: Some(KEY.to_owned()), openai_url: url, ..ModelOptions::default() };
        Models::new(options).unwrap().call(&request("openai/m", vec![user("Hi")]), &|_| {}).await.unwrap();
        assert_eq!(server.heard().pop().unwrap().path, asked);
    }
    let host = server.url.trim_start_matches("http://").to_owned();
    let server = Server::start(Answer::whole(Wire::Ollama.answer(&["Hi"], &[]))).await;
    assert_ne!(host, server.url);
    let bare = server.url.trim_start_matches("http://").to_owned();
    let models = Models::new(ModelOptions { ollama_host: Some(bare), ..ModelOptions::default() }).unwrap();
    models.call(&request("ollama/m", vec![user("Hi")]), &|_| {}).await.unwrap();
    assert_eq!(server.request().path, "/api/chat");
}
