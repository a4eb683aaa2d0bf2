//! What an interface is to be, and why that may not be possible.

use std::io;
use std::path::PathBuf;

use quiver_core::control::interfaces::InterfaceError;
use quiver_core::pcap_file::PcapError;
use quiver_core::worker::device::RxMode;

/// Bytes of packets that one file may hold: it is kept in memory.
pub const RX_BYTES_MAX: usize = 1 << 30;
/// Packets that one file may hold.
pub const RX_PACKETS_MAX: usize = 16_000_000;
/// Longest packet that can come in, bytes: IP's 64 KiB with what stands in front of it.
pub const PACKET_BYTES_MAX: usize = 65_600;
/// Largest layer 3 packet unless set otherwise, bytes.
pub const MTU_BYTES_DEFAULT: u32 = 9000;

/// An interface to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PcapConfig {
    /// Its number: the interface is called `pcapN`.
    pub id: u32,
    /// What comes in.
    pub rx: Option<PathBuf>,
    /// Where what is sent goes. A file that exists is continued.
    pub tx: Option<PathBuf>,
    /// Begin again at the end of the file that comes in.
    pub repeat: bool,
    /// How its queue is served, until the operator says otherwise.
    pub rx_mode: RxMode,
}

impl PcapConfig {
    /// An interface without files yet; it needs one.
    pub fn new(id: u32) -> PcapConfig {
        PcapConfig { id, rx: None, tx: None, repeat: false, rx_mode: RxMode::Adaptive }
    }

    /// `pcapN`.
    pub fn name(&self) -> String {
        format!("pcap{}", self.id)
    }
}

/// Why something about pcap interfaces cannot be done.
#[derive(Debug, thiserror::Error)]
pub enum PcapDriverError {
    /// Nothing to do.
    #[error("a pcap interface needs a file: `rx FILE`, `tx FILE` or both")]
    NoFile,
    /// Nothing to repeat.
    #[error("`loop` repeats what comes in, and needs `rx FILE`")]
    NothingToRepeat,
    /// The system refuses.
    #[error("{path}: {source}")]
    Io {
        /// Which file.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// The file is none that may be opened, in words.
    #[error("{0}")]
    File(String),
    /// The file cannot be read to its end.
    #[error("{path}: {source}")]
    Format {
        /// Which file.
        path: String,
        /// What is wrong, and where.
        source: PcapError,
    },
    /// Neither Ethernet nor IP.
    #[error(
        "{path}: its packets are of link type {link_type}; 1 (Ethernet) and 101 (IP) are known"
    )]
    LinkType {
        /// Which file.
        path: String,
        /// As in the file's header.
        link_type: u32,
    },
    /// A packet that no network carries.
    #[error("{path}: packet {number} has {length} bytes; at most {PACKET_BYTES_MAX} are possible")]
    PacketTooLong {
        /// Which file.
        path: String,
        /// Counted from 1.
        number: usize,
        /// Its length.
        length: usize,
    },
    /// A packet of nothing.
    #[error("{path}: packet {number} has no bytes")]
    PacketEmpty {
        /// Which file.
        path: String,
        /// Counted from 1.
        number: usize,
    },
    /// Nothing in it.
    #[error("{0} holds no packets")]
    Empty(String),
    /// It does not fit in memory.
    #[error(
        "{0} is too large to be kept in memory: at most {mib} MiB and {RX_PACKETS_MAX} packets; \
         `editcap -c` cuts it in pieces",
        mib = RX_BYTES_MAX >> 20
    )]
    TooLarge(String),
    /// It was written by something else.
    #[error(
        "{0} exists and was written in another way (not little endian with nanoseconds, or \
         another link type), so it cannot be continued; name another file"
    )]
    OtherFormat(String),
    /// From the engine.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// Not one of ours.
    #[error("{0} is not a pcap interface")]
    NotPcap(String),
    /// `pcap-input` is missing in the graph.
    #[error("pcap is not built into this graph: declare it before the engine is built")]
    NotDeclared,
}
