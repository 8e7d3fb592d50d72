//! The guarantees of seals, on both databases: no change of the audit log goes unnoticed, and each is named.

mod forgery;
mod proof;
pub(crate) mod support;
mod tampering;
