//! Ports with many far ends: the frames of one port go to that end which the MAC table says, and
//! those to all stations go to every end of the port's list (head-end replication, RFC 8365 §3.2).

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use quiver_control::layer_two::{BridgeFdb, FarPlace, FdbEntry};
use quiver_core::graph::counters::INTERFACES_MAX;
use quiver_core::graph::node::{Node, NodeSpec, Wiring};
use quiver_core::memory::epoch::{Epochs, Pass, PublishedSlots};
use quiver_core::{Context, Engine, Frame, InterfaceId, NodeId, Packet};
use quiver_forwarding::fib::Fib;
use quiver_tables::mac::FarEnd;

use super::config::{TunnelError, Tunnels, fib};
use super::far_end_book::{Leads, Place};
use super::frames::FrameTarget;
use super::protocol::{TunnelProtocol, place};
use crate::outer::OuterHeader;

/// Far ends of all ports at most.
pub const FAR_ENDS_MAX: usize = u16::MAX as usize;
/// Far ends at most that frames to all stations of a port go to.
pub const FLOOD_LIST_MAX: usize = 1024;
/// Copies that one call of the node makes at most.
const COPIES_PER_CALL_MAX: usize = 4096;
/// One buffer in so many is not for copies.
const BUFFERS_KEPT_PARTS: usize = 8;

quiver_core::reasons! {
    /// What becomes of frames to all far ends of a port.
    pub enum ReplicateDrop {
        /// Nobody there.
        NoFarEnd = "no-far-end", "no far end of the tunnel is known that frames to all go to";
        /// No buffers, or too many copies at once.
        NoBuffer = info "no-buffer", "copies not made: too few buffers are free, or a vector has \
            too many far ends";
        /// Copies made.
        Copied = info "copied", "copies made";
    }
}

/// What workers read.
pub(super) struct FarEndTables {
    /// The encapsulation entry of each far end; 0 for none.
    entries: Box<[AtomicU32]>,
    /// The key of each port.
    keys: Box<[AtomicU32]>,
    /// The far ends that frames to all go to, by port.
    lists: PublishedSlots<Vec<FarEnd>>,
}

fn zeroes(count: usize) -> Box<[AtomicU32]> {
    (0..count).map(|_| AtomicU32::new(0)).collect()
}

impl FarEndTables {
    pub fn new(epochs: &Arc<Epochs>) -> FarEndTables {
        FarEndTables {
            entries: zeroes(FAR_ENDS_MAX + 1),
            keys: zeroes(INTERFACES_MAX),
            lists: PublishedSlots::new(epochs, INTERFACES_MAX),
        }
    }

    fn entry(&self, far_end: FarEnd) -> u32 {
        self.entries.get(usize::from(far_end.0)).map_or(0, |entry| entry.load(Ordering::Acquire))
    }

    fn set_entry(&self, far_end: FarEnd, entry: u32) {
        if let Some(place) = self.entries.get(usize::from(far_end.0)) {
            place.store(entry, Ordering::Release);
        }
    }

    fn key(&self, port: InterfaceId) -> u32 {
        self.keys.get(port.index()).map_or(0, |key| key.load(Ordering::Acquire))
    }

    pub fn set_key(&self, port: InterfaceId, key: u32) {
        if let Some(place) = self.keys.get(port.index()) {
            place.store(key, Ordering::Release);
        }
    }

    fn list<'p>(&self, port: InterfaceId, pass: Pass<'p>) -> &'p [FarEnd] {
        self.lists.read(port.index(), pass).map_or(&[], Vec::as_slice)
    }

    fn set_list(&self, port: InterfaceId, list: Vec<FarEnd>) {
        self.lists.publish(port.index(), Some(list).filter(|list| !list.is_empty()));
    }
}

/// The far end of a frame is the one that `l2-fwd` hands over.
pub struct ManyEnds(pub(super) Arc<FarEndTables>);

impl<P: TunnelProtocol, O: OuterHeader> FrameTarget<P, O> for ManyEnds {
    const NAME: &'static str = match P::FAR_ENDS {
        Some(nodes) => nodes.encap[place::<O>()],
        None => "",
    };

    #[inline(always)]
    fn target(&self, packet: &Packet) -> Option<(u32, u32)> {
        let far_end = packet.handed_over_if::<FarEnd>()?;
        Some((self.0.entry(far_end), self.0.key(packet.tx)))
    }
}

/// Makes a copy of a frame for every far end of its port.
struct Replicate {
    tables: Arc<FarEndTables>,
    encap: NodeId,
}

impl Replicate {
    fn decide(
        &self,
        cx: &mut Context<'_>,
        left: &mut usize,
        packet: &mut Packet,
    ) -> Result<NodeId, ReplicateDrop> {
        let list = self.tables.list(packet.tx, cx.pass);
        let (last, others) = list.split_last().ok_or(ReplicateDrop::NoFarEnd)?;
        let (mut made, mut missing) = (0, 0);
        for far_end in others {
            let pool = cx.buffers.pool();
            let may = *left > 0 && pool.free() >= pool.total() / BUFFERS_KEPT_PARTS;
            match may.then(|| packet.duplicate(cx.buffers)).flatten() {
                Some(mut copy) => {
                    copy.tx = packet.tx;
                    copy.hand_over(*far_end);
                    cx.emit(copy, self.encap);
                    (made, *left) = (made + 1, *left - 1);
                }
                None => missing += 1,
            }
        }
        cx.count(ReplicateDrop::Copied, made);
        if missing > 0 {
            cx.count(ReplicateDrop::NoBuffer, missing);
        }
        packet.hand_over(*last);
        Ok(self.encap)
    }
}

impl Node for Replicate {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        let mut left = COPIES_PER_CALL_MAX;
        frame.route(|packet| self.decide(cx, &mut left, packet));
    }
}

/// The declaration of the node that replicates.
pub(super) fn spec(names: [&'static str; 2], tables: &Arc<FarEndTables>) -> NodeSpec {
    let [flood, encap] = names;
    let tables = tables.clone();
    let help = "Makes a copy of a frame for every far end of its tunnel";
    NodeSpec::new(flood, help, move |wiring: &Wiring<'_>| {
        Box::new(Replicate { tables: tables.clone(), encap: wiring.node(encap) })
    })
    .reasons::<ReplicateDrop>()
    .describe(|record, names| {
        let (tunnel, bytes) = (names.interface(record.tx), record.packet_bytes);
        format!("{bytes} bytes to all far ends of {tunnel}")
    })
}

/// The number of a far end of a port, for one more user.
fn hold<P: TunnelProtocol>(
    engine: &mut Engine,
    port: InterfaceId,
    remote: IpAddr,
) -> Result<u16, TunnelError> {
    engine.with(|engine, tunnels: &mut Tunnels<P>| {
        let tunnel = tunnels.get(port).ok_or(TunnelError::NoPort)?;
        let (config, table) = (tunnel.config, tunnel.table());
        let udp_port = config.udp.map_or(0, |udp| udp.remote_port);
        let place = Place::Vtep(config.source, remote, table, udp_port);
        if let Some(number) = tunnels.far.hold_known(place) {
            return Ok(number);
        }
        let number = tunnels.far.take_number()?;
        let made =
            fib(engine).and_then(|fib| tunnels.add_far_end(fib, port, &config, (remote, table)));
        let peer = match made {
            Ok(peer) => peer,
            Err(error) => {
                tunnels.far.free.push(number);
                return Err(error);
            }
        };
        tunnels.far_tables.set_entry(FarEnd(number), peer.entry());
        tunnels.far.insert(number, place, Leads::Peer(peer));
        Ok(number)
    })
}

/// The number of a group of a port, for one more user. A new one leads to a far end.
fn hold_group<P: TunnelProtocol>(
    engine: &mut Engine,
    port: InterfaceId,
    group: u32,
    remote: Option<IpAddr>,
) -> Result<u16, TunnelError> {
    let place = Place::Group(port, group);
    let tunnels = engine.get_mut::<Tunnels<P>>().ok_or(TunnelError::NoPort)?;
    if let Some(number) = tunnels.far.hold_known(place) {
        return Ok(number);
    }
    let number = tunnels.far.take_number()?;
    tunnels.far.insert(number, place, Leads::Other(None));
    let done = redirect::<P>(engine, port, group, remote);
    if done.is_err() {
        release::<P>(engine, number);
    }
    done.map(|()| number)
}

/// Let the frames for all stations behind a group go to a far end, or be dropped. A group that has
/// no stations is not known.
pub(super) fn redirect<P: TunnelProtocol>(
    engine: &mut Engine,
    port: InterfaceId,
    group: u32,
    remote: Option<IpAddr>,
) -> Result<(), TunnelError> {
    let book = engine.get::<Tunnels<P>>().map(|tunnels| &tunnels.far);
    let number = book.and_then(|book| book.numbers.get(&Place::Group(port, group)).copied());
    let Some(number) = number else { return Ok(()) };
    let new = remote.map(|remote| hold::<P>(engine, port, remote)).transpose()?;
    let old = engine.with(|_, tunnels: &mut Tunnels<P>| {
        let entry = new.map_or(0, |new| tunnels.far_tables.entry(FarEnd(new)));
        tunnels.far_tables.set_entry(FarEnd(number), entry);
        let known = tunnels.far.known.get_mut(&number)?;
        match std::mem::replace(&mut known.leads, Leads::Other(new)) {
            Leads::Other(old) => old,
            Leads::Peer(_) => None, // no far end has the place of a group
        }
    });
    old.into_iter().for_each(|old| release::<P>(engine, old));
    Ok(())
}

/// One user of a far end fewer.
fn release<P: TunnelProtocol>(engine: &mut Engine, number: u16) {
    let other = engine.with(|engine, tunnels: &mut Tunnels<P>| {
        let known = tunnels.far.known.get_mut(&number)?;
        known.users -= 1;
        if known.users > 0 {
            return None;
        }
        let known = tunnels.far.known.remove(&number)?;
        tunnels.far.numbers.remove(&known.place);
        tunnels.far.free.push(number);
        tunnels.far_tables.set_entry(FarEnd(number), 0);
        match (known.leads, engine.get_mut::<Fib>()) {
            (Leads::Other(other), _) => return other,
            (Leads::Peer(peer), Some(fib)) => tunnels.remove_far_end(fib, peer),
            (Leads::Peer(_), None) => {}
        }
        None
    });
    // That one is a far end, and leads to no other number.
    if let Some(other) = other {
        release::<P>(engine, other);
    }
}

/// Let frames to all stations of a port go to a far end, or no more.
pub(super) fn set_flooded<P: TunnelProtocol>(
    engine: &mut Engine,
    port: InterfaceId,
    remote: IpAddr,
    on: bool,
) -> Result<(), TunnelError> {
    let lists = engine.get::<Tunnels<P>>().map(|tunnels| &tunnels.far.lists);
    let known = lists.and_then(|lists| lists.get(&port)).and_then(|list| list.get(&remote));
    if known.is_some() == on {
        return Ok(());
    }
    let old = known.copied();
    let count = lists.and_then(|lists| lists.get(&port)).map_or(0, BTreeMap::len);
    if on && count >= FLOOD_LIST_MAX {
        return Err(TunnelError::FarEnds(FLOOD_LIST_MAX));
    }
    let new = if on { Some(hold::<P>(engine, port, remote)?) } else { None };
    engine.with(|_, tunnels: &mut Tunnels<P>| {
        let list = tunnels.far.lists.entry(port).or_default();
        match new {
            Some(number) => list.insert(remote, number),
            None => list.remove(&remote),
        };
        let numbers = list.values().map(|number| FarEnd(*number)).collect();
        tunnels.far_tables.set_list(port, numbers);
    });
    old.into_iter().for_each(|number| release::<P>(engine, number));
    Ok(())
}

/// Let a station be behind a far end of a port.
pub(super) fn add_station<P: TunnelProtocol>(
    engine: &mut Engine,
    station: FdbEntry,
    place: FarPlace,
) -> Result<(), String> {
    let calls = engine.get::<BridgeFdb>().copied().ok_or("bridging is not built in")?;
    let number = match place {
        FarPlace::Vtep(remote) => hold::<P>(engine, station.port, remote),
        FarPlace::Group(group, remote) => hold_group::<P>(engine, station.port, group, remote),
    };
    let number = number.map_err(|error| error.to_string())?;
    if let Err(why) = (calls.add_behind)(engine, station, false, number) {
        release::<P>(engine, number);
        return Err(why);
    }
    let stations = engine.get_mut::<Tunnels<P>>().map(|tunnels| &mut tunnels.far.stations);
    let old = stations.and_then(|stations| stations.insert(station, number));
    old.into_iter().for_each(|number| release::<P>(engine, number));
    Ok(())
}

/// A station is not behind a far end of the port any more.
pub(super) fn remove_station<P: TunnelProtocol>(engine: &mut Engine, station: FdbEntry) {
    let stations = engine.get_mut::<Tunnels<P>>().map(|tunnels| &mut tunnels.far.stations);
    let Some(number) = stations.and_then(|stations| stations.remove(&station)) else { return };
    if let Some(calls) = engine.get::<BridgeFdb>().copied() {
        (calls.remove)(engine, station);
    }
    release::<P>(engine, number);
}

/// A port goes, and all that is behind its far ends.
pub(super) fn forget<P: TunnelProtocol>(engine: &mut Engine, port: InterfaceId) {
    let Some(tunnels) = engine.get::<Tunnels<P>>() else { return };
    let stations = tunnels.far.stations.keys().filter(|station| station.port == port);
    let (stations, remotes) =
        (stations.copied().collect::<Vec<_>>(), tunnels.far.list(port).collect::<Vec<_>>());
    stations.into_iter().for_each(|station| remove_station::<P>(engine, station));
    for remote in remotes {
        let _ = set_flooded::<P>(engine, port, remote, false); // to remove is not refused
    }
    if let Some(tunnels) = engine.get_mut::<Tunnels<P>>() {
        tunnels.far.lists.remove(&port);
        tunnels.far_tables.set_key(port, 0);
    }
}
