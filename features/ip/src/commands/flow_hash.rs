//! `set ip flow-hash`: what makes a flow, where the routes of a table have several paths.

use quiver_control::{Args, Command, Output, Refusal, Registry, order};
use quiver_core::Engine;
use quiver_forwarding::fib::Family;
use quiver_wire::flow::FlowFields;

use super::{GROUP, table_of};
use crate::state::with_ip;

pub(crate) fn register(registry: &mut Registry) {
    let words = "[src] [dst] [sport] [dport] [proto] [reverse] [symmetric] [gtpv1teid]";
    for (family, syntax, example) in [
        (
            Family::Ip4,
            "set ip flow-hash \
             {[table <:u32>] [src] [dst] [sport] [dport] [proto] [reverse] [symmetric] \
             [gtpv1teid]}",
            "set ip flow-hash table 0 src dst symmetric",
        ),
        (
            Family::Ip6,
            "set ip6 flow-hash \
             {[table <:u32>] [src] [dst] [sport] [dport] [proto] [reverse] [symmetric] [gtpv1teid] \
             [flowlabel]}",
            "set ip6 flow-hash table 0 src dst flowlabel",
        ),
    ] {
        debug_assert!(syntax.contains(words));
        let undo = match family {
            Family::Ip4 => "set ip flow-hash table <table=0>",
            Family::Ip6 => "set ip6 flow-hash table <table=0>",
        };
        let entry = match family {
            Family::Ip4 => {
                "tables.<table>.flow-hash.ip4: \
                 <src|dst|sport|dport|proto|reverse|symmetric|gtpv1teid>..."
            }
            Family::Ip6 => {
                "tables.<table>.flow-hash.ip6: \
                 <src|dst|sport|dport|proto|reverse|symmetric|gtpv1teid|flowlabel>..."
            }
        };
        let mut command = Command::new(syntax)
            .entry(order::TABLES, entry)
            .undo(undo)
            .replaces(&["table"])
            .group(GROUP)
            .help("Say which fields make a flow, where the routes of a table have several paths")
            .details(
                "Packets of one flow take one path. Without any field it is again the default: \
                 src, dst, sport, dport and proto; `reverse`, `symmetric` and `gtpv1teid` alone \
                 go with these five. Fragments have no ports. Flows may change their path when \
                 this changes.",
            )
            .word("table", "the table; 0")
            .word("reverse", "exchange source and destination, as the other direction has them")
            .word("gtpv1teid", "the tunnel of user data to UDP port 2152 (GTP-U)")
            .word("symmetric", "both directions of a flow take the path of the same number")
            .example(example);
        if family == Family::Ip6 {
            command = command.word("flowlabel", "the IPv6 flow label (RFC 6438)");
        }
        registry.command(command.run(move |engine: &mut Engine, args| set(engine, args, family)));
    }
    registry.command(
        Command::new("set ip flow-hash seed <seed:u32>")
            .entry(order::TABLES, "ip.flow-hash-seed: <seed>")
            .undo("set ip flow-hash seed 0")
            .replaces(&[])
            .group(GROUP)
            .help(
                "Say what is mixed into flow hashes of both families, where routes have several \
                 paths",
            )
            .details(
                "Routers behind each other that hash alike send what arrives by one path on by \
                 one path. Give each another seed. 0, the default, mixes nothing in.",
            )
            .example("set ip flow-hash seed 7")
            .run(|engine: &mut Engine, args| {
                let seed = args.get("seed")?;
                with_ip(engine, |_, _, fib| fib.set_flow_seed(seed));
                Ok(Output::none())
            }),
    );
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
    done.map_err(|error| Refusal::of_table(engine, error))?;
    Ok(Output::none())
}
