//! Reports as they are sent: whole IP packets with TTL or hop limit 1 and a router alert (RFC 3376
//! §4, RFC 3810 §5).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use quiver_wire::checksum::Sum;
use quiver_wire::ip6::address;
use quiver_wire::{Header, Ip6Header, IpProtocol, igmp, ip4, mld};

use crate::port::{Record, Say, Version};
use crate::querier::Question;

/// Internetwork control (RFC 3376 §4).
const TRAFFIC_CLASS: u8 = 0xc0;
/// Router alert (RFC 2113).
const ROUTER_ALERT4: [u8; 4] = [148, 4, 0, 0];
/// Hop-by-hop header with router alert for MLD (RFC 2711 §2.1), before ICMPv6.
const ROUTER_ALERT6: [u8; 8] = [58, 0, 5, 2, 0, 0, 1, 0];

/// A packet with where it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The group that it is sent to.
    pub to: IpAddr,
    /// From its IP header on.
    pub bytes: Vec<u8>,
}

/// The packets that say something to the routers of a link with this MTU; reports that are too long
/// are several. `from` is the interface's address, unspecified if it has none.
pub fn packets(say: &Say, from: IpAddr, mtu_bytes: usize) -> Vec<Packet> {
    match (say, from) {
        (Say::Records(records), IpAddr::V4(from)) => {
            let room = mtu_bytes.saturating_sub(24 + igmp::MESSAGE_LEN);
            let parts = parts(records, igmp::RECORD_LEN, 4, room);
            parts
                .iter()
                .filter_map(|(count, bytes)| {
                    packet4(
                        from,
                        igmp::ALL_REPORTS,
                        &igmp::Message::Records { count: *count, bytes },
                    )
                })
                .collect()
        }
        (Say::Records(records), IpAddr::V6(from)) => {
            let room = mtu_bytes.saturating_sub(Ip6Header::LEN + ROUTER_ALERT6.len() + 8);
            let parts = parts(records, mld::RECORD_LEN, 16, room);
            parts
                .iter()
                .filter_map(|(count, bytes)| {
                    packet6(from, mld::ALL_REPORTS, &mld::Message::Records { count: *count, bytes })
                })
                .collect()
        }
        (Say::Report(version, IpAddr::V4(group)), IpAddr::V4(from)) => {
            let version = if *version == Version::One { 1 } else { 2 };
            packet4(from, *group, &igmp::Message::Report { version, group: *group })
                .into_iter()
                .collect()
        }
        (Say::Report(_, IpAddr::V6(group)), IpAddr::V6(from)) => {
            packet6(from, *group, &mld::Message::Report { group: *group }).into_iter().collect()
        }
        (Say::Leave(IpAddr::V4(group)), IpAddr::V4(from)) => {
            packet4(from, igmp::ALL_ROUTERS, &igmp::Message::Leave { group: *group })
                .into_iter()
                .collect()
        }
        (Say::Leave(IpAddr::V6(group)), IpAddr::V6(from)) => {
            packet6(from, address::ALL_ROUTERS, &mld::Message::Done { group: *group })
                .into_iter()
                .collect()
        }
        _ => Vec::new(), // a port has one family
    }
}

/// The packet of a query (RFC 3376 §4.1, RFC 3810 §5.1; without what they add, RFC 2236 and RFC
/// 2710). `from` is the interface's address, in IPv6 its link-local one.
pub fn question(question: &Question, from: IpAddr) -> Option<Packet> {
    let mut sources = Vec::new();
    question.sources.iter().for_each(|source| put(&mut sources, *source));
    let more = (question.version == Version::Three).then_some(igmp::QueryMore {
        suppress: question.suppress,
        robustness: if question.robustness > 7 { 0 } else { question.robustness },
        interval_code: igmp::to_code8(question.interval_s),
        sources: &sources,
    });
    match from {
        IpAddr::V4(from) => {
            let group = match question.group {
                Some(IpAddr::V4(group)) => group,
                Some(IpAddr::V6(_)) => return None,
                None => Ipv4Addr::UNSPECIFIED,
            };
            let tenths = question.response_ms / 100;
            let response_code = match question.version {
                Version::One => 0,
                Version::Two => tenths.clamp(1, 255) as u8,
                Version::Three => igmp::to_code8(tenths),
            };
            let to = question.group.map_or(ip4::address::ALL_HOSTS, |_| group);
            packet4(from, to, &igmp::Message::Query { response_code, group, more })
        }
        IpAddr::V6(from) => {
            let group = match question.group {
                Some(IpAddr::V6(group)) => group,
                Some(IpAddr::V4(_)) => return None,
                None => Ipv6Addr::UNSPECIFIED,
            };
            let response_code = match question.version {
                Version::Three => mld::to_code16(question.response_ms),
                _ => question.response_ms.min(u16::MAX.into()) as u16,
            };
            let to = question.group.map_or(address::ALL_NODES, |_| group);
            packet6(from, to, &mld::Message::Query { response_code, group, more })
        }
    }
}

/// Records as bytes, in parts that fit; a record with more sources than fit is cut, for the others
/// are told by what follows.
fn parts(records: &[Record], head: usize, width: usize, room: usize) -> Vec<(u16, Vec<u8>)> {
    let mut out: Vec<(u16, Vec<u8>)> = Vec::new();
    let sources_max = room.saturating_sub(head) / width;
    for record in records {
        let mut chunks: Vec<&[IpAddr]> = record.sources.chunks(sources_max.max(1)).collect();
        if chunks.is_empty() {
            chunks.push(&[]);
        }
        for sources in chunks {
            let length = head + sources.len() * width;
            let fits = out.last().is_some_and(|(_, bytes)| bytes.len() + length <= room);
            if !fits {
                out.push((0, Vec::new()));
            }
            if let Some((count, bytes)) = out.last_mut() {
                *count += 1;
                bytes.extend([record.kind, 0]);
                bytes.extend((sources.len() as u16).to_be_bytes());
                put(bytes, record.group);
                sources.iter().for_each(|source| put(bytes, *source));
            }
        }
    }
    out
}

fn put(bytes: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(address) => bytes.extend(address.octets()),
        IpAddr::V6(address) => bytes.extend(address.octets()),
    }
}

fn packet4(from: Ipv4Addr, to: Ipv4Addr, message: &igmp::Message<'_>) -> Option<Packet> {
    let length = message.len();
    let repr = ip4::Repr {
        traffic_class: TRAFFIC_CLASS,
        ttl: 1,
        options: &ROUTER_ALERT4,
        ..ip4::Repr::new(from, to, IpProtocol::IGMP, length)
    };
    let mut bytes = vec![0; repr.header_len() + length];
    let at = repr.emit(&mut bytes).ok()?;
    message.emit(bytes.get_mut(at..)?).ok()?;
    Some(Packet { to: to.into(), bytes })
}

fn packet6(from: Ipv6Addr, to: Ipv6Addr, message: &mld::Message<'_>) -> Option<Packet> {
    let length = message.len();
    let start = Ip6Header::LEN + ROUTER_ALERT6.len();
    let mut bytes = vec![0; start + length];
    let payload = u16::try_from(ROUTER_ALERT6.len() + length).ok()?;
    Ip6Header::new(from, to, IpProtocol::HOP_BY_HOP, 1, payload).write(&mut bytes).ok()?;
    bytes.get_mut(Ip6Header::LEN..start)?.copy_from_slice(&ROUTER_ALERT6);
    let inside = bytes.get_mut(start..)?;
    message.emit(inside).ok()?;
    let sum = Sum::pseudo6(from, to, IpProtocol::ICMP6, length as u32).bytes(inside).checksum();
    inside.get_mut(2..4)?.copy_from_slice(&sum.to_be_bytes());
    Some(Packet { to: to.into(), bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(low: u16, sources: usize) -> Record {
        let group = Ipv6Addr::new(0xff0e, 0, 0, 0, 0, 0, 0, low).into();
        Record { kind: 4, group, sources: vec![Ipv6Addr::LOCALHOST.into(); sources] }
    }

    #[test]
    fn a_report_that_is_too_long_becomes_several() {
        let records: Vec<_> = (0..200).map(|low| record(low, 0)).collect();
        let from = IpAddr::V6("fe80::1".parse().unwrap());
        let sent = packets(&Say::Records(records), from, 1280);
        assert_eq!(sent.len(), 4);
        assert!(sent.iter().all(|packet| packet.bytes.len() <= 1280));
        let told: u32 = sent.iter().map(|packet| u32::from(packet.bytes[55])).sum();
        assert_eq!(told, 200);
    }

    #[test]
    fn a_record_with_too_many_sources_becomes_several() {
        let sent = packets(
            &Say::Records(vec![record(1, 100)]),
            IpAddr::V6("fe80::1".parse().unwrap()),
            1280,
        );
        let sources: u32 = sent.iter().map(|packet| u32::from(packet.bytes[56 + 3])).sum();
        assert_eq!((sent.len(), sources), (2, 100));
    }
}
