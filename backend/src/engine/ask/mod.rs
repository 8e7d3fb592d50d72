//! Questions: their content, who is asked in which order, and the outcome. A question is answered exactly once: by a
//! handler, by people, by its timer, or by a withdrawal. The modules above deliver the answer
//! ([`crate::engine::next`]); nothing here knows what its receiver does with it.

pub(super) mod action;
mod action_kind;
mod approval;
mod asked_handler;
pub(super) mod by_agent;
mod calls;
mod chain;
mod channel;
mod claim;
mod content;
mod deadline;
mod decide;
mod decision_scope;
mod delegate;
mod fit;
mod gate;
mod grant;
mod grantable;
mod group;
mod guard;
mod guardrail;
mod guardrails_answered;
mod handled;
mod handler_outcome;
mod judge;
mod node;
mod pause;
mod program;
mod reassign;
mod review;
mod rule;
mod stakes;
mod subject;
mod timer;
mod title;
mod vote;
mod withdraw;

pub(super) use content::judge_of;
pub(super) use judge::ANSWER as JUDGE_ANSWER;
pub(super) use program::{composed, program_of};
