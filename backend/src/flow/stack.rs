//! A stack that is large enough for deep recursion, whichever thread asks.
//!
//! The parsers and the CEL interpreter recurse. Their depth is bounded before or right after parsing, but what a level
//! takes differs by a factor of fifty between builds (0.4 KB optimised, 190 KB for nested lists of CEL without), and a
//! server's threads have 2 MiB.

/// The size of the stack. Measured without optimisation, the deepest shapes that the limits allow take 20 MiB. A thread
/// that has such a stack itself is never given another.
pub const SIZE: usize = 64 * 1024 * 1024;
/// What must be left of the current stack for it to be used.
const ENOUGH: usize = 48 * 1024 * 1024;

/// Does some work on a large stack. The memory is only reserved: the system gives what is touched, and takes it back.
pub fn on_large_stack<T>(work: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(ENOUGH, SIZE, work)
}
