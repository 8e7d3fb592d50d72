//! Fuzz targets: one function for each parser of outside input. A target must return for every input: no panic, no
//! stack overflow, no unbounded memory or time. A target that checks more says so.
//!
//! The functions do not depend on the fuzzer, so that an ordinary test (`tests/corpus.rs`) can replay the corpus.

mod answers;
mod flows;
mod requests;

/// A fuzz target.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// The name on the command line, and of the folder in the corpus.
    pub name: &'static str,
    /// Runs the target on one input. Panics if a property does not hold.
    pub run: fn(&[u8]),
}

/// All targets; `tests/corpus.rs` replays the corpus of each.
pub const TARGETS: &[Target] = &[
    Target { name: "flow_file", run: flows::flow_file },
    Target { name: "template", run: flows::template },
    Target { name: "condition", run: flows::condition },
    Target { name: "schema", run: flows::schema },
    Target { name: "json_body", run: requests::json_body },
    Target { name: "query", run: requests::query },
    Target { name: "cursor", run: requests::cursor },
    Target { name: "socket_message", run: requests::socket_message },
    Target { name: "slack_interaction", run: requests::slack_interaction },
    Target { name: "tool_answer", run: answers::tool_answer },
    Target { name: "model_answer", run: answers::model_answer },
    Target { name: "audit_export", run: answers::audit_export },
];

/// An input as text. `None` if it is not UTF-8, which is refused before it reaches any parser.
fn text(data: &[u8]) -> Option<&str> {
    std::str::from_utf8(data).ok()
}
