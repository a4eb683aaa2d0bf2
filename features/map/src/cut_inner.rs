//! `map-inner-fragment`: a packet of IPv4 in one of IPv6 is cut, so that the customer receives
//! fragments of IPv4 in whole packets of IPv6 (`map params fragment inner`).

use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::{Context, Frame, NodeId, Packet};
use quiver_forwarding::handover::TableIndex;
use quiver_forwarding::nodes;
use quiver_forwarding::requests::FragmentRequest;
use quiver_forwarding::segments::fragment;
use quiver_wire::ip4::{OPTIONS_LEN_MAX, Repr, options::Options};
use quiver_wire::{Header, Ip4Header, Ip6Header};

use crate::border::{CUT_INNER, describe};

/// Bytes of both headers at most.
const FRONT_BYTES_MAX: usize = Ip6Header::LEN + Ip4Header::LEN + OPTIONS_LEN_MAX;
/// An option that says nothing (RFC 791 §3.1).
const NO_OPERATION: u8 = 1;

quiver_core::reasons! {
    /// What becomes of packets that are to be cut.
    pub enum CutDrop {
        /// Not as the border relay leaves it.
        Truncated = "truncated", "a packet without whole headers of IPv6 and IPv4";
        /// Nothing fits.
        MtuTooSmall = "mtu-too-small", "the MTU leaves no room for a fragment";
        /// None left.
        NoBuffer = "no-buffer", "no buffer for a fragment; `show buffers`";
        /// Done.
        Fragmented = info "fragmented", "packets cut into fragments";
        /// Made.
        Made = info "fragments", "fragments made";
    }
}

struct Cut {
    lookup: NodeId,
    done: NodeId,
}

/// Options of fragments after the first: those with the copied bit; the others are nothing, so that
/// the header keeps its length (RFC 791 §3.1).
fn copied_options(options: &[u8]) -> [u8; OPTIONS_LEN_MAX] {
    let mut copied = [NO_OPERATION; OPTIONS_LEN_MAX];
    let mut at = 0;
    for option in Options::new(options).flatten().filter(|option| option.is_copied()) {
        let length = option.data.len() + 2;
        if let Some([kind, size, data @ ..]) = copied.get_mut(at..at + length) {
            (*kind, *size) = (option.kind, length as u8);
            data.copy_from_slice(option.data);
            at += length;
        }
    }
    copied
}

impl Cut {
    fn cut(&self, cx: &mut Context<'_>, packet: &mut Packet) -> Result<NodeId, CutDrop> {
        let FragmentRequest { mtu_bytes, table } = packet.handed_over();
        packet.hand_over(TableIndex(table));
        let (outer, inner) = Ip6Header::split(packet.bytes()).ok_or(CutDrop::Truncated)?;
        let mut outer = *outer;
        let header = *Ip4Header::overlay(inner).ok_or(CutDrop::Truncated)?;
        let (header_len, total) = (header.header_len(), usize::from(header.total_length()));
        let own = inner.get(Ip4Header::LEN..header_len).ok_or(CutDrop::Truncated)?;
        let mut first = [0; OPTIONS_LEN_MAX];
        let options = own.len();
        first.get_mut(..options).ok_or(CutDrop::Truncated)?.copy_from_slice(own);
        let later = copied_options(own);
        let front = Ip6Header::LEN + header_len;
        let step = usize::from(mtu_bytes).saturating_sub(front) & !7;
        let payload = total.checked_sub(header_len).ok_or(CutDrop::Truncated)?;
        if step == 0 {
            return Err(CutDrop::MtuTooSmall);
        }
        let mut at = 0;
        while at < payload {
            let length = step.min(payload - at);
            let options = if at == 0 { first.get(..options) } else { later.get(..options) };
            let repr = Repr {
                traffic_class: header.traffic_class,
                identification: header.identification(),
                dont_fragment: false,
                more_fragments: at + length < payload || header.more_fragments(),
                fragment_offset: header.fragment_offset() + (at / 8) as u16,
                ttl: header.ttl(),
                protocol: header.protocol(),
                source: header.source(),
                destination: header.destination(),
                options: options.unwrap_or_default(),
                payload_len: length,
            };
            outer.set_payload_length((header_len + length) as u16);
            self.emit(cx, packet, (&outer, &repr), front + at)?;
            at += length;
        }
        cx.count(CutDrop::Fragmented, 1);
        Ok(self.done)
    }

    /// Send one fragment, whose data begin at `from`.
    fn emit(
        &self,
        cx: &mut Context<'_>,
        packet: &Packet,
        (outer, inner): (&Ip6Header, &Repr<'_>),
        from: usize,
    ) -> Result<(), CutDrop> {
        let mut front = [0; FRONT_BYTES_MAX];
        outer.write(&mut front).map_err(|_| CutDrop::Truncated)?;
        let place = front.get_mut(Ip6Header::LEN..).unwrap_or_default();
        let length = inner.emit(place).map_err(|_| CutDrop::Truncated)?;
        let front = front.get(..Ip6Header::LEN + length).unwrap_or_default();
        let piece = fragment(cx, packet, front, from, inner.payload_len);
        cx.emit(piece.ok_or(CutDrop::NoBuffer)?, self.lookup);
        cx.count(CutDrop::Made, 1);
        Ok(())
    }
}

impl Node for Cut {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| self.cut(cx, packet));
    }
}

/// The declaration; a [`FragmentRequest`] is handed over.
pub(crate) fn spec() -> NodeSpec {
    let help = "Cuts packets of IPv4 that are too long for a packet of IPv6 to a customer";
    NodeSpec::new(CUT_INNER, help, |wiring| {
        Box::new(Cut {
            lookup: wiring.node(nodes::ip6::LOOKUP_IN_TABLE),
            done: wiring.node(nodes::IP_DONE),
        })
    })
    .slow_path()
    .reasons::<CutDrop>()
    .describe(|record, names| {
        format!("{}, to {}", describe(record.bytes()), names.node(record.next))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_fragments_have_the_options_with_the_copied_bit() {
        let options = [7, 7, 4, 0, 0, 0, 0, 148, 4, 0, 0, 0];
        let copied = copied_options(&options);
        assert_eq!(copied[..12], [148, 4, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1]);
    }
}
