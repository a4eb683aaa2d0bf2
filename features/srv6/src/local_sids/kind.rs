//! The behaviours that the command `sr localsid address … behavior …` knows, each declared beside
//! its nodes.

use quiver_control::{Args, Refusal};
use quiver_core::Engine;

use super::Behavior;

/// Makes a behaviour of a command's words. What it needs is taken hold of later
/// ([`Behavior::hold`]).
pub(crate) type Make = fn(&mut Engine, &Args<'_>) -> Result<Box<dyn Behavior>, Refusal>;

/// A behaviour's name in the command, and what goes with it.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    /// `end.x`.
    pub name: &'static str,
    /// What stands behind the name, in the notation of commands: `<interface> <next-hop:ip6>`.
    pub syntax: &'static str,
    /// What it does, in one line without a full stop, for completion and the reference page.
    pub help: &'static str,
    /// What the words of `syntax` are; none that another kind explains.
    pub words: &'static [(&'static str, &'static str)],
    /// What stands behind `behavior` in an example.
    pub example: &'static str,
    pub make: Make,
}

/// In front of the alternatives, behind the first words.
const BEGIN: &str = " (<sid:ip6>|<locator:prefix6>) [fib-table <fib-table:u32>] behavior (";

/// The syntax of a command with these first words. It is put together once, at the start, of what
/// all kinds declare, and lives as long as the commands do: to the end.
pub(crate) fn syntax(first_words: &str, kinds: &[Kind]) -> &'static str {
    let kinds = kinds.iter().map(|kind| format!("<behavior:'{}'> {}", kind.name, kind.syntax));
    format!("{first_words}{BEGIN}{})", kinds.collect::<Vec<_>>().join(" | ")).leak()
}

/// What stands at the place of a local SID in a document.
pub(crate) fn entry(place: &str) -> &'static str {
    let sid = "{behavior, interface: <interface>, next-hops: [interface: {interface, next-hop}], \
               from: [from: {source, interface: <by>}], segments: [next: <segment>], c-sid: \
               <csid-bits>, *}";
    format!("{place}: {sid}").leak()
}

/// More for the reference page; what each kind does stands beside its name there.
pub(crate) const DETAILS: &str = "An address alone is a SID of 128 bits; with a length, all \
                                  addresses of the prefix are the SID. Flavours (RFC 8986 §4.16) \
                                  stand together in any order.";
