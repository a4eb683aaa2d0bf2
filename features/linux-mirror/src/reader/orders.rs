//! What the control thread has a reader do.

use quiver_netlink::Request;

use super::own::OwnChange;

/// What is told again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Again {
    /// All of a link.
    Link(u32),
    /// Routes by a next-hop object.
    Object(u32),
    /// All there is.
    All,
}

/// Something to do.
pub(crate) enum Order {
    /// Tell something again that was told before.
    Report(Again),
    /// Ask Linux for all there is, and tell what differs.
    Dump,
    /// Have Linux get or lose routes and neighbours of the router.
    Write(Vec<OwnChange>),
    /// Have Linux change something; in words, for the log.
    Ask(String, Request),
}
