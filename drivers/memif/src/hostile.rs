//! Peers that lie, write garbage, take memory away or die: fuzz-like tests with a fake peer that
//! speaks the protocol by hand. Whatever it does, nothing panics, no buffer is lost, and an honest
//! peer finds the interface in order afterwards.
#![allow(unsafe_code)]

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use proptest::prelude::*;
use quiver_core::InterfaceId;

use crate::config::Role;
use crate::interrupt::Interrupt;
use crate::protocol::{ADD_RING_S2M, AddRing, Hello, Init, MESSAGE_BYTES, Message, VERSION};
use crate::reasons::MemifReason;
use crate::region::{Mapped, Region, Regions};
use crate::ring::{Descriptor, NEXT, Ring, ring_bytes};
use crate::router::{Router, frame, socket, until};
use crate::socket::{Channel, Listener, Received};
use quiver_linux::disposal::{Account, Unchecked};

mod descriptors;

const LOG2: u8 = 4;
const M2S_OFFSET: u32 = 1024;
const BUFFERS_OFFSET: u32 = 4096;
const REGION_BYTES: u64 = 65_536;

/// Good enough to wander about.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: u64) -> u64 {
        (self.next() >> 11) % n
    }
}

fn memfd(bytes: u64) -> OwnedFd {
    // SAFETY: a valid C string; the descriptor is new and ours.
    let fd = unsafe { OwnedFd::from_raw_fd(libc::memfd_create(c"hostile".as_ptr(), 0)) };
    shrink(fd.as_raw_fd(), bytes);
    fd
}

fn shrink(fd: RawFd, bytes: u64) {
    // SAFETY: a plain system call on our own descriptor.
    assert_eq!(unsafe { libc::ftruncate(fd, bytes as i64) }, 0);
}

/// A region as the other end maps it.
fn map(fd: OwnedFd, size: u64) -> Region {
    Region::from_peer(&Unchecked::new(fd, &Account::default()), size, &mut Mapped::default())
        .expect("map")
}

fn init(id: u32) -> Message {
    Message::Init(Init { version: VERSION, id, mode: 0, secret: [0; 24], name: "hostile".into() })
}

/// A slave made by hand, connected.
struct FakeSlave {
    channel: Channel,
    file: OwnedFd,
    regions: Arc<Regions>,
    s2m: Ring,
    m2s: Ring,
    /// The eventfd that the master writes to.
    to_slave: Interrupt,
}

impl FakeSlave {
    fn connect(path: &str, master: &mut Router, id: InterfaceId) -> FakeSlave {
        let channel = Channel::connect(path).expect("connect");
        let file = memfd(REGION_BYTES);
        let region = map(file.try_clone().expect("dup"), REGION_BYTES);
        let regions = Regions::new(vec![region]);
        let s2m = Ring::new(&regions, 0, 0, LOG2).expect("ring");
        let m2s = Ring::new(&regions, 0, M2S_OFFSET, LOG2).expect("ring");
        s2m.initialise();
        m2s.initialise();
        for slot in 0..16 {
            let offset = BUFFERS_OFFSET + slot as u32 * 2048 % 32_768;
            m2s.set_descriptor(slot, Descriptor { flags: 0, region: 0, length: 2048, offset });
        }
        let (a, b) = (Interrupt::new().expect("eventfd"), Interrupt::new().expect("eventfd"));
        let ring = |flags, offset| {
            Message::AddRing(AddRing {
                flags,
                index: 0,
                region: 0,
                offset,
                log2_size: LOG2,
                private_header_bytes: 0,
            })
        };
        let messages = [
            (init(0), None),
            (Message::AddRegion { index: 0, size: REGION_BYTES }, Some(file.as_raw_fd())),
            (ring(ADD_RING_S2M, 0), Some(a.fd())),
            (ring(0, M2S_OFFSET), Some(b.fd())),
            (Message::Connect("hostile0".into()), None),
        ];
        for (message, fd) in messages {
            channel.send(&message, fd).expect("send");
        }
        (0..8).for_each(|_| master.turn());
        assert!(master.is_up(id), "{}", master.reason(id));
        m2s.set_head(16);
        FakeSlave { channel, file, regions, s2m, m2s, to_slave: b }
    }
}

/// Write anything anywhere in the first bytes of region 0: rings, and some buffers.
fn scribble(regions: &Arc<Regions>, random: &mut Random, below: u64) {
    for _ in 0..random.below(64) {
        let place = regions.span(0, (random.below(below) & !7) as u32, 8).expect("inside");
        // Often small numbers, which come nearer to what is right.
        let word = match random.below(3) {
            0 => random.next(),
            1 => random.next() & 0x0000_0fff_0003_0003,
            _ => random.below(64),
        };
        // SAFETY: inside the region, aligned.
        unsafe { place.cast::<u64>().write_volatile(word) };
    }
}

/// An honest slave finds the master in order.
fn assert_in_order(path: &str, master: &mut Router, id: InterfaceId) {
    let (mut slave, s) = Router::with(path, Role::Slave, |_| {});
    for _ in 0..2_000 {
        if slave.is_up(s) && master.is_up(id) {
            break;
        }
        master.pass_ms(50);
        slave.pass_ms(300);
        // Threads of the system's own time close what earlier peers left.
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(slave.is_up(s), "{}", slave.reason(s));
    master.take();
    slave.send(s, &frame(1, 64));
    master.send(id, &frame(2, 64));
    until(&mut slave, master, "frames cross", |a, b| {
        a.ethernet.lock().unwrap().contains(&frame(2, 64))
            && b.ethernet.lock().unwrap().contains(&frame(1, 64))
    });
    quiver_memif::delete(&mut slave.engine, s).expect("deleted");
    (0..4).for_each(|_| master.turn());
    assert!(!master.is_up(id));
    master.assert_balance();
}

fn has_died(master: &mut Router, id: InterfaceId) -> bool {
    (0..4).for_each(|_| master.turn());
    !master.is_up(id)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_slave_that_scribbles_over_its_rings_does_no_harm(seed in 1u64..) {
        let path = socket(&format!("scribble-{seed}"));
        let (mut master, id) = Router::with(&path, Role::Master, |_| {});
        let mut random = Random(seed);
        for _ in 0..4 {
            let fake = FakeSlave::connect(&path, &mut master, id);
            for round in 0..20 {
                match random.below(4) {
                    0 => scribble(&fake.regions, &mut random, 2048),
                    1 => fake.s2m.set_head(random.next() as u16),
                    2 => fake.m2s.set_head(random.next() as u16),
                    _ => {
                        for slot in 0..16 {
                            fake.s2m.set_descriptor(slot, Descriptor {
                                flags: (random.below(4) == 0) as u16 * NEXT,
                                region: (random.below(20) == 0) as u16,
                                length: random.below(70_000) as u32 % 9000,
                                offset: random.below(70_000) as u32,
                            });
                        }
                        fake.s2m.set_head(fake.s2m.tail().wrapping_add(random.below(17) as u16));
                    }
                }
                master.send(id, &frame(round, 64 + random.below(3000) as usize));
                master.turn();
                if !master.is_up(id) {
                    break;
                }
            }
            drop(fake);
            prop_assert!(has_died(&mut master, id));
            master.assert_balance();
        }
        assert_in_order(&path, &mut master, id);
    }

    #[test]
    fn a_master_that_scribbles_over_our_rings_does_no_harm(seed in 1u64..) {
        let path = socket(&format!("scribbling-master-{seed}"));
        let listener = Listener::bind(&path).expect("bind");
        let (mut slave, id) = Router::with(&path, Role::Slave, |c| c.ring_size = 16);
        let mut random = Random(seed);
        for _ in 0..4 {
            let (channel, regions) = accept(&listener, &mut slave);
            prop_assert!(slave.is_up(id), "{}", slave.reason(id));
            for round in 0..20 {
                scribble(&regions, &mut random, 2048);
                slave.send(id, &frame(round, 64 + random.below(3000) as usize));
                slave.turn();
                if !slave.is_up(id) {
                    break;
                }
            }
            drop(channel);
            (0..4).for_each(|_| slave.turn());
            prop_assert!(!slave.is_up(id));
            slave.assert_balance();
            slave.pass_ms(1100);
        }
    }

    #[test]
    fn a_master_that_scribbles_over_rings_and_packets_that_we_lend_does_no_harm(seed in 1u64..) {
        let path = socket(&format!("scribbling-borrower-{seed}"));
        let listener = Listener::bind(&path).expect("bind");
        let (mut slave, id) =
            Router::with(&path, Role::Slave, |c| (c.ring_size, c.zero_copy) = (16, true));
        let mut random = Random(seed);
        for _ in 0..4 {
            let (channel, regions) = accept(&listener, &mut slave);
            prop_assert!(slave.is_up(id), "{}", slave.reason(id));
            let (s2m, m2s) = (borrowed_ring(&regions, 0), borrowed_ring(&regions, 1));
            for round in 0..20 {
                match random.below(5) {
                    0 => scribble(&regions, &mut random, 1024),
                    1 => s2m.set_tail(s2m.tail().wrapping_add(random.below(18) as u16)),
                    2 => m2s.set_tail(random.next() as u16),
                    _ => {
                        for slot in 0..16 {
                            m2s.set_descriptor(
                                slot,
                                Descriptor {
                                    flags: (random.below(4) == 0) as u16 * NEXT,
                                    region: random.below(3) as u16,
                                    length: random.below(4096) as u32,
                                    offset: random.next() as u32,
                                },
                            );
                        }
                        m2s.set_tail(m2s.tail().wrapping_add(random.below(17) as u16));
                    }
                }
                for _ in 0..random.below(200) {
                    let at =
                        regions.span(1, (random.below(1 << 20) & !7) as u32, 8).expect("inside");
                    // SAFETY: inside the region, aligned.
                    unsafe { at.cast::<u64>().write_volatile(random.next()) };
                }
                slave.send(id, &frame(round, 64 + random.below(3000) as usize));
                slave.turn();
                if !slave.is_up(id) {
                    break;
                }
            }
            drop(channel);
            (0..4).for_each(|_| slave.turn());
            prop_assert!(!slave.is_up(id));
            slave.assert_balance();
            slave.pass_ms(1100);
        }
    }

    #[test]
    fn messages_in_any_order_and_of_any_content_end_a_connection_at_worst(seed in 1u64..) {
        let path = socket(&format!("messages-{seed}"));
        let (mut master, id) = Router::with(&path, Role::Master, |_| {});
        let mut random = Random(seed);
        for _ in 0..10 {
            let channel = Channel::connect(&path).expect("connect");
            if random.below(3) > 0 {
                let _ = channel.send(&init(random.below(8).saturating_sub(6) as u32), None);
            }
            for _ in 0..random.below(12) {
                let (bytes, fd) = any_message(&mut random);
                let fd = fd.as_ref().map(AsRawFd::as_raw_fd);
                if channel.send_bytes(&bytes, fd).is_err() {
                    break; // it was closed on us
                }
                if random.below(3) == 0 {
                    master.turn();
                }
            }
            master.turn();
        }
        (0..4).for_each(|_| master.turn());
        assert_in_order(&path, &mut master, id);
    }
}

/// A message that is often nearly right.
fn any_message(random: &mut Random) -> (Vec<u8>, Option<OwnedFd>) {
    let fd = match random.below(4) {
        0 => None,
        1 => Some(memfd(random.below(3) * 4096)),
        2 => std::os::unix::net::UnixStream::pair().ok().map(|(a, _)| a.into()),
        // SAFETY: the descriptor is new and ours.
        _ => Some(unsafe { OwnedFd::from_raw_fd(libc::eventfd(0, 0)) }),
    };
    let message = match random.below(8) {
        0 => Message::Ack,
        1 => init(random.below(3) as u32),
        2 | 3 => {
            let index = (random.below(4) / 3) as u16;
            Message::AddRegion { index, size: [0, 4096, 8192, 1 << 40][random.below(4) as usize] }
        }
        4 | 5 => Message::AddRing(AddRing {
            flags: random.below(2) as u16,
            index: random.below(3) as u16,
            region: random.below(2) as u16,
            offset: random.below(20) as u32 * 256,
            log2_size: random.below(18) as u8,
            private_header_bytes: random.next() as u16,
        }),
        6 => Message::Connect("x".into()),
        _ => Message::Hello(Hello {
            name: "x".into(),
            min_version: random.next() as u16,
            max_version: random.next() as u16,
            max_region: 0,
            max_m2s_ring: 0,
            max_s2m_ring: 0,
            max_log2_ring_size: 3,
        }),
    };
    let mut bytes = message.encode().to_vec();
    match random.below(10) {
        0 => bytes.truncate(random.below(MESSAGE_BYTES as u64) as usize + 1),
        1 => (0..MESSAGE_BYTES).for_each(|i| bytes[i] = random.next() as u8),
        2 => bytes.resize(300, 7),
        _ => {}
    }
    (bytes, fd)
}

/// A master made by hand takes all that our slave proposes.
fn accept(listener: &Listener, slave: &mut Router) -> (Channel, Arc<Regions>) {
    let (channel, regions, _) = accept_with_eventfds(listener, slave);
    (channel, regions)
}

fn accept_with_eventfds(
    listener: &Listener,
    slave: &mut Router,
) -> (Channel, Arc<Regions>, Vec<OwnedFd>) {
    let mut channel = None;
    for _ in 0..100 {
        channel = listener.accept().expect("descriptors");
        if channel.is_some() {
            break;
        }
        slave.pass_ms(200);
    }
    let channel = channel.expect("our slave connects");
    channel.send(&crate::handshake::hello(), None).expect("send");
    let (mut regions, mut eventfds) = (Vec::new(), Vec::new());
    for _ in 0..100 {
        slave.turn();
        while let Received::Message(bytes, mut fds) = channel.receive() {
            let answer = match Message::decode(&bytes).expect("ours") {
                Message::AddRegion { size, .. } => {
                    regions.push(map(fds.pop().expect("fd"), size));
                    Message::Ack
                }
                Message::AddRing(_) => {
                    eventfds.append(&mut fds);
                    Message::Ack
                }
                Message::Connect(_) => Message::Connected("hostile0".into()),
                _ => Message::Ack,
            };
            let is_last = matches!(answer, Message::Connected(_));
            channel.send(&answer, None).expect("send");
            if is_last {
                (0..4).for_each(|_| slave.turn());
                return (channel, Regions::new(regions), eventfds);
            }
        }
    }
    panic!("our slave never said connect");
}

/// A ring of a lending slave that proposes one of 16 descriptors in each direction: slave to master
/// first.
fn borrowed_ring(regions: &Arc<Regions>, place: usize) -> Ring {
    Ring::new(regions, 0, (place * ring_bytes(LOG2).next_multiple_of(128)) as u32, LOG2)
        .expect("ring")
}

#[test]
fn lies_about_borrowed_buffers_are_counted_and_all_buffers_come_home() {
    let path = socket("borrower");
    let listener = Listener::bind(&path).expect("bind");
    let (mut slave, id) =
        Router::with(&path, Role::Slave, |c| (c.ring_size, c.zero_copy) = (16, true));
    let (channel, regions) = accept(&listener, &mut slave);
    let (s2m, m2s) = (borrowed_ring(&regions, 0), borrowed_ring(&regions, 1));
    slave.turn();
    assert_eq!(m2s.head(), 16);
    let good = Descriptor { length: 64, ..m2s.descriptor(0) };
    assert_eq!((good.region, good.flags), (1, 0));
    let lies = [
        (Descriptor { length: 2049, ..good }, Some(MemifReason::DescriptorOutside)),
        (Descriptor { length: u32::MAX, ..good }, Some(MemifReason::DescriptorOutside)),
        (Descriptor { length: 0, ..good }, Some(MemifReason::DescriptorEmpty)),
        (Descriptor { flags: NEXT, ..good }, Some(MemifReason::ChainBroken)),
        // Where our buffers are, we know: these are good frames.
        (Descriptor { offset: u32::MAX, ..good }, None),
        (Descriptor { region: 77, ..good }, None),
    ];
    for (number, (lie, reason)) in lies.into_iter().enumerate() {
        let before = reason.map(|reason| slave.count(reason));
        slave.take();
        m2s.set_descriptor(number as u16, lie);
        m2s.set_tail(number as u16 + 1);
        slave.turn();
        assert_eq!(reason.map(|reason| slave.count(reason)), before.map(|n| n + 1), "{lie:?}");
        assert_eq!(slave.take().len(), usize::from(reason.is_none()), "{lie:?}");
        assert_eq!(m2s.head(), 16 + number as u16 + 1);
    }
    // A buffer that is out stays out until the peer has read it, or is gone.
    slave.send(id, &frame(1, 3000));
    slave.turn();
    assert_eq!((s2m.head(), s2m.descriptor(0).flags, s2m.descriptor(1).flags), (2, NEXT, 0));
    assert_eq!((s2m.descriptor(0).length, s2m.descriptor(1).length), (2048, 952));
    m2s.set_tail(m2s.head() + 1);
    (0..3).for_each(|_| slave.turn());
    assert!(!slave.is_up(id));
    assert!(slave.reason(id).contains("a ring index that cannot be"), "{}", slave.reason(id));
    slave.assert_balance();
    drop(channel);
}

#[test]
fn a_peer_that_says_it_read_more_than_it_borrowed_is_sent_away() {
    let path = socket("greedy-borrower");
    let listener = Listener::bind(&path).expect("bind");
    let (mut slave, id) =
        Router::with(&path, Role::Slave, |c| (c.ring_size, c.zero_copy) = (16, true));
    let (_channel, regions) = accept(&listener, &mut slave);
    let s2m = borrowed_ring(&regions, 0);
    (0..8).for_each(|number| slave.send(id, &frame(number, 64)));
    slave.turn();
    assert_eq!(s2m.head(), 8);
    s2m.set_tail(9);
    slave.send(id, &frame(9, 64));
    (0..3).for_each(|_| slave.turn());
    assert!(slave.reason(id).contains("a ring index that cannot be"), "{}", slave.reason(id));
    slave.assert_balance();
}

#[test]
fn each_lie_in_a_descriptor_has_its_own_reason() {
    let path = socket("lies");
    let (mut master, id) = Router::with(&path, Role::Master, |_| {});
    let fake = FakeSlave::connect(&path, &mut master, id);
    let good = Descriptor { flags: 0, region: 0, length: 64, offset: BUFFERS_OFFSET };
    let end = REGION_BYTES as u32;
    let lies = [
        (Descriptor { region: 1, ..good }, MemifReason::DescriptorOutside),
        (Descriptor { region: 65_535, ..good }, MemifReason::DescriptorOutside),
        (Descriptor { offset: end - 63, ..good }, MemifReason::DescriptorOutside),
        (Descriptor { offset: u32::MAX, ..good }, MemifReason::DescriptorOutside),
        (Descriptor { length: u32::MAX, ..good }, MemifReason::DescriptorOutside),
        (Descriptor { length: 0, ..good }, MemifReason::DescriptorEmpty),
        (Descriptor { flags: NEXT, ..good }, MemifReason::ChainBroken),
    ];
    let mut head = 0;
    for (number, (lie, reason)) in lies.into_iter().enumerate() {
        let before = master.count(reason);
        fake.s2m.set_descriptor(head, lie);
        head += 1;
        fake.s2m.set_head(head);
        master.turn();
        assert_eq!(master.count(reason), before + 1, "{lie:?}");
        assert_eq!(fake.s2m.tail(), head);
        assert_eq!(master.engine.interface_totals(id).rx_errors, number as u64 + 1);
    }
    // The very last bytes of a region are good, and so is what comes after lies.
    fake.s2m.set_descriptor(head, Descriptor { offset: end - 60, length: 60, ..good });
    fake.s2m.set_descriptor(head + 1, good);
    fake.s2m.set_head(head + 2);
    master.turn();
    assert_eq!(master.take().iter().map(Vec::len).collect::<Vec<_>>(), [60, 64]);
    assert!(master.is_up(id));
    master.assert_balance();
}

#[test]
fn a_chain_that_never_ends_is_cut_off() {
    let path = socket("endless");
    let (mut master, id) = Router::with(&path, Role::Master, |_| {});
    let fake = FakeSlave::connect(&path, &mut master, id);
    for slot in 0..16 {
        let descriptor =
            Descriptor { flags: NEXT, region: 0, length: 60_000, offset: BUFFERS_OFFSET };
        fake.s2m.set_descriptor(slot, descriptor);
    }
    fake.s2m
        .set_descriptor(15, Descriptor { flags: 0, region: 0, length: 60, offset: BUFFERS_OFFSET });
    fake.s2m.set_head(16);
    master.turn();
    assert_eq!(master.count(MemifReason::FrameTooLong), 1);
    assert_eq!(fake.s2m.tail(), 16);
    master.assert_balance();
}

#[test]
fn an_index_that_cannot_be_ends_the_connection_and_the_peer_is_told() {
    let path = socket("index");
    let (mut master, id) = Router::with(&path, Role::Master, |_| {});
    let fake = FakeSlave::connect(&path, &mut master, id);
    fake.s2m.set_head(17);
    (0..3).for_each(|_| master.turn());
    assert!(!master.is_up(id));
    assert!(master.reason(id).contains("a ring index that cannot be"), "{}", master.reason(id));
    let mut last = None;
    while let Received::Message(bytes, _) = fake.channel.receive() {
        last = Some(Message::decode(&bytes).expect("ours"));
    }
    assert!(
        matches!(last, Some(Message::Disconnect { reason, .. }) if reason.contains("ring index"))
    );
    assert_in_order(&path, &mut master, id);
}

#[test]
fn a_buffer_to_send_into_that_lies_outside_ends_the_connection() {
    let path = socket("tx-outside");
    let (mut master, id) = Router::with(&path, Role::Master, |_| {});
    let fake = FakeSlave::connect(&path, &mut master, id);
    let outside =
        Descriptor { flags: 0, region: 0, length: 2048, offset: REGION_BYTES as u32 - 1024 };
    (0..16).for_each(|slot| fake.m2s.set_descriptor(slot, outside));
    master.send(id, &frame(1, 64));
    (0..3).for_each(|_| master.turn());
    assert_eq!(master.count(MemifReason::TxDescriptor), 1);
    assert!(!master.is_up(id));
    master.assert_balance();
}

#[test]
fn a_slave_that_shrinks_its_memory_is_disconnected_and_nobody_dies() {
    let path = socket("shrink");
    let (mut master, id) = Router::with(&path, Role::Master, |_| {});
    let fake = FakeSlave::connect(&path, &mut master, id);
    for slot in 0..16 {
        let offset = REGION_BYTES as u32 - 4096;
        fake.s2m.set_descriptor(slot, Descriptor { flags: 0, region: 0, length: 1500, offset });
    }
    fake.s2m.set_head(16);
    shrink(fake.file.as_raw_fd(), 0);
    master.send(id, &frame(1, 1500));
    master.turn();
    master.pass_ms(1001);
    (0..3).for_each(|_| master.turn());
    assert!(!master.is_up(id));
    assert!(master.reason(id).contains("took away the memory"), "{}", master.reason(id));
    drop(fake);
    assert_in_order(&path, &mut master, id);
}

#[test]
fn a_slave_that_never_says_what_it_wants_is_sent_away() {
    let path = socket("silent");
    let (mut master, id) = Router::with(&path, Role::Master, |_| {});
    let silent: Vec<_> = (0..100).map(|_| Channel::connect(&path).expect("connect")).collect();
    (0..10).for_each(|_| master.turn());
    let hellos = silent.iter().filter(|c| matches!(c.receive(), Received::Message(..))).count();
    assert_eq!(hellos, 64);
    master.pass_ms(5500);
    for channel in &silent {
        let mut last = channel.receive();
        if let Received::Message(bytes, _) = last {
            assert!(matches!(Message::decode(&bytes), Ok(Message::Disconnect { .. })));
            last = channel.receive();
        }
        assert!(matches!(last, Received::Closed(_)));
    }
    assert_in_order(&path, &mut master, id);
}

#[test]
fn a_ring_without_the_cookie_is_refused() {
    let path = socket("cookie");
    let (mut master, id) = Router::with(&path, Role::Master, |_| {});
    let channel = Channel::connect(&path).expect("connect");
    let file = memfd(4096);
    let interrupt = Interrupt::new().expect("eventfd");
    let ring = AddRing {
        flags: 1,
        index: 0,
        region: 0,
        offset: 0,
        log2_size: LOG2,
        private_header_bytes: 0,
    };
    assert!(ring_bytes(LOG2) < 4096);
    channel.send(&init(0), None).expect("send");
    channel
        .send(&Message::AddRegion { index: 0, size: 4096 }, Some(file.as_raw_fd()))
        .expect("send");
    channel.send(&Message::AddRing(ring), Some(interrupt.fd())).expect("send");
    channel.send(&Message::Connect(String::new()), None).expect("send");
    (0..8).for_each(|_| master.turn());
    assert!(master.reason(id).contains("cookie"), "{}", master.reason(id));
}
