//! Quiver's wire.
