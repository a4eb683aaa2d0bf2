//! Tests of VXLAN tunnels.

mod golden;
mod hostile;
