//! `BondEthernetN-tx`: which member sends each frame.

use std::sync::Arc;

use quiver_core::graph::node::{Reason, ReasonText};
use quiver_core::worker::device::TxQueue;
use quiver_core::{Context, Frame, NodeId};

use crate::hash;
use crate::mode::{Balance, Mode};
use crate::tables::{BOND_MEMBERS_MAX, Published};

quiver_core::reasons! {
    /// Why a bond does not send.
    pub enum BondTxDrop {
        /// Nobody to send by.
        NoMember = "no-member", "no member of the bond is up and active; `show bond details`";
        /// A copy is missing.
        NoBuffer = info "no-buffer", "copies not sent by further members of a broadcast bond: no \
            buffer; `show buffers`";
    }
}

/// The outputs of the members that may send now.
struct Members {
    outputs: [NodeId; BOND_MEMBERS_MAX],
    count: usize,
}

impl Members {
    /// The output that a hash chooses.
    #[inline(always)]
    fn by(&self, hash: u32) -> NodeId {
        self.outputs[hash::place(hash, self.count) % BOND_MEMBERS_MAX]
    }
}

/// A worker's transmit queue of a bond.
pub(crate) struct BondTx {
    table: Arc<Published>,
    /// Whose turn it is in round-robin mode.
    turn: usize,
}

impl BondTx {
    pub fn new(table: Arc<Published>, worker: usize) -> BondTx {
        BondTx { table, turn: worker }
    }

    /// The members that may send: the control thread's choice, without those that went down before
    /// it has heard of it.
    fn members(&self, cx: &Context<'_>) -> Option<(Mode, Balance, Members)> {
        let row = self.table.read(cx.pass).bond(cx.tx)?;
        let mut members = Members { outputs: [NodeId(0); BOND_MEMBERS_MAX], count: 0 };
        let up = row.active.iter().filter_map(|id| cx.interface(*id)).filter(|member| member.up);
        for (place, member) in members.outputs.iter_mut().zip(up) {
            *place = member.output;
            members.count += 1;
        }
        (members.count > 0).then_some((row.mode, row.balance, members))
    }
}

impl TxQueue for BondTx {
    fn transmit(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        let Some((mode, balance, members)) = self.members(cx) else {
            return frame.route(|_| Err(BondTxDrop::NoMember));
        };
        match mode {
            _ if members.count == 1 => frame.set_all_next(members.outputs[0]),
            Mode::ActiveBackup => frame.set_all_next(members.outputs[0]),
            Mode::RoundRobin => frame.route(|_| {
                self.turn = if self.turn + 1 < members.count { self.turn + 1 } else { 0 };
                Ok::<_, BondTxDrop>(members.outputs[self.turn % BOND_MEMBERS_MAX])
            }),
            Mode::Broadcast => copy(cx, frame, &members),
            Mode::Lacp | Mode::Xor => match balance {
                Balance::L2 => spread(frame, &members, hash::by_mac),
                Balance::L23 => spread(frame, &members, hash::by_addresses),
                Balance::L34 => spread(frame, &members, hash::by_flow),
            },
        }
    }

    fn takes_offloads(&self) -> bool {
        true
    }

    fn passes_on(&self) -> bool {
        true
    }

    fn reasons(&self) -> &'static [ReasonText] {
        BondTxDrop::ALL
    }
}

#[inline(always)]
fn spread(frame: &mut Frame, members: &Members, hash: impl Fn(&[u8]) -> u32) {
    frame.route_ahead(|packet| Ok::<_, BondTxDrop>(members.by(hash(packet.bytes()))));
}

/// The frame itself goes by the first way, a copy by each other one.
fn copy(cx: &mut Context<'_>, frame: &mut Frame, members: &Members) {
    let mut missing = 0;
    for packet in frame.packets() {
        for output in &members.outputs[1..members.count] {
            match packet.duplicate(cx.buffers) {
                Some(copy) => cx.emit(copy, *output),
                None => missing += 1,
            }
        }
    }
    if missing > 0 {
        cx.count(BondTxDrop::NoBuffer, missing);
    }
    frame.set_all_next(members.outputs[0]);
}
