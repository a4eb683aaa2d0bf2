//! What workers read: kept in `quiver_tables`, for features that look up, too.

pub use quiver_tables::ip::{Addresses, IpInterfaces, IpTables, NOT_ENABLED};
