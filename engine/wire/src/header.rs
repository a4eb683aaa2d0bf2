//! What every fixed-size header can do: lie over bytes after one length check.

use core::fmt;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// A header of fixed size that is laid over packet bytes. Any bytes are a value of it, so after the
/// length check no accessor can fail.
pub trait Header: FromBytes + IntoBytes + KnownLayout + Immutable + Unaligned + Sized {
    /// What errors call it.
    const NAME: &'static str;

    /// Its size in bytes.
    const LEN: usize = size_of::<Self>();

    /// The header at the start of `bytes`, or `None` if there are too few.
    #[inline(always)]
    fn overlay(bytes: &[u8]) -> Option<&Self> {
        Self::ref_from_prefix(bytes).ok().map(|(header, _)| header)
    }

    /// The header at the start of `bytes`, to be changed in place.
    #[inline(always)]
    fn overlay_mut(bytes: &mut [u8]) -> Option<&mut Self> {
        Self::mut_from_prefix(bytes).ok().map(|(header, _)| header)
    }

    /// The header at the start of `bytes` and what follows it.
    #[inline(always)]
    fn split(bytes: &[u8]) -> Option<(&Self, &[u8])> {
        Self::ref_from_prefix(bytes).ok()
    }

    /// The header at the start of `bytes` and what follows it, both to be changed in place.
    #[inline(always)]
    fn split_mut(bytes: &mut [u8]) -> Option<(&mut Self, &mut [u8])> {
        Self::mut_from_prefix(bytes).ok()
    }

    /// As [`Header::split`], with an error that says what was missing.
    ///
    /// # Errors
    /// `bytes` is shorter than the header.
    #[inline]
    fn require(bytes: &[u8]) -> Result<(&Self, &[u8]), WireError> {
        Self::split(bytes).ok_or(WireError::Truncated {
            header: Self::NAME,
            need: Self::LEN,
            have: bytes.len(),
        })
    }

    /// Writes the header to the start of `out` and returns the number of bytes written.
    ///
    /// # Errors
    /// `out` is shorter than the header.
    #[inline]
    fn write(&self, out: &mut [u8]) -> Result<usize, WireError> {
        let target = room(out, Self::LEN)?;
        target.copy_from_slice(self.as_bytes());
        Ok(Self::LEN)
    }
}

/// The first `need` bytes of `out`, or [`WireError::NoRoom`].
#[inline]
pub(crate) fn room(out: &mut [u8], need: usize) -> Result<&mut [u8], WireError> {
    let have = out.len();
    out.get_mut(..need).ok_or(WireError::NoRoom { need, have })
}

/// Why bytes are not what they claim to be, or do not fit where they should go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireError {
    /// Fewer bytes than the header or its own length field asks for.
    Truncated {
        /// Which header.
        header: &'static str,
        /// Bytes needed.
        need: usize,
        /// Bytes there.
        have: usize,
    },
    /// A field has a value that the standard forbids here.
    Invalid {
        /// Which header.
        header: &'static str,
        /// What is wrong and what would be right.
        reason: &'static str,
    },
    /// The output is too small.
    NoRoom {
        /// Bytes needed.
        need: usize,
        /// Bytes there.
        have: usize,
    },
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WireError::Truncated { header, need, have } => {
                write!(f, "{header}: needs {need} bytes, there are {have}")
            }
            WireError::Invalid { header, reason } => write!(f, "{header}: {reason}"),
            WireError::NoRoom { need, have } => {
                write!(f, "needs room for {need} bytes, there are {have}")
            }
        }
    }
}

impl core::error::Error for WireError {}
