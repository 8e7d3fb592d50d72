//! How large a flow may be. Everything that grows is bounded, with a clear error.

/// The largest flow file, in bytes.
pub const MAX_FILE: usize = 1024 * 1024;
/// The deepest nesting of lists and objects.
pub const MAX_NESTING: usize = crate::limits::MAX_DEPTH;
/// The most values and keys in a file, with aliases followed.
pub const MAX_VALUES: usize = 100_000;
/// The most nodes.
pub const MAX_NODES: usize = 500;
/// The most entries in one `next`.
pub const MAX_EDGES: usize = 20;
/// The most agents.
pub const MAX_AGENTS: usize = 200;
/// The most tools.
pub const MAX_TOOLS: usize = 200;
/// The longest template or condition, in bytes.
pub const MAX_TEXT: usize = 64 * 1024;
/// The most nodes and edges that are drawn; laying out more takes too long.
pub const MAX_DRAWN: usize = 1500;
