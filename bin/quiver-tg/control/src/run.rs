//! `quiver-tg run`: measure once, show the progress, print the result.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};

use crate::live::LiveTable;
use crate::{Endpoints, Host, Measured, Outcome, read};
use quiver_tg_measuring::request::{Measure, Rate};
use quiver_tg_traffic::profile::StreamRate;

/// How often the live table is drawn.
const DRAW_EVERY: Duration = Duration::from_secs(1);

/// The options of `quiver-tg run`.
pub struct Options {
    /// How fast.
    pub rate: StreamRate,
    /// How long counted frames are sent, seconds.
    pub duration_s: f64,
    /// How long frames are sent before that, seconds.
    pub warmup_s: f64,
    /// How long to wait for late frames, seconds.
    pub drain_s: f64,
    /// Core of the generator, instead of the profile's.
    pub core: Option<usize>,
    /// Print JSON.
    pub json: bool,
    /// With the histograms of times.
    pub histograms: bool,
}

impl Options {
    fn request(&self, rate: Rate) -> Measure {
        let usual = Measure::new(rate, self.duration_s);
        Measure {
            warmup_s: self.warmup_s,
            drain_s: self.drain_s,
            histograms: self.histograms,
            ..usual
        }
    }

    /// The rate, unless it depends on the length of frames.
    fn rate_without_frames(&self) -> Option<Rate> {
        match self.rate {
            StreamRate::Pps(rate) => Some(Rate::Pps(rate)),
            StreamRate::Max => Some(Rate::Max),
            StreamRate::L1(_) | StreamRate::L2(_) | StreamRate::Percent(_) => None,
        }
    }
}

/// Measure once. `top` and other programs reach it at `endpoints` meanwhile.
///
/// # Errors
/// When the request is impossible, the profile cannot be loaded, or the measurement fails or is
/// interrupted three times.
pub fn run(profile: &Path, options: &Options, endpoints: &Endpoints) -> anyhow::Result<()> {
    let simple = options.rate_without_frames();
    options.request(simple.unwrap_or(Rate::Max)).check().map_err(anyhow::Error::msg)?;
    let mut profile = read(profile).map_err(|refusal| anyhow!("{refusal}"))?;
    if let Some(core) = options.core {
        profile.cores = vec![core];
    }
    let mut host = Host::new()?;
    if let Err(error) = host.listen(endpoints) {
        eprintln!("quiver-tg: {error:#}; `top` cannot reach this run");
    }
    host.load(profile)?;
    let rate = host.session.rate(options.rate, None).map_err(|refusal| anyhow!("{refusal}"))?;
    let number =
        host.session.start(&options.request(rate)).map_err(|refusal| anyhow!("{refusal}"))?;
    let measured = watch(&mut host, number)?;
    let text = if options.json {
        serde_json::to_string_pretty(&measured)? + "\n"
    } else {
        measured.report.render()
    };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

/// Until it ends. A signal stops it, and what it has come to is its result; a second one stops the
/// wait for what is under way, too, and a third one ends it at once.
fn watch(host: &mut Host, number: u64) -> anyhow::Result<Measured> {
    let mut table = LiveTable::new();
    let mut draw_at = Instant::now() + DRAW_EVERY;
    let mut signals = 0;
    loop {
        host.turn(draw_at.saturating_duration_since(Instant::now()));
        if host.was_interrupted() {
            signals += 1;
            if signals > 2 {
                bail!("the measurement was interrupted");
            }
            host.session.stop().map_err(|refusal| anyhow!("{refusal}"))?;
        }
        match host.session.outcome(number) {
            Outcome::Done(measured) => {
                table.clear();
                return Ok(measured.clone());
            }
            Outcome::Failed(why) => bail!("{why}"),
            Outcome::Unknown => bail!("the measurement was given up"),
            Outcome::UnderWay => {}
        }
        if Instant::now() >= draw_at {
            table.draw(&mut host.session);
            draw_at += DRAW_EVERY;
        }
    }
}
