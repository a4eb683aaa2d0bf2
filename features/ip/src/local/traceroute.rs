//! `traceroute`: echo requests of few hops, and who says that they have died on the way.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use quiver_control::{Job, Output, Refusal, Sink, Step};
use quiver_core::{Engine, InterfaceId};
use quiver_wire::{icmp4, icmp6};
use serde_json::{Value, json};

use crate::local::ping::{Ends, error_words};
use crate::notifications::Answer;

/// How often answers are looked for while some are missing.
const LOOK: Duration = Duration::from_millis(2);

/// What is asked for.
pub(crate) struct Wish {
    /// The way to whom.
    pub address: IpAddr,
    /// From which interface.
    pub source: Option<InterfaceId>,
    /// By the routes of which table.
    pub table: Option<u32>,
    /// Hops at most.
    pub hops_max: u8,
    /// Probes to each.
    pub probes: usize,
    /// How long an answer is waited for, seconds.
    pub wait_s: f64,
    /// Bytes of data in a probe.
    pub size_bytes: usize,
}

/// What became of a probe.
#[derive(Clone, Copy)]
struct Probe {
    sequence: u16,
    sent_ns: u64,
    /// Who answered, after how long, and what.
    answer: Option<(IpAddr, u64, Answer)>,
}

/// A traceroute under way.
pub(crate) struct Traceroute {
    ends: Ends,
    wish: Wish,
    hop: u8,
    sequence: u16,
    probes: Vec<Probe>,
    /// The hops that are done.
    told: Vec<Value>,
    is_over: bool,
}

/// See that the destination can be reached, and choose the source.
pub(crate) fn begin(engine: &mut Engine, wish: Wish) -> Result<Traceroute, Refusal> {
    let ends = Ends::open(engine, wish.address, wish.source, wish.table, "traceroute")?;
    let (probes, told) = (Vec::new(), Vec::new());
    Ok(Traceroute { ends, wish, hop: 0, sequence: 0, probes, told, is_over: false })
}

impl Traceroute {
    /// Send the probes of the next hop.
    fn send(&mut self, engine: &mut Engine) {
        self.hop += 1;
        self.probes.clear();
        let data: Vec<u8> = (0..self.wish.size_bytes).map(|place| place as u8).collect();
        let mut packets = Vec::new();
        for _ in 0..self.wish.probes {
            self.sequence = self.sequence.wrapping_add(1);
            packets.extend(self.ends.request(self.sequence, &data, false, Some(self.hop)));
            self.probes.push(Probe {
                sequence: self.sequence,
                sent_ns: engine.now_ns(),
                answer: None,
            });
        }
        self.ends.send(engine, packets);
    }

    /// Put what has come back to the probes that it is about.
    fn hear(&mut self) {
        for arrived in self.ends.arrived() {
            let probe = self.probes.iter_mut().find(|probe| probe.sequence == arrived.sequence);
            if let Some(probe) = probe.filter(|probe| probe.answer.is_none()) {
                let after_ns = arrived.at_ns.saturating_sub(probe.sent_ns);
                probe.answer = Some((arrived.from, after_ns, arrived.answer));
            }
        }
    }

    /// Say who answered at this hop.
    fn report(&mut self, sink: &mut dyn Sink) {
        let mut line = format!("{:>2}", self.hop);
        let mut speaker = None;
        for probe in &self.probes {
            let Some((from, after_ns, answer)) = probe.answer else {
                line += "  *";
                continue;
            };
            if speaker.replace(from) != Some(from) {
                let _ = write!(line, "  {from}");
            }
            let _ = write!(line, "  {:.3} ms", after_ns as f64 / 1e6);
            if let Some(words) = end_words(from, answer) {
                let _ = write!(line, " ({words})");
            }
        }
        sink.line(&line);
        let answers: Vec<Value> = self.probes.iter().map(probe_json).collect();
        self.told.push(json!({ "hop": self.hop, "probes": answers }));
        let ends = |probe: &Probe| {
            probe.answer.is_some_and(|(.., answer)| !is_time_exceeded(answer, self.wish.address))
        };
        self.is_over = self.hop >= self.wish.hops_max || self.probes.iter().any(ends);
    }

    fn summary(&self) -> Output {
        let reached =
            self.probes.iter().any(|p| p.answer.is_some_and(|(.., a)| a == Answer::Reply));
        let text = match reached {
            true => format!("{} answers, {} hops away", self.wish.address, self.hop),
            false => format!("{} did not answer within {} hops", self.wish.address, self.hop),
        };
        Output::both(
            text,
            json!({
                "address": self.wish.address, "source": self.ends.from, "reached": reached,
                "hops": self.told,
            }),
        )
    }
}

/// Does a router on the way say that the probe died there, as it was meant to?
fn is_time_exceeded(answer: Answer, address: IpAddr) -> bool {
    let kind =
        if address.is_ipv4() { icmp4::kind::TIME_EXCEEDED } else { icmp6::kind::TIME_EXCEEDED };
    matches!(answer, Answer::Error(error) if error.kind == kind)
}

/// An error that ends the way, in words.
fn end_words(from: IpAddr, answer: Answer) -> Option<String> {
    match answer {
        Answer::Error(error) if !is_time_exceeded(answer, from) => {
            Some(error_words(from, error.kind, error.code))
        }
        _ => None,
    }
}

fn probe_json(probe: &Probe) -> Value {
    match probe.answer {
        Some((from, after_ns, answer)) => json!({
            "from": from, "round_trip_ms": after_ns as f64 / 1e6,
            "reply": answer == Answer::Reply,
            "text": end_words(from, answer),
        }),
        None => json!({ "from": null, "round_trip_ms": null, "reply": false, "text": null }),
    }
}

impl Job<Engine> for Traceroute {
    fn step(&mut self, engine: &mut Engine, sink: &mut dyn Sink) -> Result<Step, Refusal> {
        if self.hop == 0 {
            sink.line(&format!(
                "traceroute to {} from {}: {} hops at most, {} bytes of data",
                self.wish.address, self.ends.from, self.wish.hops_max, self.wish.size_bytes
            ));
            self.send(engine);
        }
        self.hear();
        let wait_ns = (self.wish.wait_s * 1e9) as u64;
        let is_late = |probe: &Probe| engine.now_ns().saturating_sub(probe.sent_ns) >= wait_ns;
        if self.probes.iter().all(|probe| probe.answer.is_some() || is_late(probe)) {
            self.report(sink);
            if self.is_over {
                return Ok(Step::Done(self.summary()));
            }
            self.send(engine);
        }
        Ok(Step::Until(Instant::now() + LOOK))
    }
}
