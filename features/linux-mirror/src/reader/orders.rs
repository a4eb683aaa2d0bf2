//! What the control thread has the reader do.

use quiver_netlink::Request;

/// Something to do.
pub(crate) enum Order {
    /// Tell all of a link again.
    TellLinkAgain(u32),
    /// Tell routes by a next-hop object again.
    TellObjectAgain(u32),
    /// Tell all there is again.
    TellAllAgain,
    /// Ask Linux for all there is, and tell what differs.
    Dump,
    /// Have Linux change something; in words, for the log.
    Ask(String, Request),
}
