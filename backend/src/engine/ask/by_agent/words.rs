//! The ids of the answers to an agent's question, which are part of the API.

/// The key of a draft among the items of its review.
pub(in crate::engine::ask) const CONTENT: &str = "content";
/// The only option of a draft.
pub(in crate::engine::ask) const DONE: &str = "done";
/// The options of an escalation, together with `ABORT`.
pub(in crate::engine::ask) const TAKE_OVER: &str = "human_takeover";
pub(in crate::engine::ask) const GO_ON: &str = "agent_continue";
pub(in crate::engine::ask) const DELEGATE: &str = "delegate";
/// The options of a checkpoint, together with `ABORT`.
pub(in crate::engine::ask) const CONTINUE: &str = "continue";
pub(in crate::engine::ask) const PAUSE: &str = "pause";
pub(in crate::engine::ask) const RESUME: &str = "resume";
pub(in crate::engine::ask) const MODIFY: &str = "modify";
/// Ends the step of an agent, or whatever else asked.
pub(in crate::engine::ask) const ABORT: &str = "abort";
/// The only option of a handoff.
pub(in crate::engine::ask) const TAKEN: &str = "taken";
