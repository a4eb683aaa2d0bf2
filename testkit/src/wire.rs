//! Test interfaces: what a test puts in is received, what the router sends can be looked at.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quiver_control::{
    Args, Command, ConfigWriter, ETHERNET_INPUT, Output, Refusal, Registry, order,
};
use quiver_core::control::interfaces::InterfaceSpec;
use quiver_core::graph::node::NodeSpec;
use quiver_core::memory::buffer::Offload;
use quiver_core::memory::packet::PacketFlags;
use quiver_core::worker::device::{Device, RxMode, RxQueue, TxQueue};
use quiver_core::{Context, Engine, Frame, InterfaceId, NodeId, Packet, WorkerId};

/// Bytes of the largest layer 3 packet unless `mtu N` says otherwise.
const MTU_BYTES_DEFAULT: u32 = 1500;

/// Both directions of one test interface.
#[derive(Default)]
struct Ends {
    /// Frames that wait to be received, and what they leave to the transmitting device, by queue.
    waiting: Vec<VecDeque<(Vec<u8>, Option<Offload>)>>,
    /// Frames, and what they leave to the device.
    sent: Vec<(Vec<u8>, Option<Offload>)>,
    /// The device takes nothing.
    stalled: bool,
    /// Of what waits, it gives nothing.
    silent: bool,
    /// Packets that the device takes of one vector; all when it is not said.
    taken_max: Option<usize>,
}

/// A handle on both directions, shared with the queues.
#[derive(Clone, Default)]
pub(crate) struct Wire(Arc<Mutex<Ends>>);

impl Wire {
    fn ends(&self) -> MutexGuard<'_, Ends> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn take_sent(&self) -> Vec<(Vec<u8>, Option<Offload>)> {
        std::mem::take(&mut self.ends().sent)
    }

    pub(crate) fn set_stalled(&self, stalled: bool) {
        self.ends().stalled = stalled;
    }

    pub(crate) fn set_silent(&self, silent: bool) {
        self.ends().silent = silent;
    }

    pub(crate) fn set_taken_max(&self, packets: Option<usize>) {
        self.ends().taken_max = packets;
    }

    pub(crate) fn waits(&self) -> bool {
        let ends = self.ends();
        !ends.silent && ends.waiting.iter().any(|queue| !queue.is_empty())
    }
}

/// The control thread's handle.
pub(crate) struct TestDevice {
    pub(crate) wire: Wire,
    bells: Vec<UnixStream>,
}

impl TestDevice {
    /// Let a frame wait to be received; false when there is no such queue.
    pub(crate) fn inject(&mut self, queue: usize, bytes: &[u8], offload: Option<Offload>) -> bool {
        let mut ends = self.wire.ends();
        let Some(waiting) = ends.waiting.get_mut(queue) else { return false };
        waiting.push_back((bytes.to_vec(), offload));
        // A bell that is full rings anyway.
        self.bells.get_mut(queue).map(|bell| bell.write(&[1]));
        true
    }
}

impl Device for TestDevice {
    fn kind(&self) -> &'static str {
        "test"
    }

    fn facts(&self) -> Vec<(String, serde_json::Value)> {
        vec![("frames sent and not yet looked at".to_owned(), self.wire.ends().sent.len().into())]
    }

    fn as_any(&mut self) -> &mut dyn std::any::Any {
        self
    }
}

/// A receive queue.
struct TestRx {
    wire: Wire,
    queue: usize,
    interface: InterfaceId,
    bell: Option<UnixStream>,
}

impl RxQueue for TestRx {
    fn receive(&mut self, cx: &mut Context<'_>, frame: &mut Frame) -> Option<NodeId> {
        if let Some(bell) = &mut self.bell {
            let _ = bell.read(&mut [0; 256]);
        }
        let mut ends = self.wire.ends();
        while frame.room() > 0 && !ends.silent {
            let Some((bytes, offload)) = ends.waiting[self.queue].pop_front() else { break };
            let Some(mut packet) = cx.buffers.packet() else {
                cx.interface_counters(self.interface).rx_no_buffer.add(1);
                continue;
            };
            if packet.append(&bytes, cx.buffers) {
                if let Some(offload) = offload {
                    *packet.offload_mut() = offload;
                    packet.set(PacketFlags::OFFLOAD);
                    frame.note_offload();
                }
                if let Err(packet) = frame.push(packet) {
                    cx.buffers.free(packet);
                }
            } else {
                cx.buffers.free(packet);
                cx.interface_counters(self.interface).rx_no_buffer.add(1);
            }
        }
        None
    }

    fn wake_fd(&self) -> Option<RawFd> {
        self.bell.as_ref().map(AsRawFd::as_raw_fd)
    }

    fn arm(&mut self, interrupts: bool) -> bool {
        let ends = self.wire.ends();
        interrupts && !ends.silent && !ends.waiting[self.queue].is_empty()
    }
}

/// A transmit queue.
struct TestTx {
    wire: Wire,
    takes_offloads: bool,
}

impl TxQueue for TestTx {
    fn takes_offloads(&self) -> bool {
        self.takes_offloads
    }

    fn transmit(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        let mut ends = self.wire.ends();
        if ends.stalled {
            return;
        }
        // What the device does not take stays in the vector.
        let taken = ends.taken_max.map_or(frame.len(), |most| most.min(frame.len()));
        let rest: Vec<Packet> = {
            let mut packets = frame.drain();
            for packet in packets.by_ref().take(taken) {
                let mut bytes = Vec::new();
                packet.copy_to(&mut bytes);
                let offload = packet.has(PacketFlags::OFFLOAD).then(|| *packet.offload());
                ends.sent.push((bytes, offload));
                cx.buffers.free(packet);
            }
            packets.collect()
        };
        for packet in rest {
            if let Err(packet) = frame.push(packet) {
                cx.buffers.free(packet);
            }
        }
    }
}

pub(crate) fn register(registry: &mut Registry) {
    registry.feature("testkit", "interfaces that a test holds both ends of");
    registry.graph.node(NodeSpec::input("test-input", "Frames that a test puts in").describe(
        |record, names| format!("{}: {} bytes in", names.interface(record.rx), record.packet_bytes),
    ));
    registry.command(
        Command::new(
            "create test interface <name:word> {[mac <:mac>] [mtu <:68-65535>] [input <:node>] \
             [rx-queues <:1-16>] [takes-offloads] [wakeable]}",
        )
        .group("Tests")
        .help("Create an interface that a test holds both ends of")
        .word("input", "the node that received frames go to, ethernet-input unless given")
        .word(
            "takes-offloads",
            "it sends super-frames whole, and packets whose checksum is left to the device",
        )
        .word("wakeable", "its queues can wake a worker, so that interrupt mode works")
        .example("create test interface e0 mac 02:fe:00:00:00:01")
        .run(create),
    );
    registry.running_config(order::INTERFACES, |engine, config: &mut ConfigWriter| {
        let Some(made) = engine.get::<MadeBy>() else { return };
        for (_, command) in made.0.iter().filter(|(id, _)| engine.interface(*id).is_some()) {
            config.command(format_args!("{command}"));
        }
    });
    registry.on_start(|engine| engine.insert(MadeBy::default()));
}

/// The commands that made the interfaces, in order.
#[derive(Default)]
struct MadeBy(Vec<(InterfaceId, String)>);

fn create(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let name: &str = args.get("name")?;
    let count: usize = args.or("rx-queues", 1)?;
    let number = engine.get::<MadeBy>().map_or(0, |made| made.0.len()) as u8;
    let mac: [u8; 6] = args.or("mac", [0x02, 0xfe, 0, 0, 0, number])?;
    let mtu: u32 = args.or("mtu", MTU_BYTES_DEFAULT)?;
    let input: &str = args.or("input", ETHERNET_INPUT)?;
    let [a, b, c, d, e, f] = mac;
    let mut made_by = format!(
        "create test interface {name} mac {a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x} mtu \
         {mtu} input {input} rx-queues {count}"
    );
    let wire = Wire::default();
    wire.ends().waiting.resize(count, VecDeque::new());
    let mut bells = Vec::new();
    let mut rung = Vec::new();
    let takes_offloads = args.has("takes-offloads");
    if takes_offloads {
        made_by += " takes-offloads";
    }
    if args.has("wakeable") {
        made_by += " wakeable";
        for _ in 0..count {
            let (here, there) = UnixStream::pair()?;
            here.set_nonblocking(true)?;
            there.set_nonblocking(true)?;
            bells.push(here);
            rung.push(there);
        }
    }
    let tx = (0..engine.worker_count())
        .map(|_| Box::new(TestTx { wire: wire.clone(), takes_offloads }) as Box<dyn TxQueue>)
        .collect();
    let interface = engine.create_interface(InterfaceSpec {
        name: name.to_owned(),
        device: Box::new(TestDevice { wire: wire.clone(), bells }),
        mac,
        mtu_bytes: mtu,
        input: input.to_owned(),
        link_up: true,
        tx,
    })?;
    let mut rung = rung.into_iter();
    for queue in 0..count {
        let rx = TestRx { wire: wire.clone(), queue, interface, bell: rung.next() };
        let worker = WorkerId((queue % engine.worker_count()) as u16);
        engine.add_rx_queue(
            interface,
            "test-input",
            Box::new(rx),
            RxMode::Polling,
            Some(worker),
        )?;
    }
    if let Some(made) = engine.get_mut::<MadeBy>() {
        made.0.push((interface, made_by));
    }
    Ok(Output::text(name))
}
