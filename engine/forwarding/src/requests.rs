//! What one node asks of another that serves several: an ICMP error, fragments, a reassembly.

mod fragment;
mod icmp_error;
mod reassembly;

pub use fragment::FragmentRequest;
pub use icmp_error::IcmpErrorRequest;
pub use reassembly::ReassemblyRequest;
