//! `policer-input` and `policer-output`: what an interface receives or sends is metered, and goes
//! on, is marked or dies by its colour.

use std::sync::Arc;

use quiver_core::graph::arc::{DEVICE_INPUT, INTERFACE_OUTPUT};
use quiver_core::graph::node::{DROP, Node, NodeSpec};
use quiver_core::{Context, Frame, InterfaceId, NodeId, Packet};
use quiver_policing::meter::Colour;
use quiver_policing::{Action, Held, Policers, dscp};

use crate::tables::{Attached, Direction};

quiver_core::reasons! {
    /// Why policers drop packets.
    pub enum PolicerDrop {
        /// Too much.
        Policed = "policed", "more than the policer's rate lets pass (`show policer`)";
        /// Gone meanwhile.
        Gone = "interface-removed", "the interface was deleted while the packet was under way";
    }
}

impl Direction {
    /// Its node's name.
    pub(crate) const fn node(self) -> &'static str {
        match self {
            Direction::Input => "policer-input",
            Direction::Output => "policer-output",
        }
    }

    /// Its arc's name.
    pub(crate) const fn arc(self) -> &'static str {
        match self {
            Direction::Input => "device-input",
            Direction::Output => "interface-output",
        }
    }

    #[inline(always)]
    pub(crate) fn interface_of(self, packet: &Packet) -> InterfaceId {
        match self {
            Direction::Input => packet.rx,
            Direction::Output => packet.tx,
        }
    }

    #[inline(always)]
    fn behind(self, cx: &Context<'_>, id: InterfaceId, packet: &mut Packet) -> NodeId {
        let row = cx.interface(id);
        match self {
            Direction::Input => {
                cx.next_in_arc(DEVICE_INPUT, id, packet, row.map_or(DROP, |row| row.input))
            }
            Direction::Output => {
                cx.next_in_arc(INTERFACE_OUTPUT, id, packet, row.map_or(DROP, |row| row.tx))
            }
        }
    }
}

struct Police {
    direction: Direction,
    policers: Arc<Policers>,
    attached: Arc<Attached>,
}

/// The policer of an interface, while packets of that one come.
struct Current<'p> {
    id: InterfaceId,
    held: Option<Held<'p>>,
    /// Do the interface's packets have no link-layer header?
    is_bare: bool,
}

impl Police {
    fn current<'p>(&self, cx: &Context<'p>, id: InterfaceId) -> Current<'p> {
        let policer = self.policers.get(self.attached.of(id, self.direction), cx.pass);
        let held = policer.map(|policer| Held::new(policer, cx.now_ns));
        Current { id, held, is_bare: cx.interface(id).is_some_and(|row| row.mac == [0; 6]) }
    }
}

impl Current<'_> {
    #[inline(always)]
    fn police(&mut self, packet: &mut Packet) -> Result<(), PolicerDrop> {
        // An interface whose policer was just taken away.
        let Some(held) = &mut self.held else { return Ok(()) };
        let before = match held.is_colour_aware() {
            true => dscp::colour(packet, self.is_bare),
            false => Colour::Green,
        };
        match held.police(packet.length() as u64, before) {
            Action::Drop => return Err(PolicerDrop::Policed),
            Action::Transmit => {}
            Action::Mark(code_point) => dscp::mark(packet, self.is_bare, code_point),
        }
        Ok(())
    }
}

impl Node for Police {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        let cx = &*cx;
        let mut current: Option<Current<'_>> = None;
        frame.route(|packet| {
            let id = self.direction.interface_of(packet);
            if current.as_ref().is_none_or(|current| current.id != id) {
                // The meter of the one before is given back first: it may be the same.
                current = None;
                current = Some(self.current(cx, id));
            }
            if let Some(current) = &mut current {
                current.police(packet)?;
            }
            Ok::<_, PolicerDrop>(self.direction.behind(cx, id, packet))
        });
    }
}

/// The declaration.
pub(crate) fn spec(direction: Direction, attached: &Arc<Attached>) -> NodeSpec {
    let attached = attached.clone();
    let help = match direction {
        Direction::Input => "Meters what interfaces receive by their policers",
        Direction::Output => "Meters what interfaces send by their policers",
    };
    NodeSpec::new(direction.node(), help, move |wiring| {
        Box::new(Police { direction, policers: wiring.shared(), attached: attached.clone() })
    })
    .reasons::<PolicerDrop>()
    .describe(move |record, names| {
        let (bytes, next) = (record.packet_bytes, names.node(record.next));
        let on = match direction {
            Direction::Input => record.rx,
            Direction::Output => record.tx,
        };
        format!("{bytes} bytes on {}, to {next}", names.interface(on))
    })
}
