//! The usage of an agent in a step: its limits apply to the step, across all of its conversations.

use serde::{Deserialize, Serialize};

use super::conversation::Conversation;

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

impl Spent {
    /// What the agent of a conversation has used, with what it had used before.
    pub(super) fn of(conversation: &Conversation) -> Self {
        let Conversation { tokens, cost_usd, asks, .. } = *conversation;
        Self { turns: conversation.turns_used(), asks, tokens, cost_usd }
    }
}

impl Conversation {
    /// The same of an agent that has used this before in its step.
    pub(super) fn after(self, spent: &Spent) -> Self {
        let Spent { turns, asks, tokens, cost_usd } = *spent;
        Self { turns_before: turns, asks, tokens, cost_usd, ..self }
    }

    /// The model calls that its agent has made in the step, the one that is under way included.
    pub(super) fn turns_used(&self) -> u32 {
        self.turns_before.saturating_add(self.turn)
    }
}
