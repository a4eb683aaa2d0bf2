//! Bindings of hosts' ends to ends of IPv4, in which the addresses of `quiver_bindings` have their
//! low 32 bits (RFC 6146 §3.1).

use quiver_bindings::{Binding, Bindings, End as WideEnd, Key, Readers};
use quiver_nat_log::Event;
use quiver_translation::flow::End;
use quiver_wire::IpProtocol;

use crate::session::Session;
use crate::standby::Journal;

fn wide(end: End) -> WideEnd {
    WideEnd { address: end.address.into(), port: end.port }
}

/// An end of IPv4 that a binding has.
pub(crate) fn narrow(end: WideEnd) -> End {
    End { address: end.address as u32, port: end.port }
}

/// The key of an external end.
pub(crate) fn outside_key(end: End, protocol: IpProtocol, table: u32) -> Key {
    quiver_bindings::outside_key(wide(end), protocol, table)
}

/// The binding of an external end.
pub(crate) fn of_external(
    readers: &Readers,
    end: End,
    protocol: IpProtocol,
    table: u32,
) -> Option<Binding<'_>> {
    readers.of_external(wide(end), protocol, table)
}

/// A session ends.
pub(crate) fn release(bindings: &mut Bindings, session: Session<'_>, log: &mut Journal) {
    let remote = session.inside().remote.into();
    bindings.end(session.binding(), remote, session.flags(), |binding| {
        log.binding(Event::MappingDelete64, binding);
    });
}
