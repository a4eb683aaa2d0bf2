//! Where a local SID stands: an address, or a prefix whose further bits are the SID's arguments, in
//! a table.

use std::net::Ipv6Addr;

use quiver_control::{Args, IpPrefix as Written, Refusal};
use quiver_core::Engine;
use quiver_forwarding::fib::{Family, Fib, FibError};
use quiver_tables::prefix::{Ip6Prefix, Prefix};
use quiver_wire::ip6::address;

/// A table by its small number, and a prefix in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub table: u32,
    pub prefix: Ip6Prefix,
}

impl Place {
    /// The least place of a table, and the one behind its last.
    pub fn ends(table: u32) -> (Place, Place) {
        let least = |table: u32| Place { table, prefix: Ip6Prefix::new(0, 0) };
        (least(table), least(table.saturating_add(1)))
    }
}

/// What a command says of it: `<address:ip6>` or `<prefix:prefix6>`, and `[fib-table <:u32>]`.
pub(crate) fn of(engine: &mut Engine, args: &Args<'_>) -> Result<Place, Refusal> {
    let (name, written) = match args.optional::<Ipv6Addr>("sid")? {
        Some(address) => ("sid", Written { address: address.into(), length: 128 }),
        None => ("locator", args.get::<Written>("locator")?),
    };
    if written.has_host_bits() {
        let what = format!("{written} has bits set behind its length");
        return Err(args
            .refuse(name, what)
            .remedy(format!("{} would be right", written.network())));
    }
    let std::net::IpAddr::V6(sid) = written.address else {
        return Err(args.refuse(name, format!("{written} is no IPv6 address")));
    };
    if !address::is_unicast(sid) || address::is_link_local(sid) || sid.is_loopback() {
        let what = format!("{written} cannot be a SID: it is no unicast address that is routed");
        return Err(args
            .refuse(name, what)
            .remedy("take one of a prefix that is routed to this router"));
    }
    let id = args.or("fib-table", 0u32)?;
    let family = Family::Ip6;
    let table = super::fib(engine)?.table_index(family, id);
    let table = table
        .ok_or_else(|| args.refuse("fib-table", FibError::NoTable { family, id }.to_string()))?;
    Ok(Place { table, prefix: Prefix::new(sid.to_bits(), written.length) })
}

impl Place {
    /// Of a command.
    pub fn of(engine: &mut Engine, args: &Args<'_>) -> Result<Place, Refusal> {
        of(engine, args)
    }

    /// The SID, without its length where that is 128.
    pub fn sid(self) -> String {
        let sid = Ipv6Addr::from_bits(self.prefix.first());
        match self.prefix.len() {
            128 => sid.to_string(),
            length => format!("{sid}/{length}"),
        }
    }

    /// The operator's number of its table.
    pub fn table_id(self, engine: &Engine) -> u32 {
        let fib = engine.get::<Fib>();
        fib.and_then(|fib| fib.table_id(Family::Ip6, self.table)).unwrap_or(self.table)
    }

    /// As it stands in commands: `fc00::1`, or `fc00::1 fib-table 10`.
    pub fn words(self, engine: &Engine) -> String {
        match self.table_id(engine) {
            0 => self.sid(),
            table => format!("{} fib-table {table}", self.sid()),
        }
    }
}

/// A refusal of the FIB, where a route's prefix means the SID.
pub(crate) fn refusal(engine: &Engine, place: Place, error: FibError) -> Refusal {
    Refusal::of_table(engine, error.about(&format!("local SID {}", place.sid())))
}
