//! Packets of ICMP that belong to sessions: queries by their identifier, and errors by the packet
//! inside.

use quiver_wire::upper::Upper;

use crate::fields::Filtered;
use crate::session::Flow;

/// What a packet of ICMP is to sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message<A> {
    /// A query or its answer: its flow.
    Query(Flow<A>),
    /// An error to the host that sent a packet of this flow.
    Error(Flow<A>),
    /// Neither.
    Other,
}

/// Bytes of ICMP's header, in front of the packet that an error quotes (RFC 792, RFC 4443 §2.1).
const HEADER_BYTES: usize = 8;

/// The identifier and the type of the request, of a query; is it the answer?
fn query<F: Filtered>(kind: u8, identifier: u16) -> Option<((u16, u16), bool)> {
    let (request, is_reply) = F::query(kind)?;
    let request = u16::from(request);
    Some((if is_reply { (request, identifier) } else { (identifier, request) }, is_reply))
}

/// Read the packet that `bytes` begin with, which is one of ICMP; `noted` is what virtual
/// reassembly knows of a fragment.
pub(crate) fn read<F: Filtered>(bytes: &[u8], noted: Option<Upper>) -> Message<F::Address> {
    read_if_whole::<F>(bytes, noted).unwrap_or(Message::Other)
}

fn read_if_whole<F: Filtered>(bytes: &[u8], noted: Option<Upper>) -> Option<Message<F::Address>> {
    let (source, destination) = (F::source(bytes)?, F::destination(bytes)?);
    let of_query = |kind: u8, identifier: u16| {
        let (ports, is_reply) = query::<F>(kind, identifier)?;
        let (protocol, is_reply) = (F::ICMP.0, Some(is_reply));
        Some(Message::Query(Flow { source, destination, ports, protocol, is_reply }))
    };
    if let Some(upper) = noted {
        return of_query(upper.icmp?.0, upper.source_port);
    }
    let (protocol, behind) = F::behind(bytes)?;
    let [kind, _, _, _, high, low, ..] = *behind.first_chunk::<HEADER_BYTES>()?;
    if protocol != F::ICMP {
        return None;
    }
    if !F::is_error(kind) {
        return of_query(kind, u16::from_be_bytes([high, low]));
    }
    let inner = quoted::<F>(behind.get(HEADER_BYTES..)?)?;
    // An error goes to the host that sent the packet inside.
    (inner.source == destination).then_some(Message::Error(inner))
}

/// The flow of a packet of which an error may quote no more than 8 bytes behind the IP header.
fn quoted<F: Filtered>(bytes: &[u8]) -> Option<Flow<F::Address>> {
    let (source, destination) = (F::source(bytes)?, F::destination(bytes)?);
    let (protocol, behind) = F::behind(bytes)?;
    let flow = Flow { source, destination, ports: (0, 0), protocol: protocol.0, is_reply: None };
    if protocol == F::ICMP {
        let [kind, _, _, _, high, low, ..] = *behind.first_chunk::<HEADER_BYTES>()?;
        let (ports, is_reply) = query::<F>(kind, u16::from_be_bytes([high, low]))?;
        return Some(Flow { ports, is_reply: Some(is_reply), ..flow });
    }
    if !protocol.has_ports() {
        return Some(flow);
    }
    let [a, b, c, d, ..] = *behind.first_chunk::<HEADER_BYTES>()?;
    Some(Flow { ports: (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])), ..flow })
}
