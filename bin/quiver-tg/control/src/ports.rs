//! Ports in the answers of `show profile` and `show statistics`.

use serde_json::{Value as Json, json};

use super::any_generator::AnyGenerator;
use quiver_tg_measuring::surroundings::{PortState, Surroundings};

/// The state of a port's link, as text and JSON say it.
pub fn link(is_up: bool) -> &'static str {
    if is_up { "up" } else { "down" }
}

/// Link and counters of every port, as JSON.
pub fn ports<S: Surroundings>(generator: &mut AnyGenerator<S>) -> Vec<Json> {
    let one = |(number, port): (usize, &PortState)| {
        json!({
            "port": number, "name": port.name, "link": link(port.is_up),
            "tx_frames": port.tx_frames, "tx_bytes": port.tx_bytes, "tx_refused": port.tx_refused,
            "rx_frames": port.rx_frames, "rx_bytes": port.rx_bytes,
        })
    };
    generator.port_states().iter().enumerate().map(one).collect()
}
