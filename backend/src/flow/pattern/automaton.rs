//! The fast search: a lazy deterministic automaton, whose states are built when they are first needed, and cached. It
//! gives up if it would need too many states.

use std::ops::Range;

use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson::NFA;
use regex_automata::{Anchored, Input, MatchKind};

use super::work::{Work, WorkExhausted};

/// The maximum size of the cached states, in bytes.
const MAX_CACHE: usize = 1024 * 1024;

/// The automaton of a pattern, forwards to find the end of a match, and backwards to find its beginning.
#[derive(Debug)]
pub struct Automaton {
    forwards: DFA,
    backwards: Option<DFA>,
}

/// The cached states.
#[derive(Debug)]
pub struct Caches {
    forwards: Cache,
    backwards: Option<Cache>,
    /// The size of cached states that has been charged for, in bytes.
    paid: usize,
}

/// The reason why the automaton found no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failed {
    /// The work ran out.
    WorkExhausted,
    /// The automaton cannot search this text.
    Unfit,
}

impl From<WorkExhausted> for Failed {
    fn from(WorkExhausted: WorkExhausted) -> Self {
        Self::WorkExhausted
    }
}

impl Automaton {
    /// Builds the automaton of a pattern. `backwards` is the reversed pattern, needed only to find where a match
    /// begins.
    pub fn new(forwards: NFA, backwards: Option<NFA>) -> Result<Self, String> {
        let config = DFA::config()
            .unicode_word_boundary(true)
            .cache_capacity(MAX_CACHE)
            .skip_cache_capacity_check(true)
            .minimum_cache_clear_count(Some(0));
        let build = |nfa: NFA, kind| {
            let built = DFA::builder().configure(config.clone().match_kind(kind)).build_from_nfa(nfa);
            built.map_err(|error| error.to_string())
        };
        Ok(Self {
            forwards: build(forwards, MatchKind::LeftmostFirst)?,
            backwards: backwards.map(|nfa| build(nfa, MatchKind::All)).transpose()?,
        })
    }

    pub fn caches(&self) -> Caches {
        let mut caches = Caches {
            forwards: self.forwards.create_cache(),
            backwards: self.backwards.as_ref().map(DFA::create_cache),
            paid: 0,
        };
        caches.paid = caches.kept();
        caches
    }

    /// Returns the range of the first match at or after `from`.
    pub fn find(
        &self,
        caches: &mut Caches,
        text: &str,
        from: usize,
        work: &mut Work,
    ) -> Result<Option<Range<usize>>, Failed> {
        let Some(end) = self.end(caches, text, from, false, work)? else { return Ok(None) };
        let start = self.start(caches, text, from..end, work)?;
        Ok(Some(start..end))
    }

    /// Returns the end of the first match at or after `from`, or any end of a match if `is_first_enough`.
    pub fn end(
        &self,
        caches: &mut Caches,
        text: &str,
        from: usize,
        is_first_enough: bool,
        work: &mut Work,
    ) -> Result<Option<usize>, Failed> {
        let mut at = from;
        let found = forwards(&self.forwards, &mut caches.forwards, text, &mut at, is_first_enough);
        caches.pay(at - from, work)?;
        found
    }

    fn start(&self, caches: &mut Caches, text: &str, within: Range<usize>, work: &mut Work) -> Result<usize, Failed> {
        let (Some(dfa), Some(cache)) = (&self.backwards, &mut caches.backwards) else { return Err(Failed::Unfit) };
        let mut at = within.end;
        let found = backwards(dfa, cache, text, within.clone(), &mut at);
        caches.pay(within.end - at, work)?;
        found
    }
}

impl Caches {
    fn kept(&self) -> usize {
        self.forwards.memory_usage() + self.backwards.as_ref().map_or(0, Cache::memory_usage)
    }

    /// Charges for the bytes that were read, and for newly cached states.
    fn pay(&mut self, read: usize, work: &mut Work) -> Result<(), WorkExhausted> {
        let kept = self.kept();
        let new = kept.saturating_sub(self.paid);
        self.paid = self.paid.max(kept);
        work.read(read)?;
        work.take(new as u64)
    }
}

/// Searches forwards for the end of a match. The automaton reports a match one byte after its end.
fn forwards(
    dfa: &DFA,
    cache: &mut Cache,
    text: &str,
    at: &mut usize,
    is_first_enough: bool,
) -> Result<Option<usize>, Failed> {
    let (bytes, mut found) = (text.as_bytes(), None);
    let start = dfa.start_state_forward(cache, &Input::new(text).range(*at..));
    let mut state = start.map_err(|_| Failed::Unfit)?;
    while let Some(byte) = bytes.get(*at) {
        state = dfa.next_state(cache, state, *byte).map_err(|_| Failed::Unfit)?;
        if state.is_tagged() {
            if state.is_match() {
                found = Some(*at);
                if is_first_enough {
                    return Ok(found);
                }
            } else if state.is_dead() {
                return Ok(found);
            } else if state.is_quit() {
                return Err(Failed::Unfit);
            }
        }
        *at += 1;
    }
    let last = dfa.next_eoi_state(cache, state).map_err(|_| Failed::Unfit)?;
    Ok(if last.is_match() { Some(bytes.len()) } else { found })
}

/// Searches backwards for the earliest beginning of a match that ends at the end of `within`.
fn backwards(dfa: &DFA, cache: &mut Cache, text: &str, within: Range<usize>, at: &mut usize) -> Result<usize, Failed> {
    let (bytes, mut found) = (text.as_bytes(), None);
    let start = dfa.start_state_reverse(cache, &Input::new(text).range(within.clone()).anchored(Anchored::Yes));
    let mut state = start.map_err(|_| Failed::Unfit)?;
    while *at > within.start {
        state = dfa.next_state(cache, state, bytes[*at - 1]).map_err(|_| Failed::Unfit)?;
        if state.is_tagged() {
            if state.is_match() {
                found = Some(*at);
            } else if state.is_dead() {
                return found.ok_or(Failed::Unfit);
            } else if state.is_quit() {
                return Err(Failed::Unfit);
            }
        }
        *at -= 1;
    }
    let last = match within.start.checked_sub(1) {
        Some(before) => dfa.next_state(cache, state, bytes[before]),
        None => dfa.next_eoi_state(cache, state),
    };
    let last = last.map_err(|_| Failed::Unfit)?;
    if last.is_quit() {
        return Err(Failed::Unfit);
    }
    if last.is_match() { Ok(within.start) } else { found.ok_or(Failed::Unfit) }
}
