//! MCP servers: one in this process, and programs that die, hang and leave others behind. Those over HTTP have a module
//! of their own.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rmcp::handler::server::ServerHandler;
use rmcp::model::{CallToolRequestParams, CallToolResult, ContentBlock, ListToolsResult, PaginatedRequestParams, Tool};
use rmcp::service::{RequestContext, RoleServer, ServiceExt};
use shared::definition::McpTool;
use shared::time::Span;
use tempfile::TempDir;

use super::*;
use crate::engine::ToolSpec;
use crate::tool::mcp::Mcp;

/// An MCP server with a few tools, which reports when a call was cancelled.
#[derive(Clone, Default)]
pub(super) struct Server(Arc<tokio::sync::Notify>);

impl ServerHandler for Server {
    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, rmcp::ErrorData> {
        let tool = |name| Tool::new(name, "", Arc::default());
        let names = ["key", "wait", "break", "rant", "say", "read"];
        let schema = serde_json::from_value(json!({ "type": "object", "required": ["a"] })).unwrap();
        let add = Tool::new("add", "Adds up.", Arc::new(schema));
        Ok(ListToolsResult::with_all_items(names.map(tool).into_iter().chain([add]).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<rmcp::model::CallToolResponse, rmcp::ErrorData> {
        let result = match &*request.name {
            "add" => CallToolResult::structured(json!({ "sum": request.arguments })),
            "key" => CallToolResult::structured(json!({ "key": context.meta.0.0.get("countersign/idempotency-key") })),
            "wait" => {
                context.ct.cancelled().await;
                self.0.notify_one();
                CallToolResult::success(Vec::new())
            }
            "break" => return Err(rmcp::ErrorData::internal_error("disk full", None)),
            "rant" => return Err(rmcp::ErrorData::internal_error("x".repeat(1_000_000), None)),
            "say" => CallToolResult::success(vec![ContentBlock::text("one"), ContentBlock::text("two")]),
            _ => CallToolResult::error(vec![ContentBlock::text("no such file")]),
        };
        Ok(result.into())
    }
}

/// Returns the servers of these settings, which use no secrets.
pub(super) fn mcp_of(servers: BTreeMap<String, McpServer>) -> Mcp {
    Mcp::new(servers, &Secrets::default(), &Allowed::new(&[])).unwrap()
}

async fn connected() -> (Mcp, tokio::task::JoinHandle<()>) {
    connected_to(Server::default()).await
}

pub(super) async fn connected_to(server: impl ServerHandler) -> (Mcp, tokio::task::JoinHandle<()>) {
    let (ours, theirs) = tokio::io::duplex(4096);
    let server = tokio::spawn(async move {
        let running = server.serve(theirs).await.unwrap();
        running.waiting().await.unwrap();
    });
    let how = serde_json::from_value(json!({ "command": "/no/such/program" })).unwrap();
    let mcp = mcp_of(BTreeMap::from([("files".to_owned(), how)]));
    mcp.use_service("files", ().serve(ours).await.unwrap());
    (mcp, server)
}

async fn call_mcp(mcp: &Mcp, server: &str, name: &str) -> Result<Value, TaskFailure> {
    let timeout = if name == "wait" { "200ms" } else { "20s" };
    let tool = json!({ "mcp": { "server": server, "tool": name }, "timeout": timeout });
    mcp.call(server, name, &request(tool, json!({ "a": 1 }))).await
}

#[tokio::test]
async fn an_mcp_tool_gives_its_structured_content_or_its_text() {
    let (mcp, _server) = connected().await;
    assert_eq!(call_mcp(&mcp, "files", "add").await.unwrap(), json!({ "sum": { "a": 1 } }));
    assert_eq!(call_mcp(&mcp, "files", "say").await.unwrap(), json!("one\ntwo"));
    let failure = call_mcp(&mcp, "files", "read").await.unwrap_err();
    assert_eq!((failure.message.as_str(), failure.retryable), ("no such file", false));
    assert!(call_mcp(&mcp, "others", "add").await.unwrap_err().message.contains("`others`"));
}

#[tokio::test]
async fn an_mcp_call_carries_its_key_and_is_cancelled_when_its_time_is_up() {
    let server = Server::default();
    let (mcp, _server) = connected_to(server.clone()).await;
    assert_eq!(call_mcp(&mcp, "files", "key").await.unwrap(), json!({ "key": "run-1/publish/1/0" }));
    let failure = call_mcp(&mcp, "files", "wait").await.unwrap_err();
    assert!(failure.uncertain && failure.retryable && failure.message.contains("timeout"), "{failure:?}");
    tokio::time::timeout(Duration::from_secs(10), server.0.notified()).await.expect("it was cancelled");
    let failure = call_mcp(&mcp, "files", "break").await.unwrap_err();
    assert!(failure.uncertain && !failure.retryable, "{failure:?}");
}

/// A program that speaks MCP over its standard input and output. It writes its process id to `pids` when it starts, and
/// the calls that it was told to cancel to `cancelled`.
const PROGRAM: &str = r#"
echo $$ >> "$DIR/pids"
[ -e "$DIR/broken" ] && exit 1
while [ -e "$DIR/slow" ]; do sleep 0.05; done
[ -e "$DIR/stubborn" ] && trap '' TERM
while :; do
  if ! read -r line; then
    [ -e "$DIR/stubborn" ] || exit 0
    sleep 1
    continue
  fi
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  answer() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
  case "$line" in
    *'"method":"initialize"'*) answer '"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}' ;;
    *'"method":"tools/list"'*) answer "\"result\":{\"tools\":[$(cat "$DIR/tools")]}" ;;
    *'"name":"die"'*) exit 3 ;;
    *'"name":"wait"'*) echo waiting >> "$DIR/waiting" ;;
    *'"name":"leave"'*) sleep 1000 > /dev/null < /dev/null & echo $! >> "$DIR/pids"
      answer '"result":{"content":[{"type":"text","text":"left"}]}' ;;
    *'"method":"tools/call"'*) answer '"result":{"content":[{"type":"text","text":"done"}]}' ;;
    *notifications/cancelled*) echo "$line" >> "$DIR/cancelled" ;;
    *notifications/*) ;;
    *) answer '"error":{"code":-32601,"message":"no such method"}' ;;
  esac
done
"#;

/// That program, as the only MCP server of the settings.
pub(crate) struct Program {
    pub(super) mcp: Mcp,
    pub(super) folder: TempDir,
}

impl Program {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = Self { mcp: mcp_of(settings(folder.path())), folder };
        program.lists(&["work", "die", "wait", "leave"]);
        program
    }

    pub(super) fn lists(&self, tools: &[&str]) {
        let tools = tools.iter().map(|tool| json!({ "name": tool, "inputSchema": { "type": "object" } }).to_string());
        std::fs::write(self.path("tools"), tools.collect::<Vec<_>>().join(",")).unwrap();
    }

    /// Returns the settings that start the program.
    pub(crate) fn settings(&self) -> BTreeMap<String, McpServer> {
        settings(self.folder.path())
    }

    pub(super) fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    pub(super) fn has(&self, file: &str) {
        std::fs::write(self.path(file), "").unwrap();
    }

    pub(crate) fn lines(&self, file: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.path(file)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    pub(super) fn starts(&self) -> usize {
        self.lines("pids").len()
    }

    pub(super) async fn call(&self, tool: &str) -> Result<Value, TaskFailure> {
        self.call_within("20s", tool).await
    }

    pub(super) async fn call_within(&self, timeout: &str, tool: &str) -> Result<Value, TaskFailure> {
        let settings = json!({ "mcp": { "server": "sh", "tool": tool }, "timeout": timeout });
        self.mcp.call("sh", tool, &request(settings, json!({}))).await
    }
}

fn settings(folder: &Path) -> BTreeMap<String, McpServer> {
    settings_with(folder, None)
}

pub(super) fn settings_with(folder: &Path, start_timeout: Option<Span>) -> BTreeMap<String, McpServer> {
    let how = McpServer::Command {
        command: "sh".to_owned(),
        args: vec!["-c".to_owned(), PROGRAM.to_owned()],
        env: BTreeMap::from([("DIR".to_owned(), folder.to_str().unwrap().to_owned())]),
        start_timeout,
    };
    BTreeMap::from([("sh".to_owned(), how)])
}

pub(crate) async fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let wait = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), wait).await.unwrap_or_else(|_| panic!("never: {what}"));
}

/// Whether a process runs. A zombie does not.
pub(crate) fn runs(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with(['Z', 'X']))
}

#[tokio::test]
async fn a_server_is_started_once_for_all_calls() {
    let program = Program::new();
    assert_eq!(program.starts(), 0, "not before it is needed");
    let calls = futures::future::join_all((0..5).map(|_| program.call("work"))).await;
    assert_eq!(calls, vec![Ok(json!("done")); 5]);
    assert_eq!(program.starts(), 1);
    program.mcp.close().await;
}

#[tokio::test]
async fn a_tool_that_is_not_there_is_not_called_and_one_that_was_added_is() {
    let program = Program::new();
    let failure = program.call("wrok").await.unwrap_err();
    assert!(!failure.retryable && !failure.uncertain, "{failure:?}");
    assert_eq!(failure.message, "the MCP server `sh` has no tool `wrok`: it has work, die, wait, leave");
    program.lists(&["wrok"]);
    assert_eq!(program.call("wrok").await, Ok(json!("done")));
    program.lists(&[]);
    let failure = program.call("gone").await.unwrap_err();
    assert!(failure.message.ends_with("`gone`: it has none"), "{failure:?}");
    program.mcp.close().await;
}

#[tokio::test]
async fn a_server_that_dies_fails_its_call_and_is_started_again_after_a_wait() {
    let program = Program::new();
    let died = program.call("die").await.unwrap_err();
    assert!(died.uncertain && died.retryable, "it may have done it: {died:?}");
    // Before the wait is over, no call is made and nothing is started.
    let mut waits = Vec::new();
    let result = loop {
        match program.call("work").await {
            Ok(result) => break result,
            Err(failure) => {
                assert!(failure.retryable && !failure.uncertain, "{failure:?}");
                assert!(failure.message.contains("has ended, and will not be restarted for 1 s"), "{failure:?}");
                let wait = failure.retry_after.unwrap().0;
                assert!(wait <= Duration::from_secs(1) && program.starts() == 1, "{wait:?}");
                waits.push(wait);
                tokio::time::sleep(wait).await;
            }
        }
    };
    assert_eq!((result, program.starts()), (json!("done"), 2));
    assert!(!waits.is_empty());
    program.mcp.close().await;
}

#[tokio::test]
async fn a_server_that_does_not_start_is_tried_later_each_time() {
    let program = Program::new();
    program.has("broken");
    let mut waits = Vec::new();
    while waits.len() < 2 {
        let failure = program.call("work").await.unwrap_err();
        assert!(failure.retryable && !failure.uncertain, "{failure:?}");
        let wait = failure.retry_after.unwrap().0;
        if failure.message.contains("cannot be reached") {
            waits.push(wait.as_secs_f64().ceil());
            assert_eq!(program.starts(), waits.len());
        }
        if waits.len() < 2 {
            tokio::time::sleep(wait).await;
        }
    }
    assert_eq!(waits, [1.0, 2.0]);
}

#[tokio::test]
async fn a_call_that_nobody_waits_for_any_more_is_cancelled() {
    let program = Program::new();
    let call = program.call("wait");
    tokio::select! {
        result = call => panic!("{result:?}"),
        () = eventually("it waits", || !program.lines("waiting").is_empty()) => {}
    }
    eventually("it is told", || program.lines("cancelled").len() == 1).await;
    assert!(program.lines("cancelled")[0].contains("requestId"), "{:?}", program.lines("cancelled"));
    assert_eq!(program.call("work").await, Ok(json!("done")), "the connection is as good as before");
    program.mcp.close().await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn nothing_is_left_of_a_server_that_is_closed() {
    for stubborn in [false, true] {
        let program = Program::new();
        if stubborn {
            // Neither closing its input nor SIGTERM ends it.
            program.has("stubborn");
        }
        assert_eq!(program.call("leave").await, Ok(json!("left")));
        let pids = program.lines("pids");
        assert!(pids.len() == 2 && pids.iter().all(|pid| runs(pid)), "{pids:?}");
        program.mcp.close().await;
        // The system takes a moment to end killed processes.
        eventually("all have ended", || pids.iter().all(|pid| !runs(pid))).await;
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn nothing_is_left_of_a_server_that_has_died() {
    let program = Program::new();
    assert_eq!(program.call("leave").await, Ok(json!("left")));
    program.call("die").await.unwrap_err();
    // The next caller finds it dead.
    let _ = program.call("work").await;
    let pids = program.lines("pids");
    eventually("all have ended", || pids.iter().take(2).all(|pid| !runs(pid))).await;
    program.mcp.close().await;
}

fn told(name: &str, tool: &str, parameters: Option<Value>) -> ToolSpec {
    ToolSpec { name: name.to_owned(), parameters, ..told_by("files", tool) }
}

pub(super) fn told_by(server: &str, tool: &str) -> ToolSpec {
    let mcp = McpTool { server: server.to_owned(), tool: tool.to_owned() };
    ToolSpec { name: tool.to_owned(), description: None, parameters: None, mcp: Some(mcp) }
}

#[tokio::test]
async fn a_model_is_told_what_the_server_says_of_its_tools_where_the_flow_says_nothing() {
    let (mcp, _server) = connected().await;
    let own = json!({ "type": "object", "required": ["b"] });
    let mut tools = [told("sum", "add", None), told("own", "add", Some(own.clone())), told("gone", "gone", None)];
    mcp.describe(&mut tools).await;
    let [sum, kept, gone] = tools;
    assert_eq!(sum.description.as_deref(), Some("Adds up."));
    assert_eq!(sum.parameters, Some(json!({ "type": "object", "required": ["a"] })));
    assert_eq!(kept.parameters, Some(own), "what the flow says holds");
    assert_eq!((gone.description, gone.parameters), (None, None));

    // A server that cannot be reached does not keep a turn from being carried out.
    let away = mcp_of(settings(Path::new("/no/such/folder")));
    let mut tools = [ToolSpec { mcp: Some(McpTool { server: "nobody".to_owned(), tool: "x".to_owned() }), ..sum }];
    away.describe(&mut tools).await;
    assert_eq!(tools[0].description.as_deref(), Some("Adds up."));
}
