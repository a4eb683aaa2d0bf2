//! All tests of this crate, in one program.

mod commands;
mod dpdk;
mod router;
mod threads;
mod two_routers;
