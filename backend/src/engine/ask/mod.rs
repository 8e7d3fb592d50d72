//! Questions: their content, who is asked in which order, and the outcome. A question is answered exactly once: by a
//! handler, by people, by its timer, or by a withdrawal. The modules above deliver the answer
//! ([`crate::engine::next`]); nothing here knows what its receiver does with it.

pub(super) mod action;
mod action_kind;
mod acts;
pub(super) mod by_agent;
pub(super) mod content;
mod deadline;
mod decide;
mod decision_scope;
mod fit;
mod gates;
mod guardrails;
pub(super) mod handlers;
mod pause;
mod review;
mod rule;
mod timer;
mod vote;
