//! What an MCP server may list and say, and what its errors must not repeat.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rmcp::handler::server::ServerHandler;
use rmcp::model::{ListToolsResult, PaginatedRequestParams, Tool as McpTool};
use rmcp::service::{RequestContext, RoleServer};

use super::mcp::{Server, connected_to, mcp_of};
use super::mcp_http::{at_url, over_http};
use super::*;

/// An MCP server whose list of tools never ends, with the number of its pages that were read.
#[derive(Clone, Default)]
struct Endless(Arc<AtomicUsize>);

impl ServerHandler for Endless {
    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, rmcp::ErrorData> {
        let page = self.0.fetch_add(1, Ordering::Relaxed);
        let names = [format!("tool-{page}"), "x".repeat(257)];
        let tools = names.map(|name| McpTool::new(name, "", Arc::default())).to_vec();
        Ok(ListToolsResult { next_cursor: Some("more".to_owned()), ..ListToolsResult::with_all_items(tools) })
    }
}

fn request_of(server: &str, tool: &str) -> ToolRequest {
    request(json!({ "mcp": { "server": server, "tool": tool }, "timeout": "60s" }), json!({}))
}

#[tokio::test]
async fn a_list_of_tools_that_does_not_end_is_cut() {
    let server = Endless::default();
    let (mcp, _server) = connected_to(server.clone()).await;
    let failure = mcp.call("files", "gone", &request_of("files", "gone")).await.unwrap_err();
    assert!(failure.message.contains("has no tool `gone`: it has tool-0, tool-1, "), "{failure:?}");
    assert_eq!(server.0.load(Ordering::Relaxed), 100);
}

#[tokio::test]
async fn the_message_of_a_failure_is_cut() {
    let (mcp, _server) = connected_to(Server::default()).await;
    let tools = Tools { mcp, ..tools(&[]) };
    let failure = tools.call(&request_of("files", "rant")).await.unwrap_err();
    assert!(failure.uncertain && failure.message.starts_with("the MCP server `files`: "), "{failure:?}");
    assert!(failure.message.len() < 5_000, "{}", failure.message.len());
}

#[test]
fn a_secret_at_the_cut_of_a_message_is_masked() {
    let secrets = tools(&[]).secrets;
    let long = format!("{}s3cr3t/value{}", "x".repeat(4), "y".repeat(100));
    assert_eq!(secrets.mask_beginning(&long, 10), "xxxx***…", "before it is found whole, it is not shown in part");
    assert_eq!(secrets.mask_beginning("a s3cr3t/value b", 100), "a *** b");
}

#[tokio::test]
async fn the_url_of_a_server_is_in_no_error() {
    let closed = closed_port();
    let refusing = MockServer::start().await;
    Mock::given(method("POST"))
        .respond_with(ResponseTemplate::new(404).set_body_string("nothing at /mcp?key=sesame"))
        .mount(&refusing)
        .await;
    let urls = [
        ("closed", format!("http://{}/mcp?key=sesame", closed.local_addr().unwrap())),
        ("refusing", format!("{}/mcp?key=sesame", refusing.uri())),
        ("losing", format!("{}?key=sesame", over_http().await)),
    ];
    let settings = urls.map(|(name, url)| (name.to_owned(), at_url(url)));
    let mcp = mcp_of(BTreeMap::from(settings));
    for server in ["closed", "refusing", "losing"] {
        let failure = mcp.call(server, "lose", &request_of(server, "lose")).await.unwrap_err();
        assert!(!failure.message.contains("sesame") && !failure.message.contains("http:"), "{failure:?}");
        assert!(failure.message.len() > format!("the MCP server `{server}`: ").len(), "{failure:?}");
    }
}
