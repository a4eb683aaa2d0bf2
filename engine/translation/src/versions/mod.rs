//! Translation between IPv6 and IPv4 (RFC 7915): headers, checksums, ICMP, and the addresses of one
//! version as addresses of the other (RFC 6052). Nothing here remembers anything: a translator with
//! state (RFC 6146) and one without (RFC 7757) say which addresses and ports a packet gets.
//!
//! | module | what |
//! | --- | --- |
//! | [`address`] | IPv4 addresses inside of IPv6 addresses |
//! | [`read`] | what the headers of a packet say |
//! | [`ends`] | addresses and ports, and what checksums get when they change |
//! | [`to4`], [`to6`] | a packet in place |
//! | [`fast`] | the same for TCP and UDP in packets with nothing unusual |
//! | [`icmp`] | types, codes, pointers, MTUs |
//! | [`error`] | ICMP errors with the packet inside |
//! | [`fragment`] | the node that cuts packets for IPv6 links |

pub mod address;
mod embedding;
pub mod ends;
pub mod error;
pub mod fast;
pub mod fragment;
pub mod icmp;
pub mod read;
pub mod to4;
pub mod to6;

use quiver_forwarding::IcmpErrorRequest;

/// Why a packet is not translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Headers run beyond the packet, or are wrong.
    Truncated,
    /// ICMP that has no counterpart (RFC 7915 §4.2, §5.2).
    NoCounterpart,
    /// A fragment of an ICMP message: its checksum covers what is not there (RFC 7915 §1.2).
    FragmentedIcmp,
    /// A fragment of UDP without checksum (RFC 7915 §4.5).
    NoChecksum,
    /// A source route that has not ended (RFC 7915 §4.1, §5.1); the sender gets this error.
    SourceRoute(IcmpErrorRequest),
    /// No room in front of the packet.
    NoHeadroom,
}

/// The longest packet that every IPv6 link takes, in bytes (RFC 8200 §5).
pub const IP6_MTU_MIN: usize = 1280;
/// Bytes by which the header of IPv6 is longer than that of IPv4.
pub const HEADER_DIFFERENCE: usize = 20;
