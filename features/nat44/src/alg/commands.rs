//! `set nat44 helper` and `show nat44 helpers`.

use quiver_control::{Column, Command, ConfigWriter, Output, Registry, Table, order};
use quiver_core::Engine;

use crate::alg::{Count, Helper};
use crate::commands::GROUP;
use crate::config::Nat44;

/// Of each helper: the command, its default, its entry, its help.
const HELPERS: [(Helper, &str, &str, &str, &str); 3] = [
    (
        Helper::Ftp,
        "set nat44 helper ftp port <port:0-65535>",
        "set nat44 helper ftp port 21",
        "nat44.helpers.ftp: <port>",
        "Translate the ends that FTP's control connections name; 21, and 0 is off",
    ),
    (
        Helper::Tftp,
        "set nat44 helper tftp port <port:0-65535>",
        "set nat44 helper tftp port 0",
        "nat44.helpers.tftp: <port>",
        "Let TFTP's servers answer from another port than the one of requests; 69 is usual, 0 off",
    ),
    (
        Helper::Pptp,
        "set nat44 helper pptp port <port:0-65535>",
        "set nat44 helper pptp port 0",
        "nat44.helpers.pptp: <port>",
        "Translate the calls of PPTP, also those of hosts with one server; 1723 is usual, 0 off",
    ),
];

/// What it does, and for which sessions.
fn details(helper: Helper) -> &'static str {
    match helper {
        Helper::Ftp => {
            "Sessions to servers of this port that begin from now on go to the slow path. PORT, \
             EPRT and the replies 227 and 229 get the external end, and the data connection is let \
             in. An end of another host or with a well-known port is not opened (RFC 2577)."
        }
        Helper::Tftp => {
            "Sessions to servers of this port that begin from now on go to the slow path. A \
             request lets one answer in from any port of its server, within a minute."
        }
        Helper::Pptp => {
            "Sessions to servers of this port that begin from now on go to the slow path. \
             Packets of GRE version 1 pass by the calls that these connections name, and by \
             nothing else while the helper is on."
        }
    }
}

pub(crate) fn register(registry: &mut Registry) {
    for (helper, syntax, undo, entry, help) in HELPERS {
        registry.command(
            Command::new(syntax)
                .entry(order::LIMITS, entry)
                .undo(undo)
                .replaces(&[])
                .group(GROUP)
                .help(help)
                .details(details(helper))
                .word("port", "the port of the servers")
                .example(undo)
                .run(move |engine: &mut Engine, args| {
                    let port = args.get("port")?;
                    if let Some(nat) = engine.get::<Nat44>() {
                        nat.shared.algs.set_port(helper, port);
                    }
                    Ok(Output::none())
                }),
        );
    }
    registry.command(
        Command::new("show nat44 helpers")
            .group(GROUP)
            .help("Show which protocols' texts NAT44 translates, and what came of it")
            .details(
                "Refused are ends of another host, or with a well-known port. Failed are those \
                 for which there was no port or no place.",
            )
            .run(|engine: &mut Engine, _| Ok(helpers(engine))),
    );
}

fn helpers(engine: &Engine) -> Output {
    let mut table = Table::new([
        Column::left("Helper"),
        Column::right("Port"),
        Column::right("Sessions"),
        Column::right("Rewritten"),
        Column::right("Opened"),
        Column::right("Refused"),
        Column::right("Failed"),
    ]);
    let Some(nat) = engine.get::<Nat44>() else { return Output::none() };
    let algs = &nat.shared.algs;
    for helper in Helper::ALL {
        let port = Some(algs.port(helper)).filter(|port| *port != 0);
        let mut row = table.row();
        row = row.cell(helper.word()).cell(quiver_control::Cell::optional(port, "off"));
        for (count, _) in Count::ALL {
            row = row.cell(algs.counted(helper, count));
        }
    }
    Output::none().table("helpers", table)
}

/// `show running-config`
pub(crate) fn write(nat: &Nat44, config: &mut ConfigWriter) {
    for helper in Helper::ALL {
        let port = nat.shared.algs.port(helper);
        if port != helper.default_port() {
            let word = helper.word();
            config.command(format_args!("set nat44 helper {word} port {port}"));
        }
    }
}
