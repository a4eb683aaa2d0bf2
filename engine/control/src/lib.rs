//! Quiver's control.
