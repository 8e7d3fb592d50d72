//! Where stored JSON holds data of users: what a flow, a model, a tool or a person puts in, whose members this program
//! did not name.
//!
//! An erasure reads rows of every age, so this list knows JSON and not the current types. A test compares it with what
//! the types say ([`shared::user_data`]).

/// The root of the stored state of a run.
pub(super) const STATE: &str = "run_state";

const ANY: &str = "*";

/// The ends of the paths to data of users. A path consists of the root of the stored JSON and the keys below it, without
/// the positions in arrays.
const USER_DATA_PATHS: [&[&str]; 25] = [
    &["arguments"],
    &["body"],
    &["content"],
    &["edits"],
    &["fields"],
    &["keys"],
    &["metadata"],
    &["output"],
    &["reads"],
    &["result"],
    &["schema"],
    &["toolArgs"],
    &["value"],
    &["values"],
    &["writes"],
    &[STATE, "input"],
    &[STATE, "decisions"],
    &["frames", ANY, "input"],
    &["launch", "input"],
    &["phase", "items"],
    &["phase", "results"],
    &["resolution", "answer"],
    // The answer to a launch, under its idempotency key.
    &["run", "calls"],
    &["run", "input"],
    &["run", "state"],
];

/// Whether the value at this path is data of users.
pub(super) fn is_user_data(path: &[String]) -> bool {
    path_index(path).is_some()
}

/// The index of the path in the list at which this one ends.
fn path_index(path: &[String]) -> Option<usize> {
    USER_DATA_PATHS.iter().position(|listed| {
        let end = path.len().checked_sub(listed.len()).and_then(|start| path.get(start..));
        end.is_some_and(|end| end.iter().zip(*listed).all(|(key, wanted)| *wanted == ANY || key == wanted))
    })
}

#[cfg(test)]
mod tests;
