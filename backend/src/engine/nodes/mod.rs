//! The kinds of nodes: what each does when a branch enters it, and with the answers that it gets. None knows the
//! consequences ([`crate::engine::next`]).

mod agent;
mod call;
mod conversation_end;
mod handoff;
mod human;
mod map;
mod nested;
mod output;
mod router;
mod set;
mod sub_agent;
mod successor_prompt;
mod takeover;
mod team;
mod tool;
mod turn;
