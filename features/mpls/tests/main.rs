//! The tests of MPLS.

mod golden;
