//! What a node asks of the nodes that send ICMP errors.

pub use quiver_tables::IcmpErrorRequest;
