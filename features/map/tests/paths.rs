//! The fast path and the general one: a packet whose bytes lie in several buffers takes the general
//! one. A router with short buffers must send and count what a router with long ones does.

use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use proptest::sample::select;
use quiver_testkit::frames::ip4;
use quiver_testkit::{Router, Settings};
use quiver_wire::checksum::of;

use crate::fixture::*;
use crate::translation::{self, SERVER6, TRANSLATED, relay_with};

/// The shortest buffers that there are, in bytes of data: no frame here fits into one.
const SHORT_BYTES: usize = 1024;
const TCP: u8 = 6;

/// A customer, by all that the border relay knows.
#[derive(Clone, Copy, Debug)]
struct Customer {
    ip4: Ipv4Addr,
    ip6: Ipv6Addr,
    translates: bool,
}

const CUSTOMERS: [Customer; 3] = [
    Customer { ip4: SHARED, ip6: CUSTOMER, translates: false },
    Customer { ip4: SOFTWIRE, ip6: B4, translates: false },
    Customer { ip4: TRANSLATED, ip6: translation::CUSTOMER, translates: true },
];

/// What differs between packets.
#[derive(Clone, Debug)]
struct Fields {
    customer: Customer,
    is_to_customer: bool,
    protocol: u8,
    class: u8,
    /// Flags and place of a fragment.
    flags: u16,
    hops: u8,
    /// The customer's.
    port: u16,
    checksum: u16,
    tcp_flags: u8,
    upper_len: usize,
    padding: usize,
}

fn fields() -> impl Strategy<Value = Fields> {
    let ip = (
        select(CUSTOMERS.to_vec()),
        any::<bool>(),
        // No extension headers: in short buffers they may be cut.
        prop_oneof![8 => select(vec![TCP, UDP]), 1 => select(vec![1, 2, 47, 50, 58, 132])],
        any::<u8>(),
        prop_oneof![6 => select(vec![0, 0x4000]), 1 => select(vec![0x2000u16, 0x0010, 0x8000])],
        prop_oneof![8 => 2u8.., 1 => 0u8..2],
    );
    let ports = select(vec![PORT, PORT, PORT + 1, SOFTWIRE_PORT, SOFTWIRE_PORT, 80, 0xffff]);
    let upper = (
        ports,
        prop_oneof![4 => any::<u16>(), 1 => select(vec![0, 0xffff])],
        select(vec![0x10u8, 0x02, 0x12]),
        SHORT_BYTES..1500 - 60,
        prop_oneof![3 => Just(0), 1 => 0usize..30],
    );
    (ip, upper).prop_map(|(ip, upper)| {
        let (customer, is_to_customer, protocol, class, flags, hops) = ip;
        let (port, checksum, tcp_flags, upper_len, padding) = upper;
        Fields {
            customer,
            is_to_customer,
            protocol,
            class,
            flags,
            hops,
            port,
            checksum,
            tcp_flags,
            upper_len,
            padding,
        }
    })
}

impl Fields {
    fn upper(&self) -> Vec<u8> {
        let ports = match self.is_to_customer {
            true => [53, self.port],
            false => [self.port, 53],
        };
        let mut upper: Vec<u8> = ports.iter().flat_map(|port| port.to_be_bytes()).collect();
        upper.resize(self.upper_len, 0x5a);
        // A segment size of 9,000 bytes behind the header of TCP.
        (upper[12], upper[13]) = (0x60, self.tcp_flags);
        upper[20..24].copy_from_slice(&[2, 4, 0x23, 0x28]);
        let at = if self.protocol == UDP { 6 } else { 16 };
        upper[at..at + 2].copy_from_slice(&self.checksum.to_be_bytes());
        upper
    }

    fn packet4(&self) -> Vec<u8> {
        let ends = match self.is_to_customer {
            true => (SERVER, self.customer.ip4),
            false => (self.customer.ip4, SERVER),
        };
        let mut packet = packet4(ends, self.protocol, whole(), &self.upper());
        (packet[1], packet[8]) = (self.class, self.hops);
        packet[6..8].copy_from_slice(&self.flags.to_be_bytes());
        packet[10..12].fill(0);
        let sum = of(&packet[..20]);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet
    }

    /// The interface by which it arrives, and its frame.
    fn frame(&self) -> (&'static str, Vec<u8>) {
        let (interface, mut frame) = if self.is_to_customer {
            let mut frame = ip4(0, (SERVER, SHARED), UDP, whole(), &[])[..LINK].to_vec();
            frame.extend(self.packet4());
            ("e0", frame)
        } else if self.customer.translates {
            let ends = (self.customer.ip6, SERVER6);
            ("e1", ip6(ends, self.protocol, self.hops, &self.upper()))
        } else {
            ("e1", from(self.customer.ip6, &self.packet4()))
        };
        frame.resize(frame.len() + self.padding, 0);
        (interface, frame)
    }
}

/// All that a router has sent and counted.
type Done = (Vec<Vec<u8>>, Vec<Vec<u8>>, Vec<(String, String, u64)>, String);

/// Put all frames of an interface into one vector.
fn done(mut router: Router, packets: &[Fields]) -> Done {
    for packet in packets {
        let (interface, frame) = packet.frame();
        assert!(frame.len() > SHORT_BYTES);
        router.inject(interface, &frame);
    }
    router.run();
    let mut counts = router.dropped();
    counts.extend(router.events());
    let done = (router.sent("e0"), router.sent("e1"), counts, router.cli("show map stats"));
    // Fragments may wait for their first one.
    router.discard();
    done
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn both_paths_send_and_count_the_same(
        packets in prop::collection::vec(fields(), 1..40),
        params in prop::collection::vec(select(vec![
            "map params tcp-mss 1300",
            "map params traffic-class 32",
            "map params fragment inner ignore-df",
            "map params security-check off",
        ]), 0..2),
    ) {
        let short = Settings { buffer_data_bytes: SHORT_BYTES, ..Settings::default() };
        let [general, fast] = [short, Settings::default()].map(|settings| {
            let mut router = relay_with(settings);
            params.iter().for_each(|line| {
                router.cli(line);
            });
            done(router, &packets)
        });
        prop_assert_eq!(fast, general);
    }

    /// The same where all packets of a vector are of one domain.
    #[test]
    fn both_paths_send_and_count_the_same_for_one_customer(
        packets in prop::collection::vec(fields(), 1..40), customer in select(CUSTOMERS.to_vec()),
    ) {
        let packets: Vec<Fields> =
            packets.into_iter().map(|packet| Fields { customer, ..packet }).collect();
        let short = Settings { buffer_data_bytes: SHORT_BYTES, ..Settings::default() };
        let [general, fast] = [short, Settings::default()]
            .map(|settings| done(relay_with(settings), &packets));
        prop_assert_eq!(fast, general);
    }
}
