//! The guarantees of archiving, on both databases: nothing is lost or duplicated, whenever a process ends; the audit
//! log stays valid; and what is still needed stays in the database.

mod crash;
mod held;
mod record;
mod support;
