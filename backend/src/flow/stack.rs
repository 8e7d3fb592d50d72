//! A stack that is large enough for deep recursion on any thread.
//!
//! The parsers and the CEL interpreter recurse. Their depth is limited before or right after parsing, but the stack per
//! level differs by a factor of fifty between builds (0.4 KB optimised, 190 KB for nested lists of CEL without
//! optimisation), and a server's threads have 2 MiB.

/// The size of the stack, in bytes. Measured without optimisation, the deepest inputs that the limits allow take 20
/// MiB. A thread whose own stack has this size never gets another.
pub const SIZE: usize = 64 * 1024 * 1024;
/// The minimum free space on the current stack, in bytes, for it to be used.
const ENOUGH: usize = 48 * 1024 * 1024;

/// Runs work on a large stack. The memory is only reserved: the system provides pages when they are touched. Work within
/// this work stays on its stack, so whoever evaluates much puts it all on one: reserving a stack takes longer than most
/// templates do.
pub fn on_large_stack<T>(work: impl FnOnce() -> T) -> T {
    #[cfg(test)]
    if stacker::remaining_stack().is_none_or(|left| left < ENOUGH) {
        RESERVED.set(RESERVED.get() + 1);
    }
    stacker::maybe_grow(ENOUGH, SIZE, work)
}

#[cfg(test)]
thread_local! {
    /// The number of stacks that were reserved on this thread.
    pub static RESERVED: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}
