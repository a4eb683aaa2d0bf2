//! A static session: its numbers at both ends, its cookies, and the sublayer (RFC 3931 §4.1).

use std::fmt;

use quiver_control::{Args, Refusal};
use quiver_encap::tunnel::EndWords;
use quiver_wire::Header;
use quiver_wire::l2tpv3::{COOKIE_BYTES_MAX, L2tpv3Header, SUBLAYER_BYTES};

/// Flags of the end of a tunnel: the bytes of its cookie, the sublayer, a cookie that was valid
/// before.
const COOKIE_BYTES: u16 = 0xf;
const HAS_SUBLAYER: u16 = 1 << 4;
const HAS_PREVIOUS: u16 = 1 << 5;

/// A number that both ends know, against packets that come to a session by mistake (RFC 3931
/// §4.1). It protects from nobody who reads along (§8.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cookie {
    /// Its value.
    pub value: u64,
    /// Bytes of it: 0, 4 or 8.
    pub size_bytes: u8,
}

impl fmt::Display for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:0digits$x}", self.value, digits = usize::from(self.size_bytes.max(1)) * 2)
    }
}

impl Cookie {
    /// Of hexadecimal digits, with or without `0x`.
    ///
    /// # Errors
    /// It is no such number, or longer than the cookie.
    pub fn read(args: &Args<'_>, name: &str, size_bytes: u8) -> Result<Cookie, Refusal> {
        let text: &str = args.get(name)?;
        let digits = text.strip_prefix("0x").unwrap_or(text);
        let value = u64::from_str_radix(digits, 16).ok();
        let fits = |value: &u64| {
            size_bytes >= 8 || value.checked_shr(u32::from(size_bytes) * 8).unwrap_or(0) == 0
        };
        let value = value.filter(fits).ok_or_else(|| {
            let what = format!("{text} is no cookie of {size_bytes} bytes");
            args.refuse(name, what).remedy("give hexadecimal digits")
        })?;
        Ok(Cookie { value, size_bytes })
    }

    /// As it stands in the header.
    pub fn bytes(self) -> Vec<u8> {
        let bytes = self.value.to_be_bytes();
        let from = COOKIE_BYTES_MAX.saturating_sub(self.size_bytes.into());
        bytes.get(from..).unwrap_or_default().to_vec()
    }
}

/// A session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Session {
    /// Its number in what this router receives.
    pub local: u32,
    /// Its number in what this router sends.
    pub remote: u32,
    /// The cookie of what this router receives.
    pub local_cookie: Cookie,
    /// The cookie that it was before, which is valid still: the other end may not know the new one.
    pub previous: Option<Cookie>,
    /// The cookie of what this router sends.
    pub remote_cookie: Cookie,
    /// Is the default L2-specific sublayer there?
    pub has_sublayer: bool,
}

impl Session {
    /// The header of what is sent.
    pub fn header(&self) -> Vec<u8> {
        let mut header = vec![0; L2tpv3Header::LEN];
        let _ = L2tpv3Header::new(self.remote).write(&mut header);
        header.extend(self.remote_cookie.bytes());
        header.extend(vec![0; if self.has_sublayer { SUBLAYER_BYTES } else { 0 }]);
        header
    }

    /// What workers compare.
    pub fn end(&self) -> EndWords {
        let flag = |is_set: bool, flag: u16| if is_set { flag } else { 0 };
        let flags = u16::from(self.local_cookie.size_bytes) & COOKIE_BYTES
            | flag(self.has_sublayer, HAS_SUBLAYER)
            | flag(self.previous.is_some(), HAS_PREVIOUS);
        let previous = self.previous.map_or(0, |cookie| cookie.value);
        EndWords { flags, words: [self.local_cookie.value, previous] }
    }
}

/// What the bytes behind a session ID are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behind {
    /// The session's, so many bytes.
    Header(usize),
    /// Too few.
    Truncated,
    /// Another cookie.
    WrongCookie,
}

/// Compare the cookie behind a session ID.
#[inline(always)]
pub(crate) fn behind(end: EndWords, bytes: &[u8]) -> Behind {
    let cookie_bytes = usize::from(end.flags & COOKIE_BYTES);
    let cookie = match cookie_bytes {
        0 => Some(end.words[0]),
        4 => bytes.first_chunk().map(|field| u64::from(u32::from_be_bytes(*field))),
        _ => bytes.first_chunk().map(|field| u64::from_be_bytes(*field)),
    };
    let Some(cookie) = cookie else { return Behind::Truncated };
    let is_previous = (end.flags & HAS_PREVIOUS != 0) & (cookie == end.words[1]);
    if !((cookie == end.words[0]) | is_previous) {
        return Behind::WrongCookie;
    }
    let sublayer_bytes = if end.flags & HAS_SUBLAYER != 0 { SUBLAYER_BYTES } else { 0 };
    Behind::Header(cookie_bytes + sublayer_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(size_bytes: u8) -> Session {
        Session {
            local: 7,
            remote: 9,
            local_cookie: Cookie { value: 0x0102_0304, size_bytes },
            previous: None,
            remote_cookie: Cookie { value: 0x0a0b_0c0d, size_bytes },
            has_sublayer: size_bytes == 4,
        }
    }

    #[test]
    fn a_header_has_the_remote_session_and_its_cookie() {
        assert_eq!(session(0).header(), [0, 0, 0, 9]);
        assert_eq!(session(4).header(), [0, 0, 0, 9, 10, 11, 12, 13, 0, 0, 0, 0]);
        assert_eq!(session(8).header(), [0, 0, 0, 9, 0, 0, 0, 0, 10, 11, 12, 13]);
    }

    #[test]
    fn a_cookie_is_the_new_one_or_the_one_before() {
        let changed = Session { previous: Some(Cookie { value: 5, size_bytes: 8 }), ..session(8) };
        for (session, bytes, is) in [
            (session(8), &[0, 0, 0, 0, 1, 2, 3, 4][..], Behind::Header(8)),
            (session(8), &[0, 0, 0, 0, 0, 0, 0, 5], Behind::WrongCookie),
            (session(8), &[0, 0, 0, 0, 0, 0, 0], Behind::Truncated),
            (changed, &[0, 0, 0, 0, 0, 0, 0, 5], Behind::Header(8)),
            (changed, &[0, 0, 0, 0, 1, 2, 3, 4], Behind::Header(8)),
            (changed, &[0, 0, 0, 0, 0, 0, 0, 0], Behind::WrongCookie),
            (session(4), &[1, 2, 3, 4], Behind::Header(8)),
            (session(4), &[1, 2, 3, 5], Behind::WrongCookie),
            (session(0), &[], Behind::Header(0)),
        ] {
            assert_eq!(behind(session.end(), bytes), is, "{session:?} {bytes:?}");
        }
    }
}
