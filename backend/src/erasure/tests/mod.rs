//! The guarantees of erasure, on both databases: nothing in them names the person any more, the audit log stays valid,
//! manipulation is still detected, and nobody else loses anything.

mod everything;
mod refused;
mod servers;
mod support;
