//! What becomes of the content of a result that MCP servers give.

use rmcp::model::{CallToolResult, ContentBlock, Resource, ResourceContents};

use super::*;
use crate::tool::mcp::value;

#[test]
fn the_text_of_a_file_is_the_result_of_the_tool_that_reads_it() {
    let file = ContentBlock::embedded_text("file:///notes.txt", "first line\nsecond line");
    assert_eq!(value(CallToolResult::success(vec![file])), Ok(json!("first line\nsecond line")));
}

#[test]
fn content_that_is_not_text_is_named() {
    let blob = ResourceContents::blob("A".repeat(16_000), "file:///a.pdf");
    let content = vec![
        ContentBlock::text("Three pictures:"),
        ContentBlock::image("iVBORw==", "image/png"),
        ContentBlock::audio("A".repeat(4000), "audio/wav"),
        ContentBlock::resource(blob.clone().with_mime_type("application/pdf")),
        ContentBlock::resource(blob),
        ContentBlock::resource_link(Resource::new("https://example.com/b", "b")),
    ];
    let named = [
        "Three pictures:",
        "[image/png, 4 bytes]",
        "[audio/wav, 3 kB]",
        "[application/pdf, 12 kB: file:///a.pdf]",
        "[a file, 12 kB: file:///a.pdf]",
        "[b: https://example.com/b]",
    ];
    assert_eq!(value(CallToolResult::success(content.clone())), Ok(json!(named.join("\n"))));
    let failure = value(CallToolResult::error(content)).unwrap_err();
    assert_eq!(failure.message, named.join("\n"), "also in a failure");
}

#[test]
fn structured_content_stays_as_it_is() {
    let mut result = CallToolResult::structured(json!({ "sum": 3 }));
    result.content.push(ContentBlock::image("iVBORw==", "image/png"));
    assert_eq!(value(result), Ok(json!({ "sum": 3 })));
}
