//! Messages between a routing daemon and the data plane of its BFD sessions, as FRR's `bfdd` speaks
//! (FRR, "BFD Distributed" and `bfddp_packet.h`). Numbers are in network byte order.
//!
//! | message | from | bytes behind the header |
//! | --- | --- | --- |
//! | echo request 0, echo reply 1 | either | two times of 8 bytes |
//! | add or update session 2, delete session 3 | daemon | 132, see [`SessionMessage`] |
//! | state change 4 | data plane | 28 |
//! | request of counters 5 | daemon | 4, the session |
//! | counters 6 | data plane | 72 |

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use quiver_wire::bfd::{Diagnostic, State};

/// The version of the protocol.
const VERSION: u8 = 1;
/// Bytes of a header: version, zero, type, identification, length of all.
pub const HEADER_BYTES: usize = 8;
/// The longest message that a daemon sends.
pub const MESSAGE_BYTES_MAX: usize = HEADER_BYTES + SESSION_BYTES;
const ECHO_BYTES: usize = 16;
const SESSION_BYTES: usize = 132;
const STATE_BYTES: usize = 28;
const COUNTERS_BYTES: usize = 72;

const ECHO_REQUEST: u16 = 0;
const ECHO_REPLY: u16 = 1;
const ADD_SESSION: u16 = 2;
const DELETE_SESSION: u16 = 3;
const STATE_CHANGE: u16 = 4;
const REQUEST_COUNTERS: u16 = 5;
const COUNTERS: u16 = 6;

const FLAG_MULTIHOP: u32 = 1 << 0;
const FLAG_IP6: u32 = 1 << 4;
const FLAG_SHUTDOWN: u32 = 1 << 6;

const REMOTE_INDEPENDENT: u32 = 1 << 0;
const REMOTE_DEMAND: u32 = 1 << 1;

/// Why the bytes of a daemon are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Another version of the protocol.
    Version(u8),
    /// A length that no message of this type has.
    Length {
        /// The type.
        kind: u16,
        /// The length that the header gives.
        length: u16,
    },
    /// A type that a daemon does not send.
    Kind(u16),
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Fault::Version(version) => write!(f, "a message of version {version}, not {VERSION}"),
            Fault::Length { kind, length } => {
                write!(f, "a message of type {kind} with a length of {length} bytes")
            }
            Fault::Kind(kind) => {
                write!(f, "a message of type {kind}, which a daemon does not send")
            }
        }
    }
}

/// A session as the daemon describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionMessage {
    /// The daemon's number of it, its Local Discriminator.
    pub id: u32,
    /// Over several hops?
    pub is_multihop: bool,
    /// Taken down by the operator of the daemon?
    pub is_shut_down: bool,
    /// The router's address; none: any of the link.
    pub local: Option<IpAddr>,
    /// The peer's address.
    pub peer: IpAddr,
    /// Desired Min TX Interval, microseconds.
    pub min_tx_us: u32,
    /// Required Min RX Interval, microseconds.
    pub min_rx_us: u32,
    /// The least TTL of received packets, over several hops.
    pub min_ttl: u8,
    /// Detect Mult.
    pub detect_mult: u8,
    /// The interface, as it is called where the daemon runs; may be empty.
    pub interface: String,
}

/// A message of a daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Answer with [`echo_reply`] of the same bytes.
    EchoRequest([u8; ECHO_BYTES]),
    /// Nothing follows.
    EchoReply,
    /// Add a session, or change the one with this number.
    Add(SessionMessage),
    /// Delete the session with this number.
    Delete(u32),
    /// Answer with [`counters`].
    RequestCounters(u32),
}

/// Read the message in front of `bytes`: it, its identification, its length. `None`: more bytes are
/// needed.
///
/// # Errors
/// There is none.
pub fn read(bytes: &[u8]) -> Result<Option<(Message, u16, usize)>, Fault> {
    let Some(header) = bytes.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
    let short = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let (version, kind, id, length) = (header[0], short(2), short(4), short(6));
    if version != VERSION {
        return Err(Fault::Version(version));
    }
    let wanted = match kind {
        ECHO_REQUEST | ECHO_REPLY => ECHO_BYTES,
        ADD_SESSION | DELETE_SESSION => SESSION_BYTES,
        REQUEST_COUNTERS => 4,
        _ => return Err(Fault::Kind(kind)),
    };
    if usize::from(length) != HEADER_BYTES + wanted {
        return Err(Fault::Length { kind, length });
    }
    let Some(body) = bytes.get(HEADER_BYTES..usize::from(length)) else { return Ok(None) };
    let fault = Fault::Length { kind, length };
    let message = match kind {
        ECHO_REQUEST => Message::EchoRequest(*body.first_chunk().ok_or(fault)?),
        ECHO_REPLY => Message::EchoReply,
        ADD_SESSION => Message::Add(session(body).ok_or(fault)?),
        DELETE_SESSION => Message::Delete(session(body).ok_or(fault)?.id),
        _ => Message::RequestCounters(u32::from_be_bytes(*body.first_chunk().ok_or(fault)?)),
    };
    Ok(Some((message, id, length.into())))
}

/// The fields of [`SESSION_BYTES`], in their order: flags, local address, peer address, number,
/// four intervals, hold time, TTL, multiplier, zero, interface number and name.
fn session(body: &[u8]) -> Option<SessionMessage> {
    let mut rest = body;
    let flags = long(&mut rest)?;
    let (local, peer) = (address(&mut rest, flags)?, address(&mut rest, flags)?);
    let (id, min_tx_us, min_rx_us) = (long(&mut rest)?, long(&mut rest)?, long(&mut rest)?);
    let _echo_and_hold = (long(&mut rest)?, long(&mut rest)?, long(&mut rest)?);
    let ([min_ttl, detect_mult, _, _], behind) = rest.split_first_chunk()?;
    rest = behind;
    let _number = long(&mut rest)?;
    let name = rest.split(|byte| *byte == 0).next().unwrap_or_default();
    Some(SessionMessage {
        id,
        is_multihop: flags & FLAG_MULTIHOP != 0,
        is_shut_down: flags & FLAG_SHUTDOWN != 0,
        local: Some(local).filter(|local| !local.is_unspecified()),
        peer,
        min_tx_us,
        min_rx_us,
        min_ttl: *min_ttl,
        detect_mult: *detect_mult,
        interface: String::from_utf8_lossy(name).into_owned(),
    })
}

fn long(rest: &mut &[u8]) -> Option<u32> {
    let (value, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(u32::from_be_bytes(*value))
}

/// An address in 16 bytes; one of IPv4 stands in the first four.
fn address(rest: &mut &[u8], flags: u32) -> Option<IpAddr> {
    let (bytes, behind) = rest.split_first_chunk::<16>()?;
    *rest = behind;
    match flags & FLAG_IP6 != 0 {
        true => Some(Ipv6Addr::from(*bytes).into()),
        false => Some(Ipv4Addr::from(*bytes.first_chunk::<4>()?).into()),
    }
}

fn header(kind: u16, id: u16, body_bytes: usize) -> Vec<u8> {
    let length = (HEADER_BYTES + body_bytes) as u16;
    let mut bytes = vec![VERSION, 0];
    [kind, id, length].iter().for_each(|field| bytes.extend(field.to_be_bytes()));
    bytes
}

/// The answer to an echo request.
pub fn echo_reply(id: u16, times: [u8; ECHO_BYTES]) -> Vec<u8> {
    let mut bytes = header(ECHO_REPLY, id, ECHO_BYTES);
    bytes.extend(times);
    bytes
}

/// What the daemon hears of a session's change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateChange {
    /// The daemon's number of the session.
    pub id: u32,
    /// Remote Discriminator.
    pub remote_discriminator: u32,
    /// Does the peer's control plane share no fate with its forwarding plane (C)?
    pub is_remote_independent: bool,
    /// Does the peer ask for demand mode (D)?
    pub is_remote_demand: bool,
    /// The peer's Desired Min TX Interval, microseconds.
    pub remote_min_tx_us: u32,
    /// The peer's Required Min RX Interval, microseconds.
    pub remote_min_rx_us: u32,
    /// The peer's Required Min Echo RX Interval, microseconds.
    pub remote_min_echo_rx_us: u32,
    /// The session's state here.
    pub state: State,
    /// The peer's diagnostic.
    pub remote_diagnostic: Diagnostic,
    /// The peer's Detect Mult.
    pub remote_detect_mult: u8,
}

/// A session has changed.
pub fn state_change(change: &StateChange) -> Vec<u8> {
    let flag = |is_set: bool, flag: u32| if is_set { flag } else { 0 };
    let flags = flag(change.is_remote_independent, REMOTE_INDEPENDENT)
        | flag(change.is_remote_demand, REMOTE_DEMAND);
    let mut bytes = header(STATE_CHANGE, 0, STATE_BYTES);
    for field in [
        change.id,
        change.remote_discriminator,
        flags,
        change.remote_min_tx_us,
        change.remote_min_rx_us,
        change.remote_min_echo_rx_us,
    ] {
        bytes.extend(field.to_be_bytes());
    }
    bytes.extend([
        change.state as u8,
        change.remote_diagnostic.0,
        change.remote_detect_mult,
        0, // fills the last word
    ]);
    bytes
}

/// A session's counters: bytes and packets of control packets received and sent, then of echo
/// packets.
pub fn counters(id: u16, session: u32, counts: [u64; 8]) -> Vec<u8> {
    let mut bytes = header(COUNTERS, id, COUNTERS_BYTES);
    bytes.extend(session.to_be_bytes());
    bytes.extend([0; 4]); // the numbers behind stand at multiples of eight
    counts.iter().for_each(|count| bytes.extend(count.to_be_bytes()));
    bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A message that adds a session, as bfdd lays it out.
    fn add(flags: u32, name: &[u8]) -> Vec<u8> {
        let mut bytes = header(ADD_SESSION, 9, SESSION_BYTES);
        bytes.extend(flags.to_be_bytes());
        for last in [1, 2] {
            let mut address = [0; 16];
            address[..4].copy_from_slice(&[192, 0, 2, last]);
            bytes.extend(address);
        }
        for field in [77u32, 10_000, 20_000, 50_000, 50_000, 0] {
            bytes.extend(field.to_be_bytes());
        }
        bytes.extend([254, 3, 0, 0, 0, 0, 0, 5]);
        bytes.extend(name);
        bytes.resize(HEADER_BYTES + SESSION_BYTES, 0);
        bytes
    }

    #[test]
    fn a_session_is_read_field_by_field() {
        let bytes = add(FLAG_MULTIHOP | FLAG_SHUTDOWN, b"e0");
        let (message, id, length) = read(&bytes).unwrap().unwrap();
        let wanted = SessionMessage {
            id: 77,
            is_multihop: true,
            is_shut_down: true,
            local: Some("192.0.2.1".parse().unwrap()),
            peer: "192.0.2.2".parse().unwrap(),
            min_tx_us: 10_000,
            min_rx_us: 20_000,
            min_ttl: 254,
            detect_mult: 3,
            interface: "e0".into(),
        };
        assert_eq!((message, id, length), (Message::Add(wanted), 9, 140));
        let whole = [b'x'; 64];
        let Message::Add(session) = read(&add(FLAG_IP6, &whole)).unwrap().unwrap().0 else {
            panic!("not a session");
        };
        assert_eq!((session.interface.len(), session.peer.is_ipv6()), (64, true));
    }

    #[test]
    fn what_is_no_message_is_a_fault_before_all_of_it_is_there() {
        let bytes = add(0, b"");
        assert_eq!(read(&bytes[..7]), Ok(None));
        assert_eq!(read(&bytes[..139]), Ok(None));
        let mut version = bytes.clone();
        version[0] = 2;
        assert_eq!(read(&version[..8]), Err(Fault::Version(2)));
        let mut kind = bytes.clone();
        kind[3] = 6;
        assert_eq!(read(&kind[..8]), Err(Fault::Kind(6)));
        let mut length = bytes;
        length[7] = 141;
        assert_eq!(read(&length[..8]), Err(Fault::Length { kind: 2, length: 141 }));
    }

    #[test]
    fn answers_have_the_layout_that_bfdd_reads() {
        let change = StateChange {
            id: 77,
            remote_discriminator: 0x0102_0304,
            is_remote_independent: true,
            is_remote_demand: false,
            remote_min_tx_us: 1,
            remote_min_rx_us: 2,
            remote_min_echo_rx_us: 3,
            state: State::Up,
            remote_diagnostic: Diagnostic(5),
            remote_detect_mult: 4,
        };
        let bytes = state_change(&change);
        assert_eq!(bytes[..16], [1, 0, 0, 4, 0, 0, 0, 36, 0, 0, 0, 77, 1, 2, 3, 4]);
        assert_eq!(bytes[16..], [0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 3, 5, 4, 0]);
        let bytes = counters(7, 77, [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!((bytes.len(), &bytes[..8]), (80, &[1, 0, 0, 6, 0, 7, 0, 80][..]));
        assert_eq!((bytes[11], bytes[23], bytes[79]), (77, 1, 8));
        assert_eq!(read(&echo_reply(3, [7; 16])), Ok(Some((Message::EchoReply, 3, 24))));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes);
            let mut with_header = add(u32::from(bytes.first().copied().unwrap_or(0)), b"");
            let end = with_header.len().min(HEADER_BYTES + bytes.len());
            with_header[HEADER_BYTES..end].copy_from_slice(&bytes[..end - HEADER_BYTES]);
            prop_assert!(matches!(read(&with_header), Ok(Some((Message::Add(_), 9, 140)))));
        }
    }
}
