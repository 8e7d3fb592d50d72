//! The pages, with one file for each.

pub mod audit;
pub mod decided;
pub mod flow;
pub mod flows;
pub mod inbox;
pub mod insights;
pub mod lazy;
pub mod login;
pub mod not_found;
pub mod palette;
pub mod people;
pub mod review;
pub mod run;
pub mod runs;
