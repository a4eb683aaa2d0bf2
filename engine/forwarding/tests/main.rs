//! All tests of this crate, in one program.

mod fib;
mod fib_attached;
mod fib_history;
mod fib_limits;
mod fib_liveness;
mod fib_next_hop_objects;
mod fib_recursion;
mod fib_series;
mod mfib;
mod stand;
