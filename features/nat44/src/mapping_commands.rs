//! Commands of static, load-balancing and identity mappings.

use std::net::Ipv4Addr;

use quiver_control::{Args, Command, ConfigWriter, Output, Refusal, Registry, order};
use quiver_core::Engine;
use quiver_wire::IpProtocol;

use crate::commands::{GROUP, PLUGIN, protocol_of, protocol_word};
use crate::config::Nat44;
use crate::mappings::{
    self, BackendConfig, Balanced, External, Identity, Local, MappingName, MappingOptions,
};
use crate::tables::TwiceNat;

pub(crate) fn register(registry: &mut Registry) {
    static_mappings(registry);
    identity_mappings(registry);
    load_balancing(registry);
}

const TWICE: &str = "the source of packets from outside becomes one of the twice-NAT pool";
const SELF_TWICE: &str = "the same where a host reaches itself by its external address";
const OUT2IN_ONLY: &str = "packets from inside make no sessions of it";

fn static_mappings(registry: &mut Registry) {
    registry.command(
        Command::new(
            "nat44 add static mapping [tcp|udp|icmp] local <local:ip4> [<local-port:1-65535>] \
             external (<external:ip4> | <interface>) [<external-port:1-65535>] \
             {[vrf <:u32>] [twice-nat|self-twice-nat] [out2in-only] [exact <:ip4>] [del]}",
        )
        .entry(
            order::FEATURES,
            "nat44.static-mappings[]: {protocol: <tcp|udp|icmp>, local, local-port, external, \
             interface, external-port, vrf, twice-nat, self-twice-nat, out2in-only, exact}",
        )
        .undo(
            "nat44 add static mapping [tcp] [udp] [icmp] local <local> [<local-port>] external \
             [<external>] [<interface>] [<external-port>] del",
        )
        .stands_on(PLUGIN)
        .stands_on("table <vrf>")
        .group(GROUP)
        .help("Let a host inside be reached from outside, by one port or by a whole address")
        .details(
            "With a protocol both ports are needed (of ICMP, both identifiers); without, the \
             whole address is mapped. The router answers ARP for the external address. Hosts \
             inside reach one another by it, too (hairpinning).",
        )
        .word("vrf", "the table of the host; that of inside-vrf")
        .word("twice-nat", TWICE)
        .word("self-twice-nat", SELF_TWICE)
        .word("out2in-only", OUT2IN_ONLY)
        .word("exact", "the address of the twice-NAT pool that remote hosts get")
        .example("nat44 add static mapping tcp local 10.0.0.3 22 external 192.0.2.1 2222")
        .example("nat44 add static mapping local 10.0.0.4 external 192.0.2.7")
        .example("nat44 add static mapping udp local 10.0.0.3 53 external e1 53 out2in-only")
        .example("nat44 add static mapping tcp local 10.0.0.3 80 external 192.0.2.1 80 twice-nat")
        .run(static_mapping),
    );
}

/// The external end, as two arguments.
fn external_of(engine: &Engine, args: &Args<'_>) -> Result<External, Refusal> {
    Ok(match args.optional::<Ipv4Addr>("external")? {
        Some(address) => External::Address(address),
        None => External::Interface(args.interface(engine, "interface")?),
    })
}

fn options_of(args: &Args<'_>) -> Result<MappingOptions, Refusal> {
    let twice = match (args.has("twice-nat"), args.has("self-twice-nat")) {
        (true, _) => TwiceNat::Always,
        (_, true) => TwiceNat::OwnAddress,
        _ => TwiceNat::Never,
    };
    let exact = args.optional("exact")?;
    if exact.is_some() && twice == TwiceNat::Never {
        return Err(Refusal::new("an exact address needs twice-nat or self-twice-nat"));
    }
    Ok(MappingOptions { twice, out2in_only: args.has("out2in-only"), exact })
}

fn static_mapping(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let protocol = protocol_of(args);
    let external = external_of(engine, args)?;
    let ports: [Option<u16>; 2] = [args.optional("local-port")?, args.optional("external-port")?];
    let (local_port, external_port) = match (protocol, ports) {
        (None, [None, None]) => (0, 0),
        (Some(_), [Some(local), Some(external)]) => (local, external),
        (None, _) => {
            return Err(Refusal::new("a port needs a protocol").remedy("tcp, udp or icmp"));
        }
        (Some(_), _) => {
            return Err(Refusal::new("a mapping of a protocol needs a local and an external port"));
        }
    };
    let protocol = protocol.map_or(0, |protocol| protocol.0);
    let name = MappingName { external, protocol, port: external_port };
    if args.has("del") {
        mappings::remove(engine, name)?;
    } else {
        let (address, vrf) = (args.get("local")?, args.optional("vrf")?);
        let local = Local { address, port: local_port, vrf };
        mappings::add(engine, name, local, options_of(args)?)?;
    }
    Ok(Output::none())
}

fn identity_mappings(registry: &mut Registry) {
    registry.command(
        Command::new(
            "nat44 add identity mapping (<address:ip4> | external <interface>) \
             [tcp|udp|icmp] [<port:1-65535>] {[vrf <:u32>] [del]}",
        )
        .entry(
            order::FEATURES,
            "nat44.identity-mappings[]: {address, external: <interface>, \
             protocol: <tcp|udp|icmp>, port, vrf}",
        )
        .undo(
            "nat44 add identity mapping [<address>] [external <interface>] [tcp] [udp] [icmp] \
             [<port>] del",
        )
        .stands_on(PLUGIN)
        .stands_on("table <vrf>")
        .group(GROUP)
        .help("Leave an address, or one port of it, untranslated in both directions")
        .details("It is routed as without NAT44; the router does not answer ARP for it.")
        .word("external", "the first address of an interface")
        .word("vrf", "the table of the host; that of inside-vrf")
        .example("nat44 add identity mapping 10.0.0.9")
        .example("nat44 add identity mapping external e1 tcp 22")
        .run(|engine: &mut Engine, args| {
            let external = match args.optional::<Ipv4Addr>("address")? {
                Some(address) => External::Address(address),
                None => External::Interface(args.interface(engine, "interface")?),
            };
            let (protocol, port): (_, Option<u16>) = (protocol_of(args), args.optional("port")?);
            if protocol.is_some() != port.is_some() {
                return Err(Refusal::new("a protocol needs a port, and a port a protocol"));
            }
            let protocol = protocol.map_or(0, |protocol| protocol.0);
            let name = MappingName { external, protocol, port: port.unwrap_or(0) };
            match args.has("del") {
                true => mappings::remove_identity(engine, name)?,
                false => {
                    let vrf = args.optional("vrf")?;
                    mappings::add_identity(engine, Identity { name, vrf })?;
                }
            }
            Ok(Output::none())
        }),
    );
}

fn load_balancing(registry: &mut Registry) {
    registry.command(
        Command::new(
            "nat44 add load-balancing static mapping protocol tcp|udp external <external:word> \
             (local <local:word> {[vrf <:u32>] [probability <:1-255>]})... \
             {[twice-nat|self-twice-nat] [out2in-only] [affinity <:1-604800>] [del]}",
        )
        .entry(
            order::FEATURES,
            "nat44.load-balancing[]: {protocol: <tcp|udp>, external, \
             back-ends: (local: {local, vrf, probability}), \
             twice-nat, self-twice-nat, out2in-only, affinity}",
        )
        .undo(
            "nat44 add load-balancing static mapping protocol [tcp] [udp] external <external> \
             (local <local>)... del",
        )
        .stands_on(PLUGIN)
        .group(GROUP)
        .help("Share new connections to an external end among several hosts inside")
        .details(
            "Each host gets new connections by its part of the sum of the probabilities. With \
             affinity, a remote host stays with its host inside while the mapping is not changed.",
        )
        .word("external", "address and port such as 192.0.2.1:80")
        .word("local", "address and port of a host inside such as 10.0.0.3:8080")
        .word("vrf", "the table of the host; that of inside-vrf")
        .word("probability", "its share, relative to the others; 1")
        .word("twice-nat", TWICE)
        .word("self-twice-nat", SELF_TWICE)
        .word("out2in-only", OUT2IN_ONLY)
        .word("affinity", "seconds at least for which a remote host stays with one")
        .example(
            "nat44 add load-balancing static mapping protocol tcp external 192.0.2.1:80 \
             local 10.0.0.3:8080 probability 80 local 10.0.0.4:8080 probability 20",
        )
        .run(balanced),
    );
    registry.command(
        Command::new(
            "nat44 add load-balancing back-end protocol tcp|udp external <external:word> \
             local <local:word> {[vrf <:u32>] [probability <:1-255>] [del]}",
        )
        .stands_on(PLUGIN)
        .group(GROUP)
        .help("Add a host to a load-balancing mapping, change its share, or remove it")
        .word("external", "address and port such as 192.0.2.1:80")
        .word("local", "address and port of a host inside such as 10.0.0.3:8080")
        .word("vrf", "the table of the host; that of inside-vrf")
        .word("probability", "its share, relative to the others; 1")
        .example(
            "nat44 add load-balancing back-end protocol tcp external 192.0.2.1:80 \
             local 10.0.0.5:8080 probability 25",
        )
        .run(|engine: &mut Engine, args| {
            let (name, backend) = (balanced_name(args)?, backend_of(args)?);
            match args.has("del") {
                true => mappings::remove_backend(engine, name, backend.local)?,
                false => mappings::add_backend(engine, name, backend)?,
            }
            Ok(Output::none())
        }),
    );
}

/// Address and port.
fn end_of(args: &Args<'_>, name: &str) -> Result<(Ipv4Addr, u16), Refusal> {
    let text: String = args.get(name)?;
    let parts = text.split_once(':').and_then(|(address, port)| {
        let address = quiver_control::types::ip4(address)?;
        Some((address, port.parse::<u16>().ok().filter(|port| *port > 0)?))
    });
    parts.ok_or_else(|| {
        args.refuse(name, format!("{text} is no address with a port"))
            .remedy("such as 192.0.2.1:80")
    })
}

fn balanced_name(args: &Args<'_>) -> Result<MappingName, Refusal> {
    let (address, port) = end_of(args, "external")?;
    let protocol = protocol_of(args).unwrap_or(IpProtocol::TCP).0;
    Ok(MappingName { external: External::Address(address), protocol, port })
}

fn backend_of(args: &Args<'_>) -> Result<BackendConfig, Refusal> {
    let (address, port) = end_of(args, "local")?;
    let local = Local { address, port, vrf: args.optional("vrf")? };
    Ok(BackendConfig { local, probability: args.or("probability", 1u32)? })
}

fn balanced(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let name = balanced_name(args)?;
    if args.has("del") {
        mappings::remove_balanced(engine, name)?;
        return Ok(Output::none());
    }
    let backends = args.groups("local").map(|args| backend_of(&args)).collect::<Result<_, _>>()?;
    let affinity_s = args.or("affinity", 0)?;
    let balanced = Balanced { backends, options: options_of(args)?, affinity_s };
    mappings::add_balanced(engine, name, balanced)?;
    Ok(Output::none())
}

fn options_words(options: &MappingOptions) -> String {
    let twice = match options.twice {
        TwiceNat::Never => "",
        TwiceNat::Always => " twice-nat",
        TwiceNat::OwnAddress => " self-twice-nat",
    };
    let only = if options.out2in_only { " out2in-only" } else { "" };
    let exact = options.exact.map_or(String::new(), |address| format!(" exact {address}"));
    format!("{twice}{only}{exact}")
}

fn vrf_words(vrf: Option<u32>) -> String {
    vrf.map_or(String::new(), |vrf| format!(" vrf {vrf}"))
}

/// `show running-config`: mappings.
pub(crate) fn write(engine: &Engine, nat: &Nat44, config: &mut ConfigWriter) {
    let statics = nat.mappings.iter().map(|(name, (local, options))| {
        format!("{}{}", line_of(engine, name, local), options_words(options))
    });
    let mut lines: Vec<String> = statics.collect();
    lines.extend(nat.identities.iter().map(|Identity { name, vrf }| {
        let what = match name.external {
            External::Address(address) => address.to_string(),
            External::Interface(id) => format!("external {}", engine.interface_name(id)),
        };
        let port = match name.port {
            0 => String::new(),
            port => format!(" {} {port}", protocol_word(name.protocol)),
        };
        format!("nat44 add identity mapping {what}{port}{}", vrf_words(*vrf))
    }));
    lines.extend(nat.balanced.iter().map(|(name, balanced)| {
        let backends: String = balanced
            .backends
            .iter()
            .map(|backend| {
                let Local { address, port, vrf } = backend.local;
                let vrf = vrf_words(vrf);
                format!(" local {address}:{port}{vrf} probability {}", backend.probability)
            })
            .collect();
        let affinity = match balanced.affinity_s {
            0 => String::new(),
            seconds => format!(" affinity {seconds}"),
        };
        format!(
            "nat44 add load-balancing static mapping protocol {} external {}:{}{backends}{}\
             {affinity}",
            protocol_word(name.protocol),
            name.external.name(engine),
            name.port,
            options_words(&balanced.options)
        )
    }));
    lines.sort();
    lines.into_iter().for_each(|line| config.command(format_args!("{line}")));
}

fn line_of(engine: &Engine, name: &MappingName, local: &Local) -> String {
    let protocol = match name.protocol {
        0 => String::new(),
        number => format!("{} ", protocol_word(number)),
    };
    let port = |port: u16| if port == 0 { String::new() } else { format!(" {port}") };
    format!(
        "nat44 add static mapping {protocol}local {}{} external {}{}{}",
        local.address,
        port(local.port),
        name.external.name(engine),
        port(name.port),
        vrf_words(local.vrf)
    )
}
