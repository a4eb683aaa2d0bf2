//! `show running-config`: commands that make MAP what it is.

use std::net::Ipv4Addr;

use quiver_control::ConfigWriter;
use quiver_core::Engine;
use quiver_core::control::interfaces::Interface;

use crate::config::Map;
use crate::tables::{ENCAPSULATES, Params, TRANSLATES};

/// A domain, or a rule of one.
pub(crate) type Key = (u32, Option<u16>);

/// All domains with their rules.
pub(crate) fn keys(engine: &Engine) -> Vec<Key> {
    let domains = engine.get::<Map>().into_iter().flat_map(|map| &map.domains);
    domains
        .flat_map(|(index, domain)| {
            let rules = domain.rules.keys().map(|psid| (*index, Some(*psid)));
            std::iter::once((*index, None)).chain(rules)
        })
        .collect()
}

/// A domain or a rule.
pub(crate) fn write(engine: &Engine, config: &mut ConfigWriter, (index, psid): Key) {
    let Some(domain) = engine.get::<Map>().and_then(|map| map.domains.get(&index)) else { return };
    let Some(psid) = psid else {
        config.command(format_args!("map add domain {}", domain.config.words(index)));
        return;
    };
    if let Some(ip6) = domain.rules.get(&psid) {
        config.command(format_args!("map add rule index {index} psid {psid} ip6-dst {ip6}"));
    }
}

/// What holds for all domains.
pub(crate) fn write_params(engine: &Engine, config: &mut ConfigWriter) {
    let Some(params) = engine.get::<Map>().map(|map| map.params) else { return };
    let usual = Params::USUAL;
    let on = |on: bool| if on { "on" } else { "off" };
    if (params.cuts_inner, params.ignores_df) != (usual.cuts_inner, usual.ignores_df) {
        let cut = if params.cuts_inner { "inner" } else { "outer" };
        let df = if params.ignores_df { "ignore-df" } else { "honor-df" };
        config.command(format_args!("map params fragment {cut} {df}"));
    }
    if params.checks_source != usual.checks_source {
        config.command(format_args!("map params security-check {}", on(params.checks_source)));
    }
    if params.checks_fragments != usual.checks_fragments {
        let on = on(params.checks_fragments);
        config.command(format_args!("map params security-check fragments {on}"));
    }
    if let Some(class) = params.traffic_class {
        config.command(format_args!("map params traffic-class {class}"));
    }
    if params.mss_bytes != usual.mss_bytes {
        config.command(format_args!("map params tcp-mss {}", params.mss_bytes));
    }
    if params.icmp_source != usual.icmp_source {
        let address = Ipv4Addr::from(params.icmp_source);
        config.command(format_args!("map params icmp source-address {address}"));
    }
    if params.tells_refused != usual.tells_refused {
        config.command(format_args!("map params icmp6 unreachables {}", on(params.tells_refused)));
    }
}

/// What an interface takes.
pub(crate) fn write_interface(engine: &Engine, interface: &Interface, config: &mut ConfigWriter) {
    let modes = engine.get::<Map>().and_then(|map| map.interfaces.get(&interface.id));
    let modes = modes.copied().unwrap_or(0);
    if modes & ENCAPSULATES != 0 {
        config.command(format_args!("map interface {}", interface.name));
    }
    if modes & TRANSLATES != 0 {
        config.command(format_args!("map interface {} map-t", interface.name));
    }
}
