//! The slow search: all states that the text may be in are followed at once, byte by byte, in order of preference. It
//! reads any text, and takes a step per state.

use std::ops::Range;

use regex_automata::nfa::thompson::{NFA, State};
use regex_automata::util::primitives::StateID;

use super::work::{Work, WorkExhausted};

/// The memory that is reused between searches.
#[derive(Debug)]
pub struct Threads {
    now: ActiveStates,
    next: ActiveStates,
    stack: Vec<StateID>,
}

/// States in order of preference, each with the position where its match would begin.
#[derive(Debug)]
struct ActiveStates {
    states: Vec<(StateID, usize)>,
    /// The round in which each state was last added.
    seen: Vec<u64>,
    round: u64,
}

impl ActiveStates {
    fn new(states: usize) -> Self {
        Self { states: Vec::new(), seen: vec![0; states], round: 1 }
    }

    fn clear(&mut self) {
        self.states.clear();
        self.round += 1;
    }

    /// Whether a state has not been added in this round yet. Marks it as added.
    fn is_new(&mut self, state: StateID) -> bool {
        std::mem::replace(&mut self.seen[state.as_usize()], self.round) != self.round
    }
}

impl Threads {
    pub fn new(nfa: &NFA) -> Self {
        let states = nfa.states().len();
        Self { now: ActiveStates::new(states), next: ActiveStates::new(states), stack: Vec::new() }
    }

    /// Returns the range of the first match at or after `from`, with any end if `is_first_enough`.
    pub fn find(
        &mut self,
        nfa: &NFA,
        text: &[u8],
        from: usize,
        is_first_enough: bool,
        work: &mut Work,
    ) -> Result<Option<Range<usize>>, WorkExhausted> {
        let Self { now, next, stack } = self;
        let mut found = None;
        now.clear();
        for at in from..=text.len() {
            if found.is_none() {
                let steps = follow(nfa, now, stack, (nfa.start_anchored(), at), text, at);
                work.take(1 + steps)?;
            } else if now.states.is_empty() {
                break;
            }
            next.clear();
            let mut steps = now.states.len() as u64;
            for (state, start) in now.states.drain(..) {
                let to = match nfa.state(state) {
                    State::Match { .. } => {
                        found = Some(start..at);
                        if is_first_enough {
                            return Ok(found);
                        }
                        // The states after it are less preferred.
                        break;
                    }
                    State::ByteRange { trans } => trans.matches(text, at).then_some(trans.next),
                    State::Sparse(of) => of.matches(text, at),
                    State::Dense(of) => of.matches(text, at),
                    _ => None,
                };
                if let Some(to) = to {
                    steps += follow(nfa, next, stack, (to, start), text, at + 1);
                }
            }
            work.take(steps)?;
            std::mem::swap(now, next);
        }
        Ok(found)
    }
}

/// Adds a state and all states that it leads to without reading a byte. Returns their number.
fn follow(
    nfa: &NFA,
    places: &mut ActiveStates,
    stack: &mut Vec<StateID>,
    (state, start): (StateID, usize),
    text: &[u8],
    at: usize,
) -> u64 {
    let mut steps = 0;
    stack.push(state);
    while let Some(state) = stack.pop() {
        steps += 1;
        if !places.is_new(state) {
            continue;
        }
        match nfa.state(state) {
            State::ByteRange { .. } | State::Sparse(_) | State::Dense(_) | State::Match { .. } => {
                places.states.push((state, start));
            }
            State::Look { look, next } => {
                if nfa.look_matcher().matches(*look, text, at) {
                    stack.push(*next);
                }
            }
            State::Union { alternates } => stack.extend(alternates.iter().rev()),
            State::BinaryUnion { alt1, alt2 } => stack.extend([*alt2, *alt1]),
            State::Capture { next, .. } => stack.push(*next),
            State::Fail => {}
        }
    }
    steps
}
