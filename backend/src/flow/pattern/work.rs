//! The work of a search. A step is 8 bytes read by an automaton, a byte of a newly built state, or a state that is
//! followed one by one.

/// The number of bytes that an automaton reads per step.
const READ: u64 = 8;

/// The remaining work, in steps.
#[derive(Debug, Clone)]
pub struct Work(u64);

/// The work ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkExhausted;

impl Work {
    /// Creates a budget of so many steps.
    pub fn new(steps: u64) -> Self {
        Self(steps)
    }

    /// Returns the remaining steps.
    pub fn left(&self) -> u64 {
        self.0
    }

    /// Takes steps. If fewer are left, takes all and fails.
    pub fn take(&mut self, steps: u64) -> Result<(), WorkExhausted> {
        let rest = self.0.checked_sub(steps);
        self.0 = rest.unwrap_or(0);
        rest.map(|_| ()).ok_or(WorkExhausted)
    }

    /// Takes the steps for reading so many bytes.
    pub fn read(&mut self, bytes: usize) -> Result<(), WorkExhausted> {
        self.take(1 + bytes as u64 / READ)
    }
}
