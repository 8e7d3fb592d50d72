//! An agent of another program asks people over the Model Context Protocol, with a client of the protocol's own library,
//! and gets the answer though the server was killed in between.

use std::collections::HashMap;

use axum::http::{HeaderValue, header};
use rmcp::ServiceExt as _;
use rmcp::model::CallToolRequestParams;
use rmcp::service::{RoleClient, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::{Value, json};
use tests::caller::{caller, choose, token};
use tests::{Database, Options, Server, on_both};

on_both! { an_agent_gets_its_answer_though_the_server_was_killed }

type Agent = RunningService<RoleClient, ()>;

async fn connect(server: &Server, token: &str) -> Agent {
    let authorization = HeaderValue::try_from(format!("Bearer {token}")).expect("a header");
    let config = StreamableHttpClientTransportConfig::with_uri(format!("{}/mcp", server.base))
        .custom_headers(HashMap::from([(header::AUTHORIZATION, authorization)]));
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

    let agent = connect(&server, &token).await;
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
    let agent = connect(&server, &token).await;
    let decision = choose("l");
    let wait = call(&agent, "wait_for_review", json!({ "review_id": id, "wait": "30s" }));
    let (answered, (status, decided)) = tokio::join!(wait, ana.decide(&review, &decision));
    assert_eq!(status, 200, "{decided}");
    assert_eq!(answered["answer"]["option"], "l", "{answered}");
}
