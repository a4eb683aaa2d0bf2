//! What the tests of this crate stand on: routers, packets good and bad, and what is seen of them
//! from outside.

mod fate;
mod packets;
mod routers;
mod seen;

pub use fate::{assert_same_fate, outcome, table};
pub use packets::{Fault, SRH, Srh, ethernet, ip4, ip6, octets, udp};
pub use routers::{PACKETS, ROUNDS, WITH_SEGMENTS, assert_one_pass, mac, router, totals};
pub use seen::{Seen, alike, forms, in_any_order, seen, seen_of, without_identifications};
