//! A few bits by which packets of one flow are known again among those that wait.

use quiver_wire::IpProtocol;

/// Bytes of the header of IPv6 (RFC 8200 §3).
const IP6_HEADER_BYTES: usize = 40;
/// Bits of a fragment offset, and "more fragments" (RFC 791 §3.1).
const FRAGMENT_BITS: u16 = 0x3fff;

/// The tag of the flow of a packet that begins with a header of IP: packets of one flow have one
/// tag, those of others mostly another one. Fragments, and what has no ports, are one flow for each
/// pair of addresses.
pub(crate) fn flow_tag(ip: &[u8]) -> u32 {
    let words = match ip.first().map(|byte| byte >> 4) {
        Some(4) => of_ip4(ip),
        // The packet inside, behind a B4 (RFC 6333).
        Some(6) if ip.get(6) == Some(&IpProtocol::IPV4.0) => {
            ip.get(IP6_HEADER_BYTES..).and_then(of_ip4).map(|inner| (inner.0 ^ low(ip), inner.1))
        }
        Some(6) => of_ip6(ip),
        _ => None,
    };
    let (addresses, ports) = words.unwrap_or_default();
    let first = (addresses ^ u64::from(ports)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let second = (first ^ first >> 32 ^ u64::from(ports)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (second >> 32) as u32
}

/// The last bytes of the source of a packet of IPv6.
fn low(ip: &[u8]) -> u64 {
    word(ip, 16)
}

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|b| b.first_chunk()).map_or(0, |b| u64::from_ne_bytes(*b))
}

fn of_ip4(ip: &[u8]) -> Option<(u64, u32)> {
    let head = ip.first_chunk::<20>()?;
    let is_fragment = u16::from_be_bytes([head[6], head[7]]) & FRAGMENT_BITS != 0;
    let at = usize::from(head[0] & 15) * 4;
    let ports = if is_fragment { 0 } else { ports(IpProtocol(head[9]), ip, at) };
    Some((word(ip, 12), ports))
}

fn of_ip6(ip: &[u8]) -> Option<(u64, u32)> {
    let head = ip.first_chunk::<IP6_HEADER_BYTES>()?;
    let ports = ports(IpProtocol(head[6]), ip, IP6_HEADER_BYTES);
    let [a, b, c, d] = [8, 16, 24, 32].map(|at| word(head, at));
    Some((a.rotate_left(7) ^ b.rotate_left(19) ^ c.rotate_left(31) ^ d, ports))
}

/// Both ports, or the identifier of an ICMP query.
fn ports(protocol: IpProtocol, ip: &[u8], at: usize) -> u32 {
    let at = match protocol {
        IpProtocol::TCP | IpProtocol::UDP => at,
        IpProtocol::ICMP | IpProtocol::ICMP6 => at + 4,
        _ => return u32::from(protocol.0),
    };
    let read = ip.get(at..at + 4).and_then(|b| b.first_chunk()).map(|b| u32::from_ne_bytes(*b));
    let ports = read.unwrap_or(0);
    // Behind the identifier of a query stands its sequence number.
    let of_query = u32::from_ne_bytes([0xff, 0xff, 0, 0]);
    match protocol {
        IpProtocol::TCP => ports,
        IpProtocol::UDP => ports.rotate_left(1) ^ 1,
        _ => ports & of_query,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet4(protocol: u8, ports: [u8; 4], ttl: u8, fragment: [u8; 2]) -> Vec<u8> {
        let mut ip = vec![0x45, 0, 0, 40, 0, 0, fragment[0], fragment[1], ttl, protocol, 7, 7];
        ip.extend([10, 0, 0, 1, 192, 0, 2, 1]);
        ip.extend(ports);
        ip.extend([9; 16]);
        ip
    }

    fn packet6(next: u8, upper: &[u8]) -> Vec<u8> {
        let mut ip = vec![0x60, 0, 0, 0, 0, upper.len() as u8, next, 64];
        ip.extend([0x20; 15]);
        ip.push(1);
        ip.extend([0x30; 16]);
        ip.extend(upper);
        ip
    }

    #[test]
    fn packets_of_one_flow_have_one_tag() {
        let first = packet4(17, [0, 80, 1, 2], 64, [0, 0]);
        assert_eq!(flow_tag(&first), flow_tag(&packet4(17, [0, 80, 1, 2], 3, [0x40, 0])));
        let query = |sequence| flow_tag(&packet6(58, &[128, 0, 1, 2, 0, 7, 0, sequence]));
        assert_eq!(query(1), query(2));
        let fragments = [[0x20, 0], [0, 8]].map(|f| flow_tag(&packet4(17, [0, 80, 1, 2], 64, f)));
        assert_eq!(fragments[0], fragments[1]);
    }

    #[test]
    fn ports_protocols_addresses_and_what_is_inside_make_other_tags() {
        let mut tags = vec![
            flow_tag(&packet4(17, [0, 80, 1, 2], 64, [0, 0])),
            flow_tag(&packet4(17, [0, 80, 1, 3], 64, [0, 0])),
            flow_tag(&packet4(6, [0, 80, 1, 2], 64, [0, 0])),
            flow_tag(&packet4(50, [0, 80, 1, 2], 64, [0, 0])),
            flow_tag(&packet4(1, [8, 0, 1, 2], 64, [0, 0])),
            flow_tag(&packet6(17, &[0, 80, 1, 2, 0, 8, 0, 0])),
            flow_tag(&packet6(17, &[0, 80, 1, 3, 0, 8, 0, 0])),
            flow_tag(&packet6(4, &packet4(17, [0, 80, 1, 2], 64, [0, 0]))),
            flow_tag(&packet6(4, &packet4(17, [0, 80, 1, 3], 64, [0, 0]))),
        ];
        tags.sort_unstable();
        tags.dedup();
        assert_eq!(tags.len(), 9);
    }

    /// A scan of hosts, of ports, and hosts that each have the same ports.
    #[test]
    fn tags_of_neighbouring_flows_lie_apart_in_their_low_bits() {
        let tag = |host: u16, port: u16| {
            let [high, low] = host.to_be_bytes();
            let mut ip =
                packet4(17, [0, 80, port.to_be_bytes()[0], port.to_be_bytes()[1]], 64, [0, 0]);
            (ip[18], ip[19]) = (high, low);
            flow_tag(&ip) % 4_096
        };
        let sets: [Vec<u32>; 3] = [
            (0..1_024).map(|host| tag(host, 80)).collect(),
            (0..1_024).map(|port| tag(7, port)).collect(),
            (0..1_024).map(|at| tag(at / 32, at % 32)).collect(),
        ];
        for mut tags in sets {
            tags.sort_unstable();
            tags.dedup();
            // By chance 906 of 4,096 classes are used.
            assert!(tags.len() > 800, "{}", tags.len());
        }
    }

    #[test]
    fn what_is_cut_has_a_tag_too() {
        for whole in [packet4(17, [1, 2, 3, 4], 64, [0, 0]), packet6(4, &[0x45; 20])] {
            for length in 0..whole.len() {
                flow_tag(&whole[..length]);
            }
        }
    }
}
