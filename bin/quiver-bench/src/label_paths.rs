//! The paths of labels: swapped, put on IPv4 packets, and taken off them in front of a look-up.

use quiver_wire::Header;
use quiver_wire::mpls::MplsEntry;

use crate::bare::exchange::{Exchange, Layer};
use crate::paths::{Packets, Path, Tagging, Work, path};
use crate::population::ip4_frame;

/// Where packets behind labels go.
const DESTINATION: u32 = 0x1400_0000;
/// The label of all frames.
const LABEL: u32 = 100;
/// Bytes of an Ethernet header, of one with a label behind it, and of the packet in a frame of the
/// smallest length.
const ETHERNET: usize = 14;
const LABELLED: usize = ETHERNET + 4;
const PACKET: usize = 42;

/// A frame of the smallest length with a label in front of an IPv4 packet.
fn labelled() -> Vec<u8> {
    let inner = ip4_frame(DESTINATION);
    let mut entry = [0; 4];
    MplsEntry::new(LABEL, 0, true, 64).write(&mut entry).expect("room");
    let mut packet = inner[ETHERNET..ETHERNET + PACKET].to_vec();
    let length = (PACKET as u16).to_be_bytes();
    packet[2..4].copy_from_slice(&length);
    packet[10..12].fill(0);
    let sum = quiver_wire::checksum::of(&packet[..20]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    [&inner[..12], &[0x88, 0x47], &entry, &packet].concat()
}

/// Labels on both ports of a path.
fn with_labels(path: Path) -> Path {
    let mut setup = vec!["mpls table add 0".to_owned()];
    let suffix = if path.tagging == Tagging::Untagged { "" } else { ".7" };
    setup.push(format!("set interface mpls bench0{suffix} enable"));
    setup.extend(path.setup.iter().map(|line| line.replace("{}", suffix)));
    Path { setup, ..path }
}

/// All of them.
pub fn all() -> Vec<Path> {
    let frame = Exchange::of(Layer::Frame, Layer::Frame);
    let swap = Exchange { takes: LABELLED, puts: LABELLED, ..frame };
    let push = Exchange { puts: LABELLED, ..Exchange::of(Layer::Ip4, Layer::Frame) };
    let pop =
        Exchange { takes: LABELLED, looks_up: true, ..Exchange::of(Layer::Frame, Layer::Ip4) };
    let to_peer = |label: &str| {
        format!("mpls local-label add {LABEL} eos via 10.1.0.2 bench1{{}} out-labels {label}")
    };
    let routes = [
        "ip route add 20.0.0.0/32 via 10.1.0.2 bench1{} out-labels 200",
        "ip route add 20.0.0.0/32 via 10.1.0.2 bench1{}",
    ];
    let into_table = format!("mpls local-label add {LABEL} eos via ip4-lookup-in-table 0");
    let made = Packets::Made(labelled);
    let one = Packets::Ip4 { count: 1, random: true };
    let paths = || {
        [
            path("mpls-swap", Work::Exchange(swap), made, &[&to_peer("200")], None),
            path("mpls-push", Work::Exchange(push), one, &[routes[0]], None),
            path("mpls-pop-ip4", Work::Exchange(pop), made, &[routes[1], &into_table], None),
        ]
    };
    let tagged = paths().map(|path| {
        let name = format!("{}-dot1q", path.name);
        Path { name, tagging: Tagging::Dot1q, ..path }
    });
    paths().into_iter().chain(tagged).map(with_labels).collect()
}
