//! IPFIX (RFC 7011): information elements, templates, messages, and the exporter.

pub mod elements;
pub mod exporter;
mod link;
pub mod message;
pub mod template;
