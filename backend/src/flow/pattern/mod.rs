//! Regular expressions whose work is counted, so that no pattern and no text take longer than whoever searches allows.
//!
//! An automaton that makes its states as it needs them reads a text in a few steps for each byte. Where it cannot (it would
//! need too many states, or a text that is not ASCII meets a Unicode word boundary), the states of the pattern are followed
//! one by one. Both read exactly as far as they must, and take what they do from the same [`Work`]. Imports nothing of the
//! server.

mod automaton;
#[cfg(test)]
mod tests;
mod threads;
mod work;

use std::error::Error as _;
use std::ops::Range;

use regex_automata::nfa::thompson::{BuildError, Compiler, Config, NFA, WhichCaptures};

use automaton::{Automaton, Failed};
use threads::Threads;

pub use work::{Spent, Work};

/// A compiled regular expression, in the syntax of the crate `regex`.
#[derive(Debug)]
pub struct Pattern {
    nfa: NFA,
    automaton: Automaton,
}

/// What searches of one pattern keep between two texts. It belongs to one piece of work, so that the same work always takes
/// the same steps.
#[derive(Debug)]
pub struct Scratch {
    caches: automaton::Caches,
    threads: Option<Threads>,
}

/// Why something is no pattern.
#[derive(Debug, PartialEq, Eq)]
pub enum BadPattern {
    /// It becomes larger than allowed when it is compiled.
    TooLarge,
    /// It cannot be read, for this reason; the last line says what is wrong.
    Syntax(String),
}

impl Pattern {
    /// Compiles a pattern of at most so many bytes in memory, to say whether texts match it.
    pub fn new(pattern: &str, most: usize) -> Result<Self, BadPattern> {
        Self::compile(pattern, most, false)
    }

    /// The same, to say where it stands in texts too.
    pub fn with_places(pattern: &str, most: usize) -> Result<Self, BadPattern> {
        Self::compile(pattern, most, true)
    }

    fn compile(pattern: &str, most: usize, has_places: bool) -> Result<Self, BadPattern> {
        let bad = |error: BuildError| match error.size_limit() {
            Some(_) => BadPattern::TooLarge,
            None => BadPattern::Syntax(error.source().map_or_else(|| error.to_string(), ToString::to_string)),
        };
        let config = Config::new().which_captures(WhichCaptures::None).nfa_size_limit(Some(most));
        let nfa = Compiler::new().configure(config.clone()).build(pattern).map_err(bad)?;
        let backwards = if has_places {
            // The same bytes backwards have less in common.
            let config = config.reverse(true).nfa_size_limit(Some(most.saturating_mul(4)));
            Some(Compiler::new().configure(config).build(pattern).map_err(bad)?)
        } else {
            None
        };
        let automaton = Automaton::new(nfa.clone(), backwards).map_err(BadPattern::Syntax)?;
        Ok(Self { nfa, automaton })
    }

    /// How many bytes it takes in memory.
    pub fn size(&self) -> usize {
        self.nfa.memory_usage()
    }

    /// Of how many states it is made: at most so many are looked at for each byte of a text.
    pub fn states(&self) -> usize {
        self.nfa.states().len()
    }

    /// What searches of it keep.
    pub fn scratch(&self) -> Scratch {
        Scratch { caches: self.automaton.caches(), threads: None }
    }

    /// Whether it stands in a text.
    pub fn is_match(&self, scratch: &mut Scratch, text: &str, work: &mut Work) -> Result<bool, Spent> {
        match self.automaton.end(&mut scratch.caches, text, 0, true, work) {
            Ok(end) => Ok(end.is_some()),
            Err(Failed::Spent) => Err(Spent),
            Err(Failed::Unfit) => self.followed(scratch, text, 0, true, work).map(|found| found.is_some()),
        }
    }

    /// Where it stands in a text, from left to right. Made for [`Pattern::with_places`].
    pub fn find_all(&self, scratch: &mut Scratch, text: &str, work: &mut Work) -> Result<Vec<Range<usize>>, Spent> {
        let (mut all, mut from): (Vec<Range<usize>>, usize) = (Vec::new(), 0);
        while from <= text.len() {
            let found = match self.automaton.find(&mut scratch.caches, text, from, work) {
                Ok(found) => found,
                Err(Failed::Spent) => return Err(Spent),
                Err(Failed::Unfit) => self.followed(scratch, text, from, false, work)?,
            };
            let Some(found) = found else { break };
            from = found.end;
            let mut counts = true;
            if found.is_empty() {
                // Nothing stands within a character, and nothing right behind something.
                counts = text.is_char_boundary(from) && all.last().is_none_or(|last| last.end < from);
                from += 1;
                while from < text.len() && !text.is_char_boundary(from) {
                    from += 1;
                }
            }
            if counts {
                all.push(found);
            }
        }
        Ok(all)
    }

    fn followed(
        &self,
        scratch: &mut Scratch,
        text: &str,
        from: usize,
        is_first_enough: bool,
        work: &mut Work,
    ) -> Result<Option<Range<usize>>, Spent> {
        let threads = scratch.threads.get_or_insert_with(|| Threads::new(&self.nfa));
        threads.find(&self.nfa, text.as_bytes(), from, is_first_enough, work)
    }
}
