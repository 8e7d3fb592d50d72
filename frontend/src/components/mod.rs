//! The parts that pages are made of.

pub mod dialog;
pub mod editor;
pub mod glyph;
pub mod graph;
pub mod notice;
pub mod schema_form;
pub mod shell;
pub mod states;
pub mod theme;
pub mod time;
pub mod timeline;
