//! The number of pending reviews, in words: the same in the list, on the badge and in the title of the tab.

use crate::state::words::thousands;

/// How many reviews wait, as the server has counted them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbers {
    /// That this person may see.
    pub pending: u64,
    /// Of these, that they may decide.
    pub mine: u64,
    /// Of these, that no run waits for.
    pub handed_over: u64,
}

impl Numbers {
    /// Those that keep somebody waiting.
    pub fn blocking(&self) -> u64 {
        self.pending.saturating_sub(self.handed_over)
    }

    /// `2 pending, 1 handed off`.
    pub fn says(&self) -> String {
        let pending = format!("{} pending", thousands(self.blocking()));
        match self.handed_over {
            0 => pending,
            handed_over => format!("{pending}, {} handed off", thousands(handed_over)),
        }
    }

    /// The same, with how many of all this person may decide, where they are not all.
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
