//! `show nat44 static mappings`.

use quiver_control::{Column, Output, Table};
use quiver_core::Engine;

use crate::commands::protocol_word;
use crate::config::Nat44;
use crate::mappings::{Local, MappingName, MappingOptions};
use crate::tables::TwiceNat;

/// Static, load-balancing and identity mappings.
pub(crate) fn mappings(engine: &Engine) -> Output {
    let mut table = Table::new([
        Column::left("Protocol"),
        Column::left("Local"),
        Column::right("Local port").key("local_port"),
        Column::left("External"),
        Column::right("External port").key("external_port"),
        Column::right("VRF"),
        Column::left("Kind"),
        Column::right("Probability"),
        Column::left("Twice NAT").key("twice_nat"),
        Column::left("Out2in only").key("out2in_only"),
    ]);
    let Some(nat) = engine.get::<Nat44>() else { return Output::none() };
    let port = |port: u16| (port != 0).then_some(port);
    let mut add = |name: &MappingName,
                   local: Option<&Local>,
                   options: &MappingOptions,
                   kind: &str,
                   probability: Option<u32>,
                   vrf: Option<u32>| {
        let external = name.external.name(engine);
        let twice = match options.twice {
            TwiceNat::Never => "never",
            TwiceNat::Always => "always",
            TwiceNat::OwnAddress => "self",
        };
        table
            .row()
            .cell(protocol_word(name.protocol))
            .cell(local.map_or(external.clone(), |local| local.address.to_string()))
            .cell(port(local.map_or(name.port, |local| local.port)))
            .cell(external)
            .cell(port(name.port))
            .cell(vrf)
            .cell(kind)
            .cell(probability)
            .cell(twice)
            .cell(options.out2in_only);
    };
    for (name, (local, options)) in &nat.mappings {
        add(name, Some(local), options, "static", None, local.vrf);
    }
    for (name, balanced) in &nat.balanced {
        for backend in &balanced.backends {
            let (local, share) = (&backend.local, Some(backend.probability));
            add(name, Some(local), &balanced.options, "load-balancing", share, local.vrf);
        }
    }
    for identity in &nat.identities {
        add(&identity.name, None, &MappingOptions::default(), "identity", None, identity.vrf);
    }
    Output::none().table("mappings", table)
}
