//! `set ip flow-hash`: what makes a flow, where the routes of a table have several paths.

use quiver_control::{Args, Command, Output, Refusal, Registry};
use quiver_core::Engine;
use quiver_tables::fib::Family;
use quiver_wire::flow::FlowFields;

use super::{GROUP, table_of};
use crate::state::{refusal, with_ip};

pub(crate) fn register(registry: &mut Registry) {
    let words = "[src] [dst] [sport] [dport] [proto] [reverse] [symmetric]";
    for (family, syntax, example) in [
        (
            Family::Ip4,
            "set ip flow-hash {[table <:u32>] [src] [dst] [sport] [dport] [proto] [reverse] [symmetric]}",
            "set ip flow-hash table 0 src dst symmetric",
        ),
        (
            Family::Ip6,
            "set ip6 flow-hash {[table <:u32>] [src] [dst] [sport] [dport] [proto] [reverse] [symmetric] \
             [flowlabel]}",
            "set ip6 flow-hash table 0 src dst flowlabel",
        ),
    ] {
        debug_assert!(syntax.contains(words));
        let mut command = Command::new(syntax)
            .group(GROUP)
            .help("Say which fields make a flow, where the routes of a table have several paths")
            .details(
                "Packets of one flow take one path. Without any field it is again the default: src, dst, sport, \
                 dport and proto; `reverse` and `symmetric` alone go with these five. Fragments have no ports. \
                 Flows may change their path when this changes.",
            )
            .word("table", "the table; 0")
            .word("reverse", "exchange source and destination, as the other direction has them")
            .word("symmetric", "both directions of a flow take the path of the same number")
            .example(example);
        if family == Family::Ip6 {
            command = command.word("flowlabel", "the IPv6 flow label (RFC 6438)");
        }
        registry.command(command.run(move |engine: &mut Engine, args| set(engine, args, family)));
    }
}

fn set(engine: &mut Engine, args: &Args<'_>, family: Family) -> Result<Output, Refusal> {
    let table = table_of(engine, args, family, "table")?;
    let known = FlowFields::WORDS.iter();
    let chosen = known.filter(|(field, word)| {
        (family == Family::Ip6 || *field != FlowFields::FLOW_LABEL) && args.has(word)
    });
    let fields = chosen.fold(FlowFields::DEFAULT, |all, (field, _)| all.and(*field)).normal();
    if let Some(why) = fields.asymmetry() {
        return Err(args.refuse("symmetric", why));
    }
    let done = with_ip(engine, |_, _, fib| fib.set_flow_fields(family, table, fields));
    done.map_err(|error| refusal(engine, error))?;
    Ok(Output::none())
}
