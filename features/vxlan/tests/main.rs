//! Tests of VXLAN tunnels.

mod dead_vtep;
mod golden;
mod hostile;
mod path_mtu;
