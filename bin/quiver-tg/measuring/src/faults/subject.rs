//! The frames that faults apply to: those with a stamp, or those of transactions.

use quiver_core::Packet;
use quiver_wire::{EtherType, Header, Ip4Header, Ip6Header, IpProtocol, ethernet, vlan};

use quiver_tg_traffic::frames::Random;
use quiver_tg_traffic::profile::stateful::Kind;
use quiver_tg_traffic::stamp::Stamp;
use quiver_tg_traffic::stamp::end_of;

/// Whose frames.
#[derive(Clone, Copy, Debug)]
pub enum Subject {
    /// Frames of streams: those with a whole stamp.
    Streams,
    /// Transactions': all packets of their transport.
    Transactions(Kind),
}

impl Subject {
    /// The identity of a frame, if it is one of these. Those of transactions all count, `number`
    /// after `number`, as of one stream.
    pub fn stamp_of(self, packet: &Packet, measurement: u8, number: u64) -> Option<Stamp> {
        match self {
            Subject::Streams => end_of(packet).and_then(|end| Stamp::decode(&end).ok()),
            Subject::Transactions(kind) => {
                transport_of(packet.bytes(), kind)?;
                Some(Stamp { measurement, stream: 0, sequence: number, sent_ns: 0 })
            }
        }
    }

    /// Flip a bit of a frame of transactions where the checksum of its transport detects it; false
    /// when it is none.
    pub fn flip(self, packet: &mut Packet, random: &mut Random) -> bool {
        let Subject::Transactions(kind) = self else { return false };
        let Some((from, to)) = transport_of(packet.bytes(), kind) else { return false };
        let bit = random.below(8 * (to - from) as u64) as usize;
        let byte = packet.bytes_mut().get_mut(from + bit / 8);
        byte.map(|byte| *byte ^= 1 << (bit % 8)).is_some()
    }
}

/// Where the segment of this transport lies in a frame, behind at most two tags.
fn transport_of(frame: &[u8], kind: Kind) -> Option<(usize, usize)> {
    let wanted = if kind == Kind::Tcp { IpProtocol::TCP } else { IpProtocol::UDP };
    let (header, mut packet) = ethernet::Repr::parse(frame).ok()?;
    let mut ether_type = header.ether_type;
    while ether_type.is_vlan() {
        let (tag, rest) = vlan::Repr::parse(packet).ok()?;
        (ether_type, packet) = (tag.ether_type, rest);
    }
    let at = frame.len() - packet.len();
    let (protocol, from, length) = match ether_type {
        EtherType::IPV4 => {
            let ip = Ip4Header::overlay(packet)?;
            (ip.protocol(), ip.header_len(), usize::from(ip.total_length()))
        }
        EtherType::IPV6 => {
            let ip = Ip6Header::overlay(packet)?;
            (ip.next_header(), Ip6Header::LEN, Ip6Header::LEN + usize::from(ip.payload_length()))
        }
        _ => return None,
    };
    let is_whole = protocol == wanted && from < length && length <= packet.len();
    is_whole.then_some((at + from, at + length))
}
