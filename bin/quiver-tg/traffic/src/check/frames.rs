//! The first frames of a stream as they are really made, and what differs between them.

use anyhow::Context as _;
use quiver_core::memory::buffer::{BufferPool, DATA_BYTES_DEFAULT};
use quiver_core::memory::mapping::PageSize;
use serde::Serialize;
use serde_json::{Map, Value as Json, json};

use super::decode::{Found, decode, show};
use crate::frames::Source;
use crate::profile::Stream;
use crate::profile::header::FieldSpec;
use crate::profile::scalar::Kind;
use crate::stamp::{STAMP_BYTES, Stamp};

/// Frames that are made to see what varies, at least.
const LOOKED_AT: usize = 64;
/// Frames of a stream to print at most.
pub const PRINTED_MAX: usize = 1000;
/// Buffers for one frame of any length.
const BUFFERS: usize = 128;

/// A frame and its headers.
#[derive(Debug)]
pub struct Made {
    /// All of it.
    pub bytes: Vec<u8>,
    /// From the outside in.
    pub headers: Vec<Found>,
    /// Bytes behind the headers, before the stamp.
    pub payload_bytes: usize,
}

impl Made {
    fn new(bytes: Vec<u8>, is_stamped: bool) -> Made {
        let stamp_bytes = if is_stamped { STAMP_BYTES } else { 0 };
        let headers = decode(&bytes[..bytes.len().saturating_sub(stamp_bytes)]);
        let header_bytes = headers.last().map_or(0, |last| last.at + last.bytes);
        let payload_bytes = bytes.len().saturating_sub(header_bytes + stamp_bytes);
        Made { bytes, headers, payload_bytes }
    }

    fn names(&self) -> impl Iterator<Item = (&'static str, usize)> {
        self.headers.iter().map(|found| (found.spec.name, found.at))
    }
}

/// Frames one after the other that have the same headers.
#[derive(Debug)]
pub struct Alike {
    /// The number of the first, counted from 1.
    pub first: usize,
    /// Those to show.
    pub frames: Vec<Made>,
    /// By header, by field: does it vary?
    pub varies: Vec<Vec<bool>>,
}

/// The first frames of a stream, in groups that have the same headers.
///
/// # Errors
/// When the packet buffers run out.
pub fn first_frames(
    source: &mut Source,
    stream: &Stream,
    number: usize,
    count: usize,
) -> anyhow::Result<Vec<Alike>> {
    let count = count.min(PRINTED_MAX);
    let mut all =
        make(source, stream, number, count.max(LOOKED_AT))?.into_iter().enumerate().peekable();
    let mut groups = Vec::new();
    while let Some((first, made)) = all.next() {
        if first >= count {
            break;
        }
        let names: Vec<_> = made.names().collect();
        let mut frames = vec![made];
        while let Some((_, made)) = all.next_if(|(_, made)| made.names().eq(names.iter().copied()))
        {
            frames.push(made);
        }
        let varies = varying(stream, &frames);
        frames.truncate(count - first);
        groups.push(Alike { first: first + 1, frames, varies });
    }
    Ok(groups)
}

fn make(
    source: &mut Source,
    stream: &Stream,
    number: usize,
    count: usize,
) -> anyhow::Result<Vec<Made>> {
    let pool = BufferPool::new(BUFFERS, DATA_BYTES_DEFAULT, PageSize::Small).context("buffers")?;
    let mut cache = pool.cache();
    let mut frames = Vec::new();
    for sequence in 0..count as u64 {
        let mut packet = cache.packet().context("no buffer is left")?;
        let stamp = Stamp { measurement: 0, stream: number as u8, sequence, sent_ns: 0 };
        let is_whole = source.write(&mut packet, &stamp.encode(), DATA_BYTES_DEFAULT, &mut cache);
        let mut bytes = Vec::new();
        packet.copy_to(&mut bytes);
        cache.free(packet);
        if !is_whole {
            anyhow::bail!(
                "a frame of {} bytes has no room in {BUFFERS} buffers",
                source.frame_bytes_max()
            );
        }
        frames.push(Made::new(bytes, stream.stamp));
    }
    Ok(frames)
}

/// Fields that vary by the profile, and fields that differ between these frames: lengths and
/// checksums follow.
fn varying(stream: &Stream, frames: &[Made]) -> Vec<Vec<bool>> {
    let Some(first) = frames.first() else { return Vec::new() };
    let of_field = |header: usize, place: usize| {
        let (found, (field, value)) = (&first.headers[header], first.headers[header].fields[place]);
        let start = found.at * 8 + field.bit;
        let is_part = |part: &crate::profile::Part| {
            part.bit < start + field.bits && start < part.bit + part.bits
        };
        let differs = |made: &Made| {
            made.headers[header].fields.get(place).is_none_or(|other| other.1 != value)
        };
        stream.layout.parts.iter().any(is_part) || frames.iter().any(differs)
    };
    let of_header = |(header, found): (usize, &Found)| {
        (0..found.fields.len()).map(|place| of_field(header, place)).collect()
    };
    first.headers.iter().enumerate().map(of_header).collect()
}

/// A frame in JSON.
#[derive(Debug, Serialize)]
pub struct FrameJson {
    /// Its number, counted from 1.
    frame: usize,
    /// Without FCS.
    bytes: usize,
    hex: String,
    headers: Vec<HeaderJson>,
    payload_bytes: usize,
    stamp_bytes: usize,
}

#[derive(Debug, Serialize)]
struct HeaderJson {
    header: &'static str,
    /// Its first byte.
    offset: usize,
    bytes: usize,
    fields: Map<String, Json>,
    /// Options, segments.
    #[serde(skip_serializing_if = "String::is_empty")]
    rest: String,
    /// Names of the fields that are not the same in every frame.
    varies: Vec<&'static str>,
}

/// Digits of some bytes.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Alike {
    /// Its frames in JSON.
    pub fn json(&self, stream: &Stream) -> impl Iterator<Item = FrameJson> {
        let stamp_bytes = stream.stamp_bytes();
        self.frames.iter().enumerate().map(move |(place, made)| FrameJson {
            frame: self.first + place,
            bytes: made.bytes.len(),
            hex: hex(&made.bytes),
            headers: made
                .headers
                .iter()
                .zip(&self.varies)
                .map(|(found, varies)| json_of(made, found, varies))
                .collect(),
            payload_bytes: made.payload_bytes,
            stamp_bytes,
        })
    }
}

fn json_of(made: &Made, found: &Found, varies: &[bool]) -> HeaderJson {
    let value = |field: &FieldSpec, value: u128| match field.kind {
        Kind::Number | Kind::TcpFlags | Kind::ArpOperation => json!(value as u64),
        Kind::Mac | Kind::Ip4 | Kind::Ip6 => json!(show(found.spec, field, value)),
    };
    let varying = found.fields.iter().zip(varies).filter(|(_, varies)| **varies);
    HeaderJson {
        header: found.spec.name,
        offset: found.at,
        bytes: found.bytes,
        fields: found
            .fields
            .iter()
            .map(|(field, v)| (field.name.to_owned(), value(field, *v)))
            .collect(),
        rest: hex(found.tail(&made.bytes)),
        varies: varying.map(|((field, _), _)| field.name).collect(),
    }
}
