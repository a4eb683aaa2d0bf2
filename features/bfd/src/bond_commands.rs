//! The commands of sessions on the members of bonds.

use quiver_control::{Args, Command, ConfigWriter, Output, Refusal, Registry, order};
use quiver_core::{Engine, InterfaceId};

use crate::bonds::{self, Key, OnBond};
use crate::commands::{GROUP, check_ends, settings, signing};
use crate::config::{Bfd, Signing};
use crate::session::Settings;
use crate::shared::Ends;

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new(
            "bfd udp bond add <bond:interface> {local-addr <:ip> peer-addr <:ip> desired-min-tx \
             <:1000-60000000> required-min-rx <:1000-60000000> detect-mult <:1-255> [conf-key-id \
             <:u32>] [bfd-key-id <:u8>] [group-mac]}",
        )
        .entry(
            order::FEATURES,
            "interfaces.<bond>.micro-bfd.<local-addr>.<peer-addr>: {desired-min-tx, \
             required-min-rx, detect-mult, conf-key-id, bfd-key-id, group-mac}",
        )
        .undo("bfd udp bond del <bond> local-addr <local-addr> peer-addr <peer-addr>")
        .makes("micro-BFD <bond> <local-addr> <peer-addr>")
        .stands_on("BFD key <conf-key-id>")
        .group(GROUP)
        .help("Watch each member of a bond by a BFD session of its own (RFC 7130)")
        .details(
            "A member sends only while its session is up, or while either end has taken it down. \
             So none sends until the peer has such sessions, too. Times are in microseconds. A \
             bond may have sessions of both families: a member sends while both are up.",
        )
        .word("group-mac", "send to 01:00:5e:90:00:01 for good, not to the peer's MAC address")
        .example(
            "bfd udp bond add BondEthernet0 local-addr 192.0.2.1 peer-addr 192.0.2.2 \
             desired-min-tx 50000 required-min-rx 50000 detect-mult 3",
        )
        .run(add),
    );
    registry.command(
        Command::new(
            "bfd udp bond mod <bond:interface> {local-addr <:ip> peer-addr <:ip> desired-min-tx \
             <:1000-60000000> required-min-rx <:1000-60000000> detect-mult <:1-255>}",
        )
        .group(GROUP)
        .help("Set other intervals of the BFD sessions on the members of a bond, which stay up")
        .run(|engine: &mut Engine, args| {
            let key = known(engine, args)?;
            bonds::modify(engine, key, settings(args)?)?;
            Ok(Output::none())
        }),
    );
    registry.command(
        Command::new(
            "bfd udp bond set-flags <bond:interface> {admin <state:up|down> local-addr <:ip> \
             peer-addr <:ip>}",
        )
        .entry(
            order::FEATURES,
            "interfaces.<bond>.micro-bfd.<local-addr>.<peer-addr>.admin: <state>",
        )
        .undo(
            "bfd udp bond set-flags <bond> admin up local-addr <local-addr> peer-addr <peer-addr>",
        )
        .stands_on("micro-BFD <bond> <local-addr> <peer-addr>")
        .group(GROUP)
        .help("Take the BFD sessions on the members of a bond down, or let them come up")
        .details("Members whose sessions are taken down send as if there were no sessions.")
        .run(|engine: &mut Engine, args| {
            let key = known(engine, args)?;
            bonds::set_admin(engine, key, args.get::<&str>("state")? == "up")?;
            Ok(Output::none())
        }),
    );
    registry.command(
        Command::new("bfd udp bond del <bond:interface> {local-addr <:ip> peer-addr <:ip>}")
            .group(GROUP)
            .help("Watch the members of a bond by BFD no more; the peer hears that")
            .run(|engine: &mut Engine, args| {
                let key = known(engine, args)?;
                bonds::delete(engine, key);
                Ok(Output::none())
            }),
    );
}

/// The bond and the addresses that a command names.
fn named(engine: &Engine, args: &Args<'_>) -> Result<(InterfaceId, Ends), Refusal> {
    let (local, peer) = (args.get("local-addr")?, args.get("peer-addr")?);
    let ends = Ends { interface: None, is_member: true, local, peer };
    check_ends(args, &ends)?;
    Ok((args.interface(engine, "bond")?, ends))
}

/// The sessions that a command names, which there are.
fn known(engine: &Engine, args: &Args<'_>) -> Result<Key, Refusal> {
    let (bond, ends) = named(engine, args)?;
    let key = (bond, ends.local.is_ipv4());
    bonds::of(engine, key, &ends).map(|_| key)
}

fn add(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let (bond, Ends { local, peer, .. }) = named(engine, args)?;
    let on = OnBond {
        local,
        peer,
        settings: settings(args)?,
        signing: signing(args)?,
        is_admin_up: true,
        is_group_only: args.has("group-mac"),
    };
    bonds::add(engine, bond, on)?;
    Ok(Output::none())
}

/// `show running-config`: the sessions on members of bonds.
pub(crate) fn write_config(engine: &Engine, config: &mut ConfigWriter, bfd: &Bfd) {
    let mut lines: Vec<String> = Vec::new();
    for ((bond, _), on) in &bfd.bonds {
        let Settings { desired_min_tx_us, required_min_rx_us, detect_mult } = on.settings;
        let name = engine.interface_name(*bond);
        let words = format!("{name} local-addr {} peer-addr {}", on.local, on.peer);
        let signing = on.signing.map_or_else(String::new, |signing| {
            let Signing { conf_key_id, bfd_key_id } = signing;
            format!(" conf-key-id {conf_key_id} bfd-key-id {bfd_key_id}")
        });
        let group = if on.is_group_only { " group-mac" } else { "" };
        lines.push(format!(
            "bfd udp bond add {words} desired-min-tx {desired_min_tx_us} required-min-rx \
             {required_min_rx_us} detect-mult {detect_mult}{signing}{group}"
        ));
        if !on.is_admin_up {
            lines.push(format!("bfd udp bond set-flags {words} admin down"));
        }
    }
    lines.sort();
    lines.iter().for_each(|line| config.command(format_args!("{line}")));
}
