//! One switch between the real atomics and loom's, which tries every order of steps.
//! `RUSTFLAGS="--cfg loom" cargo test -p quiver-core --release model` runs the models.

#[cfg(loom)]
pub use loom::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
#[cfg(not(loom))]
pub use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
