//! The components of pages.

pub mod arrival;
pub mod autosize;
pub mod dialog;
pub mod diff;
pub mod editor;
pub mod filters;
pub mod focus;
pub mod glyph;
pub mod graph;
pub mod held;
pub mod help;
pub mod inert;
pub mod markdown;
pub mod notice;
pub mod queue;
pub mod resize;
pub mod review;
pub mod schema_form;
pub mod scroll;
pub mod shell;
pub mod shortcuts;
pub mod states;
pub mod status;
pub mod theme;
pub mod time;
pub mod timeline;
