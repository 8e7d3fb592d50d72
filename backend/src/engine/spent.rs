//! The usage of an agent: its limits apply to the step, across all of its conversations.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// What was used.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    /// Model calls, with the one that is under way.
    pub turns: u32,
    /// Questions to people that it asked by itself.
    pub asks: u32,
    /// Tokens that models have read and written.
    pub tokens: u64,
    /// What they cost, in US dollars.
    pub cost_usd: f64,
}

impl AddAssign<&Self> for Spent {
    fn add_assign(&mut self, more: &Self) {
        self.turns = self.turns.saturating_add(more.turns);
        self.asks = self.asks.saturating_add(more.asks);
        self.tokens = self.tokens.saturating_add(more.tokens);
        // JSON has no infinite numbers.
        self.cost_usd = (self.cost_usd + more.cost_usd).min(f64::MAX);
    }
}
