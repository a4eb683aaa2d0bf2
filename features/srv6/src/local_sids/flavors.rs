//! Flavours of End, End.X and End.T (RFC 8986 §4.16): who takes the SRH off, and who the outer
//! header.

use quiver_control::Args;

/// Any of them together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flavors(u8);

impl Flavors {
    /// Penultimate segment pop: the SRH goes with the last segment but one (§4.16.1).
    pub const PSP: Flavors = Flavors(1);
    /// Ultimate segment pop: the SRH goes when no segments are left (§4.16.2).
    pub const USP: Flavors = Flavors(2);
    /// Ultimate segment decapsulation: an inner packet goes on by itself (§4.16.3).
    pub const USD: Flavors = Flavors(4);

    const WORDS: [(Flavors, &'static str); 3] =
        [(Flavors::PSP, "psp"), (Flavors::USP, "usp"), (Flavors::USD, "usd")];

    /// Those whose words a command has.
    pub fn of(args: &Args<'_>) -> Flavors {
        let given = Flavors::WORDS.iter().filter(|(_, word)| args.has(word));
        Flavors(given.fold(0, |all, (flavor, _)| all | flavor.0))
    }

    /// As one byte.
    #[inline(always)]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// From that byte.
    #[inline(always)]
    pub const fn from_bits(bits: u8) -> Flavors {
        Flavors(bits)
    }

    /// Is `flavor` among them?
    #[inline(always)]
    pub const fn has(self, flavor: Flavors) -> bool {
        self.0 & flavor.0 != 0
    }

    /// As they stand behind the behaviour: ` psp usd`, or nothing.
    pub fn words(self) -> String {
        let given = Flavors::WORDS.iter().filter(|(flavor, _)| self.has(*flavor));
        given.map(|(_, word)| format!(" {word}")).collect()
    }
}
