//! What erasing promises, on both databases: nothing in them names the person any more, the record holds, whoever changes
//! it is found, and nobody else loses anything.

mod everything;
mod refused;
mod support;
