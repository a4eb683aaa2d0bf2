//! Profiles of transactions for tests.

use quiver_tg_traffic::profile::stateful::Stateful;

/// The key `stateful` of a profile with two ports, read from YAML and checked.
pub fn stateful(text: &str) -> Stateful {
    let stateful: Stateful = serde_saphyr::from_str(text).expect("YAML");
    let ports: Vec<serde_saphyr::Spanned<quiver_tg_traffic::profile::Port>> =
        serde_saphyr::from_str("[{tap: {name: a}}, {tap: {name: b}}]").expect("ports");
    stateful.check(&ports).expect("checked");
    stateful
}
