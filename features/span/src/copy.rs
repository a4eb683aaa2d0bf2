//! `span-input` and `span-output`: copies of what an interface receives or sends leave by another
//! one. The frames themselves go on as if nothing had happened.

use std::sync::Arc;

use quiver_core::graph::arc::{DEVICE_INPUT, INTERFACE_OUTPUT};
use quiver_core::graph::node::{DROP, Never, Node, NodeSpec};
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Context, Frame, InterfaceId, Packet};

use crate::table::{Direction, Published};

quiver_core::reasons! {
    /// What becomes of copies.
    pub enum SpanEvent {
        /// Sent.
        Copied = info "copied", "copies given to the destinations of mirrors";
        /// Not sent.
        DestinationDown = info "destination-down",
            "copies not made: the destination of a mirror is down";
        /// Not sent.
        NoBuffer = info "no-buffer", "copies not made: no buffer; `show buffers`";
        /// A copy came round.
        AlreadyCopy = info "already-a-copy", "frames not copied: they are copies themselves, \
            whose way led to a mirrored interface";
    }
}

impl Direction {
    /// Its node's name.
    pub(crate) const fn node(self) -> &'static str {
        match self {
            Direction::Rx => "span-input",
            Direction::Tx => "span-output",
        }
    }

    /// Its arc's name.
    pub(crate) const fn arc(self) -> &'static str {
        match self {
            Direction::Rx => "device-input",
            Direction::Tx => "interface-output",
        }
    }

    fn interface_of(self, packet: &Packet) -> InterfaceId {
        match self {
            Direction::Rx => packet.rx,
            Direction::Tx => packet.tx,
        }
    }
}

struct Span {
    direction: Direction,
    mirrors: Arc<Published>,
}

impl Span {
    fn copy(&self, cx: &mut Context<'_>, packet: &Packet, destinations: &[InterfaceId]) {
        if packet.has(PacketFlags::MIRRORED) {
            return cx.count(SpanEvent::AlreadyCopy, 1);
        }
        for id in destinations {
            // A destination that is gone is taken out of the list when it goes.
            let Some(row) = cx.interface(*id).filter(|row| row.up) else {
                cx.count(SpanEvent::DestinationDown, 1);
                continue;
            };
            let Some(mut copy) = packet.duplicate(cx.buffers) else {
                cx.count(SpanEvent::NoBuffer, 1);
                continue;
            };
            copy.set(PacketFlags::MIRRORED);
            copy.tx = *id;
            copy.arc_restart();
            cx.emit(copy, row.output);
            cx.count(SpanEvent::Copied, 1);
        }
    }
}

impl Node for Span {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        let mirrors = self.mirrors.read(cx.pass);
        let direction = self.direction;
        for packet in frame.packets() {
            let destinations = mirrors.destinations(direction.interface_of(packet), direction);
            self.copy(cx, packet, destinations);
        }
        let cx = &*cx;
        frame.route(|packet| {
            let id = direction.interface_of(packet);
            let row = cx.interface(id);
            let next = match direction {
                Direction::Rx => {
                    cx.next_in_arc(DEVICE_INPUT, id, packet, row.map_or(DROP, |row| row.input))
                }
                Direction::Tx => {
                    cx.next_in_arc(INTERFACE_OUTPUT, id, packet, row.map_or(DROP, |row| row.tx))
                }
            };
            Ok::<_, Never>(next)
        });
    }
}

pub(crate) fn spec(direction: Direction, mirrors: &Arc<Published>) -> NodeSpec {
    let mirrors = mirrors.clone();
    let help = match direction {
        Direction::Rx => "Copies what an interface receives to the destinations of its mirror",
        Direction::Tx => "Copies what an interface sends to the destinations of its mirror",
    };
    NodeSpec::new(direction.node(), help, move |_| {
        Box::new(Span { direction, mirrors: mirrors.clone() })
    })
    .takes_offloads()
    .reasons::<SpanEvent>()
    .describe(move |record, names| {
        let next = names.node(record.next);
        match direction {
            Direction::Rx => {
                format!("received on {}: mirrored, goes on to {next}", names.interface(record.rx))
            }
            Direction::Tx => {
                format!("sent on {}: mirrored, goes on to {next}", names.interface(record.tx))
            }
        }
    })
}
