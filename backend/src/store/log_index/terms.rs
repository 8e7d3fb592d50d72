//! The terms of a block: the values by which entries are filtered, and their words.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};
use shared::id::Username;
use shared::log::{Event, ReviewAct};

use super::super::db::DatabaseKind;
use super::super::words::{WordSet, each_word_of};

/// The number of characters of a word that are indexed. Longer words are compared in the entries themselves.
const MAX_STEM: usize = 16;
/// The largest size of a block's words, in bytes; PostgreSQL accepts a megabyte.
const MAX_WORDS: usize = 256 * 1024;
/// The token of a block with more words than that. It matches every search for words.
pub(super) const ANY_WORD: &str = "¦any";

/// The kind, actor and act of an entry, or some of these; or who decided. There is a term for each combination by which
/// the audit log can be filtered, so that a block only matches if one entry has all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::store) struct Term(pub u64);

impl Term {
    /// The term for the given values. `None` if none is given.
    pub fn of(kind: Option<&str>, actor: Option<&str>, act: Option<ReviewAct>) -> Option<Self> {
        let parts = [kind, actor, act.map(ReviewAct::as_str)];
        if parts.iter().all(Option::is_none) {
            return None;
        }
        Some(Self::of_parts(parts))
    }

    fn of_parts(parts: [Option<&str>; 3]) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            match part {
                Some(part) => hash.update([&[1], part.as_bytes(), &[0]].concat()),
                None => hash.update([0]),
            }
        }
        let digest: [u8; 32] = hash.finalize().into();
        let mut name = [0; 8];
        name.copy_from_slice(&digest[..8]);
        Self(u64::from_be_bytes(name))
    }

    /// The term of entries with which this person decided or voted (see [`Event::deciders`]).
    pub fn decided_by(name: &Username) -> Self {
        Self::of_parts([Some("decided"), Some(name.as_str()), None])
    }

    /// The token in the full-text index. No word begins like it.
    pub fn token(self) -> String {
        format!("¦{:016x}", self.0)
    }
}

/// The part of a word that is indexed.
pub(super) fn stem(word: &str) -> &str {
    if word.len() <= MAX_STEM {
        return word;
    }
    word.char_indices().nth(MAX_STEM).map_or(word, |(end, _)| &word[..end])
}

/// The terms and words of a block.
#[derive(Debug, Default)]
pub(super) struct Terms {
    masks: BTreeMap<Term, u32>,
    words: WordSet,
    bytes: usize,
}

impl Terms {
    /// Adds an entry of a row; `row` is the row's place in the block.
    pub fn add(&mut self, row: u32, event: &Event) {
        let acts = event.possible_acts();
        let acts = ReviewAct::ALL.iter().copied().filter(|act| acts.has(*act)).map(Some);
        let mut add = |term| *self.masks.entry(term).or_default() |= 1 << row;
        for act in acts.chain([None]) {
            for kind in [Some(event.kind.as_str()), None] {
                for actor in [event.actor.as_deref(), None] {
                    Term::of(kind, actor, act).into_iter().for_each(&mut add);
                }
            }
        }
        event.deciders().iter().map(Term::decided_by).for_each(add);
        each_word_of(event, &mut |word| {
            let stem = stem(word);
            if self.bytes <= MAX_WORDS && self.words.add(stem) {
                self.bytes += stem.len();
            }
        });
    }

    /// The terms with their rows, as stored in the block.
    pub fn masks(&self) -> Vec<u8> {
        let each = self.masks.iter().map(|(term, mask)| [&term.0.to_be_bytes()[..], &mask.to_be_bytes()].concat());
        each.flatten().collect()
    }

    /// The tokens for the full-text index.
    pub fn tokens(&self) -> Vec<String> {
        let mut tokens: Vec<String> = self.masks.keys().map(|term| term.token()).collect();
        if self.bytes > MAX_WORDS {
            tokens.push(ANY_WORD.to_owned());
        } else {
            tokens.extend(self.words.sorted());
        }
        tokens
    }
}

/// Returns the rows of a block that have one of these terms, as a bit mask.
pub(super) fn rows_with(masks: &[u8], terms: &[Term]) -> u32 {
    let mut rows = 0;
    for entry in masks.chunks_exact(12) {
        let (name, mask) = entry.split_at(8);
        let number = |bytes: &[u8]| bytes.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        if terms.contains(&Term(number(name))) {
            rows |= u32::try_from(number(mask)).unwrap_or(u32::MAX);
        }
    }
    rows
}

/// Formats tokens for a text column; none contains a space or a quote.
pub(super) fn as_text(tokens: &[String], database: DatabaseKind) -> String {
    match database {
        DatabaseKind::Sqlite => tokens.join(" "),
        DatabaseKind::Postgres => tokens.iter().map(|token| format!("'{token}'")).collect::<Vec<_>>().join(" "),
    }
}
