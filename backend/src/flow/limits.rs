//! Limits of a flow's size. Everything that can grow is bounded, with a clear error.

/// The maximum size of a flow file, in bytes.
pub const MAX_FILE: usize = 1024 * 1024;
/// The maximum nesting of lists and objects.
pub const MAX_NESTING: usize = crate::limits::MAX_DEPTH;
/// The maximum number of values and keys in a file, including those repeated by aliases.
pub const MAX_VALUES: usize = 100_000;
/// The maximum total length of the paths of all values, in bytes. Long keys above many values are expensive.
pub const MAX_PATHS: usize = 32 * 1024 * 1024;
/// The maximum number of reported errors, and of warnings.
pub const MAX_MISTAKES: usize = 100;
/// The maximum number of nodes.
pub const MAX_NODES: usize = 500;
/// The maximum number of entries in one `next`.
pub const MAX_EDGES: usize = 20;
/// The maximum number of agents.
pub const MAX_AGENTS: usize = 200;
/// The maximum number of tools.
pub const MAX_TOOLS: usize = 200;
/// The maximum number of gates of one kind.
pub const MAX_GATES: usize = 200;
/// The maximum length of a template, in bytes.
pub const MAX_TEMPLATE: usize = 64 * 1024;
/// The maximum number of names, values and operators in one `{{ }}` or `{% %}` of a template.
pub const MAX_TAG_TOKENS: usize = 1000;
/// The maximum number of names, values and operators in a whole template.
pub const MAX_TOKENS: usize = 10_000;
/// The maximum length of a condition, in bytes.
pub const MAX_CONDITION: usize = 8 * 1024;
/// The maximum total length of all conditions, in bytes: parsing CEL is the slowest part of checking a flow.
pub const MAX_CONDITIONS: usize = 128 * 1024;
/// The maximum number of regular expressions in all JSON Schemas together.
pub const MAX_PATTERNS: usize = 200;
/// The maximum nesting of a condition's operators, calls and brackets.
pub const MAX_DEPTH: usize = 64;
/// The maximum number of nodes and edges that are drawn, since the layout of more takes too long.
pub const MAX_DRAWN: usize = 1500;
/// The maximum number of guardrails.
pub const MAX_GUARDRAILS: usize = 50;
