//! Authentication of control packets (RFC 5880 §6.7): keyed MD5 and keyed SHA-1, both also
//! meticulous.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use md5::{Digest, Md5};
use quiver_wire::bfd::{Auth, AuthType, CONTROL_LEN_MAX, DIGEST_AT, Packet, SHA1_DIGEST_LEN};

use crate::reasons::BfdDrop;

/// A key as packets are signed with it.
pub struct Key {
    /// How.
    pub kind: AuthType,
    /// The secret, padded with zeroes (§6.7.3, §6.7.4).
    secret: [u8; SHA1_DIGEST_LEN],
    length: usize,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a key of type {}", type_name(self.kind)) // never the secret
    }
}

/// The type as commands name it.
pub fn type_name(kind: AuthType) -> &'static str {
    match kind {
        AuthType::KeyedMd5 => "keyed-md5",
        AuthType::MeticulousMd5 => "meticulous-keyed-md5",
        AuthType::KeyedSha1 => "keyed-sha1",
        AuthType::MeticulousSha1 => "meticulous-keyed-sha1",
    }
}

impl Key {
    /// A key; `None` when the secret is empty or longer than the digest.
    pub fn new(kind: AuthType, secret: &[u8]) -> Option<Key> {
        if secret.is_empty() || secret.len() > kind.digest_len() {
            return None;
        }
        let mut padded = [0; SHA1_DIGEST_LEN];
        padded[..secret.len()].copy_from_slice(secret);
        Some(Key { kind, secret: padded, length: secret.len() })
    }

    /// The secret.
    pub fn secret(&self) -> &[u8] {
        &self.secret[..self.length]
    }

    /// The digest of a packet that has the secret where the digest stands; `bytes` is such a one
    /// with anything there.
    fn digest(&self, bytes: &[u8]) -> Option<[u8; SHA1_DIGEST_LEN]> {
        let length = self.kind.digest_len();
        let mut keyed = [0; CONTROL_LEN_MAX];
        let keyed = keyed.get_mut(..bytes.len())?;
        keyed.copy_from_slice(bytes);
        keyed.get_mut(DIGEST_AT..DIGEST_AT + length)?.copy_from_slice(&self.secret[..length]);
        let mut out = [0; SHA1_DIGEST_LEN];
        match self.kind {
            AuthType::KeyedMd5 | AuthType::MeticulousMd5 => {
                out[..length].copy_from_slice(&Md5::digest(&*keyed));
            }
            AuthType::KeyedSha1 | AuthType::MeticulousSha1 => {
                out.copy_from_slice(digest(&SHA1_FOR_LEGACY_USE_ONLY, keyed).as_ref());
            }
        }
        Some(out)
    }

    /// Puts the digest into a packet that was written with a section of this key's type.
    pub fn sign(&self, bytes: &mut [u8]) {
        let length = self.kind.digest_len();
        let Some(signed) = self.digest(bytes) else { return };
        if let Some(place) = bytes.get_mut(DIGEST_AT..DIGEST_AT + length) {
            place.copy_from_slice(&signed[..length]);
        }
    }

    /// Is the digest of a packet right? The time that it takes says nothing of where it is wrong.
    fn has_signed(&self, packet: &Packet<'_>) -> bool {
        let (length, given) = (self.kind.digest_len(), packet.digest());
        let Some(wanted) = self.digest(packet.bytes) else { return false };
        given.len() == length
            && given.iter().zip(&wanted).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
    }
}

/// A key, and the number that packets name it by.
#[derive(Clone, Debug)]
pub struct Using {
    /// The key.
    pub key: Arc<Key>,
    /// Its number in packets.
    pub key_id: u8,
}

/// One session's authentication (§6.8.1).
#[derive(Clone, Debug)]
pub struct Authentication {
    /// What packets are signed with.
    current: Option<Using>,
    /// What packets will be signed with once the peer does so.
    next: Option<Option<Using>>,
    /// `bfd.XmitAuthSeq`.
    sent: u32,
    /// `bfd.RcvAuthSeq`, while `bfd.AuthSeqKnown` is 1.
    received: Option<u32>,
    /// When that is forgotten: twice the detection time after the last packet.
    forget_ns: u64,
}

/// What decides whether a sequence number is in the window.
#[derive(Clone, Copy)]
pub struct Window {
    /// The session's own multiplier.
    pub detect_mult: u8,
    /// The time.
    pub now_ns: u64,
    /// The detection time.
    pub detection_ns: u64,
}

impl Authentication {
    /// With this key, or none; the first sequence number is `first`, a random one.
    pub fn new(using: Option<Using>, first: u32) -> Authentication {
        Authentication { current: using, next: None, sent: first, received: None, forget_ns: 0 }
    }

    /// Sign with another key, or none, from now on; `is_delayed`: from when the peer does.
    pub fn change(&mut self, using: Option<Using>, is_delayed: bool) {
        if is_delayed {
            self.next = Some(using);
        } else {
            (self.current, self.next, self.received) = (using, None, None);
        }
    }

    /// What packets are signed with.
    pub fn current(&self) -> Option<&Using> {
        self.current.as_ref()
    }

    /// Is the packet from who it says? Nothing is remembered of one that is not.
    ///
    /// # Errors
    /// It must be discarded, for the reason that is returned.
    pub fn check(&mut self, packet: &Packet<'_>, window: Window) -> Result<(), BfdDrop> {
        let known = self.received.filter(|_| window.now_ns < self.forget_ns);
        if let Err(why) = accepts(self.current.as_ref(), packet, known, window) {
            // The peer may have changed to the next key.
            let next = self.next.as_ref().ok_or(why)?;
            accepts(next.as_ref(), packet, None, window).map_err(|_| why)?;
            self.current = self.next.take().flatten();
        }
        self.received = packet.auth.map(|auth| auth.sequence);
        self.forget_ns = window.now_ns.saturating_add(window.detection_ns.saturating_mul(2));
        Ok(())
    }

    /// The section of the next packet (§6.7.3, §6.7.4): a meticulous one counts every packet, the
    /// others every packet too, which they may.
    pub fn section(&mut self) -> Option<Auth> {
        let using = self.current.as_ref()?;
        self.sent = self.sent.wrapping_add(1);
        Some(Auth { kind: Some(using.key.kind), key_id: using.key_id, sequence: self.sent })
    }
}

fn accepts(
    using: Option<&Using>,
    packet: &Packet<'_>,
    known: Option<u32>,
    window: Window,
) -> Result<(), BfdDrop> {
    let (using, auth) = match (using, packet.auth) {
        (None, None) => return Ok(()),
        (None, Some(_)) => return Err(BfdDrop::AuthUnexpected),
        (Some(_), None) => return Err(BfdDrop::AuthMissing),
        (Some(using), Some(auth)) => (using, auth),
    };
    if auth.kind != Some(using.key.kind) {
        return Err(BfdDrop::AuthType);
    }
    if auth.key_id != using.key_id {
        return Err(BfdDrop::AuthKeyId);
    }
    if let Some(last) = known {
        let ahead = auth.sequence.wrapping_sub(last);
        let first = u32::from(using.key.kind.is_meticulous());
        if ahead < first || ahead > 3 * u32::from(window.detect_mult) {
            return Err(BfdDrop::AuthSequence);
        }
    }
    if using.key.has_signed(packet) { Ok(()) } else { Err(BfdDrop::AuthDigest) }
}

#[cfg(test)]
#[path = "auth_tests.rs"]
mod tests;
