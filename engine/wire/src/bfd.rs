//! BFD control packets (RFC 5880 §4), which are sent over UDP (RFC 5881, RFC 5883).
//!
//! ```text
//! 0        1       2    3        4               8               12
//! +--------+-------+----+--------+---------------+---------------+
//! |Vers|Dia|Sta|PFCADM|Mult| Length | My Discriminator | Your Discriminator |
//! +--------+-------+----+--------+---------------+---------------+
//! | Desired Min TX | Required Min RX | Required Min Echo RX |    in microseconds
//! +----------------+-----------------+----------------------+
//! | Auth Type | Auth Len | Key ID | 0 | Sequence Number | digest …    if A is set
//! +-----------+----------+--------+---+-----------------+--------
//! ```

use zerocopy::network_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::header::room;
use crate::{Header, MacAddress, WireError};

/// UDP port of control packets over one hop (RFC 5881 §4).
pub const CONTROL_PORT: u16 = 3784;
/// UDP port of echo packets (RFC 5881 §4).
pub const ECHO_PORT: u16 = 3785;
/// UDP port of control packets over several hops (RFC 5883 §5).
pub const MULTIHOP_PORT: u16 = 4784;
/// UDP port of control packets on the members of an aggregate (RFC 7130 §2.2).
pub const MEMBER_PORT: u16 = 6784;
/// The MAC address that control packets on members go to while the peer's is not known (RFC 7130
/// §2.3).
pub const MEMBER_GROUP: MacAddress = MacAddress([0x01, 0x00, 0x5e, 0x90, 0x00, 0x01]);
/// The first UDP port that control packets may come from (RFC 5881 §4).
pub const SOURCE_PORT_FIRST: u16 = 49_152;
/// The version of RFC 5880.
pub const VERSION: u8 = 1;
/// Bytes of a control packet without authentication.
pub const CONTROL_LEN: usize = 24;
/// Bytes of a control packet at least, when it has an authentication section.
const AUTHENTICATED_LEN_MIN: usize = 26;
/// Where the digest of an authentication section begins, from the first byte of the packet.
pub const DIGEST_AT: usize = 32;
/// Bytes of a control packet at most: with a digest of SHA-1.
pub const CONTROL_LEN_MAX: usize = DIGEST_AT + SHA1_DIGEST_LEN;
/// Bytes of a digest of MD5.
pub const MD5_DIGEST_LEN: usize = 16;
/// Bytes of a digest of SHA-1.
pub const SHA1_DIGEST_LEN: usize = 20;

malformations! {
    /// Why a control packet is discarded before its session is known (RFC 5880 §6.8.6).
    pub enum BfdMalformation {
        /// Fewer bytes than any control packet has.
        Truncated = "truncated", "fewer bytes than a BFD control packet has";
        /// Not version 1.
        Version = "bad-version", "a version of BFD other than 1";
        /// Length field below the minimum.
        TooShort = "bad-length", "a Length below 24 bytes, or 26 with authentication";
        /// Length field beyond the datagram.
        TooLong = "length-beyond-packet", "a Length beyond the end of the UDP datagram";
        /// Detect Mult 0.
        DetectMultZero = "detect-mult-zero", "a Detect Mult of 0";
        /// M is set.
        Multipoint = "multipoint", "the Multipoint bit is set";
        /// My Discriminator 0.
        MyDiscriminatorZero = "my-discriminator-zero", "a My Discriminator of 0";
        /// Your Discriminator 0 in Init or Up.
        YourDiscriminatorZero = "your-discriminator-zero",
            "a Your Discriminator of 0 in a packet that says Init or Up";
        /// The section is not as long as its type asks for, or goes beyond Length.
        AuthLength = "bad-auth-length",
            "an authentication section of another length than its type has";
    }
}

/// State of a session as it is sent (RFC 5880 §4.1, Sta).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum State {
    /// Taken down by the operator.
    AdminDown = 0,
    /// Down, or just made.
    #[default]
    Down = 1,
    /// The peer is heard, but does not hear this system yet.
    Init = 2,
    /// Both hear each other.
    Up = 3,
}

impl State {
    /// The state that the two low bits of `bits` mean.
    pub const fn from_bits(bits: u8) -> State {
        match bits & 3 {
            0 => State::AdminDown,
            1 => State::Down,
            2 => State::Init,
            _ => State::Up,
        }
    }

    /// Its name, as RFC 5880 has it.
    pub const fn name(self) -> &'static str {
        match self {
            State::AdminDown => "AdminDown",
            State::Down => "Down",
            State::Init => "Init",
            State::Up => "Up",
        }
    }
}

/// Why a session changed its state last (RFC 5880 §4.1, Diag).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Diagnostic(pub u8);

impl Diagnostic {
    /// Nothing to say.
    pub const NONE: Diagnostic = Diagnostic(0);
    /// The peer was not heard for the detection time.
    pub const DETECTION_TIME_EXPIRED: Diagnostic = Diagnostic(1);
    /// Echo packets do not come back.
    pub const ECHO_FAILED: Diagnostic = Diagnostic(2);
    /// The peer said that the session is down.
    pub const NEIGHBOR_SIGNALED_DOWN: Diagnostic = Diagnostic(3);
    /// The path is down: the interface.
    pub const PATH_DOWN: Diagnostic = Diagnostic(5);
    /// Taken down by the operator.
    pub const ADMINISTRATIVELY_DOWN: Diagnostic = Diagnostic(7);

    /// Its words, as RFC 5880 has them.
    pub const fn name(self) -> &'static str {
        match self.0 {
            0 => "No Diagnostic",
            1 => "Control Detection Time Expired",
            2 => "Echo Function Failed",
            3 => "Neighbor Signaled Session Down",
            4 => "Forwarding Plane Reset",
            5 => "Path Down",
            6 => "Concatenated Path Down",
            7 => "Administratively Down",
            8 => "Reverse Concatenated Path Down",
            _ => "Reserved",
        }
    }
}

/// The fixed part of a control packet on packet bytes.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct BfdHeader {
    version_diagnostic: u8,
    state_flags: u8,
    detect_mult: u8,
    length: u8,
    my_discriminator: U32,
    your_discriminator: U32,
    desired_min_tx: U32,
    required_min_rx: U32,
    required_min_echo_rx: U32,
}

impl Header for BfdHeader {
    const NAME: &'static str = "BFD";
}

const POLL: u8 = 0x20;
const FINAL: u8 = 0x10;
const CONTROL_PLANE_INDEPENDENT: u8 = 0x08;
const AUTHENTICATION: u8 = 0x04;
const DEMAND: u8 = 0x02;
const MULTIPOINT: u8 = 0x01;

/// A control packet in plain values, without its authentication section.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Control {
    /// Why the sender changed its state last.
    pub diagnostic: Diagnostic,
    /// The sender's state.
    pub state: State,
    /// The sender asks for an answer with the Final bit.
    pub poll: bool,
    /// The answer to a Poll.
    pub is_final: bool,
    /// The sender's BFD lives on when its control plane restarts.
    pub control_plane_independent: bool,
    /// The sender wants no periodic packets while the session is up.
    pub demand: bool,
    /// The receiver may miss so many packets less one.
    pub detect_mult: u8,
    /// The sender's number of the session.
    pub my_discriminator: u32,
    /// The receiver's number of the session; 0 while the sender does not know it.
    pub your_discriminator: u32,
    /// The shortest interval at which the sender would like to send, microseconds.
    pub desired_min_tx_us: u32,
    /// The shortest interval at which the sender can receive, microseconds; 0: send nothing.
    pub required_min_rx_us: u32,
    /// The shortest interval of echo packets that the sender can receive, microseconds; 0: none.
    pub required_min_echo_rx_us: u32,
}

/// Types of authentication (RFC 5880 §4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum AuthType {
    /// Keyed MD5.
    KeyedMd5 = 2,
    /// Keyed MD5, another sequence number in every packet.
    MeticulousMd5 = 3,
    /// Keyed SHA-1.
    KeyedSha1 = 4,
    /// Keyed SHA-1, another sequence number in every packet.
    MeticulousSha1 = 5,
}

impl AuthType {
    /// The type that this number means; none for those that are not known here.
    pub const fn from_number(number: u8) -> Option<AuthType> {
        match number {
            2 => Some(AuthType::KeyedMd5),
            3 => Some(AuthType::MeticulousMd5),
            4 => Some(AuthType::KeyedSha1),
            5 => Some(AuthType::MeticulousSha1),
            _ => None,
        }
    }

    /// Bytes of the digest.
    pub const fn digest_len(self) -> usize {
        match self {
            AuthType::KeyedMd5 | AuthType::MeticulousMd5 => MD5_DIGEST_LEN,
            AuthType::KeyedSha1 | AuthType::MeticulousSha1 => SHA1_DIGEST_LEN,
        }
    }

    /// Must each packet have another sequence number?
    pub const fn is_meticulous(self) -> bool {
        matches!(self, AuthType::MeticulousMd5 | AuthType::MeticulousSha1)
    }
}

/// An authentication section (RFC 5880 §4.2 to §4.4) without its digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Auth {
    /// The type; none for one that is not known here, whose other fields say nothing.
    pub kind: Option<AuthType>,
    /// Which key.
    pub key_id: u8,
    /// The sequence number.
    pub sequence: u32,
}

/// The section's bytes from its type to its sequence number.
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct AuthHeader {
    kind: u8,
    length: u8,
    key_id: u8,
    reserved: u8,
    sequence: U32,
}

/// A control packet that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Its fields.
    pub control: Control,
    /// Its authentication section.
    pub auth: Option<Auth>,
    /// All of its bytes, as its Length says.
    pub bytes: &'a [u8],
}

impl<'a> Packet<'a> {
    /// The digest of the authentication section; empty when there is none.
    pub fn digest(&self) -> &'a [u8] {
        let length = self.auth.and_then(|auth| auth.kind).map_or(0, AuthType::digest_len);
        self.bytes.get(DIGEST_AT..DIGEST_AT + length).unwrap_or_default()
    }

    /// Reads a control packet from the payload of a UDP datagram, by the rules of RFC 5880 §6.8.6
    /// that need no session.
    ///
    /// # Errors
    /// The packet must be discarded, for the reason that is returned.
    pub fn parse(payload: &'a [u8]) -> Result<Packet<'a>, BfdMalformation> {
        let header = BfdHeader::overlay(payload).ok_or(BfdMalformation::Truncated)?;
        if header.version_diagnostic >> 5 != VERSION {
            return Err(BfdMalformation::Version);
        }
        let has = |flag: u8| header.state_flags & flag != 0;
        let length = usize::from(header.length);
        let minimum = if has(AUTHENTICATION) { AUTHENTICATED_LEN_MIN } else { CONTROL_LEN };
        if length < minimum {
            return Err(BfdMalformation::TooShort);
        }
        let bytes = payload.get(..length).ok_or(BfdMalformation::TooLong)?;
        if header.detect_mult == 0 {
            return Err(BfdMalformation::DetectMultZero);
        }
        if has(MULTIPOINT) {
            return Err(BfdMalformation::Multipoint);
        }
        let control = Control {
            diagnostic: Diagnostic(header.version_diagnostic & 0x1f),
            state: State::from_bits(header.state_flags >> 6),
            poll: has(POLL),
            is_final: has(FINAL),
            control_plane_independent: has(CONTROL_PLANE_INDEPENDENT),
            demand: has(DEMAND),
            detect_mult: header.detect_mult,
            my_discriminator: header.my_discriminator.get(),
            your_discriminator: header.your_discriminator.get(),
            desired_min_tx_us: header.desired_min_tx.get(),
            required_min_rx_us: header.required_min_rx.get(),
            required_min_echo_rx_us: header.required_min_echo_rx.get(),
        };
        if control.my_discriminator == 0 {
            return Err(BfdMalformation::MyDiscriminatorZero);
        }
        if control.your_discriminator == 0 && matches!(control.state, State::Init | State::Up) {
            return Err(BfdMalformation::YourDiscriminatorZero);
        }
        let auth = if has(AUTHENTICATION) { Some(read_auth(bytes)?) } else { None };
        Ok(Packet { control, auth, bytes })
    }
}

fn read_auth(bytes: &[u8]) -> Result<Auth, BfdMalformation> {
    let section = bytes.get(CONTROL_LEN..).unwrap_or_default();
    let [kind, length, ..] = *section else { return Err(BfdMalformation::AuthLength) };
    let length = usize::from(length);
    if length < 2 || length > section.len() {
        return Err(BfdMalformation::AuthLength);
    }
    let Some(kind) = AuthType::from_number(kind) else {
        return Ok(Auth { kind: None, key_id: 0, sequence: 0 });
    };
    if length != size_of::<AuthHeader>() + kind.digest_len() {
        return Err(BfdMalformation::AuthLength);
    }
    let (header, _) =
        AuthHeader::ref_from_prefix(section).map_err(|_| BfdMalformation::AuthLength)?;
    Ok(Auth { kind: Some(kind), key_id: header.key_id, sequence: header.sequence.get() })
}

impl Control {
    /// Writes the packet and returns its length. The digest of an authentication section is left
    /// 0: it begins at [`DIGEST_AT`].
    ///
    /// # Errors
    /// `out` is too short, or the section has no type.
    pub fn emit(&self, auth: Option<&Auth>, out: &mut [u8]) -> Result<usize, WireError> {
        let section = match auth {
            None => 0,
            Some(Auth { kind: Some(kind), .. }) => size_of::<AuthHeader>() + kind.digest_len(),
            Some(Auth { kind: None, .. }) => {
                let reason = "an authentication section has a type";
                return Err(WireError::Invalid { header: BfdHeader::NAME, reason });
            }
        };
        let length = CONTROL_LEN + section;
        let out = room(out, length)?;
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        let header = BfdHeader {
            version_diagnostic: VERSION << 5 | self.diagnostic.0 & 0x1f,
            state_flags: (self.state as u8) << 6
                | flag(self.poll, POLL)
                | flag(self.is_final, FINAL)
                | flag(self.control_plane_independent, CONTROL_PLANE_INDEPENDENT)
                | flag(auth.is_some(), AUTHENTICATION)
                | flag(self.demand, DEMAND),
            detect_mult: self.detect_mult,
            length: length as u8,
            my_discriminator: U32::new(self.my_discriminator),
            your_discriminator: U32::new(self.your_discriminator),
            desired_min_tx: U32::new(self.desired_min_tx_us),
            required_min_rx: U32::new(self.required_min_rx_us),
            required_min_echo_rx: U32::new(self.required_min_echo_rx_us),
        };
        header.write(out)?;
        if let Some(Auth { kind: Some(kind), key_id, sequence }) = auth {
            let section = AuthHeader {
                kind: *kind as u8,
                length: section as u8,
                key_id: *key_id,
                reserved: 0,
                sequence: U32::new(*sequence),
            };
            out[CONTROL_LEN..DIGEST_AT].copy_from_slice(section.as_bytes());
            out[DIGEST_AT..].fill(0);
        }
        Ok(length)
    }
}

#[cfg(test)]
mod tests;
