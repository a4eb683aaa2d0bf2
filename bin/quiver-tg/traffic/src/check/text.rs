//! A checked profile as text: the frames as one reads a packet, what varies in columns.

use std::fmt::Write as _;
use std::net::Ipv6Addr;

use super::decode::{Found, is_telling, show};
use super::frames::{Alike, hex};
use super::{Checked, CheckedStream};
use crate::profile::header::SEGMENTS;
use crate::stamp::STAMP_BYTES;

/// Columns of text; what is longer goes on in the next line.
const WIDTH: usize = 96;
/// Before what is said of a header.
const MARGIN: usize = 12;
/// Bytes of options, segments or an unknown frame to print at most.
const REST_BYTES_MAX: usize = 48;

/// All of it.
pub fn render(checked: &Checked) -> String {
    let mut text = String::new();
    for port in &checked.ports {
        let gateway =
            port.gateway.as_ref().map_or(String::new(), |gateway| format!(", gateway {gateway}"));
        let _ = writeln!(text, "port {}    {}, {}{gateway}", port.port, port.device, port.mac);
    }
    if let Some(transactions) = &checked.transactions {
        let _ = writeln!(text, "transactions {transactions}");
    }
    for stream in &checked.streams {
        stream_in_words(&mut text, stream);
    }
    text
}

fn stream_in_words(text: &mut String, stream: &CheckedStream) {
    let name = match &stream.name {
        name if *name == stream.stream.to_string() => String::new(),
        name => format!("{name}, "),
    };
    let rate = match &stream.rate {
        Some(rate) => format!("rate {rate}"),
        None => format!("weight {}", stream.weight),
    };
    let _ = writeln!(
        text,
        "\nstream {}  {name}port {} -> {}, {rate}, {}, {}",
        stream.stream, stream.from, stream.to, stream.pacing, stream.kind
    );
    let sizes = match stream.frame_bytes_max {
        most if stream.frame_bytes == most as f64 => format!("{most} B"),
        most => format!("{:.1} B on average, {most} B at most", stream.frame_bytes),
    };
    let genome = stream.genome.as_ref().map_or(String::new(), |genome| format!(", {genome}"));
    let _ = writeln!(text, "  frames    {sizes} without FCS{genome}");
    for varying in &stream.varies {
        let _ = writeln!(text, "  varies    {}: {}", varying.field, varying.values);
    }
    if let Some(flows) = &stream.flows {
        let _ = writeln!(text, "  flows     {flows}");
    }
    for group in &stream.groups {
        frames_in_words(text, stream, group);
    }
}

/// Lines of a group of frames.
enum Line {
    /// The same in every frame.
    Same(&'static str, String),
    /// Of a field that varies: its name, and its value in each frame.
    Varies(&'static str, &'static str, Vec<String>),
}

/// One group of frames: what is the same once, what varies (`*`) in a column for each frame.
fn frames_in_words(text: &mut String, stream: &CheckedStream, group: &Alike) {
    let Some(first) = group.frames.first() else { return };
    let last = group.first + group.frames.len() - 1;
    let which = match last {
        last if last == group.first => format!("frame {last}"),
        last => format!("frames {} to {last}, side by side; * varies", group.first),
    };
    let _ = writeln!(text, "  {which}");
    let sizes = group.frames.iter().map(|made| made.bytes.len());
    let mut lines = vec![bytes("bytes", sizes)];
    for (place, found) in first.headers.iter().enumerate() {
        header(&mut lines, stream, group, place, found);
    }
    if group.frames.iter().any(|made| made.payload_bytes > 0) {
        lines.push(bytes("payload", group.frames.iter().map(|made| made.payload_bytes)));
    }
    if stream.is_stamped {
        lines.push(Line::Same(
            "stamp",
            format!("{STAMP_BYTES} B: measurement, stream, number, time"),
        ));
    }
    align(text, &lines, group.frames.len());
}

/// Write lines, the values of each frame below one another.
fn align(text: &mut String, lines: &[Line], frames: usize) {
    let (mut names, mut widths) = (0, vec![0; frames]);
    for line in lines {
        if let Line::Varies(_, name, values) = line {
            names = names.max(name.len());
            widths
                .iter_mut()
                .zip(values)
                .for_each(|(width, value)| *width = (*width).max(value.len()));
        }
    }
    for line in lines {
        let _ = match line {
            Line::Same(head, words) => {
                writeln!(text, "{}", format!("    {head:<MARGIN$}{words}").trim_end())
            }
            Line::Varies(head, name, values) => {
                let columns =
                    values.iter().zip(&widths).map(|(value, width)| format!("  {value:<width$}"));
                let columns: String = columns.collect();
                writeln!(text, "  * {head:<MARGIN$}{name:<names$}{}", columns.trim_end())
            }
        };
    }
}

/// Bytes of a part in every frame, once if they are equal.
fn bytes(name: &'static str, values: impl Iterator<Item = usize>) -> Line {
    let values: Vec<usize> = values.collect();
    match values.split_first() {
        Some((one, others)) if others.iter().all(|other| other == one) => {
            Line::Same(name, format!("{one} B"))
        }
        _ => Line::Varies(name, "", values.iter().map(usize::to_string).collect()),
    }
}

fn header(
    lines: &mut Vec<Line>,
    stream: &CheckedStream,
    group: &Alike,
    place: usize,
    found: &Found,
) {
    let varies = |field: usize| group.varies[place][field];
    let printed = |header: &Found, field: usize| {
        let (spec, value) = header.fields[field];
        if place == 0 && stream.awaits_gateway && spec.name == "dst" {
            return "(resolved at start)".to_owned();
        }
        show(found.spec, spec, value)
    };
    let is_shown = |field: &usize| {
        let (spec, value) = found.fields[*field];
        !varies(*field) && is_telling(spec, value)
    };
    let constants = (0..found.fields.len()).filter(is_shown);
    let mut words: Vec<String> = constants
        .map(|field| format!("{} {}", found.fields[field].0.name, printed(found, field)))
        .collect();
    let rest = group.frames.first().map_or(&[][..], |made| found.tail(&made.bytes));
    if !rest.is_empty() {
        words.push(format!("{} {}", rest_name(found), rest_in_words(found, rest)));
    }
    let mut line = String::new();
    let mut head = found.spec.name;
    for word in words {
        if !line.is_empty() && line.len() + word.len() > WIDTH {
            lines.push(Line::Same(std::mem::take(&mut head), std::mem::take(&mut line)));
        }
        line += &word;
        line += "  ";
    }
    lines.push(Line::Same(head, line));
    for field in (0..found.fields.len()).filter(|field| varies(*field)) {
        let values = group.frames.iter().map(|made| printed(&made.headers[place], field)).collect();
        lines.push(Line::Varies("", found.fields[field].0.name, values));
    }
}

fn rest_name(found: &Found) -> &'static str {
    found.spec.tail.map_or("rest", |(name, _)| name)
}

/// Segments as addresses in the order of travel; anything else as digits.
fn rest_in_words(found: &Found, rest: &[u8]) -> String {
    let (chunks, left) = rest.as_chunks::<16>();
    if rest_name(found) == SEGMENTS && left.is_empty() {
        let all: Vec<String> =
            chunks.iter().rev().map(|octets| Ipv6Addr::from(*octets).to_string()).collect();
        return all.join(", ");
    }
    let more = if rest.len() > REST_BYTES_MAX { "…" } else { "" };
    hex(&rest[..rest.len().min(REST_BYTES_MAX)]) + more
}
