//! What the command palette finds: the entries that have all of the typed words, and the review or run whose id or
//! address was pasted.

use std::collections::BTreeMap;

use shared::id::{ReviewId, RunId};

/// A group of entries, in the order in which they are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    /// The review or run whose id was pasted.
    Address,
    /// Actions on the open review.
    Review,
    /// Actions on the list.
    List,
    /// Pages of the console.
    Pages,
    /// Flows that can be launched.
    Flows,
    /// Actions that every page has.
    Everywhere,
    /// A search of the inbox.
    Search,
}

impl Section {
    /// The heading of the group.
    pub fn title(self) -> &'static str {
        match self {
            Self::Address => "Open",
            Self::Review => "This review",
            Self::List => "The list",
            Self::Pages => "Go to",
            Self::Flows => "Launch a run",
            Self::Everywhere => "Everywhere",
            Self::Search => "Search",
        }
    }
}

/// What an entry is found by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Words {
    section: Section,
    /// What the entry says.
    says: String,
    /// Further words.
    also: String,
}

impl Words {
    /// The words of an entry, without regard to case and accents.
    pub fn new(section: Section, says: &str, also: &str) -> Self {
        Self { section, says: folded(says), also: folded(also) }
    }

    /// How well the entry matches, best first; `None` if one of the words does not occur in it.
    fn rank(&self, typed: &[String]) -> Option<usize> {
        let begins = |text: &str, word: &str| words(text).any(|one| one.starts_with(word));
        typed.iter().try_fold(0, |rank, word| {
            let worse = match (self.says.contains(word), self.also.contains(word)) {
                (true, _) if begins(&self.says, word) => 0,
                (_, true) if begins(&self.also, word) => 1,
                (true, _) | (_, true) => 2,
                (false, false) => return None,
            };
            Some(rank + worse)
        })
    }
}

/// The indexes of the entries that have all typed words. The groups with the best matches come first, and in each, what
/// has words that begin with the typed ones. Without typed words, all entries in order of their groups.
pub fn found(entries: &[Words], typed: &str) -> Vec<usize> {
    let typed: Vec<String> = folded(typed).split_whitespace().map(ToOwned::to_owned).collect();
    let ranked = entries.iter().enumerate();
    let mut ranked: Vec<_> = ranked.filter_map(|(at, entry)| Some((entry.rank(&typed)?, entry.section, at))).collect();
    let mut best = BTreeMap::new();
    for (rank, section, _) in &ranked {
        best.entry(*section).and_modify(|best: &mut usize| *best = (*best).min(*rank)).or_insert(*rank);
    }
    ranked.sort_by_key(|(rank, section, at)| (best.get(section).copied(), *section, *rank, *at));
    ranked.into_iter().map(|(_, _, at)| at).collect()
}

/// The id of the selected entry: the one that a key moved to, as long as it is listed, otherwise the first match. Before
/// anything is typed, nothing is selected, so that Enter alone does nothing.
pub fn current<'a>(
    mut ids: impl Iterator<Item = &'a str> + Clone,
    is_typed: bool,
    moved_to: Option<&str>,
) -> Option<&'a str> {
    let moved_to = ids.clone().find(|id| moved_to == Some(*id));
    moved_to.or_else(|| ids.next().filter(|_| is_typed))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// Latin letters with marks, and what is typed for them.
const LETTERS: [(&str, &str); 20] = [
    ("àáâãäåāăą", "a"),
    ("æ", "ae"),
    ("çćĉċč", "c"),
    ("ďđð", "d"),
    ("èéêëēĕėęě", "e"),
    ("ĝğġģ", "g"),
    ("ìíîïĩīĭįı", "i"),
    ("ķ", "k"),
    ("ĺļľł", "l"),
    ("ñńņň", "n"),
    ("òóôõöøōŏő", "o"),
    ("œ", "oe"),
    ("ŕŗř", "r"),
    ("śŝşšș", "s"),
    ("ß", "ss"),
    ("ţťț", "t"),
    ("ùúûüũūŭůűų", "u"),
    ("ŵ", "w"),
    ("ýÿŷ", "y"),
    ("źżž", "z"),
];

/// A text in lower case, and its Latin letters without marks.
fn folded(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for letter in text.chars().flat_map(char::to_lowercase) {
        match LETTERS.iter().find(|(marked, _)| !letter.is_ascii() && marked.contains(letter)) {
            Some((_, base)) => plain.push_str(base),
            // Marks that follow their letter.
            None if ('\u{300}'..='\u{36f}').contains(&letter) => {}
            None => plain.push(letter),
        }
    }
    plain
}

/// A review or a run that was named by its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Addressed {
    Review(ReviewId),
    Run(RunId),
}

/// What the typed text names: an id, which does not tell whether it is that of a review or of a run, or the address of
/// a page of the console.
pub fn addressed(typed: &str) -> Vec<Addressed> {
    let path = typed.trim().split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
    let (place, id) = path.rsplit_once('/').unwrap_or(("", path));
    let review = id.parse().ok().map(Addressed::Review).filter(|_| !place.ends_with("runs"));
    let run = id.parse().ok().map(Addressed::Run).filter(|_| !place.ends_with("reviews"));
    review.into_iter().chain(run).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(typed: &str) -> Vec<&'static str> {
        let entries = [
            (Section::Everywhere, "Log out", "account"),
            (Section::Review, "Reject", ""),
            (Section::Pages, "Runs", ""),
            (Section::Pages, "Remembered approvals", "grants you"),
            (Section::Flows, "Launch Café reopening", "cafe-reopening"),
            (Section::Review, "Approve with edits", ""),
        ];
        let words: Vec<Words> = entries.iter().map(|(section, says, also)| Words::new(*section, says, also)).collect();
        found(&words, typed).into_iter().map(|at| entries[at].1).collect()
    }

    #[test]
    fn without_words_everything_is_listed_by_group() {
        let all = ["Reject", "Approve with edits", "Runs", "Remembered approvals", "Launch Café reopening", "Log out"];
        assert_eq!(listed("  "), all);
    }

    #[test]
    fn every_word_must_occur_in_any_order_and_case_and_accents_do_not_matter() {
        assert_eq!(listed("EDITS app"), ["Approve with edits"]);
        assert_eq!(listed("edits reject"), [""; 0]);
        assert_eq!(listed("cafe"), listed("CAFÉ"));
        assert_eq!(listed("cafe\u{301} launch"), ["Launch Café reopening"]);
        assert_eq!(listed("grants"), ["Remembered approvals"], "other words find it too");
    }

    #[test]
    fn what_begins_with_the_word_comes_before_what_contains_it() {
        assert_eq!(listed("app"), ["Approve with edits", "Remembered approvals"]);
        // Only one of them has a word that begins so, and its group comes first although it is listed later.
        assert_eq!(listed("out"), ["Log out"]);
        assert_eq!(listed("la")[0], "Launch Café reopening");
        assert_eq!(listed("re")[..3], ["Reject", "Remembered approvals", "Launch Café reopening"]);
        assert_eq!(listed("e")[..2], ["Approve with edits", "Reject"], "within a group, too");
    }

    #[test]
    fn the_first_match_is_selected_until_a_key_moves_to_another() {
        let selected = |ids: [&'static str; 2], moved_to| current(ids.into_iter(), true, moved_to);
        assert_eq!(current(["inbox", "runs"].into_iter(), false, None), None);
        assert_eq!(current(["inbox", "runs"].into_iter(), false, Some("runs")), Some("runs"));
        assert_eq!(selected(["inbox", "search"], None), Some("inbox"));
        // A flow that is read later matches better.
        assert_eq!(selected(["flow-inbox", "inbox"], None), Some("flow-inbox"));
        assert_eq!(selected(["flow-inbox", "inbox"], Some("inbox")), Some("inbox"));
        assert_eq!(selected(["inbox", "search"], Some("flow-gone")), Some("inbox"));
    }

    #[test]
    fn an_id_opens_a_review_or_a_run_and_an_address_says_which() {
        let id = "01a203c6-7302-7001-9ea2-d474c4316ec3";
        let (review, run) = (Addressed::Review(id.parse().unwrap()), Addressed::Run(id.parse().unwrap()));
        assert_eq!(addressed(&format!(" {id}\n")), [review, run]);
        assert_eq!(addressed(&format!("https://desk.example/reviews/{id}?q=a")), [review]);
        assert_eq!(addressed(&format!("/runs/{id}/")), [run]);
        assert_eq!(addressed("refund 4711"), []);
    }
}
