//! All tests of this crate, in one program.

mod csid;
mod edges;
mod endpoints;
mod golden;
mod headend;
mod hostile;
mod l2_services;
mod l2_tunnels;
mod local_sids;
mod mobile;
mod path_mtu;
mod proxies;
