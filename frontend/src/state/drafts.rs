//! What somebody has typed for a review and not sent yet.

/// Under which name the browser keeps the drafts.
pub const STORAGE_KEY: &str = "countersign.drafts";
