//! What the golden frames of a file leave to the transmitting device: super-frames and open
//! checksums, in a file beside it. The format is described in this crate's README.

use std::path::Path;

use quiver_core::memory::buffer::Offload;
use quiver_offload::segment::{SEGMENT_TCP4, SEGMENT_TCP6, SEGMENT_UDP, Segmenter};
use serde_json::Value;

/// A frame, and what it leaves to the device.
pub type GoldenFrame = (Vec<u8>, Option<Offload>);

/// What the name of a file ends with that says it of the frames of `NN-in.IF.pcap`, instead of
/// `pcap`.
pub const ENDING: &str = "offloads.json";

/// Frames with what the file beside `pcap` says of them; without one, they leave nothing.
pub fn beside(pcap: &Path, frames: Vec<Vec<u8>>) -> Result<Vec<GoldenFrame>, String> {
    let mut all: Vec<GoldenFrame> = frames.into_iter().map(|bytes| (bytes, None)).collect();
    let path = pcap.with_extension(ENDING);
    if !path.exists() {
        return Ok(all);
    }
    let at = |what: String| format!("{}: {what}", path.display());
    let text = std::fs::read_to_string(&path).map_err(|error| at(error.to_string()))?;
    let said: Value = serde_json::from_str(&text).map_err(|error| at(error.to_string()))?;
    let said = said.as_object().ok_or_else(|| at("an object is expected".to_owned()))?;
    for (number, left) in said {
        let index = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let frame = index.and_then(|index| all.get_mut(index));
        let (bytes, offload) = frame.ok_or_else(|| at(format!("there is no frame {number}")))?;
        *offload = Some(of(left, bytes).map_err(|what| at(format!("frame {number}: {what}")))?);
    }
    Ok(all)
}

/// What a frame leaves to the device.
fn of(left: &Value, bytes: &[u8]) -> Result<Offload, String> {
    let number = |key: &str| {
        left[key].as_u64().and_then(|n| u16::try_from(n).ok()).ok_or(format!("{key} is missing"))
    };
    let from_end = |at: usize| bytes.len().checked_sub(at).and_then(|n| u16::try_from(n).ok());
    let Some(kind) = left["segments"].as_str() else {
        let start = usize::from(number("checksum-start")?);
        return Ok(Offload {
            checksum_bytes: from_end(start).ok_or("checksum-start is behind its end")?,
            checksum_offset: number("checksum-offset")?,
            ..Offload::default()
        });
    };
    let segment_kind = match kind {
        "tcp4" => SEGMENT_TCP4,
        "tcp6" => SEGMENT_TCP6,
        "udp" => SEGMENT_UDP,
        other => return Err(format!("segments of {other}: tcp4, tcp6 and udp are known")),
    };
    let segment_bytes = number("segment-bytes")?;
    let no_segments = || format!("no {kind} segments of {segment_bytes} bytes can be made of it");
    let segmenter = Segmenter::new(bytes, bytes.len(), segment_kind, segment_bytes);
    segmenter.and_then(|segmenter| segmenter.offload(segment_kind)).ok_or_else(no_segments)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A TCP header and 100 bytes of payload behind IPv4.
    fn frame() -> Vec<u8> {
        let mut bytes = vec![0; 12];
        bytes.extend([8, 0, 0x45, 0, 0, 140, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        bytes.extend([0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x10, 0, 0, 0, 0, 0, 0]);
        bytes.resize(bytes.len() + 100, 0);
        bytes
    }

    #[test]
    fn a_super_frame_and_an_open_checksum_are_understood() {
        let segments = of(&json!({"segments": "tcp4", "segment-bytes": 40}), &frame()).expect("ok");
        assert_eq!((segments.segment_bytes, segments.payload_bytes), (40, 100));
        assert_eq!((segments.checksum_bytes, segments.checksum_offset), (120, 16));
        let open = of(&json!({"checksum-start": 34, "checksum-offset": 16}), &frame()).expect("ok");
        assert_eq!((open.checksum_bytes, open.checksum_offset, open.segment_bytes), (120, 16, 0));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for left in [
            json!({}),
            json!({"segments": "tcp6", "segment-bytes": 40}),
            json!({"segments": "tcp4"}),
            json!({"segments": "sctp", "segment-bytes": 40}),
            json!({"checksum-start": 999, "checksum-offset": 16}),
        ] {
            assert!(of(&left, &frame()).is_err(), "{left}");
        }
    }
}
