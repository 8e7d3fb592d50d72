//! An agent of another program asks people over the Model Context Protocol, with a client of the protocol's own library:
//! it gets the answer though the server was killed in between, and to a prompt that waits as a stream.

use std::collections::HashMap;

use axum::http::{HeaderName, HeaderValue, header};
use rmcp::ServiceExt as _;
use rmcp::model::{CallToolRequestParams, ContentBlock};
use rmcp::service::{RoleClient, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::{Value, json};
use tests::caller::{caller, choose, token};
use tests::{Database, Options, Server, eventually, on_both};

on_both! {
    an_agent_gets_its_answer_though_the_server_was_killed,
    a_prompt_is_answered_as_a_stream_and_ends_with_its_review,
}

type Agent = RunningService<RoleClient, ()>;

/// Connects with a token. Prompts wait for people for the time `wait`.
async fn connect(server: &Server, token: &str, wait: &'static str) -> Agent {
    let authorization = HeaderValue::try_from(format!("Bearer {token}")).expect("a header");
    let prompts_wait = HeaderName::from_static("countersign-permission-wait");
    let headers = [(header::AUTHORIZATION, authorization), (prompts_wait, HeaderValue::from_static(wait))];
    let config = StreamableHttpClientTransportConfig::with_uri(format!("{}/mcp", server.base))
        .custom_headers(HashMap::from(headers));
    ().serve(StreamableHttpClientTransport::from_config(config)).await.expect("the server accepts the agent")
}

async fn call(agent: &Agent, tool: &'static str, arguments: Value) -> Value {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    let params = CallToolRequestParams::new(tool).with_arguments(arguments);
    let result = agent.call_tool(params).await.expect("the tool answers");
    assert_eq!(result.is_error, Some(false), "{result:?}");
    result.structured_content.expect("a structured result")
}

async fn an_agent_gets_its_answer_though_the_server_was_killed(database: Database) {
    let mut server = Server::start(Options::on(database)).await;
    let ana = caller(&server, "ana", &["reviewer"]).await;
    let token = token(&server, "program", &["developer"]).await;

    let agent = connect(&server, &token, "1m").await;
    let tools = agent.list_all_tools().await.expect("the tools");
    assert!(tools.iter().any(|tool| tool.name == "ask_human"));
    let question = json!({
        "question": "Which size?", "wait": "0s",
        "options": [{ "id": "s", "label": "Small" }, { "id": "l", "label": "Large" }],
    });
    let asked = call(&agent, "ask_human", question).await;
    assert_eq!(asked["status"], "pending", "{asked}");
    server.kill();
    server.restart().await;

    let id = asked["review_id"].as_str().expect("an id");
    let review = ana.get(&format!("/api/v1/reviews/{id}")).await;
    let agent = connect(&server, &token, "1m").await;
    let decision = choose("l");
    let wait = call(&agent, "wait_for_review", json!({ "review_id": id, "wait": "30s" }));
    let (answered, (status, decided)) = tokio::join!(wait, ana.decide(&review, &decision));
    assert_eq!(status, 200, "{decided}");
    assert_eq!(answered["answer"]["option"], "l", "{answered}");
}

/// Sends a permission prompt. The library asks to be told of the progress of each call.
async fn prompt(agent: &Agent, command: &str) -> Value {
    let Value::Object(arguments) = json!({ "tool_name": "Bash", "input": { "command": command } }) else {
        panic!("arguments are an object")
    };
    let params = CallToolRequestParams::new("permission_prompt").with_arguments(arguments);
    let result = agent.call_tool(params).await.expect("the tool answers");
    assert!(result.structured_content.is_none(), "{result:?}");
    let text = result.content.first().and_then(ContentBlock::as_text).expect("a text");
    serde_json::from_str(&text.text).expect("the text is JSON")
}

async fn a_prompt_is_answered_as_a_stream_and_ends_with_its_review(database: Database) {
    let server = Server::start(Options::on(database)).await;
    let ana = caller(&server, "ana", &["reviewer"]).await;
    let token = token(&server, "program", &["asker"]).await;
    let agent = connect(&server, &token, "1m").await;
    let approve = async {
        let pending = async || ana.get("/api/v1/reviews?status=pending").await["items"].get(0).cloned();
        let review = eventually("the call is asked about", pending).await;
        let id = review["actions"][0]["id"].as_str().expect("an id");
        let decisions = json!({ id: { "type": "edit", "arguments": { "command": "ls" } } });
        ana.decide(&review, &json!({ "verdict": { "type": "actions", "decisions": decisions } })).await
    };
    let (answer, (status, decided)) = tokio::join!(prompt(&agent, "rm -r build"), approve);
    assert_eq!(status, 200, "{decided}");
    assert_eq!(answer, json!({ "behavior": "allow", "updatedInput": { "command": "ls" } }));

    let late = prompt(&connect(&server, &token, "1s").await, "make").await;
    assert_eq!(late, json!({ "behavior": "deny", "message": "nobody decided in time" }), "the timer ends both");
    let last = ana.get("/api/v1/reviews").await["items"][0].clone();
    assert_eq!(last["status"], "expired", "{last}");
}
