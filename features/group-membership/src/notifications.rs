//! What the nodes tell the control thread, as it lies in an [`Event`].

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use quiver_core::worker::event::{EVENT_BYTES, Event};
use quiver_core::{Context, InterfaceId};

use crate::port::{Query, Version};

/// Sources of a query that are told; the control thread answers for the whole group when there are
/// more.
pub const SOURCES_PER_EVENT_MAX: usize = 4;
/// Bytes before the sources.
const HEAD_BYTES: usize = 32;
const _: () = assert!(HEAD_BYTES + 16 * (SOURCES_PER_EVENT_MAX + 1) <= EVENT_BYTES);

/// What a node tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notification {
    /// A router asks.
    Query {
        /// Who.
        from: IpAddr,
        /// What.
        query: Query,
        /// The S flag: routers keep their timers.
        suppress: bool,
    },
    /// A host reports a record, to a router: a part of its sources, in the order of the parts.
    Record {
        /// Who.
        from: IpAddr,
        /// The record's kind ([`quiver_wire::igmp::record`]), or one of [`OLD_REPORT_V1`] and so
        /// on.
        kind: u8,
        /// The group.
        group: IpAddr,
        /// Sources of this part.
        sources: Vec<IpAddr>,
        /// It is the first part.
        first: bool,
        /// It is the last part.
        last: bool,
    },
    /// Another host reports a group in an older version.
    Report {
        /// The group.
        group: IpAddr,
    },
}

fn octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

fn address(octets: [u8; 16]) -> IpAddr {
    IpAddr::V6(Ipv6Addr::from_octets(octets)).to_canonical()
}

/// A query without allocation, as a node knows it.
pub struct ReceivedQuery<'a> {
    /// Who asks.
    pub from: IpAddr,
    /// The version.
    pub version: Version,
    /// The group, unspecified for all.
    pub group: IpAddr,
    /// The longest time for an answer, milliseconds.
    pub response_ms: u32,
    /// 0: not said.
    pub robustness: u8,
    /// Seconds, 0: not said.
    pub interval_s: u32,
    /// The sources, 4 or 16 bytes each.
    pub sources: &'a [u8],
    /// The S flag.
    pub suppress: bool,
}

/// Kinds of records that stand for messages of older versions: a report of IGMP version 1,
pub const OLD_REPORT_V1: u8 = 101;
/// of IGMP version 2 or MLD version 1,
pub const OLD_REPORT_V2: u8 = 102;
/// and a leave of those.
pub const OLD_LEAVE: u8 = 103;
/// Sources of one record that are told; a router remembers no more of them.
pub const RECORD_SOURCES_MAX: usize = crate::group::SOURCES_MAX;
/// Bytes of a record's event before the sources.
const RECORD_HEAD_BYTES: usize = 35;
const FIRST: u8 = 1;
const LAST: u8 = 2;

/// Tell the control thread of a record; the sources have 4 or 16 bytes each.
pub fn send_record(
    cx: &mut Context<'_>,
    rx: InterfaceId,
    from: IpAddr,
    kind: u8,
    group: IpAddr,
    sources: &[u8],
) {
    let width = if group.is_ipv4() { 4 } else { 16 };
    let sources = &sources[..sources.len().min(RECORD_SOURCES_MAX * width)];
    let part_bytes = (EVENT_BYTES - RECORD_HEAD_BYTES) / width * width;
    let parts = sources.len().div_ceil(part_bytes).max(1);
    for part in 0..parts {
        let place = part * part_bytes;
        let told = &sources[place..sources.len().min(place + part_bytes)];
        let mut bytes = [0; EVENT_BYTES];
        bytes[..16].copy_from_slice(&octets(group));
        bytes[16..32].copy_from_slice(&octets(from));
        bytes[32] = kind;
        bytes[33] = if part == 0 { FIRST } else { 0 } | if part + 1 == parts { LAST } else { 0 };
        bytes[34] = (told.len() / width) as u8;
        bytes[RECORD_HEAD_BYTES..RECORD_HEAD_BYTES + told.len()].copy_from_slice(told);
        cx.notify(Event::new(cx.node, rx, cx.now_ns, 2, &bytes[..RECORD_HEAD_BYTES + told.len()]));
    }
}

fn read_record(bytes: &[u8], group: IpAddr, from: IpAddr) -> Option<Notification> {
    let [kind, place, count] = *bytes.get(32..)?.first_chunk::<3>()?;
    let rest = bytes.get(RECORD_HEAD_BYTES..)?;
    let sources: Vec<IpAddr> = if group.is_ipv4() {
        rest.as_chunks::<4>().0.iter().map(|octets| IpAddr::from(*octets)).collect()
    } else {
        rest.as_chunks::<16>().0.iter().map(|octets| IpAddr::from(*octets)).collect()
    };
    (sources.len() == usize::from(count)).then_some(Notification::Record {
        from,
        kind,
        group,
        sources,
        first: place & FIRST != 0,
        last: place & LAST != 0,
    })
}

/// Tell the control thread of a query.
pub fn send_query(cx: &mut Context<'_>, rx: InterfaceId, asked: &ReceivedQuery<'_>) {
    let mut bytes = [0; HEAD_BYTES + 16 * (SOURCES_PER_EVENT_MAX + 1)];
    bytes[..16].copy_from_slice(&octets(asked.group));
    bytes[16..20].copy_from_slice(&asked.response_ms.to_be_bytes());
    bytes[20..24].copy_from_slice(&asked.interval_s.to_be_bytes());
    bytes[24] = asked.robustness;
    bytes[25] = asked.version as u8;
    bytes[27] = u8::from(asked.suppress);
    let width = if asked.group.is_ipv4() { 4 } else { 16 };
    let count = asked.sources.len() / width;
    let mut length = HEAD_BYTES;
    // Too many to tell: the answer is for the whole group, which says more than was asked.
    if count <= SOURCES_PER_EVENT_MAX {
        bytes[26] = count as u8;
        for source in asked.sources.chunks_exact(width) {
            let source = match (<[u8; 4]>::try_from(source), <[u8; 16]>::try_from(source)) {
                (Ok(four), _) => IpAddr::V4(Ipv4Addr::from(four)),
                (_, Ok(six)) => IpAddr::V6(Ipv6Addr::from(six)),
                _ => continue,
            };
            bytes[length..length + 16].copy_from_slice(&octets(source));
            length += 16;
        }
    }
    bytes[length..length + 16].copy_from_slice(&octets(asked.from));
    cx.notify(Event::new(cx.node, rx, cx.now_ns, 0, &bytes[..length + 16]));
}

/// Tell the control thread of another host's report.
pub fn send_report(cx: &mut Context<'_>, rx: InterfaceId, group: IpAddr) {
    cx.notify(Event::new(cx.node, rx, cx.now_ns, 1, &octets(group)));
}

/// What an event of one of our nodes says.
pub fn read(event: &Event) -> Option<Notification> {
    let bytes = event.bytes();
    let at = |place: usize| {
        bytes.get(place..).and_then(|rest| rest.first_chunk::<16>()).map(|b| address(*b))
    };
    let word = |place: usize| {
        bytes
            .get(place..)
            .and_then(|rest| rest.first_chunk::<4>())
            .map(|word| u32::from_be_bytes(*word))
    };
    let group = at(0)?;
    if event.kind == 1 {
        return Some(Notification::Report { group });
    }
    if event.kind == 2 {
        return read_record(bytes, group, at(16)?);
    }
    let (response_ms, interval_s) = (word(16)?, word(20)?);
    let suppress = *bytes.get(27)? != 0;
    let [robustness, version, count] = *bytes.get(24..)?.first_chunk::<3>()?;
    let version = match version {
        0 => Version::One,
        1 => Version::Two,
        _ => Version::Three,
    };
    let sources: Vec<IpAddr> =
        (0..usize::from(count)).filter_map(|n| at(HEAD_BYTES + 16 * n)).collect();
    let from = at(HEAD_BYTES + 16 * usize::from(count))?;
    let group = Some(group).filter(|group| !group.is_unspecified());
    Some(Notification::Query {
        from,
        query: Query { version, group, sources, response_ms, robustness, interval_s },
        suppress,
    })
}
