//! What archiving promises, on both databases: nothing is lost or doubled, whatever ends when; the record holds; and what
//! somebody still needs stays.

mod crash;
mod held;
mod record;
mod support;
