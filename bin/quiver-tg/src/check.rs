//! `quiver-tg check`: what a profile would send, without making its ports.

use std::fmt::Write as _;

use crate::profile::{Part, Profile, Stream, Values};
use crate::stamp::STAMP_BYTES;
use crate::table::grouped;
use crate::traffic::Source;

/// Header bytes that are shown at most.
const HEADER_BYTES_SHOWN: usize = 128;

/// In words. Files and lists of values are read as for a run.
pub fn describe(profile: &Profile) -> anyhow::Result<String> {
    let mut text = String::new();
    for (number, port) in profile.ports.iter().enumerate() {
        let port = &port.value;
        let device = if let Some(memif) = &port.memif {
            format!("memif {} at {}", memif.id, memif.socket.display())
        } else if let Some(host) = &port.af_packet {
            format!("packet socket on {}", host.interface)
        } else {
            format!("tap {}", port.tap.as_ref().map_or("", |tap| tap.name.as_str()))
        };
        let gateway = port.gateway.map_or(String::new(), |gateway| format!(", gateway {gateway}"));
        let _ = writeln!(text, "port {number}    {device}, {}{gateway}", profile.port_mac(number));
    }
    if profile.stateful.is_some() {
        text.push_str("transactions of clients and servers in the place of streams\n");
    }
    for (number, stream) in profile.streams.iter().enumerate() {
        let stream = &stream.value;
        Source::new(stream)?;
        describe_stream(&mut text, number, stream);
    }
    Ok(text)
}

fn describe_stream(text: &mut String, number: usize, stream: &Stream) {
    let rate = match &stream.rate {
        Some(rate) => format!("rate {rate:?}"),
        None => format!("weight {}", stream.weight),
    };
    let _ = writeln!(
        text,
        "stream {number}  {}, port {} -> {}, {rate}, {:?}",
        stream.name_or(number),
        stream.from,
        stream.to,
        stream.pacing
    );
    let sizes = match stream.sizes.only() {
        Some(size) => format!("{size} B"),
        None => {
            format!("{:.1} B on average, {} B at most", stream.frame_bytes_mean(), stream.frame_bytes_max())
        }
    };
    let genome = stream.sizes.genome().map_or(String::new(), |genome| format!(", {genome}"));
    let stamp = if stream.stamp { format!(", the last {STAMP_BYTES} a stamp") } else { String::new() };
    let _ = writeln!(text, "  frames    {sizes} without FCS{genome}{stamp}");
    if let Some(pcap) = &stream.pcap {
        let _ = writeln!(text, "  packets   of {}", pcap.file.display());
    }
    if !stream.packets.is_empty() {
        let _ = writeln!(text, "  packets   {} as hexadecimal digits", stream.packets.len());
    }
    let Some(layers) = stream.layers.as_ref().filter(|_| !stream.layout.bytes.is_empty()) else { return };
    let names: Vec<&str> = layers.value.0.iter().map(|layer| layer.spec.name).collect();
    let _ = writeln!(text, "  headers   {} ({} B)", names.join(" / "), stream.layout.bytes.len());
    let shown = &stream.layout.bytes[..stream.layout.bytes.len().min(HEADER_BYTES_SHOWN)];
    let hex: Vec<String> =
        shown.chunks(2).map(|pair| pair.iter().map(|b| format!("{b:02x}")).collect()).collect();
    for line in hex.chunks(16) {
        let _ = writeln!(text, "            {}", line.join(" "));
    }
    if stream.awaits_gateway {
        text.push_str("            (the destination MAC address is asked for)\n");
    }
    for part in &stream.layout.parts {
        let _ = writeln!(text, "  varies    {}: {}", part.name, values(part));
    }
    if let Some(flows) = &stream.flows {
        let flows = &flows.value;
        let count = flows.count.map_or("as many as the fields make".to_owned(), grouped);
        let _ = writeln!(text, "  flows     {count}, {:?}, {:?}", flows.fields, flows.order);
    }
}

fn values(part: &Part) -> String {
    match &part.field.values {
        Values::One(value) => part.kind.show(*value),
        Values::Run { first, count, step } => {
            let by = if *step == 1 { String::new() } else { format!(" by {step}") };
            format!("{} values from {}{by}", grouped(*count), part.kind.show(*first))
        }
        Values::List(list) => format!("{} values of a list", grouped(list.len() as u64)),
        Values::File(path) => format!("the values of {}", path.display()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn what_a_profile_would_send_is_said_without_its_ports() {
        let text = "ports:
  - {memif: {socket: /nowhere/q.sock, id: 0}, ip4: [198.18.0.2], gateway: 198.18.0.1}
  - {memif: {socket: /nowhere/q.sock, id: 1}, ip4: [198.18.1.2]}
streams:
  - {from: 0, to: 1, frame: imix, layers: {ip4: {dst: {first: 20.0.0.0, count: 1000}}, udp: {}}}";
        let profile = Profile::parse(text, Path::new("x")).expect("a profile");
        let said = describe(&profile).expect("words");
        for words in [
            "memif 0 at /nowhere/q.sock",
            "gateway 198.18.0.1",
            "IMIX",
            "ethernet / ip4 / udp (42 B)",
            "ip4.dst: 1,000 values from 20.0.0.0",
            "is asked for",
        ] {
            assert!(said.contains(words), "{words}: {said}");
        }
    }
}
