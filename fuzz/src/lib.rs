//! Fuzz targets: one function for each reader of what others wrote. A target must return for every input, whatever it
//! is: no panic, no stack overflow, no unbounded memory or time; and where it checks more, it says so.
//!
//! The functions know nothing of the fuzzer, so that the corpus is replayed by an ordinary test (`tests/corpus.rs`).
//! Imports `backend`, `shared` and `serde_json`.

mod answers;
mod flows;
mod requests;

/// A fuzz target.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name on the command line, and its folder in the corpus.
    pub name: &'static str,
    /// Runs it on one input; panics where a promise does not hold.
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

/// An input as text; what is no UTF-8 is refused before any of the readers is reached.
fn text(data: &[u8]) -> Option<&str> {
    std::str::from_utf8(data).ok()
}
