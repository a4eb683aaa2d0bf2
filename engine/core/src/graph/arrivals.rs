//! Copies of received packets for the control thread: a bounded ring from each worker to it, for
//! protocols whose messages the control thread answers (LLDP, DHCP).

use std::sync::{Arc, Mutex, PoisonError};

use crate::ids::InterfaceId;
use crate::memory::packet::{Packet, PacketFlags};
use crate::memory::ring::{Consumer, Producer, ring};

/// A received packet of at most `BYTES_MAX` bytes, from its current header on.
pub struct Arrival<const BYTES_MAX: usize> {
    /// The receiving interface.
    pub rx: InterfaceId,
    /// A device has checked the transport checksum, or a device of this host leaves it open.
    pub is_checked: bool,
    /// A value of the node that copied it, such as a link-layer address.
    pub note: u64,
    length: usize,
    data: [u8; BYTES_MAX],
}

impl<const BYTES_MAX: usize> Arrival<BYTES_MAX> {
    fn of(packet: &Packet, note: u64) -> Option<Self> {
        let mut data = [0; BYTES_MAX];
        let mut free = &mut data[..];
        for segment in packet.segments() {
            let (here, behind) = free.split_at_mut_checked(segment.len())?;
            here.copy_from_slice(segment);
            free = behind;
        }
        let length = BYTES_MAX - free.len();
        let is_checked =
            packet.has(PacketFlags::L4_CHECKSUM_GOOD) || packet.has(PacketFlags::OFFLOAD);
        Some(Self { rx: packet.rx, is_checked, note, length, data })
    }

    /// The packet.
    pub fn bytes(&self) -> &[u8] {
        &self.data[..self.length]
    }
}

/// Why a packet was not copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotCopied {
    /// It has more bytes than an [`Arrival`].
    TooLong,
    /// The control thread has not read the last ones yet.
    Full,
}

/// A worker's end of its ring.
pub struct ArrivalSender<const BYTES_MAX: usize>(Option<Producer<Arrival<BYTES_MAX>>>);

impl<const BYTES_MAX: usize> ArrivalSender<BYTES_MAX> {
    /// Copies a packet for the control thread, with a value of the node's.
    ///
    /// # Errors
    /// It was not copied, for the reason that is returned.
    pub fn send(&mut self, packet: &Packet, note: u64) -> Result<(), NotCopied> {
        let arrival = Arrival::of(packet, note).ok_or(NotCopied::TooLong)?;
        let ring = self.0.as_mut().ok_or(NotCopied::Full)?;
        ring.put(arrival).map_err(|_| NotCopied::Full)
    }
}

type Producers<const BYTES_MAX: usize> = Vec<Option<Producer<Arrival<BYTES_MAX>>>>;

/// The workers' ends of all rings, until each worker's node takes its own.
#[derive(Clone)]
pub struct ArrivalSenders<const BYTES_MAX: usize>(Arc<Mutex<Producers<BYTES_MAX>>>);

impl<const BYTES_MAX: usize> ArrivalSenders<BYTES_MAX> {
    /// A worker's end. One that was taken before refuses every packet as [`NotCopied::Full`].
    pub fn take(&self, worker: usize) -> ArrivalSender<BYTES_MAX> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ArrivalSender(all.get_mut(worker).and_then(Option::take))
    }
}

/// The control thread's ends.
pub struct Arrivals<const BYTES_MAX: usize>(Vec<Consumer<Arrival<BYTES_MAX>>>);

impl<const BYTES_MAX: usize> Arrivals<BYTES_MAX> {
    /// Is no packet there?
    pub fn is_empty(&mut self) -> bool {
        self.0.iter_mut().all(|ring| ring.is_empty())
    }

    /// The next packet; those of one worker in the order in which it received them.
    pub fn take(&mut self) -> Option<Arrival<BYTES_MAX>> {
        self.0.iter_mut().find_map(Consumer::take)
    }
}

/// Rings from so many workers, each of which holds `waiting_max` packets.
pub fn arrivals<const BYTES_MAX: usize>(
    workers: usize,
    waiting_max: usize,
) -> (ArrivalSenders<BYTES_MAX>, Arrivals<BYTES_MAX>) {
    let (producers, consumers): (Vec<_>, Vec<_>) = (0..workers)
        .map(|_| {
            let (producer, consumer) = ring(waiting_max);
            (Some(producer), consumer)
        })
        .unzip();
    (ArrivalSenders(Arc::new(Mutex::new(producers))), Arrivals(consumers))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::memory::buffer::{BufferCache, BufferPool, DATA_BYTES_DEFAULT};
    use crate::memory::mapping::PageSize;

    const BYTES_MAX: usize = 3000;

    fn packet(cache: &mut BufferCache, bytes: &[u8], rx: u32) -> Packet {
        let mut packet = cache.packet().expect("buffer");
        assert!(packet.append(bytes, cache));
        packet.rx = InterfaceId(rx);
        packet
    }

    #[test]
    fn packets_of_all_workers_arrive_whole_and_those_too_many_or_too_long_are_refused() {
        let pool = BufferPool::new(512, DATA_BYTES_DEFAULT, PageSize::Small).expect("pool");
        let mut cache = pool.cache();
        let (senders, mut arrivals) = arrivals::<BYTES_MAX>(2, 2);
        let [mut first, mut second] = [0, 1].map(|worker| senders.take(worker));
        assert!(arrivals.is_empty());
        let bytes: Vec<u8> = (0..BYTES_MAX).map(|i| i as u8).collect();
        let whole = packet(&mut cache, &bytes, 7);
        let mut checked = packet(&mut cache, b"short", 8);
        checked.set(PacketFlags::L4_CHECKSUM_GOOD);
        let long = packet(&mut cache, &[0; BYTES_MAX + 1], 9);
        assert_eq!(first.send(&whole, 5), Ok(()));
        assert_eq!(first.send(&long, 5), Err(NotCopied::TooLong));
        assert_eq!(second.send(&checked, 5), Ok(()));
        assert_eq!(second.send(&checked, 5), Ok(()));
        assert_eq!(second.send(&checked, 5), Err(NotCopied::Full));
        assert_eq!(senders.take(0).send(&whole, 5), Err(NotCopied::Full), "it was taken");
        assert_eq!(senders.take(2).send(&whole, 5), Err(NotCopied::Full), "no such worker");
        let arrival = arrivals.take().expect("the first");
        assert_eq!((arrival.rx, arrival.is_checked, arrival.note), (whole.rx, false, 5));
        assert_eq!(arrival.bytes(), bytes);
        let arrival = arrivals.take().expect("the second");
        assert_eq!((arrival.rx, arrival.is_checked), (checked.rx, true));
        assert_eq!(arrival.bytes(), b"short");
        assert!(!arrivals.is_empty());
        assert!(arrivals.take().is_some() && arrivals.take().is_none());
        [whole, checked, long].into_iter().for_each(|packet| cache.free(packet));
        cache.report();
        assert_eq!(cache.pool().free(), 512);
    }
}
