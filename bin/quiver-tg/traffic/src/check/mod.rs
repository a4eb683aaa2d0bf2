//! `quiver-tg check`: what a profile would send, without making its ports: each stream, and its
//! first frames header by header.

mod decode;
mod frames;
mod text;

use std::io::Write as _;
use std::path::Path;

use anyhow::Context as _;
use serde::Serialize;

use self::frames::{Alike, first_frames};
pub use self::frames::{FrameJson, PRINTED_MAX};
use crate::figures::grouped;
use crate::frames::Source;
use crate::profile::{Part, Port, Profile, Stream, Values};

/// Frames of each stream to print by default.
pub const FRAMES_DEFAULT: usize = 3;

/// Streams and frames of a profile, as JSON.
#[derive(Debug, Serialize)]
pub struct Checked {
    /// The profile's file.
    pub profile: String,
    /// Its ports.
    pub ports: Vec<CheckedPort>,
    /// Its streams.
    pub streams: Vec<CheckedStream>,
    /// It has transactions in the place of streams.
    pub is_stateful: bool,
    /// They, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transactions: Option<String>,
}

/// A port.
#[derive(Debug, Serialize)]
pub struct CheckedPort {
    /// Its number.
    pub port: usize,
    /// What it is.
    pub device: String,
    /// The address that it answers with.
    pub mac: String,
    /// The gateway whose MAC address is resolved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway: Option<String>,
}

/// A stream.
#[derive(Debug, Serialize)]
pub struct CheckedStream {
    /// Its number.
    pub stream: usize,
    /// Its name.
    pub name: String,
    /// The port that sends.
    pub from: usize,
    /// The port where the frames should come back.
    pub to: usize,
    /// Its own rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
    /// Its share of the rate of the whole.
    pub weight: f64,
    /// How its frames are spread over time.
    pub pacing: String,
    /// Bytes of a frame on average, without FCS.
    pub frame_bytes: f64,
    /// Bytes of the longest frame.
    pub frame_bytes_max: usize,
    /// The sequence of its sizes (RFC 6985).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub genome: Option<String>,
    /// The last 16 bytes of a frame say which one it is.
    pub is_stamped: bool,
    /// The destination MAC address is resolved when the links are up, and zero here.
    pub awaits_gateway: bool,
    /// Fields that vary by the profile.
    pub varies: Vec<Varying>,
    /// How its fields are counted together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flows: Option<String>,
    /// Its first frames.
    pub frames: Vec<FrameJson>,
    #[serde(skip)]
    kind: String,
    #[serde(skip)]
    groups: Vec<Alike>,
}

/// A field that varies.
#[derive(Debug, Serialize)]
pub struct Varying {
    /// `header.field`.
    pub field: String,
    /// In words.
    pub values: String,
}

/// Read a profile and print what it would send.
///
/// # Errors
/// When the profile or a file that it names cannot be read, or standard output fails.
pub fn print(path: &Path, frames: usize, json: bool) -> anyhow::Result<()> {
    let checked = Checked::new(&Profile::read(path)?, frames)?;
    let text = if json { serde_json::to_string_pretty(&checked)? + "\n" } else { checked.text() };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

impl Checked {
    /// Of a profile; the first `frames` of each stream are made. Files and lists of values are read
    /// as for a run.
    ///
    /// # Errors
    /// When a file of values or packets cannot be read.
    pub fn new(profile: &Profile, frames: usize) -> anyhow::Result<Checked> {
        let ports = profile.ports.iter().enumerate().map(|(number, port)| CheckedPort {
            port: number,
            device: device(&port.value),
            mac: profile.port_mac(number).to_string(),
            gateway: port.value.gateway.map(|gateway| gateway.to_string()),
        });
        let ports = ports.collect();
        let streams = profile.streams.iter().enumerate().map(|(number, stream)| {
            let stream = &stream.value;
            checked(number, stream, frames)
                .with_context(|| format!("stream {}", stream.name_or(number)))
        });
        Ok(Checked {
            profile: profile.path.display().to_string(),
            ports,
            streams: streams.collect::<anyhow::Result<_>>()?,
            is_stateful: profile.stateful.is_some(),
            transactions: profile.stateful.as_ref().map(|stateful| stateful.value.in_words()),
        })
    }

    /// In words.
    pub fn text(&self) -> String {
        text::render(self)
    }
}

fn device(port: &Port) -> String {
    if let Some(memif) = &port.memif {
        format!("memif {} at {}", memif.id, memif.socket.display())
    } else if let Some(host) = &port.af_packet {
        format!("packet socket on {}", host.interface)
    } else if let Some(xdp) = &port.af_xdp {
        format!("AF_XDP socket on {}", xdp.interface)
    } else {
        format!("tap {}", port.tap.as_ref().map_or("", |tap| tap.name.as_str()))
    }
}

fn checked(number: usize, stream: &Stream, frames: usize) -> anyhow::Result<CheckedStream> {
    let mut source = Source::new(stream)?;
    let groups = first_frames(&mut source, stream, number, frames)?;
    let kind = match (&stream.pcap, stream.packets.len()) {
        (Some(pcap), _) => format!("packets of {}", pcap.file.display()),
        (None, 0) => "made from headers".to_owned(),
        (None, count) => format!("{count} packets as hexadecimal digits"),
    };
    let flows = stream.flows.as_ref().map(|flows| {
        let flows = &flows.value;
        let count = flows.count.map_or("as many as the fields make".to_owned(), grouped);
        format!("{count}, {}, {}", flows.fields.word(), flows.order.word())
    });
    let varies = stream.layout.parts.iter();
    Ok(CheckedStream {
        stream: number,
        name: stream.name_or(number),
        from: stream.from,
        to: stream.to,
        rate: stream.rate.map(|rate| rate.to_string()),
        weight: stream.weight,
        pacing: stream.pacing.to_string(),
        frame_bytes: source.frame_bytes_mean(),
        frame_bytes_max: source.frame_bytes_max(),
        genome: stream.sizes.genome(),
        is_stamped: stream.stamp,
        awaits_gateway: stream.awaits_gateway,
        varies: varies
            .map(|part| Varying { field: part.name.clone(), values: values(part) })
            .collect(),
        flows,
        frames: groups.iter().flat_map(|group| group.json(stream)).collect(),
        kind,
        groups,
    })
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

    const TEXT: &str = "ports:
  - {memif: {socket: /nowhere/q.sock, id: 0}, ip4: [198.18.0.2], gateway: 198.18.0.1}
  - {memif: {socket: /nowhere/q.sock, id: 1}, ip4: [198.18.1.2]}
streams:
  - {from: 0, to: 1, frame: imix, layers: {ip4: {dst: {first: 20.0.0.0, count: 1000}}, udp: {}}}
  - {from: 1, to: 0, rate: 2.5Mpps, pacing: poisson, stamp: false, packets: [
      \"0200000000020200000000018100600a08004500001c0001000040114fd00a0000010a0000020400040000\
       0800000\",
      \"02000000000202000000000188b5\"]}";

    fn of(text: &str, frames: usize) -> Checked {
        let profile = Profile::parse(text, Path::new("x")).expect("a profile");
        Checked::new(&profile, frames).expect("checked")
    }

    #[test]
    fn what_a_profile_would_send_is_said_without_its_ports() {
        let said = of(&TEXT.replace("800000", "80000"), 3).text();
        insta::assert_snapshot!(said);
    }

    #[test]
    fn json_has_the_frames_that_are_really_made() {
        let checked = of(&TEXT.replace("800000", "80000"), 2);
        let json = serde_json::to_value(&checked).expect("JSON");
        let frames = &json["streams"][0]["frames"];
        let ip4 = |frame: usize| &frames[frame]["headers"][1];
        assert_eq!((&ip4(0)["header"], &ip4(0)["offset"]), (&"ip4".into(), &14.into()));
        assert_eq!(ip4(0)["fields"]["dst"], "20.0.0.0");
        assert_eq!(ip4(1)["fields"]["dst"], "20.0.0.1");
        assert_eq!(ip4(1)["varies"], serde_json::json!(["length", "checksum", "dst"]));
        let hex = frames[0]["hex"].as_str().expect("digits");
        assert_eq!(hex.len() as u64, 2 * frames[0]["bytes"].as_u64().expect("bytes"));
        let packets = &json["streams"][1];
        assert_eq!(packets["rate"], "2.5Mpps");
        assert_eq!(packets["frames"][0]["headers"][1]["fields"]["id"], 10);
        assert_eq!(packets["frames"][1]["payload_bytes"], 0);
    }

    #[test]
    fn no_frames_are_shown_when_none_are_wanted() {
        let checked = of(&TEXT.replace("800000", "80000"), 0);
        assert!(checked.streams.iter().all(|stream| stream.frames.is_empty()));
        assert!(!checked.text().contains("ethernet"));
    }
}
