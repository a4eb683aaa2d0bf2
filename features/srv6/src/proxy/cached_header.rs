//! The outer headers of the last packet that came to an End.AD SID: any worker writes them, and any
//! worker reads them, and none waits.
//!
//! There are several versions. A writer takes turns with others by a flag that it does not wait
//! for, and writes the version that readers left longest ago; a reader copies the newest one, and
//! then sees by its number whether it was written to meanwhile.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};

use quiver_encap::entries::HEADER_BYTES_MAX;

use super::outer_header::OuterHeader;

/// Versions of the headers.
const VERSIONS: u64 = 4;
/// Words of the longest headers.
pub(super) const WORDS: usize = HEADER_BYTES_MAX / WORD_BYTES;
/// Words of an IPv6 header and the first one of an SRH behind it.
pub(super) const FRONT_WORDS: usize = 6;
/// Bytes of a word: extension headers begin and end with one.
pub(super) const WORD_BYTES: usize = size_of::<u64>();
/// As it lies in a packet.
pub(super) type Word = [u8; WORD_BYTES];

/// The first word of an SRH in which one segment less is left.
#[inline(always)]
pub(super) fn stepped([next, length, kind, left, rest @ ..]: Word) -> Word {
    let [last, flags, high, low] = rest;
    [next, length, kind, left.wrapping_sub(1), last, flags, high, low]
}
/// How often a reader tries to get one version whole.
const TRIES: usize = 8;

/// One version.
#[derive(Debug)]
struct Version {
    length: AtomicU32,
    words: [AtomicU64; WORDS],
}

/// What became of headers that were to be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CacheWrite {
    /// They are those that were kept before.
    Same,
    /// They are kept now.
    New,
    /// Another worker is about to keep its own, which are as new.
    Busy,
    /// They are too long.
    TooLong,
    /// So many flows are kept already.
    Full,
}

/// Why headers could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unread {
    /// There are none.
    Nothing,
    /// They changed under the reader's hands, again and again.
    Changing,
}

/// The headers.
#[derive(Debug)]
pub(super) struct CachedHeader {
    /// The number of the newest version; 0 when there is none.
    newest: AtomicU64,
    writing: AtomicBool,
    versions: [Version; VERSIONS as usize],
}

impl CachedHeader {
    /// None yet.
    pub fn new() -> CachedHeader {
        let version =
            |_| Version { length: AtomicU32::new(0), words: [const { AtomicU64::new(0) }; WORDS] };
        CachedHeader {
            newest: AtomicU64::new(0),
            writing: AtomicBool::new(false),
            versions: std::array::from_fn(version),
        }
    }

    #[inline(always)]
    fn version(&self, number: u64) -> &Version {
        &self.versions[(number % VERSIONS) as usize]
    }

    /// Keep headers of these words.
    #[inline(always)]
    pub fn keep(&self, front: [Word; FRONT_WORDS], rest: &[Word]) -> CacheWrite {
        let count = FRONT_WORDS + rest.len();
        if count > WORDS {
            return CacheWrite::TooLong;
        }
        let newest = self.newest.load(Ordering::Acquire);
        let known = self.version(newest);
        let length = known.length.load(Ordering::Relaxed) as usize;
        let mut differ = u64::from(newest == 0) | (length ^ (count * WORD_BYTES)) as u64;
        let (kept_front, kept_rest) = known.words.split_at(FRONT_WORDS);
        for (kept, word) in kept_front.iter().zip(front) {
            differ |= kept.load(Ordering::Relaxed) ^ u64::from_ne_bytes(word);
        }
        for (kept, word) in kept_rest.iter().zip(rest) {
            differ |= kept.load(Ordering::Relaxed) ^ u64::from_ne_bytes(*word);
        }
        if differ == 0 { CacheWrite::Same } else { self.replace(&front, rest) }
    }

    #[cold]
    #[inline(never)]
    fn replace(&self, front: &[Word; FRONT_WORDS], rest: &[Word]) -> CacheWrite {
        if self.writing.swap(true, Ordering::Acquire) {
            return CacheWrite::Busy;
        }
        let number = self.newest.load(Ordering::Relaxed).wrapping_add(1);
        let version = self.version(number);
        // A reader that sees one of the words below sees the number of the version before, too.
        fence(Ordering::Release);
        version.length.store(((FRONT_WORDS + rest.len()) * WORD_BYTES) as u32, Ordering::Relaxed);
        for (word, kept) in front.iter().chain(rest).zip(&version.words) {
            kept.store(u64::from_ne_bytes(*word), Ordering::Relaxed);
        }
        self.newest.store(number, Ordering::Release);
        self.writing.store(false, Ordering::Release);
        CacheWrite::New
    }

    /// Copy the headers.
    pub fn read(&self, front: &mut OuterHeader) -> Result<(), Unread> {
        for _ in 0..TRIES {
            let newest = self.newest.load(Ordering::Acquire);
            if newest == 0 {
                return Err(Unread::Nothing);
            }
            let version = self.version(newest);
            let length = version.length.load(Ordering::Relaxed) as usize;
            let Some(place) = front.lay_out(length) else { continue };
            for (to, from) in place.as_chunks_mut::<WORD_BYTES>().0.iter_mut().zip(&version.words) {
                *to = from.load(Ordering::Relaxed).to_ne_bytes();
            }
            fence(Ordering::Acquire);
            // The version is written again by who makes the fourth after it, once the third is the
            // newest.
            if self.newest.load(Ordering::Relaxed).wrapping_sub(newest) < VERSIONS - 1 {
                return Ok(());
            }
        }
        Err(Unread::Changing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keep headers of so many bytes, all alike but for the first 8.
    fn keep(kept: &CachedHeader, bytes: usize, all: u8, first: u8) -> CacheWrite {
        let mut front = [[all; 8]; FRONT_WORDS];
        front[0] = [first; 8];
        kept.keep(front, &vec![[all; 8]; bytes / 8 - FRONT_WORDS])
    }

    #[test]
    fn what_was_kept_last_is_read() {
        let (kept, mut front) = (CachedHeader::new(), OuterHeader::default());
        assert_eq!(kept.read(&mut OuterHeader::default()), Err(Unread::Nothing));
        assert_eq!(kept.read(&mut front), Err(Unread::Nothing));
        for number in 1..20u8 {
            let headers = vec![number; 40 + 8 * usize::from(number)];
            assert_eq!(keep(&kept, headers.len(), number, 9), CacheWrite::New);
            assert_eq!(keep(&kept, headers.len(), number, 9), CacheWrite::Same);
            assert_eq!(kept.read(&mut front), Ok(()));
            assert_eq!((&front.header()[..8], &front.header()[8..]), (&[9; 8][..], &headers[8..]));
        }
    }

    #[test]
    fn headers_that_fit_no_row_are_not_kept() {
        let kept = CachedHeader::new();
        assert_eq!(keep(&kept, HEADER_BYTES_MAX + 8, 0, 0), CacheWrite::TooLong);
        assert_eq!(kept.read(&mut OuterHeader::default()), Err(Unread::Nothing));
    }

    #[test]
    fn a_reader_never_sees_a_mixture() {
        let kept = CachedHeader::new();
        std::thread::scope(|scope| {
            for writer in 0..2u8 {
                let kept = &kept;
                scope.spawn(move || {
                    for round in 0..20_000u32 {
                        let number = (round as u8) << 1 | writer;
                        keep(kept, 80, number, number);
                    }
                });
            }
            let mut front = OuterHeader::default();
            for _ in 0..20_000 {
                if kept.read(&mut front).is_ok() {
                    let first = front.header()[0];
                    assert!(
                        front.header().iter().all(|byte| *byte == first),
                        "{:?}",
                        front.header()
                    );
                }
            }
        });
    }
}
