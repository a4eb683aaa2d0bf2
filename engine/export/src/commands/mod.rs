//! Commands.

pub(crate) mod ipfix;
pub(crate) mod syslog;

use std::net::IpAddr;

use quiver_control::{Args, Cell, Refusal};

use crate::datagrams::Datagrams;

pub(crate) const GROUP: &str = "Export";

/// Why nothing can be sent: a sentence for people, a word in JSON.
fn error(text: Option<&str>, word: Option<&'static str>) -> Cell {
    let cell = text.zip(word).map(|(text, word)| Cell::new(text, word));
    Cell::optional(cell, "none")
}

/// Why a socket sends nothing, in a table: a sentence for people, a word in JSON.
pub fn error_cell(datagrams: &Datagrams) -> Cell {
    error(datagrams.error(), datagrams.error_word())
}

/// The collector's and the source's address, which are of one family.
fn addresses(args: &Args<'_>) -> Result<(IpAddr, IpAddr), Refusal> {
    let (collector, source): (IpAddr, IpAddr) = (args.get("collector")?, args.get("src")?);
    check_ends(args, ("collector", collector), ("src", source))?;
    Ok((collector, source))
}

/// Are these arguments addresses of hosts, and of one family?
///
/// # Errors
/// What is wrong with which of them.
pub fn check_ends(
    args: &Args<'_>,
    (collector_name, collector): (&'static str, IpAddr),
    (source_name, source): (&'static str, IpAddr),
) -> Result<(), Refusal> {
    if collector.is_ipv4() != source.is_ipv4() {
        let what = format!("{source} and the collector {collector} are not of one family");
        return Err(args
            .refuse(source_name, what)
            .remedy("name an address of the collector's family"));
    }
    for (name, address) in [(collector_name, collector), (source_name, source)] {
        if address.is_unspecified() || address.is_multicast() {
            return Err(args.refuse(name, format!("{address} is no address of a host")));
        }
    }
    Ok(())
}
