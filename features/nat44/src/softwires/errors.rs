//! ICMPv6 errors about packets to B4s: the senders of the packets inside are told in IPv4 (RFC 2473
//! §8), about the packet as they have sent it.

use std::sync::Arc;

use quiver_core::graph::node::Wiring;
use quiver_core::graph::stage::StageContext;
use quiver_core::{NodeId, Packet};
use quiver_encap::relay::{UnderlayError, to_sender};
use quiver_encap::softwire::{Quoted, has_good_checksum};
use quiver_forwarding::ip::{Ip4, IpTables};
use quiver_forwarding::{IcmpErrorRequest, nodes};

use crate::softwires::outside_form::restore;
use crate::softwires::reasons::DsliteDrop;
use crate::softwires::table::address_key;
use crate::softwires::{B4Number, is_softwire};
use crate::tables::Shared;

/// Every link of IPv6 takes so many bytes (RFC 8200 §5).
const IP6_MTU_MIN: u16 = 1_280;

/// What relays errors.
pub(crate) struct Relay {
    shared: Arc<Shared>,
    tables: Arc<IpTables>,
    error4: NodeId,
    done: NodeId,
}

impl Relay {
    pub fn new(shared: &Arc<Shared>, wiring: &Wiring<'_>) -> Relay {
        Relay {
            shared: shared.clone(),
            tables: wiring.shared(),
            error4: wiring.node(nodes::ip4::ICMP_ERROR),
            done: wiring.node(nodes::IP_DONE),
        }
    }

    /// Relay an error. `None`, and nothing changes, for what is no error about a packet of IPv4 in
    /// one of IPv6.
    #[cold]
    #[inline(never)]
    pub fn relay(
        &self,
        context: StageContext<'_>,
        packet: &mut Packet,
    ) -> Option<Result<NodeId, DsliteDrop>> {
        let quoted = Quoted::of(packet.bytes())?;
        Some(match self.checked(context, packet, &quoted) {
            Ok((b4, Some(request))) => self.send(context, packet, &quoted, (b4, request)),
            Ok((_, None)) => {
                context.count(DsliteDrop::Kept, 1);
                Ok(self.done)
            }
            Err(why) => Err(why),
        })
    }

    /// What the sender of the packet inside is told, if it is this router's packet to a B4.
    fn checked(
        &self,
        context: StageContext<'_>,
        packet: &Packet,
        quoted: &Quoted,
    ) -> Result<(B4Number, Option<IcmpErrorRequest>), DsliteDrop> {
        if !has_good_checksum(packet.bytes()).ok_or(DsliteDrop::Truncated)? {
            return Err(DsliteDrop::BadChecksum);
        }
        let inner = packet.bytes().get(quoted.at..).ok_or(DsliteDrop::Truncated)?;
        if quoted.source != self.shared.rules(context.pass()).aftr.address {
            return Err(DsliteDrop::NotOurs);
        }
        let readers = self.shared.softwires().ok_or(DsliteDrop::NotOurs)?;
        let found = readers.table.lookup(&address_key(quoted.destination));
        let found = found.filter(|found| found & 1 == 0).ok_or(DsliteDrop::NotOurs)?;
        if let UnderlayError::TooBig(mtu_bytes) = quoted.error
            && mtu_bytes < IP6_MTU_MIN
        {
            return Err(DsliteDrop::NotBelieved);
        }
        let request = quoted.error.for_sender::<Ip4>(inner, quoted.around, false);
        Ok((B4Number(found >> 1), request))
    }

    /// Make of the error the packet that it is about, as its sender has sent it.
    fn send(
        &self,
        context: StageContext<'_>,
        packet: &mut Packet,
        quoted: &Quoted,
        (b4, request): (B4Number, IcmpErrorRequest),
    ) -> Result<NodeId, DsliteDrop> {
        let table = self.shared.rules(context.pass()).outside_table;
        if !to_sender::<Ip4>(&self.tables, packet, quoted.at, table, request) {
            return Err(DsliteDrop::Truncated);
        }
        let sent = restore(&self.shared, packet, b4).ok_or(DsliteDrop::NotOurs)?;
        if is_softwire(sent.table) {
            context.count(DsliteDrop::Kept, 1);
            return Ok(self.done);
        }
        context.count(DsliteDrop::Relayed, 1);
        Ok(self.error4)
    }
}
