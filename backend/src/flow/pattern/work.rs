//! What searching may take: a step is 8 bytes that an automaton reads, a byte of the states that it makes, or a state that
//! is followed by itself. Imports nothing.

/// How many bytes an automaton reads in one step.
const READ: u64 = 8;

/// What is left to be done.
#[derive(Debug, Clone)]
pub struct Work(u64);

/// More was to be done than was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spent;

impl Work {
    /// So many steps.
    pub fn new(steps: u64) -> Self {
        Self(steps)
    }

    /// The steps that are left.
    pub fn left(&self) -> u64 {
        self.0
    }

    /// Takes so many steps; with fewer left, none is left.
    pub fn take(&mut self, steps: u64) -> Result<(), Spent> {
        let rest = self.0.checked_sub(steps);
        self.0 = rest.unwrap_or(0);
        rest.map(|_| ()).ok_or(Spent)
    }

    /// Takes what reading so many bytes costs.
    pub fn read(&mut self, bytes: usize) -> Result<(), Spent> {
        self.take(1 + bytes as u64 / READ)
    }
}
