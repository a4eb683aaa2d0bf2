//! The commands: `create tap`, `delete tap`, `show tap`.

use std::fmt::Write as _;
use std::net::IpAddr;

use quiver_control::{
    Args, Column, Command, ConfigWriter, IpPrefix, Output, Refusal, Registry, Table, Work,
    in_background, order, quoted,
};
use quiver_core::{Engine, InterfaceId};
use quiver_linux::TapKind;

use crate::device::{self, MadeTap, TapConfig, Taps, delete_tap, text_of};

const GROUP: &str = "Tap interfaces";
/// Largest number of a tap.
const ID_MAX: u32 = 65_535;

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new(
            "create tap {[id <:0-65535>] [host-if-name <:word>] [host-ns <:path>] [host-ip4-addr \
             <:prefix4>] [host-ip6-addr <:prefix6>] [host-mac-addr <:mac>] [host-mtu-size \
             <:68-65535>] [num-rx-queues <:1-64>] [rx-ring-size <:16-65536>] [tx-ring-size \
             <:16-65536>]}",
        )
        .entry(order::INTERFACES, "interfaces.tap<id>.tap: {*}")
        .undo("delete tap tap<id>")
        .makes("interface tap<id>")
        .group(GROUP)
        .help("Create a network device of Linux whose other end is the interface tapN")
        .details("It needs CAP_NET_ADMIN, and for another namespace CAP_SYS_ADMIN.")
        .word("id", "the number in its name; the lowest that is free unless given")
        .word("host-if-name", "what Linux calls its end; tapN unless given")
        .word("host-ns", "the network namespace of Linux's end: a name of `ip netns`, or a path")
        .word("host-mtu-size", "MTU of both ends; 1500 unless given")
        .word("num-rx-queues", "queues from Linux to us")
        .word("rx-ring-size", "frames that wait for us in each queue")
        .word("tx-ring-size", "without effect: frames are written straight to Linux")
        .example("create tap")
        .example("create tap id 0 host-if-name uplink host-ip4-addr 192.0.2.2/24")
        .run_or_begin(create),
    );
    registry.command(
        Command::new("delete tap <interface>")
            .group(GROUP)
            .help("Delete a tap; Linux's end vanishes with it")
            .example("delete tap tap0")
            .run(|engine: &mut Engine, args| {
                let id = args.interface(engine, "interface")?;
                let tap = engine.get::<Taps>().and_then(|taps| taps.0.get(&id));
                if let Some(owner) = tap.and_then(|tap| tap.config.owner) {
                    let what = format!("{} belongs to {owner}", engine.interface_name(id));
                    return Err(args.refuse("interface", what).remedy("end it there"));
                }
                delete_tap(engine, id).map_err(|e| args.refuse("interface", e.to_string()))?;
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("show tap")
            .group(GROUP)
            .help("Show taps and their ends in Linux")
            .example("show tap")
            .run(|engine: &mut Engine, _| Ok(show(engine))),
    );
}

/// A network namespace; confined clients name it as `ip netns` does.
fn host_namespace(args: &Args<'_>) -> Result<Option<String>, Refusal> {
    let Some(name) = args.optional::<&str>("host-ns")? else { return Ok(None) };
    let name = args.access().bare_name(name).map(str::to_owned);
    name.map(Some).map_err(|what| args.refuse("host-ns", what))
}

fn create(engine: &mut Engine, args: &Args<'_>) -> Result<Work<Engine>, Refusal> {
    let prefix = |name| args.optional::<IpPrefix>(name);
    let config = TapConfig {
        id: args.optional("id")?.unwrap_or_else(|| free_id(engine)),
        kind: TapKind::Tap,
        host_name: args.optional("host-if-name")?,
        host_namespace: host_namespace(args)?,
        host_ip4: prefix("host-ip4-addr")?.and_then(|p| p.as_ip4()),
        host_ip6: prefix("host-ip6-addr")?.and_then(|p| p.as_ip6()),
        host_mac: args.optional("host-mac-addr")?,
        host_mtu_bytes: args.optional("host-mtu-size")?,
        rx_queues: args.or("num-rx-queues", 1)?,
        rx_ring: args.optional("rx-ring-size")?,
        tx_ring: args.optional("tx-ring-size")?,
        owner: None,
    };
    if config.host_mac.is_some_and(|mac| mac[0] & 1 == 1 || mac == [0; 6]) {
        return Err(args.refuse(
            "host-mac-addr",
            "a host's address is not zero, not broadcast and not multicast",
        ));
    }
    device::check(engine, &config)?;
    in_background(
        move || Ok(MadeTap::new(config)?),
        |engine: &mut Engine, made| {
            let id = device::attach(engine, made)?;
            Ok(Output::text(engine.interface_name(id)))
        },
    )
}

/// The lowest number whose name no interface has.
pub(crate) fn free_id(engine: &Engine) -> u32 {
    (0..ID_MAX).find(|id| engine.interface_id(&format!("tap{id}")).is_none()).unwrap_or(ID_MAX)
}

fn show(engine: &mut Engine) -> Output {
    let mut table = Table::new([
        Column::left("Name"),
        Column::left("Linux name"),
        Column::left("Namespace"),
        Column::left("Linux state"),
        Column::left("Linux MAC"),
        Column::right("Linux MTU").key("linux_mtu_bytes"),
        Column::right("Rx queues"),
    ])
    .when_empty("no taps");
    let taps = engine.get::<Taps>().into_iter().flat_map(|taps| &taps.0);
    for (id, tap) in taps {
        let facts = engine.interface(*id).map(|i| i.device.facts()).unwrap_or_default();
        let fact =
            |name: &str| facts.iter().find(|(n, _)| n == name).map(|(_, value)| value.clone());
        let text =
            |name: &str| fact(name).and_then(|v| v.as_str().map(String::from)).unwrap_or_default();
        table
            .row()
            .cell(engine.interface_name(*id))
            .cell(text("linux-name"))
            .cell(tap.config.host_namespace.as_deref().unwrap_or(""))
            .cell(text("linux-state"))
            .cell(text("linux-mac"))
            .cell(fact("linux-mtu-bytes").and_then(|v| v.as_u64()).unwrap_or(0))
            .cell(tap.config.rx_queues.max(1));
    }
    table.into()
}

/// `show running-config`: the taps.
pub(crate) fn ids(engine: &Engine) -> Vec<InterfaceId> {
    let taps = engine.get::<Taps>().into_iter().flat_map(|taps| &taps.0);
    taps.filter(|(_, tap)| tap.config.owner.is_none()).map(|(id, _)| *id).collect()
}

/// `show running-config`: one of them.
pub(crate) fn write_tap(engine: &Engine, config: &mut ConfigWriter, id: InterfaceId) {
    if let Some(tap) = engine.get::<Taps>().and_then(|taps| taps.0.get(&id)) {
        let tap = &tap.config;
        let mut line = format!("create tap id {}", tap.id);
        let mut option = |word: &str, value: Option<String>| {
            if let Some(value) = value {
                let _ = write!(line, " {word} {value}");
            }
        };
        let prefix = |address: IpAddr, length: u8| format!("{address}/{length}");
        option("host-if-name", tap.host_name.as_deref().map(|name| quoted(name).to_string()));
        option("host-ns", tap.host_namespace.as_deref().map(|name| quoted(name).to_string()));
        option("host-ip4-addr", tap.host_ip4.map(|(a, l)| prefix(a.into(), l)));
        option("host-ip6-addr", tap.host_ip6.map(|(a, l)| prefix(a.into(), l)));
        option("host-mac-addr", tap.host_mac.map(text_of));
        option("host-mtu-size", tap.host_mtu_bytes.map(|n| n.to_string()));
        option("num-rx-queues", (tap.rx_queues > 1).then(|| tap.rx_queues.to_string()));
        option("rx-ring-size", tap.rx_ring.map(|n| n.to_string()));
        option("tx-ring-size", tap.tx_ring.map(|n| n.to_string()));
        config.command(format_args!("{line}"));
    }
}
