//! All tests of this crate, in one program.

mod exact;
mod exact_beside;
mod fib;
mod fib_attached;
mod fib_history;
mod fib_limits;
mod fib_recursion;
mod fib_series;
mod mac;
mod mfib;
mod prefix_match;
mod stand;
