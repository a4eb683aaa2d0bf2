//! The commands: `create interface af_xdp`, `delete interface af_xdp`.

use std::time::{Duration, Instant};

use quiver_control::{
    Args, Command, ConfigWriter, Job, Output, Refusal, Registry, Sink, Step, Work, order,
};
use quiver_core::{Engine, InterfaceId};

use crate::interface::{
    Interfaces, RING_FRAMES, XdpConfig, busy_until, create_interface, delete_interface,
};

const GROUP: &str = "AF_XDP interfaces";

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new(
            "create interface af_xdp {host-if <linux-name:word> [name <name:word>] \
             [num-rx-queues <queues:1-64>] [rx-queue-size <frames:64-32768>]}",
        )
        .entry(
            order::INTERFACES,
            "interfaces.<name>.af-xdp: {host-if: <linux-name>, num-rx-queues: <queues>, \
             rx-queue-size: <frames>}",
        )
        .entry(
            order::INTERFACES,
            "interfaces.<linux-name>/0.af-xdp: {num-rx-queues: <queues>, rx-queue-size: <frames>}",
        )
        .undo("delete interface af_xdp <name>")
        .undo("delete interface af_xdp <linux-name>/0")
        .makes("interface <name>")
        .makes("interface <linux-name>/0")
        .group(GROUP)
        .help(
            "Use a Linux network device by AF_XDP sockets: its frames come to the router, not to \
             Linux",
        )
        .details(
            "It needs CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF. Each queue sends as well; workers \
             beyond their number share one.",
        )
        .word("linux-name", "as `ip link` shows it")
        .word("name", "the interface's name in the router; otherwise the device's and /0")
        .word("queues", "queues of the device to use, from the first")
        .word("frames", "frames in each ring, a power of two")
        .example("create interface af_xdp host-if veth1")
        .run_or_begin(create),
    );
    registry.command(
        Command::new("delete interface af_xdp <interface>")
            .group(GROUP)
            .help("Give a Linux network device back")
            .example("delete interface af_xdp veth1/0")
            .run(|engine, args| {
                let id = args.interface(engine, "interface")?;
                delete_interface(engine, id)
                    .map_err(|e| args.refuse("interface", e.to_string()))?;
                Ok(Output::none())
            }),
    );
}

fn create(engine: &mut Engine, args: &Args<'_>) -> Result<Work<Engine>, Refusal> {
    let config = XdpConfig {
        name: args.optional("name")?,
        queues: args.or("queues", 1)?,
        ring_frames: args.or("frames", RING_FRAMES)?,
        ..XdpConfig::new(args.get::<String>("linux-name")?)
    };
    match create_interface(engine, config.clone()) {
        Ok(id) => Ok(Work::Done(Output::text(engine.interface_name(id)))),
        Err(error) if busy_until(engine, &error).is_some() => {
            Ok(Work::Begun(Box::new(Retry(config))))
        }
        Err(error) => Err(args.refuse("linux-name", error.to_string())),
    }
}

/// How long a command waits before it asks Linux once more.
const RETRY: Duration = Duration::from_millis(2);

/// Linux still holds what an interface that was just deleted had: the command waits, and the
/// control loop goes on.
struct Retry(XdpConfig);

impl Job<Engine> for Retry {
    fn step(&mut self, engine: &mut Engine, _: &mut dyn Sink) -> Result<Step, Refusal> {
        match create_interface(engine, self.0.clone()) {
            Ok(id) => Ok(Step::Done(Output::text(engine.interface_name(id)))),
            Err(error) if busy_until(engine, &error).is_some() => {
                Ok(Step::Until(Instant::now() + RETRY))
            }
            Err(error) => Err(Refusal::new(error.to_string())),
        }
    }
}

/// `show running-config`: the interfaces.
pub(crate) fn ids(engine: &Engine) -> Vec<InterfaceId> {
    engine.get::<Interfaces>().into_iter().flat_map(|all| all.configs.keys()).copied().collect()
}

/// `show running-config`: one of them.
pub(crate) fn write_interface(engine: &Engine, config: &mut ConfigWriter, id: InterfaceId) {
    if let Some(interface) = engine.get::<Interfaces>().and_then(|all| all.configs.get(&id)) {
        let XdpConfig { linux_name, name, queues, ring_frames, .. } = interface;
        let name = name.as_ref().map_or_else(String::new, |name| format!(" name {name}"));
        let queues = if *queues > 1 { format!(" num-rx-queues {queues}") } else { String::new() };
        let ring = if *ring_frames != RING_FRAMES {
            format!(" rx-queue-size {ring_frames}")
        } else {
            String::new()
        };
        config.command(format_args!(
            "create interface af_xdp host-if {linux_name}{name}{queues}{ring}"
        ));
    }
}
