//! The text of a message about a review, in plain words. Text of agents is hostile: it is shown as text, with hidden
//! and bidirectional characters made visible, and never as markup; what is longer than a line is quoted.

use shared::definition::OnTimeout;
use shared::invisible_characters::replaced;
use shared::log::AnnouncedSubject;
use shared::notification::Occasion;
use shared::review::{Review, ReviewKind, ReviewStatus};
use shared::time::Timestamp;

/// The longest title, in characters.
const MAX_TITLE: usize = 150;
/// The longest reason, in characters.
const MAX_REASON: usize = 300;
/// The largest number of lines of a quotation.
const MAX_LINES: usize = 40;
/// The length from which the lines of a quotation are broken, in characters: a program that broke them itself would
/// begin new ones without a mark.
const MAX_LINE: usize = 90;

/// Returns the text with hidden characters made visible, so that nothing in it is hidden. Line breaks stay.
pub(super) fn inert(text: &str) -> String {
    replaced(text, |c, _| if c == '\r' { String::new() } else { format!("<U+{:04X}>", u32::from(c)) })
}

/// Returns the first `max` characters of a text, made inert, and whether that is the whole text.
pub(super) fn excerpt(text: &str, max: usize) -> (String, bool) {
    let text = inert(text.trim());
    if text.chars().count() <= max {
        return (text, true);
    }
    (text.chars().take(max.saturating_sub(1)).chain(['…']).collect(), false)
}

/// Foreign text between lines of ours.
pub(super) struct Quotation {
    /// The text, in which each line begins with `>`, so that none can pass for one of ours.
    pub text: String,
    /// A line of ours that says how much is left out. `None` if nothing is.
    pub left_out: Option<String>,
}

/// Quotes the first lines of a text, of up to `max` characters in all, made inert. Several blank lines become one.
pub(super) fn quoted(text: &str, max: usize) -> Quotation {
    let text = inert(text.trim());
    let mut lines: Vec<&str> = text.lines().flat_map(broken).map(str::trim_end).collect();
    lines.dedup_by(|line, before| line.is_empty() && before.is_empty());
    let mut used = 0;
    let fit = lines.iter().take(MAX_LINES).take_while(|line| {
        used += line.chars().count() + 1;
        used <= max.saturating_add(1)
    });
    let fit = fit.count();
    let mut shown: Vec<String> = lines.iter().take(fit).map(|&line| line.to_owned()).collect();
    // A first line that is too long for all of the quotation is cut.
    shown.extend(lines.first().filter(|_| fit == 0).map(|line| excerpt(line, max).0));
    let left_out = match lines.len() - shown.len() {
        0 if fit == lines.len() => None,
        0 => Some("… more in the console".to_owned()),
        1 => Some("… 1 more line in the console".to_owned()),
        more => Some(format!("… {more} more lines in the console")),
    };
    let text: Vec<String> = shown.iter().map(|line| format!("> {line}").trim_end().to_owned()).collect();
    Quotation { text: text.join("\n"), left_out }
}

/// Breaks a line at white space. A longer word, such as an address, stays whole.
fn broken(line: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut rest = line;
    while let Some((end, _)) = rest.char_indices().nth(MAX_LINE) {
        let after = |(at, space): (usize, &str)| at + space.len();
        let last = rest[..end].rmatch_indices(char::is_whitespace).next().map(after);
        let next = || rest[end..].match_indices(char::is_whitespace).next().map(|space| end + after(space));
        let Some(at) = last.or_else(next) else { break };
        let (line, more) = rest.split_at(at);
        lines.push(line);
        rest = more;
    }
    lines.push(rest);
    lines
}

/// Returns the first `max` characters of a text, made inert, in one line, so that it cannot begin a line of its own.
pub(super) fn one_line(text: &str, max: usize) -> String {
    excerpt(&text.split_whitespace().collect::<Vec<_>>().join(" "), max).0
}

pub(super) fn title(review: &Review) -> String {
    one_line(&review.title, MAX_TITLE)
}

/// The phrase before a title: what happened to the review, or what is to be done.
pub(super) fn verb(occasion: Option<Occasion>, review: &Review) -> &'static str {
    match occasion {
        Some(Occasion::Resolved) => match review.status {
            ReviewStatus::Expired => "Expired",
            ReviewStatus::Withdrawn => "Withdrawn",
            ReviewStatus::Pending | ReviewStatus::Resolved => "Decided",
        },
        Some(Occasion::Expiring) => "Nearly due",
        Some(Occasion::Commented) => "Comment",
        _ => "To review",
    }
}

/// What a message is about, as a list of several names it.
pub(super) fn several<'a>(all: impl IntoIterator<Item = &'a AnnouncedSubject>) -> String {
    let is_run = |about: &&AnnouncedSubject| matches!(about, AnnouncedSubject::Run(_));
    let (runs, reviews): (Vec<_>, Vec<_>) = all.into_iter().partition(is_run);
    let counted = |count: usize, one: &str| match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        more => Some(format!("{more} {one}s")),
    };
    let parts = [counted(reviews.len(), "review"), counted(runs.len(), "run")];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" and ")
}

/// Where a review comes from, and how much is at stake.
pub(super) fn origin(review: &Review) -> String {
    let mut parts: Vec<String> = Vec::new();
    parts.extend(review.flow_title.as_ref().map(|title| one_line(title, MAX_TITLE)));
    let how = if review.run_id.is_some() { "launched" } else { "asked" };
    parts.push(format!("{how} by {}", review.requested_by));
    parts.push(format!("severity {}", review.stakes.severity.as_str()));
    if review.stakes.reversible == Some(false) {
        parts.push("cannot be undone".to_owned());
    }
    parts.join(" · ")
}

/// The time left and what happens then. `None` if the review has no deadline.
pub(super) fn time_left(review: &Review, now: Timestamp) -> Option<String> {
    let until = review.expires_at?;
    let then = match review.on_timeout.as_ref() {
        Some(OnTimeout::Reject) => ", then it counts as rejected",
        Some(OnTimeout::Approve) => ", then it counts as approved",
        Some(OnTimeout::Escalate(_)) => ", then others are asked too",
        Some(OnTimeout::Error) => ", then the run fails",
        Some(OnTimeout::Follow | OnTimeout::Goto { .. }) if !review.actions.is_empty() => {
            ", then it counts as rejected"
        }
        Some(OnTimeout::Goto { .. }) => ", then the run takes another path",
        Some(OnTimeout::Follow) if review.kind == ReviewKind::Approval => ", then the run continues without an answer",
        Some(OnTimeout::Follow) | None => "",
    };
    Some(format!("{} left{then}", span(until.since(now))))
}

/// Formats a length of time in its two largest units.
fn span(time: std::time::Duration) -> String {
    let minutes = time.as_secs() / 60;
    match (minutes / 1440, minutes / 60 % 24, minutes % 60) {
        (0, 0, 0) => "less than a minute".to_owned(),
        (0, 0, minutes) => format!("{minutes} min"),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (days, hours, _) => format!("{days} d {hours} h"),
    }
}

/// The outcome of a review in a sentence: what was decided, by whom, and why.
pub(super) fn outcome(review: &Review) -> String {
    let Some(resolution) = &review.resolution else { return "It is still pending.".to_owned() };
    let by: Vec<String> = resolution.authors(&review.decisions).iter().map(ToString::to_string).collect();
    let who = if by.is_empty() { String::new() } else { format!(" by {}", by.join(", ")) };
    let chosen = resolution.decision.as_ref().and_then(|decision| match &decision.verdict {
        shared::decision::Verdict::Choose { option, .. } => {
            let label = review.options.iter().find(|offered| offered.id == *option).map(|offered| &offered.label);
            Some(one_line(label.unwrap_or(option), MAX_TITLE))
        }
        _ => None,
    });
    let is_alternative = review.chosen_alternative().is_some();
    let what = if is_alternative { "an alternative was chosen" } else { resolution.outcome.in_words(review) };
    let (first, rest) = what.split_at(1);
    let chosen = chosen.map(|label| format!(": “{label}”")).unwrap_or_default();
    let reason = resolution.reason.as_ref().map(|why| format!(" ({})", one_line(why, MAX_REASON))).unwrap_or_default();
    format!("{}{rest}{who}{chosen}{reason}.", first.to_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_message_is_hidden() {
        assert_eq!(inert("a\u{202e}b\u{200b}\u{7}c\r\nd"), "a<U+202E>b<U+200B><U+0007>c\nd");
        assert_eq!(excerpt("abcdef", 4), ("abc…".to_owned(), false));
        assert_eq!(excerpt(" abcd\n", 4), ("abcd".to_owned(), true));
    }

    #[test]
    fn a_quotation_has_an_end_and_says_what_it_leaves_out() {
        let quotation = |text: &str, max| {
            let Quotation { text, left_out } = quoted(text, max);
            (text, left_out)
        };
        assert_eq!(quotation("a\n\n\n \nb", 100), ("> a\n>\n> b".to_owned(), None));
        assert_eq!(quotation("", 100), (String::new(), None));
        assert_eq!(quotation("abcd", 4), ("> abcd".to_owned(), None));
        assert_eq!(quotation("abcde", 4), ("> abc…".to_owned(), Some("… more in the console".to_owned())));
        assert_eq!(quotation("ab\ncd", 4), ("> ab".to_owned(), Some("… 1 more line in the console".to_owned())));
        let (address, spaces) = ("x".repeat(200), " ".repeat(200));
        assert_eq!(quotation(&address, 300).0, format!("> {address}"));
        let (text, _) = quotation(&format!("a{spaces}b"), 300);
        assert!(text.starts_with("> a\n>\n> ") && text.lines().count() == 3, "{text}");
    }

    #[test]
    fn time_is_told_in_two_units() {
        let told = [30, 90, 3_700, 90_000].map(|seconds| span(std::time::Duration::from_secs(seconds)));
        assert_eq!(told, ["less than a minute", "1 min", "1 h 1 min", "1 d 1 h"]);
    }
}
