//! The usage of model calls, and of an agent: its limits apply to the step, across all of its conversations.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// The usage of a model call, whether it was answered or failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelUsage {
    /// The number of tokens, input and output together.
    pub tokens: u64,
    /// The cost in US dollars; 0 if the price is unknown.
    pub cost_usd: f64,
    /// The duration of the call, in milliseconds.
    pub duration_ms: u64,
}

/// An amount of usage.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    /// Model calls, including the one that is under way.
    pub turns: u32,
    /// Questions that it asked people on its own initiative.
    pub asks: u32,
    /// Tokens that models have read and written.
    pub tokens: u64,
    /// The cost of these tokens, in US dollars.
    pub cost_usd: f64,
    /// The calls by other agents for which this was used.
    #[serde(default, skip_serializing_if = "shared::is_default")]
    pub tasks: u32,
}

impl AddAssign<&Self> for Spent {
    fn add_assign(&mut self, more: &Self) {
        self.turns = self.turns.saturating_add(more.turns);
        self.asks = self.asks.saturating_add(more.asks);
        self.tokens = self.tokens.saturating_add(more.tokens);
        self.tasks = self.tasks.saturating_add(more.tasks);
        // JSON has no infinite numbers.
        self.cost_usd = (self.cost_usd + more.cost_usd).min(f64::MAX);
    }
}
