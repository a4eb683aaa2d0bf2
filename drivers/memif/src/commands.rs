//! The driver's commands, and its part of the running configuration.

use std::fmt::Write as _;

use quiver_control::{
    Args, Command, ConfigWriter, Output, Refusal, Registry, Slices, of_each, of_each_interface,
    order, quoted,
};
use quiver_core::worker::device::RxMode;
use quiver_core::{Engine, InterfaceId};

use crate::config::{BUFFER_BYTES_DEFAULT, MemifConfig, Mode, RING_SIZE_DEFAULT, Role};
use crate::driver;
use crate::show;
use crate::state::Memif;

const GROUP: &str = "memif";

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("create memif socket id <:1-4294967295> filename <:path>")
            .entry(order::RESOURCES, "memif.sockets.<id>: <filename>")
            .undo("delete memif socket id <id>")
            .makes("memif socket <id>")
            .group(GROUP)
            .help("Name a socket for memif interfaces")
            .details(
                "Socket 0 is always there: memif.sock in the router's runtime directory. A name \
                 that begins with @ is in the abstract name space. The first master on a socket \
                 listens there; slaves on it connect to the master that listens. Several sockets \
                 may have one path, so that a master of one and a slave of another are the two \
                 ends of a link inside this router. Other users than root and the router's own \
                 name sockets in that directory alone.",
            )
            .word("id", "the socket's number")
            .word("filename", "the socket's path")
            .example("create memif socket id 1 filename /run/quiver/memif1.sock")
            .run(|engine: &mut Engine, args| {
                let number = args.get("id")?;
                let path = args.socket_path("filename")?.unwrap_or_default();
                driver::add_socket(engine, number, &path.to_string_lossy())
                    .map_err(|error| args.refuse("filename", error.to_string()))?;
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("delete memif socket id <:u32>")
            .group(GROUP)
            .help("Forget a socket that no interface uses")
            .word("id", "the socket's number")
            .example("delete memif socket id 1")
            .run(|engine: &mut Engine, args| {
                driver::delete_socket(engine, args.get("id")?)
                    .map_err(|error| args.refuse("id", error.to_string()))?;
                Ok(Output::none())
            }),
    );
    registry.command(create_interface());
    registry.command(
        Command::new("delete interface memif <interface>")
            .group(GROUP)
            .help("Delete a memif interface; its peer is told")
            .word("interface", "the interface")
            .example("delete interface memif memif0/0")
            .run(|engine: &mut Engine, args| {
                let id = args.interface(engine, "interface")?;
                driver::delete(engine, id)
                    .map_err(|error| args.refuse("interface", error.to_string()))?;
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("show memif [<interface>] [descriptors]")
            .group(GROUP)
            .help("Show memif sockets and interfaces, their peers and rings")
            .details(
                "With an interface also its regions and rings; with descriptors every slot of \
                 them.",
            )
            .word("interface", "one interface, in detail")
            .word("descriptors", "every slot of every ring")
            .example("show memif memif0/0")
            .run_or_begin(show::show),
    );
}

fn create_interface() -> Command<Engine> {
    Command::new(
        "create interface memif {id <:u32> [socket-id <:u32>] master|slave [mode <:ethernet|ip>] \
         [ring-size <:u32>] [buffer-size <:u32>] [rx-queues <:u16>] [tx-queues <:u16>] [zero-copy] \
         [secret <:secret>] [hw-addr <:mac>]}",
    )
    .entry(
        order::INTERFACES,
        "interfaces.memif<socket-id>/<id>.memif: {role: <master|slave>, mode, ring-size, \
         buffer-size, rx-queues, tx-queues, zero-copy, secret, mac: <hw-addr>}",
    )
    .undo("delete interface memif memif<socket-id=0>/<id>")
    .makes("interface memif<socket-id=0>/<id>")
    .stands_on("memif socket <socket-id=0>")
    .group(GROUP)
    .help("Create a memif interface, memifSOCKET/ID")
    .details(
        "A master listens on the socket, a slave connects to it and brings the memory: its sizes \
         count. Both ends name the same id, mode and secret.",
    )
    .word("id", "the interface's number on the socket")
    .word("socket-id", "the socket's number, 0 by default")
    .word("master", "listen on the socket")
    .word("slave", "connect to the socket, and bring the memory")
    .word("mode", "what frames begin with: an Ethernet or an IP header")
    .word("ring-size", "descriptors per ring, a power of two from 8 to 16384")
    .word("buffer-size", "bytes of the buffer behind a descriptor")
    .word(
        "rx-queues",
        "rings to receive from: a slave makes as many, a master takes at most as many",
    )
    .word("tx-queues", "rings to send on: a slave makes as many, a master takes at most as many")
    .word(
        "zero-copy",
        "lend the router's buffers to a trusted peer instead of copying (slave only)",
    )
    .word("secret", "what the other end must know")
    .word("hw-addr", "the layer 2 address, in place of one that is the same each time")
    .example("create interface memif id 0 master")
    .example(
        "create interface memif id 1 socket-id 0 slave mode ip ring-size 2048 rx-queues 2 \
         tx-queues 2",
    )
    .example("create interface memif id 2 socket-id 3 slave zero-copy")
    .run(|engine: &mut Engine, args| {
        let config = config_of(args)?;
        let name = config.name();
        driver::create(engine, config).map_err(|error| Refusal::new(error.to_string()))?;
        Ok(Output::text(name))
    })
}

fn config_of(args: &Args<'_>) -> Result<MemifConfig, Refusal> {
    let role = if args.has("master") { Role::Master } else { Role::Slave };
    let mode = match args.or("mode", "ethernet")? {
        "ip" => Mode::Ip,
        _ => Mode::Ethernet,
    };
    Ok(MemifConfig {
        mode,
        ring_size: args.or("ring-size", RING_SIZE_DEFAULT)?,
        buffer_bytes: args.or("buffer-size", BUFFER_BYTES_DEFAULT)?,
        rx_queues: args.optional("rx-queues")?,
        tx_queues: args.optional("tx-queues")?,
        zero_copy: args.has("zero-copy"),
        secret: args.secret("secret")?,
        mac: args.optional("hw-addr")?,
        rx_mode: RxMode::Polling,
        ..MemifConfig::new(args.or("socket-id", 0)?, args.get("id")?, role)
    })
}

/// The sockets, as commands.
pub(crate) fn begin_sockets() -> Slices<Engine> {
    let numbers = |engine: &Engine| {
        let sockets = engine.get::<Memif>().into_iter().flat_map(|memif| memif.sockets.keys());
        sockets.copied().filter(|number| *number != 0).collect()
    };
    let write = |engine: &Engine, config: &mut ConfigWriter, number: u32| {
        if let Some(socket) = engine.get::<Memif>().and_then(|memif| memif.sockets.get(&number)) {
            let path = quoted(&socket.path);
            config.command(format_args!("create memif socket id {number} filename {path}"));
        }
    };
    of_each(numbers, write)()
}

/// The interfaces, as commands.
pub(crate) fn begin_interfaces() -> Slices<Engine> {
    let ids = |engine: &Engine| {
        engine
            .get::<Memif>()
            .into_iter()
            .flat_map(|memif| memif.interfaces.keys())
            .copied()
            .collect()
    };
    of_each_interface(ids, write_interface)()
}

fn write_interface(engine: &Engine, writer: &mut ConfigWriter, id: InterfaceId) {
    let memif = engine.get::<Memif>();
    if let Some(entry) = memif.and_then(|memif| memif.interfaces.get(&id)) {
        let config = &entry.config;
        let mut line = format!(
            "create interface memif id {} socket-id {} {}",
            config.id,
            config.socket,
            config.role.name()
        );
        if config.mode == Mode::Ip {
            line += " mode ip";
        }
        if config.ring_size != RING_SIZE_DEFAULT {
            let _ = write!(line, " ring-size {}", config.ring_size);
        }
        if config.buffer_bytes != BUFFER_BYTES_DEFAULT {
            let _ = write!(line, " buffer-size {}", config.buffer_bytes);
        }
        if let Some(queues) = config.rx_queues {
            let _ = write!(line, " rx-queues {queues}");
        }
        if let Some(queues) = config.tx_queues {
            let _ = write!(line, " tx-queues {queues}");
        }
        if config.zero_copy {
            line += " zero-copy";
        }
        if let Some(secret) = &config.secret {
            let _ = write!(line, " secret {}", writer.secret(secret));
        }
        if let Some([a, b, c, d, e, f]) = config.mac.filter(|_| config.mode == Mode::Ethernet) {
            let _ = write!(line, " hw-addr {a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}");
        }
        writer.command(format_args!("{line}"));
    }
}
