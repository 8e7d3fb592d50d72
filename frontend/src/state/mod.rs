//! What the console knows, as pure folds of the server's messages, and what it makes of that. No Leptos, no browser:
//! tested natively.

pub mod drafts;
pub mod inbox;
pub mod reconnect;
pub mod runs;
pub mod words;
