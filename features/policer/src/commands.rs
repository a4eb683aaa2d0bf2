//! Commands that configure policers.

use quiver_control::{Args, Command, ConfigWriter, Output, Refusal, Registry, order, quoted};
use quiver_core::Engine;
use quiver_core::control::interfaces::Interface;
use quiver_policing::meter::{Kind, Rates, Unit};
use quiver_policing::{Action, Terms};

use crate::config::{self, Config};
use crate::tables::Direction;

/// The group of the commands.
pub(crate) const GROUP: &str = "Quality of service";
/// Bits a second that the rates of `rate kbps` are given in.
const KILO: u64 = 1000;
/// A burst that nobody names is a tenth of a second of its rate, but at least so many units.
const DEFAULT_BURST_MIN: [u64; 2] = [15_140, 10];

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new(
            "policer add name <name:word> {rate <unit:kbps|pps> cir <cir:1-1000000000> \
             [cb <cb:1-2147483647>] [eir <eir:1-1000000000>] [eb <eb:1-2147483647>] \
             [type <type:1r2c|1r3c|2r3c-2698|2r3c-4115>] [color-aware] \
             [conform-action <conform:drop|transmit|mark-and-transmit> [<conform-dscp:0-63>]] \
             [exceed-action <exceed:drop|transmit|mark-and-transmit> [<exceed-dscp:0-63>]] \
             [violate-action <violate:drop|transmit|mark-and-transmit> [<violate-dscp:0-63>]]}",
        )
        .entry(
            order::RESOURCES,
            "policers.<name>: {rate: <unit>, cir, cb, eir, eb, type, color-aware, conform-action: \
             <conform>, conform-dscp, exceed-action: <exceed>, exceed-dscp, violate-action: \
             <violate>, violate-dscp}",
        )
        .undo("policer del name <name>")
        .replaces(&["name"])
        .makes("policer <name>")
        .group(GROUP)
        .help("Make a policer, or give it other rates")
        .details(
            "1r2c has one rate and one burst. 1r3c has two bursts (RFC 2697): what the first has \
             no room for fills the second. 2r3c-2698 has a committed rate and, as eir, a peak rate \
             (RFC 2698). 2r3c-4115 has a committed and an excess rate, which add up (RFC 4115). \
             Rates are exact: frames count from the destination address on, without their check \
             sequence. A burst that is not given is a tenth of a second of its rate. color-aware \
             takes the drop precedence of assured forwarding (RFC 2597) for the colour that a \
             packet had before. A policer that exists gets the new rates, full buckets, and keeps \
             what it has counted.",
        )
        .word("rate", "kbps: kilobits a second, and bursts of bytes; pps: packets")
        .word("cir", "the committed rate")
        .word("cb", "the committed burst")
        .word("eir", "the excess rate, or the peak rate of 2r3c-2698")
        .word("eb", "the excess burst, or that of the peak rate")
        .word("conform-action", "of packets within the committed rate; transmit")
        .word("exceed-action", "of packets within the other rate or burst; transmit")
        .word("violate-action", "of all others; drop")
        .word("mark-and-transmit", "with this DSCP (RFC 2474): 46 is EF, 10 is AF11")
        .example("policer add name gold rate kbps cir 100000 cb 1500000")
        .example(
            "policer add name silver rate kbps cir 50000 eir 20000 type 2r3c-4115 exceed-action \
             mark-and-transmit 12",
        )
        .run(|engine: &mut Engine, args| {
            let terms = terms(args)?;
            config::put(engine, args.get("name")?, terms)?;
            let warning = config::warning(&terms);
            Ok(warning.map_or_else(Output::none, |text| Output::text(format!("warning: {text}"))))
        }),
    );
    registry.command(
        Command::new("policer del name <name:word>")
            .group(GROUP)
            .help("Delete a policer that nobody has")
            .example("policer del name gold")
            .run(|engine: &mut Engine, args| {
                config::delete(engine, args.get("name")?).map(|()| Output::none())
            }),
    );
    registry.command(
        Command::new("policer reset name <name:word>")
            .group(GROUP)
            .help("Fill the buckets of a policer, and those of its subscribers")
            .example("policer reset name gold")
            .run(|engine: &mut Engine, args| {
                config::reset(engine, args.get("name")?).map(|()| Output::none())
            }),
    );
    registry.command(
        Command::new("policer input|output name <policer:word> <interface> [unapply]")
            .entry(order::FEATURES, "interfaces.<interface>.policer.<input|output>: <policer>")
            .undo("policer [input] [output] name <policer> <interface> unapply")
            .replaces(&["interface", "input", "output"])
            .stands_on("policer <policer>")
            .group(GROUP)
            .help("Let a policer meter what an interface receives or sends, or no more")
            .details(
                "Several interfaces may have the same policer: they share its rate, whichever \
                 workers serve them. An interface has one in each direction.",
            )
            .example("policer input name gold e0")
            .example("policer output name silver e1 unapply")
            .run(apply),
    );
}

fn apply(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let on = args.interface(engine, "interface")?;
    let direction = if args.has("input") { Direction::Input } else { Direction::Output };
    let name: &str = args.get("policer")?;
    match args.has("unapply") {
        true => config::detach(engine, on, direction, name)?,
        false => config::attach(engine, on, direction, name)?,
    }
    Ok(Output::none())
}

fn terms(args: &Args<'_>) -> Result<Terms, Refusal> {
    let unit = match args.get("unit")? {
        "pps" => Unit::Packets,
        _ => Unit::Bits,
    };
    let word = args.or("type", "1r2c")?;
    let kind = Kind::ALL.iter().find(|(known, _)| *known == word);
    let kind = kind.map_or(Kind::OneRateTwoColours, |(_, kind)| *kind);
    let times = if unit == Unit::Bits { KILO } else { 1 };
    let committed = args.get::<u64>("cir")? * times;
    let excess = args.or("eir", 0u64)? * times;
    let burst = |rate| default_burst(unit, rate);
    let committed_burst = args.optional("cb")?.unwrap_or_else(|| burst(committed));
    let excess_burst = args.optional("eb")?.unwrap_or_else(|| match kind {
        Kind::OneRateTwoColours => 0,
        Kind::OneRateThreeColours => committed_burst,
        Kind::TwoRates2698 | Kind::TwoRates4115 => burst(excess),
    });
    let action = |word, code_point, default| action(args, word, code_point, default);
    Ok(Terms {
        rates: Rates { kind, unit, committed, committed_burst, excess, excess_burst },
        actions: [
            action("conform", "conform-dscp", Action::Transmit)?,
            action("exceed", "exceed-dscp", Action::Transmit)?,
            action("violate", "violate-dscp", Action::Drop)?,
        ],
        is_colour_aware: args.has("color-aware"),
    })
}

/// A tenth of a second of a rate.
fn default_burst(unit: Unit, rate: u64) -> u64 {
    let (a_tenth, least) = match unit {
        Unit::Bits => (rate / 80, DEFAULT_BURST_MIN[0]),
        Unit::Packets => (rate / 10, DEFAULT_BURST_MIN[1]),
    };
    a_tenth.clamp(least, Unit::BURST_MAX)
}

/// What is to become of packets of a colour.
fn action(
    args: &Args<'_>,
    word: &str,
    code_point: &str,
    default: Action,
) -> Result<Action, Refusal> {
    let given: Option<u8> = args.optional(code_point)?;
    match (args.optional(word)?, given) {
        (None, _) => Ok(default),
        (Some("mark-and-transmit"), Some(code_point)) => Ok(Action::Mark(code_point)),
        (Some("mark-and-transmit"), None) => {
            Err(args.refuse(word, "with which DSCP?").remedy("mark-and-transmit 10"))
        }
        (Some(_), Some(_)) => Err(args.refuse(code_point, "only mark-and-transmit has a DSCP")),
        (Some("drop"), None) => Ok(Action::Drop),
        (Some(_), None) => Ok(Action::Transmit),
    }
}

/// An action in the words of the command.
pub(crate) fn words(action: Action) -> String {
    match action {
        Action::Drop => "drop".to_owned(),
        Action::Transmit => "transmit".to_owned(),
        Action::Mark(code_point) => format!("mark-and-transmit {code_point}"),
    }
}

/// The names of all policers.
pub(crate) fn names(engine: &Engine) -> Vec<String> {
    engine.get::<Config>().map_or_else(Vec::new, |known| known.policers.keys().cloned().collect())
}

/// `show running-config`: a policer.
pub(crate) fn write_policer(engine: &Engine, config: &mut ConfigWriter, name: String) {
    let known = engine.get::<Config>().and_then(|known| known.policers.get(&name));
    let Some(terms) = known.map(|known| known.terms) else { return };
    let Rates { kind, unit, committed, committed_burst, excess, excess_burst } = terms.rates;
    let (word, times) = match unit {
        Unit::Bits => ("kbps", KILO),
        Unit::Packets => ("pps", 1),
    };
    let mut line = format!(
        "policer add name {} rate {word} cir {} cb {committed_burst}",
        quoted(&name),
        committed / times
    );
    if excess > 0 {
        line += &format!(" eir {}", excess / times);
    }
    if excess_burst > 0 {
        line += &format!(" eb {excess_burst}");
    }
    line += &format!(" type {}", kind.word());
    if terms.is_colour_aware {
        line += " color-aware";
    }
    let defaults = [Action::Transmit, Action::Transmit, Action::Drop];
    let said = ["conform", "exceed", "violate"].into_iter().zip(terms.actions).zip(defaults);
    for ((word, action), _) in said.filter(|((_, action), default)| action != default) {
        line += &format!(" {word}-action {}", words(action));
    }
    config.command(format_args!("{line}"));
}

/// `show running-config`: the policers of an interface.
pub(crate) fn write_interface(engine: &Engine, interface: &Interface, config: &mut ConfigWriter) {
    let Some(known) = engine.get::<Config>() else { return };
    for direction in Direction::ALL {
        if let Some(policer) = known.attached.get(&(interface.id, direction)) {
            let (word, name) = (direction.word(), quoted(policer));
            config.command(format_args!("policer {word} name {name} {}", interface.name));
        }
    }
}
