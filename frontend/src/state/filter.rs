//! Which reviews of the list are shown: a chip and a search.

use shared::definition::Severity;
use shared::id::{FlowId, NodeId};
use shared::review::{Review, ReviewKind};
use shared::time::Timestamp;

/// A deadline within this time is soon, in microseconds.
pub const SOON: i64 = 30 * 60 * 1_000_000;

/// A chip above the list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Chip {
    /// Everything.
    #[default]
    All,
    /// What this person may decide.
    Mine,
    /// What runs out within half an hour.
    DueSoon,
    /// What is critical, or cannot be undone.
    Critical,
    /// Tool calls.
    ToolCalls,
}

impl Chip {
    /// All of them, as they stand.
    pub const ALL: [Self; 5] = [Self::All, Self::Mine, Self::DueSoon, Self::Critical, Self::ToolCalls];

    /// What stands on it.
    pub fn label(self) -> &'static str {
        match self {
            Self::All => "All",
            Self::Mine => "Mine",
            Self::DueSoon => "Due soon",
            Self::Critical => "Critical",
            Self::ToolCalls => "Tool calls",
        }
    }

    /// Whether it lets a review through; `mine`: this person may decide it.
    pub fn lets_through(self, review: &Review, mine: bool, now: Timestamp) -> bool {
        match self {
            Self::All => true,
            Self::Mine => mine,
            Self::DueSoon => review.expires_at.is_some_and(|at| at.0 - now.0 < SOON),
            Self::Critical => review.stakes.severity == Severity::Critical || review.stakes.reversible == Some(false),
            Self::ToolCalls => review.kind == ReviewKind::ToolCalls,
        }
    }
}

/// Whether every word of `search` stands somewhere in what the list and the pane show of a review.
pub fn finds(review: &Review, search: &str) -> bool {
    let mut all = String::new();
    let parts = [
        Some(review.title.as_str()),
        Some(review.prompt.as_str()),
        review.flow_title.as_deref(),
        review.flow.as_ref().map(FlowId::as_str),
        review.node.as_ref().map(NodeId::as_str),
        review.stakes.category.as_deref(),
        Some(review.stakes.severity.as_str()),
        Some(review.kind.as_str()),
        Some(review.requested_by.as_str()),
    ];
    let names = review.actions.iter().map(|action| action.name.as_str());
    for part in parts.into_iter().flatten().chain(names) {
        all.push_str(&part.to_lowercase());
        all.push('\n');
    }
    search.to_lowercase().split_whitespace().all(|word| all.contains(word))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::state::fixtures::{calls, review};

    #[test]
    fn every_word_must_be_found_in_any_order_and_case() {
        let review = review(1, 1, json!({}));
        assert!(finds(&review, "DRAFT article"));
        assert!(!finds(&review, "draft refund"));
        assert!(finds(&calls(2, 1), "delete_file"));
    }

    #[test]
    fn what_cannot_be_undone_counts_as_critical() {
        let review = review(1, 1, json!({"reversible": false}));
        assert!(Chip::Critical.lets_through(&review, true, Timestamp(0)));
    }
}
