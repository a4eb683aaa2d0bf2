//! Memory that packets lie in, and how it is shared and reclaimed.

pub mod buffer;
pub mod epoch;
pub(crate) mod header_line;
pub mod mapping;
pub mod packet;
pub mod reserve;
pub mod ring;
pub mod sync;
