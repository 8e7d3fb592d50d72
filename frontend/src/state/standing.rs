//! How far the reviews on the page of the selection have come.

use super::outbox::Stage;

/// How far a review on the page of the selection has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It can be decided.
    Open,
    /// The decision is held or being sent.
    Sending,
    /// The decision was accepted.
    Accepted,
    /// The decision was refused, or may not have arrived.
    NotSent,
    /// It has ended, or this person cannot decide it any more.
    Over,
}

/// The standing of a review with a decision at this stage, if there is one here.
pub fn standing(stage: Option<&Stage>, refusal: Option<&str>, voted: bool) -> Standing {
    match stage {
        Some(Stage::Held(_) | Stage::Sending) => Standing::Sending,
        Some(Stage::Accepted(..)) => Standing::Accepted,
        Some(Stage::Unsent(_) | Stage::Refused(_)) => Standing::NotSent,
        None if refusal.is_none() => Standing::Open,
        None if voted => Standing::Accepted,
        Some(Stage::Overtaken) | None => Standing::Over,
    }
}

/// The standings in words: `2 to decide, 1 sent`.
pub fn summary(all: &[Standing]) -> String {
    let parts = [
        (Standing::Open, "to decide"),
        (Standing::Sending, "being sent"),
        (Standing::Accepted, "sent"),
        (Standing::NotSent, "not sent"),
        (Standing::Over, "without your decision"),
    ];
    let count = |wanted: Standing| all.iter().filter(|standing| **standing == wanted).count();
    let parts = parts.into_iter().map(|(standing, words)| (count(standing), words)).filter(|(count, _)| *count > 0);
    parts.map(|(count, words)| format!("{count} {words}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::fixtures::resolved;
    use crate::state::selection::begun;

    #[test]
    fn the_summary_says_what_became_of_each() {
        assert_eq!(standing(None, None, false), Standing::Open);
        assert_eq!(standing(None, Some("you have voted"), true), Standing::Accepted);
        assert_eq!(standing(Some(&Stage::Overtaken), Some("it is over"), false), Standing::Over);
        let decided = begun(&resolved(1, 2, "ana"), false, None, Some("ana"));
        assert_eq!(
            standing(None, Some("it is over"), decided.voted),
            Standing::Accepted,
            "also when it was a while ago"
        );
        let all = [Standing::Accepted, Standing::Open, Standing::Over, Standing::Open];
        assert_eq!(summary(&all), "2 to decide, 1 sent, 1 without your decision");
    }
}
