//! MCP servers over HTTP: their calls, and the headers that the settings give them.

use super::mcp::mcp_of;
use super::*;

pub(super) fn at_url(url: String) -> McpServer {
    McpServer::Url { url, headers: BTreeMap::new() }
}

/// Starts an MCP server over HTTP that supports just what a call needs.
pub(super) async fn over_http() -> String {
    use axum::http::StatusCode;
    use axum::response::IntoResponse as _;
    let answer = async |axum::Json(asked): axum::Json<Value>| {
        let result = match asked["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
                "serverInfo": { "name": "http", "version": "1" },
            }),
            Some("tools/list") => {
                let tools = ["echo", "lose"].map(|name| json!({ "name": name, "inputSchema": { "type": "object" } }));
                json!({ "tools": tools })
            }
            Some("tools/call") if asked["params"]["name"] == "lose" => {
                return (StatusCode::GONE, "nothing at /mcp?key=sesame").into_response();
            }
            Some("tools/call") => json!({
                "content": [], "structuredContent": { "heard": asked["params"]["arguments"] },
            }),
            _ => return StatusCode::ACCEPTED.into_response(),
        };
        axum::Json(json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result })).into_response()
    };
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(
        async move { axum::serve(listener, axum::Router::new().route("/mcp", axum::routing::post(answer))).await },
    );
    url
}

#[tokio::test]
async fn an_mcp_server_at_a_url_is_listed_and_called() {
    let mcp = mcp_of(BTreeMap::from([("web".to_owned(), at_url(over_http().await))]));
    let tool = json!({ "mcp": { "server": "web", "tool": "echo" }, "timeout": "20s" });
    let called = mcp.call("web", "echo", &request(tool, json!({ "a": 1 }))).await;
    assert_eq!(called.unwrap(), json!({ "heard": { "a": 1 } }));
    let tool = json!({ "mcp": { "server": "web", "tool": "gone" }, "timeout": "20s" });
    let failure = mcp.call("web", "gone", &request(tool, json!({}))).await.unwrap_err();
    assert!(failure.message.contains("has no tool `gone`: it has echo"), "{failure:?}");
}

/// Answers a request as an MCP server with one tool, whose result repeats the key that it was sent.
fn answer(asked: &wiremock::Request) -> ResponseTemplate {
    let body: Value = serde_json::from_slice(&asked.body).unwrap();
    let result = match body["method"].as_str() {
        Some("initialize") => json!({
            "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
            "serverInfo": { "name": "keyed", "version": "1" },
        }),
        Some("tools/list") => {
            let key = asked.headers["x-key"].to_str().unwrap();
            json!({ "tools": [{ "name": "tell", "description": key, "inputSchema": { "type": "object" } }] })
        }
        Some("tools/call") => {
            let key = asked.headers["x-key"].to_str().unwrap();
            let padding = body["params"]["arguments"]["padding"].as_u64();
            let said = " ".repeat(padding.and_then(|length| length.try_into().ok()).unwrap_or(0));
            let content = json!([{ "type": "text", "text": format!("{said}the key is {key}") }]);
            json!({ "content": content, "isError": padding.is_some() })
        }
        _ => return ResponseTemplate::new(202),
    };
    ResponseTemplate::new(200).set_body_json(json!({ "jsonrpc": "2.0", "id": body["id"], "result": result }))
}

/// Returns tools with one MCP server at this URL, to which the header `x-key` is sent.
fn keyed(url: &str, value: &str, secrets: Secrets) -> Result<Tools, Error> {
    let server =
        McpServer::Url { url: url.to_owned(), headers: BTreeMap::from([("X-Key".to_owned(), value.to_owned())]) };
    Tools::new(ToolOptions { mcp: BTreeMap::from([("keyed".to_owned(), server)]), secrets, ..ToolOptions::default() })
}

fn tell(arguments: Value) -> ToolRequest {
    request(json!({ "mcp": { "server": "keyed", "tool": "tell" }, "timeout": "20s" }), arguments)
}

#[tokio::test]
async fn every_request_to_a_server_has_its_headers_and_their_secrets_are_masked() {
    let server = MockServer::start().await;
    // Other requests get a 404.
    let has_key = header("x-key", "key s3cr3t/value");
    Mock::given(method("POST")).and(has_key).respond_with(answer).mount(&server).await;
    let tools = keyed(&server.uri(), "key {{ secret.TOKEN }}", tools(&[]).secrets).unwrap();
    assert_eq!(tools.call(&tell(json!({}))).await, Ok(json!("the key is key ***")));
    // Also where a long message of a failure is cut, inside the secret.
    for padding in (480..500).chain(MAX_MESSAGE - 24..MAX_MESSAGE) {
        let message = tools.call(&tell(json!({ "padding": padding }))).await.unwrap_err().message;
        assert!(!message.contains("s3"), "{padding}: {}", message.trim());
    }
    let mcp = shared::definition::McpTool { server: "keyed".to_owned(), tool: "tell".to_owned() };
    let mut specs = [ToolSpec { name: "tell".to_owned(), description: None, parameters: None, mcp: Some(mcp) }];
    tools.describe(&mut specs).await;
    assert_eq!(specs[0].description.as_deref(), Some("key ***"));
    tools.close().await;
}

#[tokio::test]
async fn the_headers_of_a_server_are_not_sent_where_it_redirects_to() {
    let (server, other) = (MockServer::start().await, MockServer::start().await);
    let redirect = ResponseTemplate::new(307).insert_header("location", other.uri());
    Mock::given(method("POST")).respond_with(redirect).mount(&server).await;
    let tools = keyed(&server.uri(), "{{ secret.TOKEN }}", tools(&[]).secrets).unwrap();
    let failure = tools.call(&tell(json!({}))).await.unwrap_err();
    assert!(failure.message.contains("cannot be reached"), "{failure:?}");
    assert_eq!(other.received_requests().await.unwrap().len(), 0);
}

#[test]
fn headers_that_cannot_be_sent_are_refused_at_the_start() {
    let secrets = || {
        let variables = [("COUNTERSIGN_SECRET_CRM", "sesame"), ("COUNTERSIGN_HOSTS_CRM", "crm.example")];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Secrets::from_env(variables, &BTreeMap::new())
    };
    let refused = |url: &str, value: &str| keyed(url, value, secrets()).err().map(|error| error.to_string());
    assert_eq!(refused("https://crm.example/mcp", "{{ secret.CRM }}"), None);
    for (url, value, why) in [
        ("https://crm.example/mcp", "{{ secret.ERP }}", "set COUNTERSIGN_SECRET_ERP"),
        ("https://evil.example/mcp", "{{ secret.CRM }}", "may not be sent to `evil.example:443`"),
        ("http://crm.example/mcp", "{{ secret.CRM }}", "use https"),
        ("https://crm.example/mcp", "{{ env.CRM }}", "the header `X-Key`: "),
        ("https://crm.example/mcp", "a\nb", "the header `X-Key` is not valid"),
    ] {
        let refused = refused(url, value).unwrap();
        assert!(refused.starts_with("`headers` of `[mcp.keyed]`") && refused.contains(why), "{refused}");
    }
    let headers = BTreeMap::from([("Accept".to_owned(), "text/plain".to_owned())]);
    let server = McpServer::Url { url: "https://crm.example/mcp".to_owned(), headers };
    let options = ToolOptions { mcp: BTreeMap::from([("keyed".to_owned(), server)]), ..ToolOptions::default() };
    assert!(Tools::new(options).err().unwrap().to_string().contains("`Accept` is set by the protocol"));
}
