//! Commands about all local SIDs, whatever they do. Those that add one stand with its behaviour.

use std::net::Ipv6Addr;
use std::rc::Rc;

use quiver_control::{
    Args, Column, Command, ConfigWriter, IpPrefix as Written, Listing, Output, Refusal, Registry,
    Table, Work, order,
};
use quiver_core::Engine;
use quiver_forwarding::fib::{Family, Fib};
use quiver_tables::prefix::IpPrefix;

use crate::local_sids::{self, Behavior, Kind, LocalSid, LocalSids, Names, Place};
use crate::proxy::Proxies;

/// The chapter of the reference page.
pub(crate) const GROUP: &str = "Labels and segments";

/// Register them; `kinds` are the behaviours that a SID can have.
pub(crate) fn register(registry: &mut Registry, kinds: Vec<Kind>) {
    let kinds: Rc<[Kind]> = kinds.into();
    let add = Command::new(local_sids::syntax("sr localsid address", &kinds))
        .entry(order::ROUTES, local_sids::entry("sr.local-sids.<sid>"))
        .entry(order::ROUTES, local_sids::entry("sr.local-sids.<locator>"))
        .entry(order::ROUTES, local_sids::entry("tables.<fib-table>.sr-local-sids.<sid>"))
        .entry(order::ROUTES, local_sids::entry("tables.<fib-table>.sr-local-sids.<locator>"))
        .undo("<sid!> sr localsid del address <sid> [fib-table <fib-table>]")
        .undo("sr localsid del address <locator> [fib-table <fib-table>]")
        .exchanged("sr localsid replace address", "", &["sid", "locator", "fib-table"])
        .help("Add a local SID: what this router does with packets to an address, or to a prefix")
        .details(local_sids::DETAILS);
    registry.command(with_kinds(add, "sr localsid address", &kinds, local_sids::add));
    let replace = Command::new(local_sids::syntax("sr localsid replace address", &kinds))
        .help("Give a local SID another behaviour, or add it")
        .details(
            "Packets meet the old behaviour or the new one, and none is lost. Its counters begin \
             at zero. Where both cannot be there at once, as proxies of one interface, the old \
             one lets go of what it holds first.",
        );
    let name = "sr localsid replace address";
    registry.command(with_kinds(replace, name, &kinds, local_sids::replace));
    registry.command(
        Command::new(
            "sr localsid del address (<sid:ip6>|<locator:prefix6>) [fib-table <fib-table:u32>]",
        )
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
                "Good packets went on, bad ones died or were answered with an ICMPv6 error; `show \
                 errors` says why. Bytes count from the IPv6 header on, as the packets came. With \
                 an address: the SID that packets to it would meet.",
            )
            .run_or_begin(show),
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

/// Takes a behaviour for a place.
type Take = fn(&mut Engine, Place, Box<dyn Behavior>) -> Result<(), Refusal>;

/// The words of all behaviours, an example of each, and what is done with the one that a command
/// names.
fn with_kinds(
    command: Command<Engine>,
    first_words: &str,
    kinds: &Rc<[Kind]>,
    take: Take,
) -> Command<Engine> {
    let mut command = command.group(GROUP);
    for kind in kinds.iter() {
        command = command.word(kind.name, kind.help);
        command = kind.words.iter().fold(command, |command, (word, help)| command.word(word, help));
        let example = format!("{first_words} fc00:0:1::1 behavior {}", kind.example);
        command = command.example(example.leak());
    }
    let kinds = kinds.clone();
    command.run(move |engine: &mut Engine, args| {
        let place = Place::of(engine, args)?;
        let name: &str = args.get("behavior")?;
        let kind = kinds.iter().find(|kind| kind.name == name);
        let kind =
            kind.ok_or_else(|| args.refuse("behavior", format!("no behaviour is called {name}")))?;
        let behavior = (kind.make)(engine, args)?;
        take(engine, place, behavior)?;
        let prefix = IpPrefix::V6(place.prefix);
        Ok(local_sids::warn_if_shadowed(engine, place.table, prefix, Output::none()))
    })
}

/// Which SIDs are asked for: those that hold the address, or this one.
fn wanted(args: &Args<'_>) -> Result<impl Fn(Place) -> bool + use<>, Refusal> {
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

fn show(engine: &mut Engine, args: &Args<'_>) -> Result<Work<Engine>, Refusal> {
    let wanted = wanted(args)?;
    let one = args.optional::<Ipv6Addr>("sid")?;
    let none = one.map(|sid| {
        args.refuse("sid", format!("no local SID is {sid}")).remedy("`show sr localsids`")
    });
    let columns = [
        Column::left("SID").key("sid"),
        Column::right("Table"),
        Column::left("Behavior"),
        Column::right("Packets"),
        Column::right("Bytes"),
        Column::right("Bad packets"),
        Column::right("Bad bytes"),
    ];
    let (mut last, mut found) = (None, false);
    let rows = move |engine: &mut Engine, table: &mut Table, most: usize| {
        let sids = engine
            .get::<LocalSids>()
            .ok_or_else(|| Refusal::new("the local SIDs are being changed"))?;
        let names = Names { engine };
        let mut looked_at = 0;
        for (place, sid) in sids.after(last).take(most) {
            (looked_at, last) = (looked_at + 1, Some(place));
            if !wanted(place) {
                continue;
            }
            found = true;
            let [packets, bytes, bad_packets, bad_bytes] = sids.counted(sid);
            let row = table.row().cell(place.sid()).cell(place.table_id(engine));
            let row = row.cell(sid.behavior.words(&names)).cell(packets).cell(bytes);
            row.cell(bad_packets).cell(bad_bytes);
        }
        match &none {
            _ if looked_at == most => Ok(None),
            Some(none) if !found => Err(none.clone()),
            _ => Ok(Some(Output::none())),
        }
    };
    Listing::new("localsids", columns, rows).when_empty("no local SIDs").begin(engine)
}

/// The part of `show running-config`.
pub(crate) fn write_config(
    engine: &Engine,
    config: &mut ConfigWriter,
    after: Option<Place>,
    most: usize,
) -> Option<Place> {
    let (sids, fib) = (engine.get::<LocalSids>()?, engine.get::<Fib>()?);
    let names = Names { engine };
    let mut last = None;
    let tables = fib.tables_in_order(Family::Ip6);
    for (place, LocalSid { behavior, is_configured, .. }) in
        sids.after_by_table(tables, after).take(most)
    {
        last = Some(place);
        if !is_configured {
            continue;
        }
        let (place, behavior) = (place.words(engine), behavior.words(&names));
        config.command(format_args!("sr localsid address {place} behavior {behavior}"));
    }
    last
}
