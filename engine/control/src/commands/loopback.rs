//! Loopbacks: interfaces of the router's own. What is sent to one comes back as received on it.

use std::collections::BTreeMap;

use quiver_core::control::interfaces::InterfaceSpec;
use quiver_core::graph::arc::DEVICE_INPUT;
use quiver_core::graph::node::NodeSpec;
use quiver_core::memory::packet::PacketFlags;
use quiver_core::worker::device::{Device, TxQueue};
use quiver_core::{Context, Engine, Frame, InterfaceId, Node, NodeId};

use super::{mac_text, refuse_interface};
use crate::ETHERNET_INPUT;
use crate::args::Args;
use crate::error::Refusal;
use crate::grammar::Command;
use crate::output::Output;
use crate::registry::Registry;
use crate::running::{ConfigWriter, of_each_interface, order};

const GROUP: &str = "Interfaces";
/// The node of what comes back.
const INPUT: &str = "loopback-input";
/// The largest layer 3 packet of a loopback until it is set, bytes.
const MTU_BYTES: u32 = 9000;
/// Instances are counted from 0 up to this.
const INSTANCE_MAX: u32 = 16_383;

quiver_core::reasons! {
    /// Why a packet that comes back from a loopback is dropped.
    enum LoopbackDrop {
        Down = "interface-down", "the loopback is down (`set interface state IF up`)";
        Loop = "loop", "the packet came back from loopbacks too often: a route or bridge points \
            at them in a circle";
    }
}

/// `loopback-input`: what was sent to a loopback is received on it.
struct LoopbackInput;

impl Node for LoopbackInput {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.set_same_rx(false);
        frame.route(|packet| {
            let id = packet.tx;
            packet.rx = id;
            packet.l2_bytes = 0;
            packet.clear(PacketFlags::L2_GROUP);
            let counters = cx.interface_counters(id);
            counters.rx_packets.add(1);
            counters.rx_bytes.add(packet.length() as u64);
            if !packet.turn() {
                return Err(LoopbackDrop::Loop);
            }
            match cx.interface(id) {
                Some(row) if row.up => Ok(cx.enter_arc(DEVICE_INPUT, id, packet, row.input)),
                _ => Err(LoopbackDrop::Down),
            }
        });
    }
}

/// Sends to `loopback-input`.
struct LoopbackTx(NodeId);

impl TxQueue for LoopbackTx {
    fn transmit(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        // Who sends to a port need not say so in each packet.
        let tx = cx.tx;
        frame.drain().for_each(|mut packet| {
            packet.tx = tx;
            cx.emit(packet, self.0);
        });
    }
}

/// The control thread's handle.
struct Loopback;

impl Device for Loopback {
    fn kind(&self) -> &'static str {
        "loopback"
    }

    fn as_any(&mut self) -> &mut dyn std::any::Any {
        self
    }
}

/// What tells this router from others on the same link, kept in the engine: the middle of the layer
/// 2 addresses of its loopbacks. The same router has the same number after every start.
#[derive(Clone, Copy, Debug)]
pub struct RouterNumber(pub [u8; 3]);

/// The command that makes a loopback again, by interface; devices cannot be looked at through a
/// shared engine.
#[derive(Default)]
struct Loopbacks(BTreeMap<InterfaceId, String>);

pub(super) fn register(registry: &mut Registry) {
    registry.graph.node(
        NodeSpec::new(INPUT, "What was sent to a loopback comes back as received on it", |_| {
            Box::new(LoopbackInput)
        })
        .reasons::<LoopbackDrop>()
        .describe(|record, names| {
            let (bytes, interface) = (record.packet_bytes, names.interface(record.rx));
            format!("{bytes} bytes came back as received on {interface}")
        }),
    );
    registry.command(
        Command::new("create loopback interface {[mac <:mac>] [instance <:0-16383>]}")
            .entry(order::INTERFACES, "interfaces.loop<instance>.loopback: {mac}")
            .undo("delete loopback interface intfc loop<instance>")
            .makes("interface loop<instance>")
            .also("loopback create-interface {[mac <:mac>] [instance <:0-16383>]}")
            .group(GROUP)
            .help("Create a loopback, an interface of the router's own")
            .details(
                "What is sent to it comes back as received on it. The first free loopN is taken \
                 unless instance says which. Without mac, its layer 2 address is made of the \
                 machine, the runtime-dir and the instance: the same at every start, and another \
                 than on another router.",
            )
            .example("create loopback interface mac 02:fe:00:00:00:01 instance 7")
            .run(create),
    );
    registry.command(
        Command::new("delete loopback interface intfc <interface>")
            .also("loopback delete-interface intfc <interface>")
            .group(GROUP)
            .help("Delete a loopback")
            .example("delete loopback interface intfc loop0")
            .run(delete),
    );
    registry.running_config_in_slices(order::INTERFACES, of_each_interface(ids, write_config));
    registry.on_start(|engine| engine.insert(Loopbacks::default()));
}

fn ids(engine: &Engine) -> Vec<InterfaceId> {
    engine.get::<Loopbacks>().into_iter().flat_map(|all| all.0.keys()).copied().collect()
}

fn write_config(engine: &Engine, config: &mut ConfigWriter, id: InterfaceId) {
    if let Some(command) = engine.get::<Loopbacks>().and_then(|all| all.0.get(&id)) {
        config.command(format_args!("{command}"));
    }
}

fn create(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let free =
        |engine: &Engine, instance: u32| engine.is_interface_name_free(&format!("loop{instance}"));
    let instance = match args.optional::<u32>("instance")? {
        Some(instance) if free(engine, instance) => instance,
        Some(instance) => {
            return Err(args.refuse("instance", format!("loop{instance} exists already")));
        }
        None => (0..=INSTANCE_MAX).find(|instance| free(engine, *instance)).ok_or_else(|| {
            Refusal::new(format!("there are {} loopbacks already", INSTANCE_MAX + 1))
        })?,
    };
    let given: Option<[u8; 6]> = args.optional("mac")?;
    let [.., high, low] = instance.to_be_bytes();
    let mac = given.unwrap_or_else(|| match engine.get::<RouterNumber>() {
        Some(RouterNumber([first, second, third])) => [0xde, *first, *second, *third, high, low],
        None => [0xde, 0xad, 0, 0, high, low],
    });
    if mac[0] & 1 == 1 {
        return Err(args.refuse("mac", format!("{} is a group address", mac_text(mac))));
    }
    let back = engine.node_id(INPUT).ok_or_else(|| Refusal::new("loopback-input is gone"))?;
    let name = format!("loop{instance}");
    let id = engine.create_interface(InterfaceSpec {
        name: name.clone(),
        device: Box::new(Loopback),
        mac,
        mtu_bytes: MTU_BYTES,
        input: ETHERNET_INPUT.to_owned(),
        link_up: true,
        tx: (0..engine.worker_count())
            .map(|_| Box::new(LoopbackTx(back)) as Box<dyn TxQueue>)
            .collect(),
    })?;
    let with_mac = given.map_or_else(String::new, |mac| format!("mac {} ", mac_text(mac)));
    let command = format!("create loopback interface {with_mac}instance {instance}");
    if let Some(loopbacks) = engine.get_mut::<Loopbacks>() {
        loopbacks.0.insert(id, command);
    }
    Ok(Output::default().line(name.as_str()).json("name", name.into()))
}

fn delete(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let id = args.interface(engine, "interface")?;
    if engine.device::<Loopback>(id).is_none() {
        let name = engine.interface_name(id);
        return Err(args.refuse("interface", format!("{name} is not a loopback")));
    }
    engine.delete_interface(id).map_err(|error| refuse_interface(engine, args, id, error))?;
    if let Some(loopbacks) = engine.get_mut::<Loopbacks>() {
        loopbacks.0.remove(&id);
    }
    Ok(Output::none())
}
