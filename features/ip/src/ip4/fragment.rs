//! `ip4-frag`: one packet becomes several that fit the MTU of their way out (RFC 791 §3.2).

use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::{Context, Frame, NodeId, Packet};
use quiver_forwarding::ip::IpTables;
use quiver_forwarding::mpls::LabelledRewrites;
use quiver_forwarding::nodes;
use quiver_forwarding::segments::fragment;
use quiver_offload::checksum::complete_checksum;
use quiver_wire::ip4::{OPTIONS_LEN_MAX, Repr, options::Options};
use quiver_wire::{Header, Ip4Header};

/// Bytes of the longest IPv4 header.
const HEADER_BYTES_MAX: usize = Ip4Header::LEN + OPTIONS_LEN_MAX;

quiver_core::reasons! {
    /// What becomes of packets that are to be fragmented.
    pub enum FragmentDrop {
        /// Not a whole packet.
        Truncated = "truncated", "the packet is shorter than its header says";
        /// Nothing fits.
        MtuTooSmall = "mtu-too-small", "the outgoing MTU leaves no room for a fragment";
        /// A large packet whose segments do not fit either.
        Offload = "offload", "a large packet to be cut into segments that are longer than the \
            outgoing MTU";
        /// None left.
        NoBuffer = "no-buffer", "no buffer for a fragment; `show buffers`";
        /// Done.
        Fragmented = info "fragmented", "packets cut into fragments";
        /// Made.
        Made = info "fragments", "fragments made";
    }
}

struct Fragment {
    tables: IpTables,
    rewrite: NodeId,
    /// Where fragments go that get labels.
    labelled: LabelledRewrites,
    done: NodeId,
}

impl Fragment {
    fn cut(&self, cx: &mut Context<'_>, packet: &mut Packet) -> Result<NodeId, FragmentDrop> {
        if !complete_checksum(packet) {
            return Err(FragmentDrop::Offload);
        }
        let mtu = usize::from(self.tables.adjacencies.of(packet).mtu_bytes);
        let header = *Ip4Header::overlay(packet.bytes()).ok_or(FragmentDrop::Truncated)?;
        let (header_len, total) = (header.header_len(), usize::from(header.total_length()));
        let options =
            packet.bytes().get(Ip4Header::LEN..header_len).ok_or(FragmentDrop::Truncated)?;
        if total > packet.length() || total < header_len {
            return Err(FragmentDrop::Truncated);
        }
        let mut first = [0; OPTIONS_LEN_MAX];
        let options = first.get_mut(..options.len()).map(|room| {
            room.copy_from_slice(options);
            &*room
        });
        let options = options.unwrap_or_default();
        let mut later = [0; OPTIONS_LEN_MAX];
        let later = copied_options(options, &mut later);
        let step = mtu.saturating_sub(header_len) & !7;
        if step == 0 {
            return Err(FragmentDrop::MtuTooSmall);
        }
        let payload = total - header_len;
        let mut at = 0;
        while at < payload {
            let length = step.min(payload - at);
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
                options: if at == 0 { options } else { later },
                payload_len: length,
            };
            self.emit(cx, packet, &repr, header_len + at)?;
            at += length;
        }
        cx.count(FragmentDrop::Fragmented, 1);
        Ok(self.done)
    }

    /// Send one fragment, whose payload begins at `offset` of `packet`.
    fn emit(
        &self,
        cx: &mut Context<'_>,
        packet: &Packet,
        repr: &Repr<'_>,
        offset: usize,
    ) -> Result<(), FragmentDrop> {
        let mut header = [0; HEADER_BYTES_MAX];
        let length = repr.emit(&mut header).map_err(|_| FragmentDrop::Truncated)?;
        let header = header.get(..length).unwrap_or_default();
        let fragment =
            fragment(cx, packet, header, offset, repr.payload_len).ok_or(FragmentDrop::NoBuffer)?;
        cx.count(FragmentDrop::Made, 1);
        let adjacency = self.tables.adjacencies.of(&fragment);
        let is_labelled = adjacency.is_labelled();
        let next = if is_labelled { self.labelled.of(adjacency) } else { self.rewrite };
        cx.emit(fragment, next);
        Ok(())
    }
}

/// The options of fragments after the first: those with the copied bit, the others as "no
/// operation", so that the header keeps its length.
fn copied_options<'a>(options: &[u8], out: &'a mut [u8; OPTIONS_LEN_MAX]) -> &'a [u8] {
    const NO_OPERATION: u8 = 1;
    let Some(out) = out.get_mut(..options.len()) else { return &[] };
    out.fill(NO_OPERATION);
    let mut at = 0;
    for option in Options::new(options).flatten().filter(|option| option.is_copied()) {
        let length = option.data.len() + 2;
        if let Some([kind, size, data @ ..]) = out.get_mut(at..at + length) {
            (*kind, *size) = (option.kind, length as u8);
            data.copy_from_slice(option.data);
            at += length;
        }
    }
    out
}

impl Node for Fragment {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| self.cut(cx, packet));
    }
}

/// The declaration.
pub(crate) fn spec(tables: &IpTables) -> NodeSpec {
    let tables = tables.clone();
    NodeSpec::new(nodes::ip4::FRAG, "Cuts IPv4 packets into fragments", move |wiring| {
        Box::new(Fragment {
            tables: tables.clone(),
            rewrite: wiring.node(nodes::ip4::REWRITE),
            labelled: LabelledRewrites::new(wiring),
            done: wiring.node(nodes::IP_DONE),
        })
    })
    .reasons::<FragmentDrop>()
    .describe(|record, names| {
        format!(
            "{}, to {}",
            quiver_forwarding::ip4::describe(record.bytes()),
            names.node(record.next)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_options_with_the_copied_bit_are_in_later_fragments() {
        let mut out = [0; OPTIONS_LEN_MAX];
        let options = [7, 7, 4, 0, 0, 0, 0, 148, 4, 0, 0, 0];
        assert_eq!(copied_options(&options, &mut out), [148, 4, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1]);
    }
}
