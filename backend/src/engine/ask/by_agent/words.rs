//! The ids of the answers to an agent's question, as the contract names them.

/// The key of a draft among the items of its review.
pub(in crate::engine::ask) const CONTENT: &str = "content";
/// The one option of a draft.
pub(in crate::engine::ask) const DONE: &str = "done";
/// What people answer to an agent that cannot go on, as the contract names it.
pub(in crate::engine::ask) const TAKE_OVER: &str = "human_takeover";
pub(in crate::engine::ask) const GO_ON: &str = "agent_continue";
pub(in crate::engine::ask) const DELEGATE: &str = "delegate";
/// What people answer to an agent that asks whether to go on.
pub(in crate::engine::ask) const CONTINUE: &str = "continue";
pub(in crate::engine::ask) const PAUSE: &str = "pause";
pub(in crate::engine::ask) const RESUME: &str = "resume";
pub(in crate::engine::ask) const MODIFY: &str = "modify";
/// The step of the agent ends.
pub(in crate::engine::ask) const ABORT: &str = "abort";
/// The one option of what is handed over.
pub(in crate::engine::ask) const TAKEN: &str = "taken";
