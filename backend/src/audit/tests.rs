//! What the seals promise, on both databases: nothing in the record changes unnoticed, and what changed is named.

mod forgery;
mod proof;
pub(crate) mod support;
mod tampering;
