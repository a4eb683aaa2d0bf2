//! The tests of MPLS.

mod golden;
mod routes;
mod tunnels;
