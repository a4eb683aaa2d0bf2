//! What workers read, and what they count.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use quiver_core::InterfaceId;
use quiver_core::cpu::Variant;
use quiver_core::graph::counters::INTERFACES_MAX;
use quiver_core::memory::epoch::{Epochs, Pass, Published, PublishedSlots};
use quiver_tables::GroupId;
use quiver_tables::lpm::LpmSpace;

use crate::domain::Domain;

/// Domains at most: a softwire with an address for itself is a domain.
pub const DOMAINS_MAX: usize = 65_536;
/// What the match of IPv6 prefixes answers where there is none; others are an index and 1.
pub(crate) const NO_DOMAIN: GroupId = GroupId(0);

/// An interface takes packets of domains that encapsulate.
pub(crate) const ENCAPSULATES: u8 = 1;
/// An interface takes packets of domains that translate.
pub(crate) const TRANSLATES: u8 = 2;

/// What holds for all domains (`map params`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Params {
    /// Packets of IPv4 are cut that are too long for a packet of IPv6, not the latter.
    pub cuts_inner: bool,
    /// Packets of IPv4 are cut though their sender forbids it.
    pub ignores_df: bool,
    /// The IPv6 source must be that of the IPv4 source and its port (RFC 7597 §8.1).
    pub checks_source: bool,
    /// Fragments whose port is unknown are refused.
    pub checks_fragments: bool,
    /// The traffic class of outer packets; that of the inner ones where none is given.
    pub traffic_class: Option<u8>,
    /// SYNs name no greater segment size; 0 leaves it.
    pub mss_bytes: u16,
    /// The source of errors of routers without address of IPv4 (RFC 6791); 0 for this router's.
    pub icmp_source: u32,
    /// Senders of packets that the check refuses are told (RFC 7597 §8.1).
    pub tells_refused: bool,
}

impl Params {
    /// As they are at first.
    pub const USUAL: Params = Params {
        cuts_inner: false,
        ignores_df: false,
        checks_source: true,
        checks_fragments: false,
        traffic_class: None,
        mss_bytes: 0,
        icmp_source: 0,
        tells_refused: true,
    };
}

/// A way through the border relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Encapsulated,
    Decapsulated,
    ToIp6,
    ToIp4,
}

impl Direction {
    /// All, with their names in shows.
    pub const ALL: [(Direction, &'static str); 4] = [
        (Direction::Encapsulated, "encapsulated"),
        (Direction::Decapsulated, "decapsulated"),
        (Direction::ToIp6, "to-ip6"),
        (Direction::ToIp4, "to-ip4"),
    ];
}

/// Packets and bytes of IPv4 by direction, of one worker, which alone counts.
#[repr(align(64))]
#[derive(Default)]
pub(crate) struct Traffic([[AtomicU64; 2]; Direction::ALL.len()]);

impl Traffic {
    /// Count packets, and the bytes of all.
    #[inline(always)]
    pub fn count(&self, direction: Direction, more: u64, bytes: usize) {
        let Some([packets, sum]) = self.0.get(direction as usize) else { return };
        packets.store(packets.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
        sum.store(sum.load(Ordering::Relaxed).wrapping_add(bytes as u64), Ordering::Relaxed);
    }
}

/// All that nodes share.
pub(crate) struct Shared {
    /// From the first domain on.
    domains: OnceLock<PublishedSlots<Domain>>,
    /// The domains that translate, by their IPv6 prefix; from the first one on.
    by_prefix6: OnceLock<Arc<LpmSpace<u128>>>,
    params: Published<Params>,
    /// By the number of the interface.
    modes: Box<[AtomicU8]>,
    traffic: Box<[Traffic]>,
    epochs: Arc<Epochs>,
}

impl Shared {
    /// Nothing configured.
    pub fn new(epochs: &Arc<Epochs>, workers: usize) -> Shared {
        Shared {
            domains: OnceLock::new(),
            by_prefix6: OnceLock::new(),
            params: Published::new(epochs, Params::USUAL),
            modes: (0..INTERFACES_MAX).map(|_| AtomicU8::new(0)).collect(),
            traffic: (0..workers.max(1)).map(|_| Traffic::default()).collect(),
            epochs: epochs.clone(),
        }
    }

    #[inline(always)]
    pub fn domain<'p>(&self, index: u32, pass: Pass<'p>) -> Option<&'p Domain> {
        self.domains.get()?.read(index as usize, pass)
    }

    /// Ask for the memory of a domain.
    #[inline(always)]
    pub fn prefetch(&self, index: u32) {
        if let Some(domains) = self.domains.get() {
            domains.prefetch(index as usize);
        }
    }

    /// What is found for an IPv6 address: the domain whose prefix is the longest that it is in, of
    /// those that translate.
    pub fn find6(&self, ip6: u128) -> GroupId {
        self.by_prefix6.get().map_or(NO_DOMAIN, |prefixes| prefixes.table(0).lookup(ip6))
    }

    /// The same for as many addresses as `found` has places.
    #[inline(always)]
    pub fn find_all6(&self, variant: Variant, ip6: &[u128], found: &mut [GroupId]) {
        match self.by_prefix6.get() {
            Some(prefixes) => prefixes.table(0).lookup_slice(variant, ip6, found),
            None => found.fill(NO_DOMAIN),
        }
        let mut last = NO_DOMAIN;
        for found in found.iter().filter(|found| **found != NO_DOMAIN) {
            if *found != last {
                self.prefetch(found.0 - 1);
            }
            last = *found;
        }
    }

    /// The domain that was found.
    #[inline(always)]
    pub fn domain_found<'p>(&self, GroupId(found): GroupId, pass: Pass<'p>) -> Option<&'p Domain> {
        self.domain(found.checked_sub(1)?, pass)
    }

    #[inline(always)]
    pub fn params<'p>(&self, pass: Pass<'p>) -> &'p Params {
        self.params.read(pass)
    }

    /// The modes that an interface takes packets of.
    #[inline(always)]
    pub fn modes(&self, interface: InterfaceId) -> u8 {
        self.modes.get(interface.index()).map_or(0, |modes| modes.load(Ordering::Relaxed))
    }

    #[inline(always)]
    pub fn traffic(&self, worker: usize) -> Option<&Traffic> {
        self.traffic.get(worker)
    }

    pub fn epochs(&self) -> &Arc<Epochs> {
        &self.epochs
    }

    /// Publish a domain, or that it is gone (control thread).
    pub fn set_domain(&self, index: u32, domain: Option<Domain>) {
        let slots = self.domains.get_or_init(|| PublishedSlots::new(&self.epochs, DOMAINS_MAX));
        slots.publish(index as usize, domain);
    }

    /// Let workers look in this match (control thread); once.
    pub fn set_prefixes6(&self, space: &Arc<LpmSpace<u128>>) {
        let _ = self.by_prefix6.set(space.clone());
    }

    pub fn set_params(&self, params: Params) {
        self.params.publish(params);
    }

    pub fn set_modes(&self, interface: InterfaceId, modes: u8) {
        if let Some(place) = self.modes.get(interface.index()) {
            place.store(modes, Ordering::Release);
        }
    }

    /// Packets and bytes of all workers.
    pub fn sums(&self, direction: Direction) -> [u64; 2] {
        let place = direction as usize;
        let all = self.traffic.iter().filter_map(|traffic| traffic.0.get(place));
        all.fold([0; 2], |sums, counts| {
            [0, 1].map(|of| sums[of] + counts[of].load(Ordering::Relaxed))
        })
    }
}
