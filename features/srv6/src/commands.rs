//! Commands about all local SIDs, whatever they do. Those that add one stand with its behaviour.

use std::net::Ipv6Addr;

use quiver_control::{
    Args, Column, Command, ConfigWriter, IpPrefix as Written, Output, Refusal, Registry, Table,
};
use quiver_core::Engine;
use quiver_tables::prefix::IpPrefix;

use crate::local_sids::{self, Kind, LocalSid, LocalSids, Place, Shown};
use crate::proxy::Proxies;

/// The chapter of the reference page.
pub(crate) const GROUP: &str = "Labels and segments";

/// Register them; `kinds` are the behaviours that a SID can have.
pub(crate) fn register(registry: &mut Registry, kinds: Vec<Kind>) {
    let mut add = Command::new(local_sids::syntax(&kinds))
        .group(GROUP)
        .help("Add a local SID: what this router does with packets to an address, or to a prefix")
        .details(local_sids::DETAILS);
    for kind in &kinds {
        add = add.word(kind.name, kind.help);
        add = kind.words.iter().fold(add, |add, (word, help)| add.word(word, help));
        add = add.example(format!("sr localsid address fc00:0:1::1 behavior {}", kind.example).leak());
    }
    registry.command(add.run(move |engine: &mut Engine, args| {
        let place = Place::of(engine, args)?;
        let name: &str = args.get("behavior")?;
        let kind = kinds.iter().find(|kind| kind.name == name);
        let kind = kind.ok_or_else(|| args.refuse("behavior", format!("no behaviour is called {name}")))?;
        let behavior = (kind.make)(engine, args)?;
        local_sids::add(engine, place, behavior)?;
        let prefix = IpPrefix::V6(place.prefix);
        Ok(local_sids::warn_if_shadowed(engine, place.table, prefix, Output::none()))
    }));
    registry.command(
        Command::new("sr localsid del address (<sid:ip6>|<locator:prefix6>) [fib-table <fib-table:u32>]")
            .group(GROUP)
            .help("Delete a local SID")
            .example("sr localsid del address fc00:0:1::1")
            .run(|engine: &mut Engine, args| {
                let place = Place::of(engine, args)?;
                local_sids::delete(engine, place)?;
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("show sr localsids [<sid:ip6>|<locator:prefix6>]")
            .group(GROUP)
            .help("Show local SIDs, what each does, and how many packets came to it")
            .details(
                "Good packets went on, bad ones died or were answered with an ICMPv6 error; `show errors` says \
                 why. Bytes count from the IPv6 header on, as the packets came. With an address: the SID that \
                 packets to it would meet.",
            )
            .run(show),
    );
    registry.command(
        Command::new("clear sr localsid-counters")
            .group(GROUP)
            .help("Let the counters of all local SIDs begin at zero")
            .run(|engine: &mut Engine, _| {
                if let Some(sids) = engine.get_mut::<LocalSids>() {
                    sids.clear();
                }
                if let Some(proxies) = engine.get_mut::<Proxies>() {
                    proxies.clear();
                }
                Ok(Output::none())
            }),
    );
}

/// Which SIDs are asked for: those that hold the address, or this one.
fn wanted(args: &Args<'_>) -> Result<impl Fn(Place) -> bool, Refusal> {
    let address = args.optional::<Ipv6Addr>("sid")?;
    let locator = args.optional::<Written>("locator")?;
    Ok(move |place: Place| {
        address.is_none_or(|address| place.prefix.contains(address.to_bits()))
            && locator.is_none_or(|locator| locator.to_string() == full(place))
    })
}

/// With its length, always.
fn full(place: Place) -> String {
    format!("{}/{}", Ipv6Addr::from_bits(place.prefix.first()), place.prefix.len())
}

fn show(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let wanted = wanted(args)?;
    let mut table = Table::new([
        Column::left("SID").key("sid"),
        Column::right("Table"),
        Column::left("Behavior"),
        Column::right("Packets"),
        Column::right("Bytes"),
        Column::right("Bad packets"),
        Column::right("Bad bytes"),
    ])
    .when_empty("no local SIDs");
    let Some(sids) = engine.get::<LocalSids>() else {
        return Err(Refusal::new("the local SIDs are being changed"));
    };
    let shown = Shown { engine };
    for (place, sid) in sids.iter().filter(|(place, _)| wanted(*place)) {
        let [packets, bytes, bad_packets, bad_bytes] = sids.counted(sid);
        let row = table.row().cell(place.sid()).cell(place.table_id(engine));
        let row = row.cell(sid.behavior.words(&shown)).cell(packets).cell(bytes);
        row.cell(bad_packets).cell(bad_bytes);
    }
    if table.is_empty()
        && let Some(address) = args.optional::<Ipv6Addr>("sid")?
    {
        return Err(args.refuse("sid", format!("no local SID is {address}")).remedy("`show sr localsids`"));
    }
    Ok(Output::none().table("localsids", table))
}

/// The part of `show running-config`.
pub(crate) fn write_config(engine: &Engine, config: &mut ConfigWriter) {
    let Some(sids) = engine.get::<LocalSids>() else { return };
    let shown = Shown { engine };
    for (place, LocalSid { behavior, .. }) in sids.iter() {
        let (place, behavior) = (place.words(engine), behavior.words(&shown));
        config.command(format_args!("sr localsid address {place} behavior {behavior}"));
    }
}
