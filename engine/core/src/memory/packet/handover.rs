//! What a node hands over to the next one in a packet's index: a value of a type that both name.
//! The type of each meaning is declared by the crate that owns the meaning.
//!
//! Debug builds keep the name of the type that was stored last in the buffer's header line, and
//! panic when another one is read. Release builds keep the index alone.

use super::Packet;

/// A value that fits into a packet's index.
pub trait Handover: Copy {
    /// As one word.
    fn to_index(self) -> u32;

    /// From that word.
    fn from_index(index: u32) -> Self;

    /// Debug builds: may an index that was stored as `kind` be read as this type? Types that are
    /// one case of a wider one say yes to both.
    fn reads(kind: Kind) -> bool {
        kind.is::<Self>()
    }
}

/// A value whose word no other type has: its reader need not know what was stored.
pub trait MarkedHandover: Handover {
    /// Is this the word of such a value?
    fn is_marked(index: u32) -> bool;
}

/// Implement [`Handover`] for types that are one number each. Behind `from` stands the type as
/// which the number is stored too.
#[macro_export]
macro_rules! number_handover {
    ($($name:ident $(from $stored:ident)?),+ $(,)?) => {$(
        impl $crate::memory::packet::handover::Handover for $name {
            #[inline(always)]
            fn to_index(self) -> u32 {
                self.0
            }

            #[inline(always)]
            fn from_index(index: u32) -> $name {
                $name(index)
            }

            $(fn reads(kind: $crate::memory::packet::handover::Kind) -> bool {
                kind.is::<$name>() || kind.is::<$stored>()
            })?
        }
    )+};
}

/// The type that was stored in an index.
#[derive(Clone, Copy, Debug)]
pub struct Kind(fn() -> &'static str);

impl Kind {
    /// Of a type.
    pub const fn of<T>() -> Kind {
        Kind(std::any::type_name::<T>)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        (self.0)()
    }

    /// Is it this type?
    pub fn is<T>(self) -> bool {
        self.name() == std::any::type_name::<T>()
    }
}

impl Packet {
    /// Hand a value over to the next node, in place of the one before.
    #[inline(always)]
    pub fn hand_over<T: Handover>(&mut self, value: T) {
        self.index = value.to_index();
        self.note_kind(Some(Kind::of::<T>()));
    }

    /// The value that a node before has handed over. In a packet in which nobody has stored
    /// anything, that of the word 0.
    ///
    /// # Panics
    /// In debug builds, when it was stored as another type.
    #[inline(always)]
    #[track_caller]
    pub fn handed_over<T: Handover>(&self) -> T {
        #[cfg(debug_assertions)]
        if let Some(kind) = self.kind().filter(|kind| !T::reads(*kind)) {
            panic!("a node reads {}, but {} was handed over", Kind::of::<T>().name(), kind.name());
        }
        T::from_index(self.index)
    }

    /// The value that a node before has handed over, if it is one of this type.
    ///
    /// # Panics
    /// In debug builds, when a word of another type looks like one of this type.
    #[inline(always)]
    #[track_caller]
    pub fn handed_over_if<T: MarkedHandover>(&self) -> Option<T> {
        if !T::is_marked(self.index) {
            return None;
        }
        Some(self.handed_over())
    }

    /// Hand over nothing: the index is 0.
    #[inline(always)]
    pub fn hand_over_nothing(&mut self) {
        self.index = 0;
        self.note_kind(None);
    }

    /// Hand over what `other` does.
    #[inline(always)]
    pub fn hand_over_as(&mut self, other: &Packet) {
        self.index = other.index;
        self.note_kind(other.kind());
    }

    /// Does `other` hand over the same word?
    #[inline(always)]
    pub fn hands_over_same(&self, other: &Packet) -> bool {
        self.index == other.index
    }

    /// The index as it is, for traces.
    #[inline(always)]
    pub(crate) fn index(&self) -> u32 {
        self.index
    }

    /// The type that was stored last, which only debug builds know.
    #[inline(always)]
    fn kind(&self) -> Option<Kind> {
        #[cfg(debug_assertions)]
        return self.header_line().kind;
        #[cfg(not(debug_assertions))]
        None
    }

    #[inline(always)]
    pub(super) fn note_kind(&mut self, kind: Option<Kind>) {
        #[cfg(debug_assertions)]
        (self.header_line_mut().kind = kind);
        #[cfg(not(debug_assertions))]
        let _ = kind;
    }
}

/// A packet's number, for tests.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Label(pub u32);

#[cfg(test)]
number_handover!(Label);

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::memory::buffer::{BufferCache, BufferPool, DATA_BYTES_DEFAULT};
    use crate::memory::mapping::PageSize;

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct Flag(u8);

    impl Handover for Flag {
        fn to_index(self) -> u32 {
            0xf1a6_0000 | u32::from(self.0)
        }

        fn from_index(index: u32) -> Flag {
            Flag(index as u8)
        }
    }

    impl MarkedHandover for Flag {
        fn is_marked(index: u32) -> bool {
            index >> 16 == 0xf1a6
        }
    }

    /// Reads what was stored as a label too.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct Half(u32);

    impl Handover for Half {
        fn to_index(self) -> u32 {
            self.0 * 2
        }

        fn from_index(index: u32) -> Half {
            Half(index / 2)
        }

        fn reads(kind: Kind) -> bool {
            kind.is::<Half>() || kind.is::<Label>()
        }
    }

    fn cache() -> BufferCache {
        BufferPool::new(512, DATA_BYTES_DEFAULT, PageSize::Small).expect("pool").cache()
    }

    #[test]
    fn a_value_is_read_as_the_type_that_it_was_stored_as() {
        let mut cache = cache();
        let mut packet = cache.packet().expect("buffer");
        assert_eq!(packet.handed_over::<Label>(), Label(0), "nothing is stored");
        packet.hand_over(Label(8));
        assert_eq!(
            (packet.handed_over::<Label>(), packet.handed_over::<Half>()),
            (Label(8), Half(4))
        );
        assert_eq!(packet.handed_over_if::<Flag>(), None);
        packet.hand_over(Flag(7));
        assert_eq!(packet.handed_over_if::<Flag>(), Some(Flag(7)));
        let copy = packet.duplicate(&mut cache).expect("copy");
        packet.hand_over_nothing();
        assert_eq!(
            (packet.handed_over::<Label>(), copy.handed_over::<Flag>()),
            (Label(0), Flag(7))
        );
        packet.hand_over_as(&copy);
        assert_eq!(packet.handed_over::<Flag>(), Flag(7));
        cache.free(packet);
        cache.free(copy);
    }

    #[test]
    fn a_buffer_that_is_used_again_hands_over_nothing() {
        let mut cache = cache();
        for _ in 0..600 {
            let mut packet = cache.packet().expect("buffer");
            assert_eq!(packet.handed_over::<Half>(), Half(0));
            packet.hand_over(Flag(1));
            cache.free(packet);
        }
    }

    #[cfg(debug_assertions)]
    #[test]
    #[should_panic(expected = "Flag was handed over")]
    fn a_value_that_is_read_as_another_type_panics_in_debug_builds() {
        let mut cache = cache();
        let mut packet = cache.packet().expect("buffer");
        packet.hand_over(Flag(7));
        packet.handed_over::<Label>();
    }

    #[cfg(debug_assertions)]
    #[test]
    #[should_panic(expected = "Label was handed over")]
    fn a_word_that_looks_like_that_of_another_type_panics_in_debug_builds() {
        let mut cache = cache();
        let mut packet = cache.packet().expect("buffer");
        packet.hand_over(Label(0xf1a6_0001));
        packet.handed_over_if::<Flag>();
    }
}
