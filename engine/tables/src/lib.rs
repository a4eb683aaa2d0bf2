//! Quiver's tables.
