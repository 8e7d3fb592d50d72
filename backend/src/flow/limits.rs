//! Limits of a flow's size. Everything that can grow is bounded, with a clear error.

/// The largest flow file, in bytes.
pub const MAX_FILE: usize = 1024 * 1024;
/// The deepest nesting of lists and objects.
pub const MAX_NESTING: usize = crate::limits::MAX_DEPTH;
/// The most values and keys in a file, with aliases followed.
pub const MAX_VALUES: usize = 100_000;
/// The most bytes in the paths of all values: long keys above many values.
pub const MAX_PATHS: usize = 32 * 1024 * 1024;
/// The most mistakes that are named, and the most warnings.
pub const MAX_MISTAKES: usize = 100;
/// The most nodes.
pub const MAX_NODES: usize = 500;
/// The most entries in one `next`.
pub const MAX_EDGES: usize = 20;
/// The most agents.
pub const MAX_AGENTS: usize = 200;
/// The most tools.
pub const MAX_TOOLS: usize = 200;
/// The most gates.
pub const MAX_GATES: usize = 200;
/// The longest template, in bytes.
pub const MAX_TEMPLATE: usize = 64 * 1024;
/// The most names, values and operators in one `{{ }}` or `{% %}` of a template.
pub const MAX_TAG_TOKENS: usize = 1000;
/// The same for a whole template.
pub const MAX_TOKENS: usize = 10_000;
/// The longest condition, in bytes.
pub const MAX_CONDITION: usize = 8 * 1024;
/// The most bytes in all conditions together: reading CEL is the slowest part of checking a flow.
pub const MAX_CONDITIONS: usize = 128 * 1024;
/// The most regular expressions in all JSON Schemas together.
pub const MAX_PATTERNS: usize = 200;
/// The deepest nesting of a condition's operators, calls and brackets.
pub const MAX_DEPTH: usize = 64;
/// The most nodes and edges that are drawn; laying out more takes too long.
pub const MAX_DRAWN: usize = 1500;
/// The most guardrails.
pub const MAX_GUARDRAILS: usize = 50;
