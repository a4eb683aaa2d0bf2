//! From a rate as people write it to frames a second: of one stream, or of all that share the rate
//! of the whole.

use crate::ordering::Sending;
use crate::request::Rate;
use quiver_tg_traffic::profile::StreamRate;
use quiver_tg_traffic::profile::no_stream;
use quiver_tg_traffic::profile::quantity::{FCS_BYTES, RATE_PPS_MAX, WIRE_OVERHEAD_BYTES};

/// Frames a second of one stream, or of all together. A percentage of all together loads the line
/// that has most to carry of them to that share.
///
/// # Errors
/// When there is no such stream, or a rate in per cent needs a line rate that the profile does not
/// give; the message says what would be right.
pub fn in_frames(
    sendings: &[Sending],
    rate: StreamRate,
    stream: Option<usize>,
) -> Result<Rate, String> {
    rate.check()?;
    let found = match (rate, stream) {
        (StreamRate::Pps(pps), _) => return Ok(Rate::Pps(pps)),
        (StreamRate::Max, _) => return Ok(Rate::Max),
        (_, Some(stream)) => {
            let one = sendings.get(stream).ok_or_else(|| no_stream(stream, sendings.len()))?;
            rate.pps(one.frame_bytes, one.line_rate_bps)?
        }
        (StreamRate::Percent(percent), None) => Some(of_lines(sendings, percent)?),
        (StreamRate::L1(_) | StreamRate::L2(_), None) => rate.pps(mean_bytes(sendings)?, None)?,
    };
    match found {
        Some(pps) if pps > RATE_PPS_MAX => {
            Err(format!("that is {pps:.0} frames a second; the most is {RATE_PPS_MAX}"))
        }
        Some(pps) => Ok(Rate::Pps(pps)),
        None => Ok(Rate::Max),
    }
}

/// The streams that share the rate of the whole, and their weights together.
fn sharing(sendings: &[Sending]) -> Result<(Vec<&Sending>, f64), String> {
    let all: Vec<&Sending> = sendings.iter().filter(|sending| sending.rate.is_none()).collect();
    let weight = all.iter().map(|sending| sending.weight).sum();
    if all.is_empty() {
        return Err("every stream has a rate of its own; name one to change it".to_owned());
    }
    Ok((all, weight))
}

/// Bytes of a frame on average over all that share the rate.
fn mean_bytes(sendings: &[Sending]) -> Result<f64, String> {
    let (all, weight) = sharing(sendings)?;
    Ok(all.iter().map(|sending| sending.weight * sending.frame_bytes).sum::<f64>() / weight)
}

/// So much of the line that has most to carry.
fn of_lines(sendings: &[Sending], percent: f64) -> Result<f64, String> {
    let (all, weight) = sharing(sendings)?;
    let mut slowest = f64::INFINITY;
    for port in all.iter().map(|sending| sending.from) {
        let on_port = || all.iter().filter(|sending| sending.from == port);
        let line = on_port().find_map(|sending| sending.line_rate_bps);
        let line = line.ok_or_else(|| {
            format!(
                "a rate in per cent needs the `line_rate` of port {port}, like 10G, in the profile"
            )
        })?;
        let bits = |sending: &&&Sending| {
            sending.weight / weight * (sending.frame_bytes + FCS_BYTES + WIRE_OVERHEAD_BYTES) * 8.0
        };
        // Bits on this port's wire for each frame of the whole.
        let bits_per_frame: f64 = on_port().map(|sending| bits(&sending)).sum();
        slowest = slowest.min(line * percent / 100.0 / bits_per_frame);
    }
    Ok(slowest)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use quiver_tg_traffic::frames::Source;
    use quiver_tg_traffic::profile::Profile;

    fn sendings(lines: [&str; 2], streams: &str) -> Vec<Sending> {
        let port = |number: usize| {
            let line = lines[number];
            let line = if line.is_empty() { String::new() } else { format!(", line_rate: {line}") };
            format!(
                "{{tap: {{name: t{number}}}, ip4: [10.0.{number}.1], gateway_mac: \
                 \"02:00:00:00:00:09\"{line}}}"
            )
        };
        let text = format!("ports: [{}, {}]\nstreams: {streams}", port(0), port(1));
        let profile = Profile::parse(&text, Path::new("x")).expect("a profile");
        let of = |stream: &quiver_tg_traffic::profile::Stream| {
            Sending::new(&profile, stream, &Source::new(stream).expect("a source"))
                .expect("a sending")
        };
        profile.streams.iter().map(|stream| of(&stream.value)).collect()
    }

    fn pps(sendings: &[Sending], text: &str, stream: Option<usize>) -> f64 {
        match in_frames(sendings, StreamRate::read(text).expect(text), stream).expect(text) {
            Rate::Pps(pps) => pps,
            Rate::Max => f64::INFINITY,
        }
    }

    #[test]
    fn the_rate_of_the_whole_is_divided_by_what_its_frames_weigh() {
        // 88 B and 176 B on a wire, 68 B and 156 B with FCS.
        let two = sendings(
            ["", ""],
            "[{from: 0, to: 1, frame: 64, weight: 3}, {from: 1, to: 0, frame: 152}]",
        );
        assert_eq!(pps(&two, "1kpps", None), 1000.0);
        assert_eq!(pps(&two, "880Mbps", None).round(), 1e6);
        assert_eq!(pps(&two, "720MbpsL2", None).round(), 1e6);
        assert_eq!(pps(&two, "704Mbps", Some(0)).round(), 1e6);
        assert_eq!(pps(&two, "1408Mbps", Some(1)).round(), 1e6);
        assert_eq!(pps(&two, "max", None), f64::INFINITY);
    }

    #[test]
    fn per_cent_are_of_the_line_that_has_most_to_carry() {
        let streams = "[{from: 0, to: 1, frame: 64}, {from: 1, to: 0, frame: 64}]";
        let same = sendings(["704M", "704M"], streams);
        assert_eq!(pps(&same, "50%", None).round(), 1e6);
        assert_eq!(pps(&same, "50%", Some(1)).round(), 5e5);
        let other = sendings(["704M", "7.04G"], streams);
        assert_eq!(pps(&other, "100%", None).round(), 2e6);
        let unstated = sendings(["704M", ""], streams);
        let refused =
            in_frames(&unstated, StreamRate::Percent(50.0), None).expect_err("no line rate");
        assert!(refused.contains("`line_rate` of port 1"), "{refused}");
    }

    #[test]
    fn streams_with_a_rate_of_their_own_are_no_part_of_the_whole() {
        let streams = "[{from: 0, to: 1, frame: 64, rate: 5}, {from: 0, to: 1, frame: 152}]";
        assert_eq!(pps(&sendings(["", ""], streams), "1408Mbps", None).round(), 1e6);
        let own = sendings(["", ""], "[{from: 0, to: 1, rate: 5}]");
        let refused = in_frames(&own, StreamRate::L1(1e9), None).expect_err("nobody shares it");
        assert!(refused.contains("rate of its own"), "{refused}");
        assert!(
            in_frames(&own, StreamRate::L1(1e9), Some(1))
                .expect_err("no stream")
                .contains("0 to 0")
        );
    }
}
