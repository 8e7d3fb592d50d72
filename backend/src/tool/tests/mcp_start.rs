//! Slow starts of MCP servers.

use std::time::Duration;

use serde_json::json;
use shared::time::Span;

use super::mcp::{Program, eventually, mcp_of, runs, settings_with, told_by};

#[tokio::test]
async fn a_server_that_starts_slowly_is_started_once_however_briefly_each_waits() {
    let program = Program::new();
    program.has("slow");
    // The time that a model's turn waits for descriptions passes at once.
    tokio::time::pause();
    let mut tools = [told_by("sh", "work")];
    program.mcp.describe(&mut tools).await;
    tokio::time::resume();
    assert_eq!(tools[0].parameters, None);
    let failure = program.call_within("100ms", "work").await.unwrap_err();
    assert!(failure.retryable && !failure.uncertain && failure.retry_after.is_none(), "{failure:?}");
    assert_eq!(failure.message, "the MCP server `sh` did not start within 100ms (`timeout` of the tool)");
    eventually("it is started", || program.starts() == 1).await;
    std::fs::remove_file(program.path("slow")).unwrap();
    assert_eq!(program.call("work").await, Ok(json!("done")));
    program.mcp.describe(&mut tools).await;
    assert_eq!((&tools[0].parameters, program.starts()), (&Some(json!({ "type": "object" })), 1));
    program.mcp.close().await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_server_that_does_not_start_in_its_time_is_ended_and_counts_as_failed_once() {
    let mut program = Program::new();
    program.mcp = mcp_of(settings_with(program.folder.path(), Some(Span(Duration::from_millis(500)))));
    program.has("slow");
    let calls = futures::future::join_all((0..3).map(|_| program.call("work"))).await;
    for call in calls {
        let failure = call.unwrap_err();
        assert!(failure.retryable && !failure.uncertain, "{failure:?}");
        let message = "the MCP server `sh` did not start within 500ms (`start_timeout` of `[mcp.sh]` in the settings)";
        assert_eq!(failure.message, message);
        assert!(failure.retry_after.unwrap().0 <= Duration::from_secs(1), "{failure:?}");
    }
    eventually("it has ended", || program.lines("pids").iter().all(|pid| !runs(pid))).await;
    assert!(program.starts() <= 1);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn nothing_is_left_of_a_server_that_is_closed_while_it_starts() {
    let program = Program::new();
    program.has("slow");
    let (waiting, ()) = tokio::join!(program.call("work"), async {
        eventually("it is started", || program.starts() == 1).await;
        program.mcp.close().await;
    });
    let stops = "the MCP server `sh` is not started any more: this server is stopping";
    assert_eq!(waiting.unwrap_err().message, stops);
    let pids = program.lines("pids");
    eventually("it has ended", || pids.iter().all(|pid| !runs(pid))).await;
    assert_eq!(program.call("work").await.unwrap_err().message, stops);
    assert_eq!(program.starts(), 1);
}
