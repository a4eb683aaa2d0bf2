//! `acl-plugin-in-nonip-l2` and `acl-plugin-out-nonip-l2`: of frames that are neither IPv4 nor IPv6
//! only those pass whose EtherType is in the interface's white list.

use std::sync::Arc;

use quiver_core::graph::arc::{DEVICE_INPUT, INTERFACE_OUTPUT};
use quiver_core::graph::counters::INTERFACES_MAX;
use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::stage::{Stage, StageContext};
use quiver_core::memory::epoch::{Epochs, Pass, PublishedSlots};
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_wire::Header;
use quiver_wire::ethernet::{EtherType, EthernetHeader};
use quiver_wire::vlan::Tags;

use crate::tables::Direction;

/// In a white list: frames with a length in the place of the EtherType (IEEE 802.3 §3.2.6), whose
/// content LLC says.
pub(crate) const LLC: u16 = 0;

quiver_core::reasons! {
    /// Why frames are dropped.
    pub enum EthertypeDrop {
        /// Not in the list.
        NotListed = "acl-ethertype", "the interface's white list does not have the frame's \
            EtherType (`show acl-plugin ethertype-whitelist`)";
        /// Gone meanwhile.
        Gone = "interface-removed", "the interface was deleted while the packet was under way";
    }
}

impl Direction {
    /// The name of the node.
    pub(crate) const fn ethertype_node(self) -> &'static str {
        match self {
            Direction::Input => "acl-plugin-in-nonip-l2",
            Direction::Output => "acl-plugin-out-nonip-l2",
        }
    }

    /// The name of its arc.
    pub(crate) const fn frame_arc(self) -> &'static str {
        match self {
            Direction::Input => "device-input",
            Direction::Output => "interface-output",
        }
    }

    const fn of(is_output: bool) -> Direction {
        if is_output { Direction::Output } else { Direction::Input }
    }
}

/// What workers read: the white list of each interface and direction, in ascending order.
pub(crate) struct EthertypeTables([PublishedSlots<Box<[u16]>>; 2]);

impl EthertypeTables {
    pub fn new(epochs: &Arc<Epochs>) -> EthertypeTables {
        EthertypeTables([(); 2].map(|()| PublishedSlots::new(epochs, INTERFACES_MAX)))
    }

    /// Let an interface have this list, or none.
    pub fn publish(&self, on: InterfaceId, direction: Direction, list: Option<Box<[u16]>>) {
        self.0[direction as usize].publish(on.index(), list);
    }

    /// Does a frame with this type pass?
    fn passes(
        &self,
        on: InterfaceId,
        direction: Direction,
        kind: EtherType,
        pass: Pass<'_>,
    ) -> bool {
        let list = self.0[direction as usize].read(on.index(), pass);
        let wanted = if kind.is_length() { LLC } else { kind.0 };
        list.is_none_or(|list| list.binary_search(&wanted).is_ok())
    }
}

/// The type of a frame behind up to two tags; of one that is cut off, that of the tag.
#[inline(always)]
fn type_of(frame: &[u8]) -> EtherType {
    let Some((header, behind)) = EthernetHeader::split(frame) else { return EtherType(LLC) };
    let kind = header.ether_type();
    Tags::walk(kind, behind).map_or(kind, |tags| tags.ether_type)
}

/// The node of a direction.
pub(crate) struct Ethertypes<const OUTPUT: bool> {
    tables: Arc<EthertypeTables>,
}

impl<const OUTPUT: bool> Stage for Ethertypes<OUTPUT> {
    const NAME: &'static str = Direction::of(OUTPUT).ethertype_node();
    type Reason = EthertypeDrop;
    type InterfaceState = ();

    fn interface_state(&self, _: &Context<'_>, _: InterfaceId) {}

    #[inline(always)]
    fn decide(
        &self,
        context: StageContext<'_>,
        (): (),
        packet: &mut Packet,
    ) -> Result<NodeId, EthertypeDrop> {
        let direction = Direction::of(OUTPUT);
        let id = if OUTPUT { packet.tx } else { packet.rx };
        let kind = type_of(packet.bytes());
        let is_ip = (kind == EtherType::IPV4) | (kind == EtherType::IPV6);
        if !is_ip && !self.tables.passes(id, direction, kind, context.pass()) {
            return Err(EthertypeDrop::NotListed);
        }
        let row = context.interface(id).ok_or(EthertypeDrop::Gone)?;
        Ok(match direction {
            Direction::Input => context.next_in_arc(DEVICE_INPUT, id, packet, row.input),
            Direction::Output => context.next_in_arc(INTERFACE_OUTPUT, id, packet, row.tx),
        })
    }
}

/// The declaration.
pub(crate) fn spec<const OUTPUT: bool>(tables: &Arc<EthertypeTables>) -> NodeSpec {
    let tables = tables.clone();
    let help = match OUTPUT {
        false => "Lets received frames pass whose EtherType a white list has",
        true => "Lets frames leave whose EtherType a white list has",
    };
    NodeSpec::stage(help, move |_| Ethertypes::<OUTPUT> { tables: tables.clone() })
        .takes_offloads()
        .describe(|record, names| format!("to {}", names.node(record.next)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_type_is_that_behind_two_tags() {
        let frame = |rest: &[u8]| type_of(&[&[0u8; 12][..], rest].concat()).0;
        assert_eq!(frame(&[8, 6]), 0x0806);
        assert_eq!(frame(&[0x81, 0, 0, 5, 8, 6]), 0x0806);
        assert_eq!(frame(&[0x88, 0xa8, 0, 5, 0x81, 0, 0, 7, 0x88, 0x47]), 0x8847);
        assert_eq!(frame(&[0x81, 0, 0]), 0x8100, "the tag is cut off");
        assert_eq!(frame(&[8]), LLC, "no whole header");
    }

    proptest! {
        #[test]
        fn no_frame_panics(frame in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = type_of(&frame);
        }
    }
}
