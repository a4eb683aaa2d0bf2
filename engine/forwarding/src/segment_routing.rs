//! SRv6 for features that configure it beside the operator: segment lists as paths of routes, and
//! local SIDs.

use std::net::{IpAddr, Ipv6Addr};

use quiver_core::{Engine, InterfaceId};
use quiver_tables::prefix::Ip6Prefix;

use crate::fib::{Family, Path};

/// How a segment list is put on packets (RFC 8986 §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HeadendMode {
    /// An outer IPv6 header with an SRH (H.Encaps).
    Encaps,
    /// The same, reduced (H.Encaps.Red).
    EncapsRed,
    /// An SRH in the IPv6 packet itself (H.Insert).
    Insert,
}

/// A segment list for packets of a family.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SegmentList {
    /// The family of the packets that it is put on.
    pub family: Family,
    /// The ID of the IPv6 table in which the first segment is looked up.
    pub table: u32,
    /// How.
    pub mode: HeadendMode,
    /// The segments, in the order of the path; at least one.
    pub segments: Vec<Ipv6Addr>,
}

/// What a local SID does (RFC 8986 §4).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SidBehavior {
    /// End.
    End,
    /// End.X, to this neighbour.
    EndX(IpAddr, InterfaceId),
    /// End.T, by the table of this ID.
    EndT(u32),
    /// End.DX2, out of this interface.
    Dx2(InterfaceId),
    /// End.DX4, to this neighbour.
    Dx4(IpAddr, InterfaceId),
    /// End.DX6, to this neighbour.
    Dx6(IpAddr, InterfaceId),
    /// End.DT4, by the table of this ID.
    Dt4(u32),
    /// End.DT6, by the table of this ID.
    Dt6(u32),
    /// End.DT46, by the tables of this ID.
    Dt46(u32),
    /// End.B6.Encaps, along these segments.
    B6Encaps(Vec<Ipv6Addr>),
}

/// Flavors of a local SID (RFC 8986 §4.16, RFC 9800 §4.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SidFlavors {
    /// Penultimate segment pop.
    pub psp: bool,
    /// Ultimate segment pop.
    pub usp: bool,
    /// Ultimate segment decapsulation.
    pub usd: bool,
    /// NEXT-C-SID: the lengths of the locator block and of the C-SID, bits. The SID's prefix is as
    /// long as both.
    pub next_csid: Option<(u8, u8)>,
}

/// A local SID.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LocalSid {
    /// What it does.
    pub behavior: SidBehavior,
    /// Its flavors.
    pub flavors: SidFlavors,
}

/// Calls into `quiver-srv6`, which puts them into the engine when it starts. An error is a sentence
/// for the operator, and changes nothing.
#[derive(Clone, Copy)]
pub struct SegmentRouting {
    /// A path of a route that puts a segment list on packets. The same list gives the same path;
    /// each call needs one release.
    pub hold_list: fn(&mut Engine, &SegmentList) -> Result<Path, String>,
    /// No route of the caller has the list's path any more.
    pub release_list: fn(&mut Engine, &SegmentList),
    /// Add a local SID to the IPv6 table of this ID.
    pub add_sid: fn(&mut Engine, u32, Ip6Prefix, &LocalSid) -> Result<(), String>,
    /// Delete a local SID.
    pub delete_sid: fn(&mut Engine, u32, Ip6Prefix) -> Result<(), String>,
}
