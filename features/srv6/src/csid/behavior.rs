//! The control side: a behaviour of RFC 8986, and the structure of its SID.

use quiver_control::{Args, Refusal};
use quiver_core::{Engine, InterfaceId};
use quiver_wire::csid::{Packing, Structure};

use super::step::Flavor as _;
use super::{NextCsid, ReplaceCsid};
use crate::endpoint::sid_entry::SidEntry;
use crate::endpoint::{end, end_x};
use crate::local_sids::{Behavior, Held, Kind, Names, Place};

/// Bits of a C-SID when none are given (RFC 9800 §5.1 recommends them).
const NEXT_BITS: u8 = 16;
const REPLACE_BITS: u8 = 32;

/// Where the C-SID that follows stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flavor {
    /// In the destination's argument.
    Next,
    /// In the segment list.
    Replace,
}

/// End, End.T or End.X, compressed.
#[derive(Debug)]
struct Compressed {
    flavor: Flavor,
    csid_bits: u8,
    plain: Box<dyn Behavior>,
}

impl Compressed {
    /// What the SID's prefix and the length of its C-SID make.
    fn structure(&self, place: Place) -> Result<Structure, Refusal> {
        let (length, csid) = (place.prefix.len(), self.csid_bits);
        let block = length.checked_sub(csid).filter(|block| *block > 0);
        block.and_then(|block| Structure::new(block, csid)).ok_or_else(|| {
            Refusal::new(format!(
                "a SID of {length} bits has no locator block, a C-SID of {csid} bits, and an \
                 argument"
            ))
            .remedy(
                "give the SID with the length of block and C-SID, as fcbb:bbbb:1::/48 for 32 and \
                 16 bits",
            )
        })
    }
}

impl Behavior for Compressed {
    fn words(&self, names: &Names<'_>) -> String {
        let plain = self.plain.words(names);
        let (name, rest) =
            plain.split_once(' ').map_or((&plain[..], ""), |(name, rest)| (name, rest));
        let (name, usual) = match self.flavor {
            Flavor::Next => (micro(name), NEXT_BITS),
            Flavor::Replace => (format!("{name}.replace"), REPLACE_BITS),
        };
        let bits = if self.csid_bits == usual {
            String::new()
        } else {
            format!(" c-sid {}", self.csid_bits)
        };
        let space = if rest.is_empty() { "" } else { " " };
        format!("{name}{space}{rest}{bits}")
    }

    fn hold(&mut self, engine: &mut Engine, place: Place) -> Result<Held, Refusal> {
        let structure = self.structure(place)?;
        let held = self.plain.hold(engine, place)?;
        let crosses = engine.node_name(held.node) == end_x::NODE;
        let name = match (self.flavor, crosses) {
            (Flavor::Next, false) => NextCsid::NODE,
            (Flavor::Next, true) => NextCsid::NODE_X,
            (Flavor::Replace, false) => ReplaceCsid::NODE,
            (Flavor::Replace, true) => ReplaceCsid::NODE_X,
        };
        let Some(node) = engine.node_id(name) else {
            self.plain.release(engine);
            return Err(Refusal::new(format!("{name} is not built in")));
        };
        Ok(Held { node, words: SidEntry::of(held.words).with_structure(structure).words() })
    }

    fn release(&mut self, engine: &mut Engine) {
        self.plain.release(engine);
    }

    fn names(&self, interface: InterfaceId) -> bool {
        self.plain.names(interface)
    }
}

/// The name of a behaviour with NEXT-C-SID: `end` is `un`, `end.x` is `ua`.
fn micro(name: &str) -> String {
    match name {
        "end" => "un".to_owned(),
        "end.x" => "ua".to_owned(),
        other => other.replacen("end.", "u", 1),
    }
}

/// The length of C-SIDs that a command has, and the plain behaviour.
fn compressed(
    args: &Args<'_>,
    flavor: Flavor,
    plain: Result<Box<dyn Behavior>, Refusal>,
) -> Result<Box<dyn Behavior>, Refusal> {
    let usual = if flavor == Flavor::Next { NEXT_BITS } else { REPLACE_BITS };
    let csid_bits = args.or("csid-bits", usual)?;
    if flavor == Flavor::Replace && Packing::of(csid_bits).is_none() {
        return Err(args
            .refuse(
                "csid-bits",
                format!("containers cannot be filled with C-SIDs of {csid_bits} bits"),
            )
            .remedy("16 or 32 (RFC 9800 §6.1)"));
    }
    Ok(Box::new(Compressed { flavor, csid_bits, plain: plain? }))
}

/// A behaviour with NEXT-C-SID, and C-SIDs of so many bits.
pub(crate) fn next(csid_bits: u8, plain: Box<dyn Behavior>) -> Box<dyn Behavior> {
    Box::new(Compressed { flavor: Flavor::Next, csid_bits, plain })
}

/// What the command knows.
pub(crate) const KINDS: [Kind; 6] = [
    Kind {
        name: "un",
        syntax: "{[psp] [usp] [usd]} [c-sid <csid-bits:u8>]",
        help: "uN, End with NEXT-C-SID: to the C-SID that follows in the destination",
        words: &[("csid-bits", "bits of a C-SID, locator node and function together")],
        example: "un",
        make: |engine, args| compressed(args, Flavor::Next, end::make(engine, args)),
    },
    Kind {
        name: "ut",
        syntax: "<table:u32> {[psp] [usp] [usd]} [c-sid <csid-bits:u8>]",
        help: "uT, End.T with NEXT-C-SID",
        words: &[],
        example: "ut 0",
        make: |engine, args| compressed(args, Flavor::Next, end::make(engine, args)),
    },
    Kind {
        name: "ua",
        syntax: "(<interface> <next-hop:ip>)... {[psp] [usp] [usd]} [c-sid <csid-bits:u8>]",
        help: "uA, End.X with NEXT-C-SID: to the C-SID that follows, by this neighbour or one of \
               several",
        words: &[],
        example: "ua e0 2001:db8::2 c-sid 32",
        make: |engine, args| compressed(args, Flavor::Next, end_x::make(engine, args)),
    },
    Kind {
        name: "end.replace",
        syntax: "{[psp] [usp] [usd]} [c-sid <csid-bits:u8>]",
        help: "End with REPLACE-C-SID: to the C-SID that follows in the segment list's container",
        words: &[],
        example: "end.replace",
        make: |engine, args| compressed(args, Flavor::Replace, end::make(engine, args)),
    },
    Kind {
        name: "end.x.replace",
        syntax: "(<interface> <next-hop:ip>)... {[psp] [usp] [usd]} [c-sid <csid-bits:u8>]",
        help: "End.X with REPLACE-C-SID",
        words: &[],
        example: "end.x.replace e0 2001:db8::2",
        make: |engine, args| compressed(args, Flavor::Replace, end_x::make(engine, args)),
    },
    Kind {
        name: "end.t.replace",
        syntax: "<table:u32> {[psp] [usp] [usd]} [c-sid <csid-bits:u8>]",
        help: "End.T with REPLACE-C-SID",
        words: &[],
        example: "end.t.replace 0",
        make: |engine, args| compressed(args, Flavor::Replace, end::make(engine, args)),
    },
];
