//! Packets of IPv6 that get other addresses and ports and stay packets of IPv6, for
//! `features/nat66`. Their headers are read as [`read6`](crate::versions::read::read6) does.
//!
//! | module | what |
//! | --- | --- |
//! | [`flow`] | a packet's flow, as a key of five words |
//! | [`rewrite`] | one end of a packet becomes another |
//! | [`error`] | ICMPv6 errors with the packet inside |

pub mod error;
pub mod flow;
pub mod rewrite;
