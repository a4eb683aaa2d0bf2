//! Addresses of interfaces: configured, borrowed, leased, advertised by routers, checked for
//! duplicates.

pub(crate) mod autoconfig;
pub(crate) mod calls;
pub(crate) mod duplicate_detection;
pub(crate) mod interfaces;
pub(crate) mod leases;
pub(crate) mod published;
pub(crate) mod unnumbered;
