//! IPv4.

pub(crate) mod input;
pub(crate) mod lookup;
pub(crate) mod rewrite;
