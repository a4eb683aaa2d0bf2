//! What an interface is to be, checked before anything is made.

use std::io;

use quiver_core::control::interfaces::InterfaceError;
use quiver_core::worker::device::RxMode;

use crate::protocol::{LOG2_RING_SIZE_MAX, SECRET_BYTES};
use crate::ring::ring_bytes;
use crate::slots::stride_bytes;

/// Descriptors of a ring unless said otherwise.
pub const RING_SIZE_DEFAULT: u32 = 1024;
/// Smallest ring.
pub const RING_SIZE_MIN: u32 = 8;
/// Largest ring.
pub const RING_SIZE_MAX: u32 = 1 << LOG2_RING_SIZE_MAX;
/// Bytes of a buffer behind a descriptor unless said otherwise.
pub const BUFFER_BYTES_DEFAULT: u32 = 2048;
/// Smallest buffer.
pub const BUFFER_BYTES_MIN: u32 = 64;
/// Largest buffer; peers hold lengths in 16 bits.
pub const BUFFER_BYTES_MAX: u32 = 65_472;
/// Rings in each direction.
pub const QUEUES_MAX: u16 = 64;
/// Largest layer 3 packet unless set otherwise, bytes.
pub const MTU_BYTES_DEFAULT: u32 = 9000;

/// Which end of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Listens. The peer brings the memory.
    Master,
    /// Connects, again and again. Brings the memory.
    Slave,
}

/// What frames begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// An Ethernet header.
    Ethernet,
    /// An IPv4 or IPv6 header.
    Ip,
}

impl Mode {
    /// As in the protocol.
    pub(crate) fn number(self) -> u8 {
        match self {
            Mode::Ethernet => 0,
            Mode::Ip => 1,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Mode::Ethernet => "ethernet",
            Mode::Ip => "ip",
        }
    }
}

impl Role {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Role::Master => "master",
            Role::Slave => "slave",
        }
    }
}

/// An interface to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemifConfig {
    /// Its number on the socket; both ends name the same.
    pub id: u32,
    /// The socket's number, see [`add_socket`](crate::add_socket). 0 is always there.
    pub socket: u32,
    /// Which end.
    pub role: Role,
    /// What frames begin with.
    pub mode: Mode,
    /// Descriptors in each ring, a power of two from [`RING_SIZE_MIN`] to [`RING_SIZE_MAX`]. The
    /// slave's counts.
    pub ring_size: u32,
    /// Bytes of a buffer, from [`BUFFER_BYTES_MIN`] to [`BUFFER_BYTES_MAX`]; longer frames take
    /// several. The slave's counts.
    pub buffer_bytes: u32,
    /// Rings to receive from. A slave makes as many (1 when `None`); a master takes at most as
    /// many.
    pub rx_queues: Option<u16>,
    /// Rings to send on. A slave makes as many (1 when `None`); a master takes at most as many.
    /// With fewer than workers, workers take turns.
    pub tx_queues: Option<u16>,
    /// Lend the router's own buffers to the peer instead of copying. Slaves only; the peer can then
    /// read and write all packets of the router.
    pub zero_copy: bool,
    /// What the slave must know.
    pub secret: Option<String>,
    /// Layer 2 address; when `None`, one that this end of this link has on this machine.
    pub mac: Option<[u8; 6]>,
    /// How receive queues are served, until the operator says otherwise.
    pub rx_mode: RxMode,
    /// The node that received packets go to; by the mode when `None`.
    pub input: Option<String>,
}

impl MemifConfig {
    /// An interface in Ethernet mode with the usual sizes, polled.
    pub fn new(socket: u32, id: u32, role: Role) -> MemifConfig {
        MemifConfig {
            id,
            socket,
            role,
            mode: Mode::Ethernet,
            ring_size: RING_SIZE_DEFAULT,
            buffer_bytes: BUFFER_BYTES_DEFAULT,
            rx_queues: None,
            tx_queues: None,
            zero_copy: false,
            secret: None,
            mac: None,
            rx_mode: RxMode::Polling,
            input: None,
        }
    }

    /// `memifS/N`.
    pub fn name(&self) -> String {
        format!("memif{}/{}", self.socket, self.id)
    }

    pub(crate) fn input_node(&self) -> &str {
        self.input.as_deref().unwrap_or(match self.mode {
            Mode::Ethernet => "ethernet-input",
            Mode::Ip => "ip-input",
        })
    }

    pub(crate) fn log2_ring_size(&self) -> u8 {
        self.ring_size.ilog2() as u8
    }

    /// The secret as the protocol holds it.
    pub(crate) fn secret_bytes(&self) -> [u8; SECRET_BYTES] {
        let mut bytes = [0; SECRET_BYTES];
        if let Some(secret) = &self.secret {
            bytes[..secret.len()].copy_from_slice(secret.as_bytes());
        }
        bytes
    }

    /// Buffers of the router that the peer may hold at a time.
    pub(crate) fn borrowed_buffers(&self) -> usize {
        let queues = self.rx_queues.unwrap_or(1) as usize + self.tx_queues.unwrap_or(1) as usize;
        if self.zero_copy { queues * self.ring_size as usize } else { 0 }
    }

    pub(crate) fn check(&self) -> Result<(), MemifError> {
        if !self.ring_size.is_power_of_two()
            || !(RING_SIZE_MIN..=RING_SIZE_MAX).contains(&self.ring_size)
        {
            return Err(MemifError::RingSize(self.ring_size));
        }
        if !(BUFFER_BYTES_MIN..=BUFFER_BYTES_MAX).contains(&self.buffer_bytes) {
            return Err(MemifError::BufferSize(self.buffer_bytes));
        }
        let queues = [self.rx_queues.unwrap_or(1), self.tx_queues.unwrap_or(1)];
        if let Some(bad) = queues.iter().find(|n| !(1..=QUEUES_MAX).contains(*n)) {
            return Err(MemifError::Queues(*bad));
        }
        if let Some(secret) = &self.secret {
            let fits = (1..SECRET_BYTES).contains(&secret.len());
            if !fits || secret.contains(|c: char| c == '"' || c.is_control()) {
                return Err(MemifError::Secret);
            }
        }
        if self.zero_copy && self.role == Role::Master {
            return Err(MemifError::ZeroCopyMaster);
        }
        if self.zero_copy && self.buffer_bytes != BUFFER_BYTES_DEFAULT {
            return Err(MemifError::ZeroCopyBufferSize);
        }
        let rings = queues.iter().map(|n| *n as u64).sum::<u64>();
        let per_ring = ring_bytes(self.log2_ring_size()) as u64
            + stride_bytes(self.buffer_bytes) as u64 * self.ring_size as u64;
        if self.role == Role::Slave && rings * per_ring > u32::MAX as u64 {
            return Err(MemifError::TooLarge { mib: (rings * per_ring) >> 20 });
        }
        Ok(())
    }
}

/// Why something about memif cannot be done.
#[derive(Debug, thiserror::Error)]
pub enum MemifError {
    /// Not a size that a ring can have.
    #[error("ring-size {0} is not a power of two from {RING_SIZE_MIN} to {RING_SIZE_MAX}")]
    RingSize(u32),
    /// Not a size that a buffer can have.
    #[error("buffer-size {0} is outside {BUFFER_BYTES_MIN}..={BUFFER_BYTES_MAX}")]
    BufferSize(u32),
    /// Not a number of queues.
    #[error("{0} queues in one direction, but 1 to {QUEUES_MAX} are possible")]
    Queues(u16),
    /// Not a secret.
    #[error(
        "a secret has 1 to {max} bytes, and neither quotation marks nor control characters",
        max = SECRET_BYTES - 1
    )]
    Secret,
    /// The slave brings the memory.
    #[error("zero-copy is the slave's to say: it brings the memory")]
    ZeroCopyMaster,
    /// The pool's buffers have the pool's size.
    #[error(
        "with zero-copy the buffers are the router's (`buffers {{ default data-size N }}`); leave \
         out buffer-size"
    )]
    ZeroCopyBufferSize,
    /// Half of the pool must stay.
    #[error(
        "peers could hold {borrowed} of the router's {total} buffers, and at most half can be \
         borrowed; ask for smaller rings or fewer queues, or for {needed} with `buffers \
         {{ buffers-per-numa N }}`",
        needed = borrowed * 2
    )]
    ZeroCopyBuffers {
        /// Buffers that peers of all zero-copy interfaces together could hold.
        borrowed: usize,
        /// Buffers in the pool.
        total: usize,
    },
    /// Offsets have 32 bits.
    #[error(
        "rings and buffers of {mib} MiB do not fit in a region of 4,096 MiB; ask for smaller \
         rings, buffers or fewer queues"
    )]
    TooLarge {
        /// Megabytes.
        mib: u64,
    },
    /// Not there.
    #[error(
        "there is no memif socket {0}; make it with `create memif socket id {0} filename PATH`"
    )]
    NoSocket(u32),
    /// There already.
    #[error("memif socket {0} exists already, at {1}")]
    SocketExists(u32, String),
    /// In use.
    #[error("memif socket {0} is used by {1}; delete that first")]
    SocketUsed(u32, String),
    /// 0 is always there.
    #[error(
        "memif socket 0 is always there, in the router's runtime directory; choose another number"
    )]
    SocketZero,
    /// Not a path of a socket.
    #[error("memif socket at '{path}': {source}")]
    BadPath {
        /// As given.
        path: String,
        /// What is wrong.
        source: io::Error,
    },
    /// Somebody else listens there, or the system refuses.
    #[error("cannot listen at {path}: {source}")]
    Listen {
        /// Where.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// One listener at a path.
    #[error(
        "memif socket {socket} listens at {path} already; make the master there (`socket-id \
         {socket}`)"
    )]
    Listens {
        /// The socket that does.
        socket: u32,
        /// Where.
        path: String,
    },
    /// There already.
    #[error("interface {0} exists already")]
    Exists(String),
    /// Not one of ours.
    #[error("{0} is not a memif interface")]
    NotMemif(String),
    /// `memif-input` is missing in the graph.
    #[error("memif is not built into this graph: declare it before the engine is built")]
    NotDeclared,
    /// From the engine.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl FnOnce(&mut MemifConfig)) -> String {
        let mut config = MemifConfig::new(0, 0, Role::Slave);
        change(&mut config);
        config.check().expect_err("must be refused").to_string()
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_can() {
        assert!(MemifConfig::new(0, 0, Role::Slave).check().is_ok());
        assert!(refused(|c| c.ring_size = 1000).contains("power of two"));
        assert!(refused(|c| c.ring_size = 32_768).contains("16384"));
        assert!(refused(|c| c.buffer_bytes = 1).contains("64..=65472"));
        assert!(refused(|c| c.rx_queues = Some(65)).contains("1 to 64"));
        assert!(refused(|c| c.tx_queues = Some(0)).contains("1 to 64"));
        assert!(refused(|c| (c.zero_copy, c.role) = (true, Role::Master)).contains("slave's"));
        assert!(
            refused(|c| (c.zero_copy, c.buffer_bytes) = (true, 512))
                .contains("leave out buffer-size")
        );
        assert!(refused(|c| c.secret = Some("x".repeat(24))).contains("1 to 23 bytes"));
        let huge = refused(|c| {
            (c.ring_size, c.buffer_bytes, c.rx_queues) = (16_384, 65_472, Some(8));
        });
        assert!(huge.contains("fewer queues"), "{huge}");
    }
}
