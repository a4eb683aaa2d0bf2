//! Headers as bytes: one file per protocol. No I/O, no allocation, no unsafe, no panic from a
//! packet.
//!
//! Each protocol has two ways in. The data plane overlays a fixed-size header on packet bytes
//! ([`Header::overlay`]): one length check, then every accessor is a load. Control and tests use
//! the plain form (`Repr`), whose `parse` and `emit` are inverse and check everything.
#![no_std]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

#[cfg(test)]
extern crate std;

#[macro_use]
mod malformations;

pub mod arp;
pub mod bfd;
pub mod checksum;
pub mod csid;
pub mod dhcp4;
pub mod dhcp6;
pub mod erspan;
pub mod ethernet;
pub mod flow;
pub mod geneve;
pub mod gre;
pub mod gtpu;
mod header;
pub mod icmp4;
pub mod icmp6;
pub mod igmp;
pub mod ip4;
pub mod ip6;
pub mod l2tpv3;
pub mod lacp;
pub mod lisp;
pub mod lldp;
pub mod mac;
pub mod mld;
pub mod mpls;
pub mod prefix;
mod protocol;
pub mod srh;
pub mod tcp;
pub mod udp;
pub mod upper;
pub mod vlan;
pub mod vrrp;
pub mod vxlan;

pub use arp::ArpHeader;
pub use ethernet::{EtherType, EthernetHeader};
pub use header::{Header, WireError};
pub use icmp4::Icmp4Header;
pub use icmp6::Icmp6Header;
pub use ip4::Ip4Header;
pub use ip6::Ip6Header;
pub use mac::MacAddress;
pub use mpls::MplsEntry;
pub use prefix::{Ip4InterfaceAddress, Ip4Prefix, Ip6InterfaceAddress, Ip6Prefix, IpPrefix};
pub use protocol::IpProtocol;
pub use srh::SrhHeader;
pub use tcp::TcpHeader;
pub use udp::UdpHeader;
pub use vlan::{VlanId, VlanTag};
/// The traits behind the overlays, so that callers need no dependency of their own.
pub use zerocopy::{FromBytes, IntoBytes};
