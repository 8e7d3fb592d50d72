//! Tests of the store's promises, on both databases.

mod acts;
mod calls;
mod clocks;
mod decided;
mod decisions;
mod deliveries;
mod deputies;
mod grants;
mod keys;
mod large_values;
mod log;
mod log_blocks;
mod log_index;
mod log_numbers;
mod pages;
mod people;
mod places;
mod plans;
mod queue;
mod reads;
mod run_search;
mod statistics;
pub(crate) mod support;
mod tasks;
mod timers;
mod visibility;
mod votes;
