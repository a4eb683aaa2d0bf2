//! Why the FIB refuses.

use std::net::IpAddr;

use quiver_core::InterfaceId;
use quiver_tables::lpm::{LpmError, TABLES_MAX};
use quiver_tables::memory::MemoryError;
use quiver_tables::prefix::IpPrefix;

use super::labels::LABEL_TABLES_MAX;
use super::path::Family;
use crate::next_hop_group::{GroupError, PATHS_MAX};

/// A refused change. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum FibError {
    /// No such interface.
    #[error("{asked}: there is no interface number {}; create it first", interface.0)]
    NoInterface {
        /// What named it.
        asked: String,
        /// The number.
        interface: InterfaceId,
    },
    /// No such table.
    #[error("there is no {family} table {id}; add it first ({} table add {id})", family.word())]
    NoTable {
        /// Its family.
        family: Family,
        /// The operator's number.
        id: u32,
    },
    /// A table number that was never given out.
    #[error("there is no {family} table with index {index}")]
    NoTableIndex {
        /// Its family.
        family: Family,
        /// The small number.
        index: u32,
    },
    /// The table exists.
    #[error("{family} table {id} exists already")]
    TableExists {
        /// Its family.
        family: Family,
        /// The operator's number.
        id: u32,
    },
    /// The table is in use.
    #[error("{family} table {id} is in use by {user}; change that first")]
    TableInUse {
        /// Its family.
        family: Family,
        /// The operator's number.
        id: u32,
        /// By whom.
        user: String,
    },
    /// No such label table.
    #[error("there is no MPLS table {0}; add it first (mpls table add {0})")]
    NoLabelTable(u32),
    /// A label table number that was never given out.
    #[error("there is no MPLS table with index {0}")]
    NoLabelTableIndex(u32),
    /// The label table exists.
    #[error("MPLS table {0} exists already")]
    LabelTableExists(u32),
    /// The label table is in use.
    #[error("MPLS table {id} is in use by {user}; change that first")]
    LabelTableInUse {
        /// The operator's number.
        id: u32,
        /// By whom.
        user: String,
    },
    /// No more label tables.
    #[error("there are {LABEL_TABLES_MAX} MPLS tables already; delete one")]
    LabelTablesFull,
    /// A label that no route can have.
    #[error("label {0} has a meaning of its own; give one of 16 to 1048575")]
    BadLabel(u32),
    /// No such route of a label.
    #[error("there is no route for label {0} in that table (show mpls fib)")]
    NoLabelRoute(u32),
    /// The path takes other packets.
    #[error("route {0}: labelled packets cannot go by this path")]
    NotForLabels(IpPrefix),
    /// Labels on a path without a next hop.
    #[error("route {0}: labels are put on packets to a next hop; name one")]
    LabelsNeedNextHop(IpPrefix),
    /// No more tables.
    #[error("there are {TABLES_MAX} {0} tables already; delete one")]
    TablesFull(Family),
    /// No paths given.
    #[error("route {0} has no path; give at least one `via`")]
    NoPath(IpPrefix),
    /// Too many paths.
    #[error("route {0} would have {1} paths, at most {PATHS_MAX} are possible")]
    TooManyPaths(IpPrefix, usize),
    /// Too many next-hop objects.
    #[error("there are {0} next-hop objects already")]
    NextHopObjectsFull(usize),
    /// Paths that an object cannot have.
    #[error(
        "next-hop object {0}: its paths are at most {PATHS_MAX} next hops on interfaces, each with \
         a weight of 1 or more"
    )]
    BadNextHopObject(u32),
    /// A weight that makes no sense.
    #[error("route {0}: weight 0 means no traffic; leave the path out instead")]
    WeightZero(IpPrefix),
    /// A next hop that no frame can be sent to.
    #[error("route {0}: {1} cannot be a next hop; give a neighbour's unicast address")]
    BadNextHop(IpPrefix, IpAddr),
    /// A link-local next hop without its interface.
    #[error("route {0}: {1} is link-local; name the interface after it")]
    LinkLocalNeedsInterface(IpPrefix, IpAddr),
    /// A look-up in its own table.
    #[error("route {0}: a look-up in the route's own table would never end; name another table")]
    LookupInItself(IpPrefix),
    /// A replacement is under way.
    #[error(
        "the static routes of that {} table are being replaced already; end or cancel that first",
        .0
    )]
    ReplaceBegun(Family),
    /// No replacement is under way.
    #[error("the static routes of that {} table are not being replaced; begin that first", .0)]
    ReplaceNotBegun(Family),
    /// No such route.
    #[error("there is no such route {0} in that table")]
    NoRoute(IpPrefix),
    /// The route has no such path.
    #[error("route {0} has no such path; see `show ip fib {0}`")]
    NoSuchPath(IpPrefix),
    /// A count that runs out of the address space.
    #[error("{count} prefixes from {first} on do not fit in the address space; at most {fit} do")]
    CountTooLarge {
        /// The first prefix.
        first: IpPrefix,
        /// How many were asked.
        count: u64,
        /// How many fit.
        fit: u64,
    },
    /// An address that an interface cannot have.
    #[error("{0} cannot be an interface's address; give a unicast address")]
    BadAddress(IpAddr),
    /// The address is configured.
    #[error("{0}/{1} is already configured on interface number {n}", n = .2.0)]
    AddressExists(IpAddr, u8, InterfaceId),
    /// The address is not configured.
    #[error("{0}/{1} is not configured on interface number {n}", n = .2.0)]
    NoAddress(IpAddr, u8, InterfaceId),
    /// Another interface has that subnet.
    #[error(
        "{0} is already connected in that table by another interface; delete it there or use \
         another table"
    )]
    SubnetConnected(IpPrefix),
    /// The interface has addresses.
    #[error(
        "interface number {} has addresses in {family} table index {table}; delete them first",
        interface.0
    )]
    InterfaceHasAddresses {
        /// The interface.
        interface: InterfaceId,
        /// The family.
        family: Family,
        /// The table it is in.
        table: u32,
    },
    /// A MAC address that no station has.
    #[error("{0} is no station's MAC address; give one that is neither zero nor a group's")]
    BadMac(quiver_wire::MacAddress),
    /// A neighbour that cannot be.
    #[error("{0} cannot be a neighbour; give a unicast address")]
    BadNeighbour(IpAddr),
    /// No such neighbour.
    #[error("interface number {n} has no neighbour {1}", n = .0.0)]
    NoNeighbour(InterfaceId, IpAddr),
    /// Too many neighbours.
    #[error("there are {0} dynamic neighbours already; raise the limit or add a static one")]
    NeighboursFull(usize),
    /// Too many adjacencies.
    #[error("the table of adjacencies is full ({0}); remove neighbours or routes")]
    AdjacenciesFull(usize),
    /// Too many lists of paths.
    #[error(
        "there are {0} different lists of paths already; remove routes with paths of their own, \
         or raise the limit (`show fib limits`)"
    )]
    PathListsFull(usize),
    /// Too many routes.
    #[error(
        "there are {max} {family} routes already, in all tables; remove some, or raise the limit \
         (`show fib limits`)"
    )]
    RoutesFull {
        /// Their family.
        family: Family,
        /// The limit.
        max: usize,
    },
    /// Groups used up.
    #[error(transparent)]
    Groups(#[from] GroupError),
    /// Prefix match used up.
    #[error(transparent)]
    PrefixMatch(#[from] LpmError),
    /// No memory.
    #[error(transparent)]
    Memory(#[from] MemoryError),
}

impl FibError {
    /// The text, where the route that it names stands for something else: `subject` in its place.
    pub fn about(&self, subject: &str) -> String {
        let text = self.to_string();
        let route = match self {
            FibError::NoInterface { asked, .. } => Some(asked.clone()),
            FibError::NoPath(route)
            | FibError::TooManyPaths(route, _)
            | FibError::WeightZero(route)
            | FibError::BadNextHop(route, _)
            | FibError::LinkLocalNeedsInterface(route, _)
            | FibError::LookupInItself(route)
            | FibError::NotForLabels(route)
            | FibError::LabelsNeedNextHop(route)
            | FibError::NoRoute(route)
            | FibError::NoSuchPath(route) => Some(format!("route {route}")),
            _ => None,
        };
        route.map_or_else(|| text.clone(), |route| text.replacen(&route, subject, 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_about_a_route_names_what_the_route_stands_for() {
        let default = IpPrefix::new(IpAddr::from([0; 16]), 0);
        let next_hop = "fe80::1".parse().unwrap();
        let error = FibError::LinkLocalNeedsInterface(default, next_hop);
        assert_eq!(
            error.about("SR policy fc00::b"),
            "SR policy fc00::b: fe80::1 is link-local; name the interface after it"
        );
        let asked = format!("route {default}");
        let error = FibError::NoInterface { asked, interface: InterfaceId(3) };
        assert_eq!(error.about("l2 e0"), "l2 e0: there is no interface number 3; create it first");
        assert_eq!(
            FibError::PathListsFull(4).about("l2 e0"),
            FibError::PathListsFull(4).to_string()
        );
    }
}
