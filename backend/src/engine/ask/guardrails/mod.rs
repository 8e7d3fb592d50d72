//! Guardrails between approval and effect: they check what was approved, change or block it, and may ask programs first.

mod answered;
pub(super) mod apply;
mod approval;
pub(super) mod check;
