//! `prom …`, `show prom` and the section `prom` of the start-up file, in the words of VPP's plugin.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::Ordering;

use quiver_control::{
    Args, Cell, Command, ConfigWriter, Output, Refusal, Registry, Section, StartupPart, order,
};
use quiver_core::Engine;

use crate::collect::Scope;
use crate::http::PATH;
use crate::scrape::{self, Exporter, Settings};
use crate::text::Names;

const GROUP: &str = "Seeing inside";
/// As VPP's exporter has it.
const PORT_DEFAULT: u16 = 9482;
const ADDRESS_DEFAULT: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new(
            "prom enable {[address <address:ip>] [port <port:1-65535>] [all-stats] \
             [names <names:vpp|quiver|both>]}",
        )
        .entry(order::RESOURCES, "prometheus: {address, port, all-stats, names}")
        .undo("prom disable")
        .group(GROUP)
        .help("Let Prometheus read the router's counters over HTTP")
        .details(
            "GET /metrics on port 9482 of 127.0.0.1, unless other ones are given. Everybody who \
             reaches the address can read; nothing can be changed by it. Nodes that never ran and \
             reasons that were never given are left out.",
        )
        .word("address", "an address of this machine to listen on, in place of 127.0.0.1")
        .word("all-stats", "also nodes that never ran and reasons that were never given")
        .word("names", "only families of VPP's names, or only those that begin with quiver_")
        .example("prom enable")
        .run(enable),
    );
    registry.command(
        Command::new("prom disable").group(GROUP).help("Serve Prometheus no more").run(
            |engine: &mut Engine, _| match scrape::disable(engine) {
                true => Ok(Output::none()),
                false => Err(Refusal::new("Prometheus is not served").remedy("prom enable")),
            },
        ),
    );
    registry.command(
        Command::new("show prom")
            .group(GROUP)
            .help("Show where Prometheus reads, and what its last scrape took")
            .run(|engine: &mut Engine, _| Ok(show(engine))),
    );
    registry.running_config(order::RESOURCES, write_config).named("prom");
}

fn names_of(word: &str) -> Names {
    match word {
        "vpp" => Names::Vpp,
        "quiver" => Names::Quiver,
        _ => Names::Both,
    }
}

fn names_word(names: Names) -> &'static str {
    match names {
        Names::Vpp => "vpp",
        Names::Quiver => "quiver",
        Names::Both => "both",
    }
}

fn enable(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let address =
        SocketAddr::new(args.or("address", ADDRESS_DEFAULT)?, args.or("port", PORT_DEFAULT)?);
    let settings = Settings {
        address,
        scope: Scope { all_stats: args.has("all-stats") },
        names: names_of(args.or("names", "both")?),
    };
    scrape::enable(engine, settings).map_err(|error| {
        let free = "ss -ltn lists who listens on what: take another port or address";
        Refusal::new(format!("{address} cannot be listened on: {error}")).remedy(free)
    })?;
    Ok(Output::none())
}

fn show(engine: &Engine) -> Output {
    let Some(exporter) = engine.get::<Exporter>() else { return Output::none() };
    let settings = exporter.settings();
    let counted = |of: fn(&crate::server::Counts) -> &std::sync::atomic::AtomicU64| {
        exporter.server().map_or(0, |server| of(server.counts()).load(Ordering::Relaxed))
    };
    let last = exporter.last;
    let names = settings.map_or(Names::Both, |settings| settings.names);
    let milliseconds = |seconds: f64| Cell::real(seconds * 1e3, 3);
    Output::none()
        .field("Address", settings.map_or("none".into(), |own| format!("{}{PATH}", own.address)))
        .field("Names", names_word(names))
        .field("All stats", settings.is_some_and(|settings| settings.scope.all_stats))
        .field("Clients", counted(|counts| &counts.clients))
        .field("Accepted", counted(|counts| &counts.accepted))
        .field("Turned away", counted(|counts| &counts.turned_away))
        .field("Late", counted(|counts| &counts.late))
        .field("Answers", exporter.answers)
        .field("Scrapes", exporter.scrapes)
        .field("Samples", last.samples)
        .field("Bytes", last.bytes)
        .field("Elapsed ms", milliseconds(last.elapsed_s))
        .field("Control thread ms", milliseconds(last.worked_s))
        .field("Longest turn ms", milliseconds(last.longest_s))
}

/// The part of `show running-config`.
fn write_config(engine: &Engine, config: &mut ConfigWriter) {
    let Some(settings) = engine.get::<Exporter>().and_then(Exporter::settings) else { return };
    let (ip, port) = (settings.address.ip(), settings.address.port());
    let address = (ip != ADDRESS_DEFAULT).then(|| format!(" address {ip}"));
    let port = (port != PORT_DEFAULT).then(|| format!(" port {port}"));
    let all = settings.scope.all_stats.then(|| " all-stats".to_owned());
    let names =
        (settings.names != Names::Both).then(|| format!(" names {}", names_word(settings.names)));
    let options: String = [address, port, all, names].into_iter().flatten().collect();
    config.command(format_args!("prom enable{options}"));
}

/// The section `prom` of the start-up file.
pub fn startup() -> StartupPart {
    let section = Section::new("prom")
        .help("What Prometheus reads, served over HTTP while this section is there")
        .entry("address <address:ip>", "address to listen on; 127.0.0.1 when not given")
        .entry("port <port:1-65535>", "port to listen on; 9482 when not given")
        .entry("all-stats", "also nodes that never ran and reasons that were never given")
        .entry("names <names:vpp|quiver|both>", "whose names families have; both when not given");
    StartupPart::new(section, |args| {
        let address = args.optional::<IpAddr>("address")?.map(|ip| format!(" address {ip}"));
        let port = args.optional::<u16>("port")?.map(|port| format!(" port {port}"));
        let all = args.has("all-stats").then(|| " all-stats".to_owned());
        let names = args.optional::<&str>("names")?.map(|names| format!(" names {names}"));
        let options: String = [address, port, all, names].into_iter().flatten().collect();
        Ok(vec![format!("prom enable{options}")])
    })
}
