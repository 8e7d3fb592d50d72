//! Regular expressions whose work is counted, so that no pattern and no text take longer than the caller allows.
//!
//! A lazy automaton reads a text in a few steps per byte. Where it cannot (it would need too many states, or non-ASCII
//! text meets a Unicode word boundary), the states of the pattern are followed one by one. Both read no further than
//! necessary, and take their steps from the same [`Work`].

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

pub use work::{Work, WorkExhausted};

/// A compiled regular expression, in the syntax of the crate `regex`.
#[derive(Debug)]
pub struct Pattern {
    nfa: NFA,
    automaton: Automaton,
}

/// The state that searches of one pattern keep between texts. It belongs to one piece of work, so that the same work
/// always takes the same steps.
#[derive(Debug)]
pub struct Scratch {
    caches: automaton::Caches,
    threads: Option<Threads>,
}

/// The reason why a pattern was refused.
#[derive(Debug, PartialEq, Eq)]
pub enum BadPattern {
    /// The compiled pattern would be larger than allowed.
    TooLarge,
    /// The syntax is not valid. The last line of the message says what is wrong.
    Syntax(String),
}

impl Pattern {
    /// Compiles a pattern for [`Pattern::is_match`], of at most `most` bytes in memory.
    pub fn new(pattern: &str, most: usize) -> Result<Self, BadPattern> {
        Self::compile(pattern, most, false)
    }

    /// Compiles a pattern for [`Pattern::find_all`] too.
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
            // The reversed automaton shares fewer states, so it may be larger.
            let config = config.reverse(true).nfa_size_limit(Some(most.saturating_mul(4)));
            Some(Compiler::new().configure(config).build(pattern).map_err(bad)?)
        } else {
            None
        };
        let automaton = Automaton::new(nfa.clone(), backwards).map_err(BadPattern::Syntax)?;
        Ok(Self { nfa, automaton })
    }

    /// Returns the size in memory, in bytes.
    pub fn size(&self) -> usize {
        self.nfa.memory_usage()
    }

    /// Returns the number of states. At most all of them are visited for each byte of a text.
    pub fn states(&self) -> usize {
        self.nfa.states().len()
    }

    /// Creates the scratch state for searches.
    pub fn scratch(&self) -> Scratch {
        Scratch { caches: self.automaton.caches(), threads: None }
    }

    /// Whether a text contains a match.
    pub fn is_match(&self, scratch: &mut Scratch, text: &str, work: &mut Work) -> Result<bool, WorkExhausted> {
        match self.automaton.end(&mut scratch.caches, text, 0, true, work) {
            Ok(end) => Ok(end.is_some()),
            Err(Failed::WorkExhausted) => Err(WorkExhausted),
            Err(Failed::Unfit) => self.followed(scratch, text, 0, true, work).map(|found| found.is_some()),
        }
    }

    /// Returns the ranges of all matches in a text, from left to right. Needs [`Pattern::with_places`].
    pub fn find_all(
        &self,
        scratch: &mut Scratch,
        text: &str,
        work: &mut Work,
    ) -> Result<Vec<Range<usize>>, WorkExhausted> {
        let (mut all, mut from): (Vec<Range<usize>>, usize) = (Vec::new(), 0);
        while from <= text.len() {
            let found = match self.automaton.find(&mut scratch.caches, text, from, work) {
                Ok(found) => found,
                Err(Failed::WorkExhausted) => return Err(WorkExhausted),
                Err(Failed::Unfit) => self.followed(scratch, text, from, false, work)?,
            };
            let Some(found) = found else { break };
            from = found.end;
            let mut counts = true;
            if found.is_empty() {
                // An empty match does not count inside a character, or directly after another match.
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
    ) -> Result<Option<Range<usize>>, WorkExhausted> {
        let threads = scratch.threads.get_or_insert_with(|| Threads::new(&self.nfa));
        threads.find(&self.nfa, text.as_bytes(), from, is_first_enough, work)
    }
}
