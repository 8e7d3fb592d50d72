//! The counts of pending reviews in words, the same in the list, on the badge and in the title of the tab.

use crate::state::words::thousands;

/// The counts of pending reviews, from the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbers {
    /// Those that this person may see.
    pub pending: u64,
    /// Those that this person may decide.
    pub mine: u64,
    /// Those that were handed off, so that no run waits for them.
    pub handed_over: u64,
}

impl Numbers {
    /// The number of pending reviews that a run or a caller waits for.
    pub fn blocking(&self) -> u64 {
        self.pending.saturating_sub(self.handed_over)
    }

    /// The counts as text: `2 pending, 1 handed off`.
    pub fn says(&self) -> String {
        let pending = format!("{} pending", thousands(self.blocking()));
        match self.handed_over {
            0 => pending,
            handed_over => format!("{pending}, {} handed off", thousands(handed_over)),
        }
    }

    /// Like [`Self::says`], followed by the number that this person may decide, unless they may decide all.
    pub fn says_mine(&self) -> String {
        let all = self.says();
        if self.mine == self.pending { all } else { format!("{all}, {} yours", thousands(self.mine)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_handed_over_is_counted_apart() {
        let numbers = Numbers { pending: 3, mine: 3, handed_over: 1 };
        assert_eq!((numbers.blocking(), numbers.says_mine()), (2, "2 pending, 1 handed off".into()));
        let numbers = Numbers { pending: 1200, mine: 4, handed_over: 0 };
        assert_eq!(numbers.says_mine(), "1,200 pending, 4 yours");
    }
}
