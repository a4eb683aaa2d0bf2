//! `l2-patch` and `l2-xconnect`: every frame of one interface goes out of another, as it is.

use std::sync::Arc;

use quiver_core::node::{Node, NodeSpec};
use quiver_core::{Context, Frame, InterfaceId, NodeId, Packet};

use crate::state::{CrossConnects, Published};

/// A frame shorter than this has no Ethernet header.
const FRAME_BYTES_MIN: usize = 14;

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `test l2patch`: a feature at `device-input`, in front of everything.
    Patch,
    /// `set interface l2 xconnect`: takes the place of `ethernet-input`.
    Xconnect,
}

impl Kind {
    /// The node's name.
    pub fn node(self) -> &'static str {
        match self {
            Kind::Patch => "l2-patch",
            Kind::Xconnect => "l2-xconnect",
        }
    }
}

quiver_core::reasons! {
    /// Why a crossed frame dies.
    pub enum CrossDrop {
        /// Shorter than its header.
        Truncated = "truncated", "frame shorter than an Ethernet header";
        /// Taken down meanwhile.
        NotConnected = "not-connected", "the connection was taken down while the frame was under way";
    }
}

struct Cross {
    kind: Kind,
    ports: Arc<Published>,
}

impl Node for Cross {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        let ports = self.ports.read(cx.pass);
        let output = |interface: InterfaceId| -> Option<NodeId> {
            let to = ports.peer(self.kind, interface)?;
            Some(cx.interface(to)?.output)
        };
        if frame.is_same_rx()
            && let Some(first) = frame.packets().first()
        {
            let next = output(first.rx).ok_or(CrossDrop::NotConnected);
            let shortest = frame.packets().iter().map(Packet::segment_length).min();
            match next {
                Ok(next) if shortest >= Some(FRAME_BYTES_MIN) => frame.set_all_next(next),
                _ => frame.route(|packet| {
                    if packet.segment_length() < FRAME_BYTES_MIN { Err(CrossDrop::Truncated) } else { next }
                }),
            }
        } else {
            frame.route(|packet| {
                if packet.segment_length() < FRAME_BYTES_MIN {
                    return Err(CrossDrop::Truncated);
                }
                output(packet.rx).ok_or(CrossDrop::NotConnected)
            });
        }
    }
}

pub(crate) fn spec(crosses: &CrossConnects, kind: Kind) -> NodeSpec {
    let ports = crosses.published().clone();
    NodeSpec::new(kind.node(), "Sends every frame of one interface out of another", move |_| {
        Box::new(Cross { kind, ports: ports.clone() })
    })
    .reasons::<CrossDrop>()
    .describe(|record, names| {
        format!(
            "{} bytes from {}, to {}",
            record.packet_bytes,
            names.interface(record.rx),
            names.node(record.next)
        )
    })
}
