//! Syslog (RFC 5424) over UDP (RFC 5426): messages with structured data, and their sender.

pub mod message;
pub mod sender;
