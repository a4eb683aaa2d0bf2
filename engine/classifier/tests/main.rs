//! Compiled lists against a first match in order.

mod equality;
