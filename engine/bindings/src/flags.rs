//! What a session counts as, in 16 bits of it.

/// Flags of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Flags(pub u16);

impl Flags {
    /// Its remote address has a permission.
    pub const PERMITTED: Flags = Flags(1);
    /// It counts as one of its subscriber.
    const COUNTED: Flags = Flags(2);
    /// The remote host is inside, too.
    pub const HAIRPIN: Flags = Flags(4);

    /// It counts as one of its subscriber, whom so many bits of the host's address name.
    pub fn counted(prefix_length: u8) -> Flags {
        Flags(Self::COUNTED.0 | u16::from(prefix_length) << 8)
    }

    /// The bits that name the subscriber that it counts as one of.
    pub fn subscriber_length(self) -> Option<u8> {
        self.has(Self::COUNTED).then_some((self.0 >> 8) as u8)
    }

    /// Both.
    #[must_use]
    pub fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// Has it one of these?
    #[inline(always)]
    pub fn has(self, other: Flags) -> bool {
        self.0 & other.0 != 0
    }
}
