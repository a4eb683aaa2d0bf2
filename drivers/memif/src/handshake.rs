//! How two ends come to share rings: the slave proposes memory and rings, message by message, and
//! the master checks each.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::RawFd;
use std::sync::Arc;

use quiver_core::memory::buffer::BufferPool;

use crate::config::{MemifConfig, QUEUES_MAX};
use crate::interrupt::Interrupt;
use crate::lend::{BorrowedSlots, POOL_REGION};
use crate::protocol::{
    ADD_RING_S2M, AddRing, BadMessage, Hello, Init, LOG2_RING_SIZE_MAX, Message, VERSION,
};
use crate::region::{Mapped, REGIONS_MAX, Region, RegionError, Regions};
use crate::ring::{Ring, RingError, ring_bytes};
use crate::slots::{AnySlots, OwnSlots, PeerSlots, stride_bytes};
use quiver_linux::disposal::Unchecked;

/// How this program calls itself.
const PROGRAM: &str = concat!("Quiver ", env!("CARGO_PKG_VERSION"));
/// Rings and buffers begin on such boundaries.
const ALIGNMENT: usize = 4096;

/// Why a connection ends; sent to the peer and shown in `show memif`.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Complaint {
    #[error(transparent)]
    Message(#[from] BadMessage),
    #[error("a message of type {0} that is out of place here")]
    Unexpected(u16),
    #[error("version {0:#06x} is not spoken here, only {VERSION:#06x}")]
    Version(u16),
    #[error("versions {0:#06x} to {1:#06x} are not spoken here, only {VERSION:#06x}")]
    Versions(u16, u16),
    #[error("there is no interface {0} on this socket")]
    NoInterface(u32),
    #[error("interface {0} is connected already")]
    Taken(u32),
    #[error("the modes differ: {ours} here, number {theirs} there")]
    Mode { ours: &'static str, theirs: u8 },
    #[error("a secret is required")]
    SecretRequired,
    #[error("the secret is wrong")]
    SecretWrong,
    #[error("a region without a file descriptor")]
    RegionWithoutFile,
    #[error("a ring without an eventfd")]
    RingWithoutInterrupt,
    #[error("region {0} out of turn")]
    RegionIndex(u16),
    #[error("ring {0} where at most {1} are taken")]
    RingIndex(u16, u16),
    #[error("ring {0} is missing")]
    RingMissing(u16),
    #[error("ring {0} twice")]
    RingTwice(u16),
    #[error("no rings in at least one direction")]
    NoRings,
    #[error(transparent)]
    Region(#[from] RegionError),
    #[error(transparent)]
    Ring(#[from] RingError),
    #[error("a message with {0} descriptors")]
    Descriptors(usize),
    #[error("the router has no descriptors left; raise its limit of open files (`ulimit -n`)")]
    NoDescriptors,
    #[error("no eventfd for a ring: {0}")]
    NoInterrupt(#[source] std::io::Error),
    #[error("no thread for interrupts: {0}")]
    NoThread(#[source] std::io::Error),
    #[error("interrupts of {0} earlier connections are blocked by the peer")]
    Blocked(usize),
    #[error("a message cannot be sent: {0}")]
    Send(#[source] std::io::Error),
    #[error("the handshake took too long")]
    Timeout,
    #[error("{0}")]
    Fault(&'static str),
    #[error("the peer took away the memory of region {0}")]
    MemoryLost(usize),
    #[error("the worker of a queue does not answer")]
    Stalled,
    #[error(
        "the buffers take more than 4 GiB, too much to lend; ask for fewer with `buffers \
         {{ buffers-per-numa N }}`"
    )]
    PoolTooLarge,
    #[error(
        "a peer has taken away the memory of the buffers; no zero-copy until the router is \
         restarted"
    )]
    PoolLost,
    #[error("the interface was deleted")]
    Deleted,
}

/// A ring that both ends have agreed on.
pub(crate) struct AgreedRing {
    pub(crate) ring: Ring,
    pub(crate) slots: AnySlots,
    pub(crate) interrupt: Interrupt,
}

/// What both ends have agreed on.
pub(crate) struct Agreement {
    pub(crate) regions: Arc<Regions>,
    pub(crate) receive: Vec<AgreedRing>,
    pub(crate) transmit: Vec<AgreedRing>,
}

/// The master's first message.
pub(crate) fn hello() -> Message {
    Message::Hello(Hello {
        name: PROGRAM.into(),
        min_version: VERSION,
        max_version: VERSION,
        max_region: REGIONS_MAX as u16 - 1,
        max_m2s_ring: QUEUES_MAX - 1,
        max_s2m_ring: QUEUES_MAX - 1,
        max_log2_ring_size: LOG2_RING_SIZE_MAX,
    })
}

/// Is a slave that says this welcome?
pub(crate) fn check_init(config: &MemifConfig, init: &Init) -> Result<(), Complaint> {
    if init.mode != config.mode.number() {
        return Err(Complaint::Mode { ours: config.mode.name(), theirs: init.mode });
    }
    if config.secret.is_some() {
        if init.secret.iter().all(|b| *b == 0) {
            return Err(Complaint::SecretRequired);
        }
        // Without an early exit, so that the time says nothing about the secret.
        let ours = config.secret_bytes();
        let differing = ours.iter().zip(&init.secret).fold(0, |all, (a, b)| all | (a ^ b));
        if differing != 0 {
            return Err(Complaint::SecretWrong);
        }
    }
    Ok(())
}

/// What a slave has offered so far, as the master holds it.
#[derive(Default)]
pub(crate) struct Offer {
    regions: Vec<Region>,
    mapped: Mapped,
    /// By direction (slave to master first), then by number.
    rings: [BTreeMap<u16, (AddRing, Interrupt)>; 2],
}

impl Offer {
    pub(crate) fn add_region(
        &mut self,
        index: u16,
        size: u64,
        fd: Option<Unchecked>,
    ) -> Result<(), Complaint> {
        let fd = fd.ok_or(Complaint::RegionWithoutFile)?;
        if index as usize != self.regions.len() || index as usize >= REGIONS_MAX {
            return Err(Complaint::RegionIndex(index));
        }
        self.regions.push(Region::from_peer(&fd, size, &mut self.mapped)?);
        Ok(())
    }

    pub(crate) fn add_ring(
        &mut self,
        config: &MemifConfig,
        ring: AddRing,
        fd: Option<Unchecked>,
    ) -> Result<(), Complaint> {
        let interrupt = fd.and_then(Interrupt::from_peer).ok_or(Complaint::RingWithoutInterrupt)?;
        let s2m = ring.flags & ADD_RING_S2M != 0;
        let limit = if s2m { config.rx_queues } else { config.tx_queues };
        let limit = limit.unwrap_or(QUEUES_MAX);
        if ring.index >= limit {
            return Err(Complaint::RingIndex(ring.index, limit));
        }
        if ring.log2_size > LOG2_RING_SIZE_MAX {
            return Err(Complaint::Ring(RingError::Size(ring.log2_size)));
        }
        match self.rings[usize::from(!s2m)].insert(ring.index, (ring, interrupt)) {
            None => Ok(()),
            Some(_) => Err(Complaint::RingTwice(ring.index)),
        }
    }

    /// The slave says that this is all.
    pub(crate) fn finish(self) -> Result<Agreement, Complaint> {
        let regions = Regions::new(self.regions);
        let [s2m, m2s] = self.rings;
        if s2m.is_empty() && m2s.is_empty() {
            return Err(Complaint::NoRings);
        }
        let agree = |rings: BTreeMap<u16, (AddRing, Interrupt)>| {
            let agree = |(place, (ring, interrupt)): (usize, (AddRing, Interrupt))| {
                if ring.index as usize != place {
                    return Err(Complaint::RingMissing(place as u16));
                }
                let ring = Ring::new(&regions, ring.region, ring.offset, ring.log2_size)?;
                ring.check_cookie()?;
                Ok(AgreedRing { ring, slots: AnySlots::Peer(PeerSlots), interrupt })
            };
            rings.into_values().enumerate().map(agree).collect::<Result<Vec<_>, _>>()
        };
        let (receive, transmit) = (agree(s2m)?, agree(m2s)?);
        Ok(Agreement { regions, receive, transmit })
    }
}

/// What a slave proposes: memory with rings in it, and the messages that say so.
pub(crate) struct Proposal {
    agreement: Agreement,
    messages: VecDeque<(Message, Option<RawFd>)>,
}

impl Proposal {
    /// Make rings and buffers as configured, within what the master can do.
    pub(crate) fn new(
        config: &MemifConfig,
        hello: &Hello,
        pool: &Arc<BufferPool>,
    ) -> Result<Proposal, Complaint> {
        if hello.min_version > VERSION || hello.max_version < VERSION {
            return Err(Complaint::Versions(hello.min_version, hello.max_version));
        }
        let most = |max_index: u16| max_index.saturating_add(1).min(QUEUES_MAX);
        let transmit = config.tx_queues.unwrap_or(1).min(most(hello.max_s2m_ring));
        let receive = config.rx_queues.unwrap_or(1).min(most(hello.max_m2s_ring));
        let log2_size = config.log2_ring_size().min(hello.max_log2_ring_size);
        let plan = Plan {
            rings: transmit as usize + receive as usize,
            log2_size,
            buffer_bytes: config.buffer_bytes,
            lent: match config.zero_copy {
                true => Some(BorrowedSlots::new(pool).ok_or(Complaint::PoolTooLarge)?),
                false => None,
            },
        };
        let mut regions = vec![Region::make(plan.region_bytes())?];
        if plan.lent.is_some() {
            debug_assert_eq!(regions.len(), POOL_REGION as usize);
            regions.push(Region::of_pool(pool));
        }
        let regions = Regions::new(regions);
        let mut rings = Vec::new();
        for place in 0..plan.rings {
            rings.push(plan.ring(&regions, place)?);
        }
        let receive = rings.split_off(transmit as usize);
        let agreement = Agreement { regions, receive, transmit: rings };
        let messages = messages(config, &plan, &agreement);
        Ok(Proposal { agreement, messages })
    }

    /// The next message, and the descriptor that goes with it.
    pub(crate) fn next_message(&mut self) -> Option<(Message, Option<RawFd>)> {
        self.messages.pop_front()
    }

    /// The master agrees; `None` when not everything was said yet.
    pub(crate) fn finish(self) -> Option<Agreement> {
        self.messages.is_empty().then_some(self.agreement)
    }
}

/// How a slave divides region 0: all rings, then the buffers of each unless the peer borrows the
/// router's.
struct Plan {
    rings: usize,
    log2_size: u8,
    buffer_bytes: u32,
    lent: Option<BorrowedSlots>,
}

impl Plan {
    fn ring_offset(&self, place: usize) -> usize {
        place * ring_bytes(self.log2_size).next_multiple_of(128)
    }

    fn buffers_offset(&self, place: usize) -> usize {
        let per_ring = stride_bytes(self.buffer_bytes) << self.log2_size;
        self.ring_offset(self.rings).next_multiple_of(ALIGNMENT) + place * per_ring
    }

    fn region_bytes(&self) -> usize {
        self.buffers_offset(if self.lent.is_some() { 0 } else { self.rings })
    }

    fn ring(&self, regions: &Arc<Regions>, place: usize) -> Result<AgreedRing, Complaint> {
        let offset = self.ring_offset(place) as u32;
        let ring = Ring::new(regions, 0, offset, self.log2_size)?;
        ring.initialise();
        let slots = match self.lent {
            Some(lent) => AnySlots::Borrowed(lent),
            None => {
                let buffers = self.buffers_offset(place) as u32;
                let own = OwnSlots::new(regions, &ring, buffers, self.buffer_bytes);
                AnySlots::Own(own.ok_or(RingError::Place { region: 0, offset: buffers })?)
            }
        };
        Ok(AgreedRing { ring, slots, interrupt: Interrupt::new().map_err(Complaint::NoInterrupt)? })
    }
}

fn messages(
    config: &MemifConfig,
    plan: &Plan,
    agreement: &Agreement,
) -> VecDeque<(Message, Option<RawFd>)> {
    let init = Init {
        version: VERSION,
        id: config.id,
        mode: config.mode.number(),
        secret: config.secret_bytes(),
        name: PROGRAM.into(),
    };
    let mut out = VecDeque::from([(Message::Init(init), None)]);
    for (index, region) in agreement.regions.list().iter().enumerate() {
        out.push_back((
            Message::AddRegion { index: index as u16, size: region.size() as u64 },
            region.fd(),
        ));
    }
    let s2m =
        agreement.transmit.iter().enumerate().map(|(index, ring)| (ADD_RING_S2M, index, ring));
    let m2s = agreement.receive.iter().enumerate().map(|(index, ring)| (0, index, ring));
    for (place, (flags, index, ring)) in s2m.chain(m2s).enumerate() {
        let message = AddRing {
            flags,
            index: index as u16,
            region: 0,
            offset: plan.ring_offset(place) as u32,
            log2_size: plan.log2_size,
            private_header_bytes: 0,
        };
        out.push_back((Message::AddRing(message), Some(ring.interrupt.fd())));
    }
    out.push_back((Message::Connect(config.name()), None));
    out
}
