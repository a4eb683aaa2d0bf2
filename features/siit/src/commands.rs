//! Commands.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use quiver_control::{
    Args, Column, Command, ConfigWriter, IpPrefix, Output, Refusal, Registry, Table, order,
};
use quiver_core::Engine;
use quiver_translation::versions::IP6_MTU_MIN;
use quiver_translation::versions::address::Prefix;

use crate::config::{self, Siit, written};
use crate::map::{Hosts, Mapping};

/// The heading of these commands.
const GROUP: &str = "NAT";
const HOSTS: &str = "the version that the hosts have themselves; their addresses of the other \
                     version lead to the translator";

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("siit add prefix <prefix:prefix6> hosts ip4|ip6 [del]")
            .entry(order::FEATURES, "siit.prefixes.<prefix>: {hosts: <ip4|ip6>}")
            .undo("siit add prefix <prefix> hosts [ip4] [ip6] del")
            .group(GROUP)
            .help("Let IPv4 addresses without mapping stand behind a prefix, or no more")
            .details(
                "The prefix has 32, 40, 48, 56, 64 or 96 bits (RFC 6052). With hosts ip4, packets \
                 to the prefix become packets of IPv4. With hosts ip6, all packets of IPv4 \
                 without a route of their own become packets of IPv6: this router is the CLAT of \
                 464XLAT (RFC 6877), and the prefix is that of a NAT64.",
            )
            .word("prefix", "the prefix that IPv4 addresses stand behind")
            .word("hosts", HOSTS)
            .word("del", "remove the prefix")
            .example("siit add prefix 64:ff9b::/96 hosts ip6")
            .run(set_prefix),
    );
    registry.command(
        Command::new("siit add mapping <ipv4:prefix4> <ipv6:prefix6> hosts ip4|ip6 [del]")
            .entry(
                order::FEATURES,
                "siit.mappings[]: {ipv4: <ipv4>, ipv6: <ipv6>, hosts: <ip4|ip6>}",
            )
            .undo("siit add mapping <ipv4> <ipv6> hosts [ip4] [ip6] del")
            .group(GROUP)
            .help("Let addresses of IPv4 and of IPv6 stand for each other, or no more")
            .details(
                "An explicit address mapping (RFC 7757): bits behind the IPv4 prefix follow the \
                 IPv6 prefix. Of several mappings that an address is in, the longest counts.",
            )
            .word("ipv4", "addresses of IPv4")
            .word("ipv6", "as many addresses of IPv6, or more")
            .word("hosts", HOSTS)
            .word("del", "remove the mapping")
            .example("siit add mapping 192.0.2.0/24 2001:db8:46::/120 hosts ip4")
            .example("siit add mapping 198.51.100.7/32 2001:db8::80/128 hosts ip6")
            .run(set_mapping),
    );
    registry.command(
        Command::new("siit ip6-mtu <bytes:1280-9216>")
            .entry(order::FEATURES, "siit.ip6-mtu: <bytes>")
            .undo("siit ip6-mtu 1280")
            .replaces(&[])
            .group(GROUP)
            .help("Say how long packets to IPv6 may be whose sender lets routers cut them")
            .details(
                "Longer ones become fragments. 1280 bytes, as at first, suit every path of IPv6; \
                 more is for a network that is known (RFC 7915 section 4). Pings are lost as \
                 fragments when they pass a second translator.",
            )
            .word("bytes", "bytes of a packet of IPv6")
            .example("siit ip6-mtu 1500")
            .run(|engine: &mut Engine, args| {
                config::set_ip6_mtu(engine, args.get("bytes")?)?;
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("show siit")
            .group(GROUP)
            .help("Show which addresses are translated without state")
            .run(|engine: &mut Engine, _| Ok(show(engine))),
    );
    registry.command(
        Command::new("show siit address <address:ip>")
            .group(GROUP)
            .help("Compute which address of the other version stands for an address")
            .example("show siit address 192.0.2.1")
            .run(show_address),
    );
}

fn hosts_of(args: &Args<'_>) -> Hosts {
    if args.has("ip4") { Hosts::Ip4 } else { Hosts::Ip6 }
}

/// The bits and the length of a prefix without bits behind it.
fn bits_of(args: &Args<'_>, name: &'static str) -> Result<(u128, u8), Refusal> {
    let prefix: IpPrefix = args.get(name)?;
    if prefix.has_host_bits() {
        let what = format!("{prefix} has bits set behind its length");
        return Err(args.refuse(name, what).remedy(format!("{} would be right", prefix.network())));
    }
    Ok(match prefix.address {
        IpAddr::V4(address) => (u32::from(address).into(), prefix.length),
        IpAddr::V6(address) => (address.to_bits(), prefix.length),
    })
}

fn set_prefix(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let (bits, length) = bits_of(args, "prefix")?;
    let prefix = Prefix::new(bits, length)
        .map_err(|error| args.refuse("prefix", error.to_string()).remedy("64:ff9b::/96"))?;
    match args.has("del") {
        true => config::remove_prefix(engine, prefix, hosts_of(args))?,
        false => config::set_prefix(engine, prefix, hosts_of(args))?,
    }
    Ok(Output::none())
}

fn set_mapping(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let ((ip4, length4), (ip6, length6)) = (bits_of(args, "ipv4")?, bits_of(args, "ipv6")?);
    let mapping = Mapping { ip4: ip4 as u32, length4, ip6, length6, hosts: hosts_of(args) };
    match args.has("del") {
        true => config::remove_mapping(engine, mapping)?,
        false => config::add_mapping(engine, mapping)?,
    }
    Ok(Output::none())
}

fn show(engine: &Engine) -> Output {
    let mut prefixes = Table::new(["Prefix", "Hosts"].map(Column::left)).when_empty("no prefix");
    let mut mappings = Table::new([
        Column::left("IPv4").key("ip4"),
        Column::left("IPv6").key("ip6"),
        Column::left("Hosts"),
    ])
    .when_empty("no mappings");
    let Some(siit) = engine.get::<Siit>() else { return Output::none() };
    if let Some((prefix, hosts)) = siit.prefix {
        prefixes.row().cell(written(prefix)).cell(hosts.word());
    }
    for mapping in &siit.mappings {
        let (ip4, ip6) = (Ipv4Addr::from(mapping.ip4), Ipv6Addr::from_bits(mapping.ip6));
        mappings
            .row()
            .cell(format!("{ip4}/{}", mapping.length4))
            .cell(format!("{ip6}/{}", mapping.length6))
            .cell(mapping.hosts.word());
    }
    Output::none()
        .field("IP6 MTU bytes", u64::from(siit.ip6_mtu_bytes))
        .table("prefixes", prefixes)
        .table("mappings", mappings)
}

fn show_address(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let Some(siit) = engine.get::<Siit>() else { return Ok(Output::none()) };
    let map = siit.map();
    let address: Option<IpAddr> = match args.get("address")? {
        IpAddr::V4(address) => {
            map.to6(address.into()).map(|address| Ipv6Addr::from_bits(address).into())
        }
        IpAddr::V6(address) => {
            map.to4(address.to_bits()).map(|address| Ipv4Addr::from(address).into())
        }
    };
    let mut table = Table::new(["Address"].map(Column::left)).when_empty("nothing stands for it");
    if let Some(address) = address {
        table.row().cell(address.to_string());
    }
    Ok(Output::none().table("addresses", table))
}

/// `show running-config`: all of it.
pub(crate) fn write_config(engine: &Engine, config: &mut ConfigWriter) {
    let Some(siit) = engine.get::<Siit>() else { return };
    if let Some((prefix, hosts)) = siit.prefix {
        let prefix = written(prefix);
        config.command(format_args!("siit add prefix {prefix} hosts {}", hosts.word()));
    }
    for mapping in &siit.mappings {
        config.command(format_args!("siit add mapping {mapping} hosts {}", mapping.hosts.word()));
    }
    if usize::from(siit.ip6_mtu_bytes) != IP6_MTU_MIN {
        config.command(format_args!("siit ip6-mtu {}", siit.ip6_mtu_bytes));
    }
}
