//! `quiver-tg run`: measure once, show how it goes, print what came out.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};

use crate::control::{Host, Measured, Outcome, Places, read};
use crate::live::LiveTable;
use crate::request::Measure;
use crate::table::render;

/// How often the live table is drawn.
const DRAW_EVERY: Duration = Duration::from_secs(1);

/// Measure once. `top` and other programs reach it at `places` meanwhile.
pub fn run(
    profile: &Path,
    core: Option<usize>,
    request: &Measure,
    places: &Places,
    json: bool,
) -> anyhow::Result<()> {
    request.check().map_err(anyhow::Error::msg)?;
    let mut profile = read(profile).map_err(|refusal| anyhow!("{refusal}"))?;
    if let Some(core) = core {
        profile.cores = vec![core];
    }
    if profile.stateful.is_some() {
        return crate::stateful::run::run(&profile, request, json);
    }
    let mut host = Host::new()?;
    if let Err(error) = host.listen(places) {
        eprintln!("quiver-tg: {error:#}; `top` cannot reach this run");
    }
    host.load(profile)?;
    let number = host.station.start(request).map_err(|refusal| anyhow!("{refusal}"))?;
    let measured = watch(&mut host, number)?;
    let text = if json { serde_json::to_string_pretty(&measured)? + "\n" } else { render(&measured.report) };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

/// Until it ends. A signal stops it, and what it has come to is its result; a second one ends it at once.
fn watch(host: &mut Host, number: u64) -> anyhow::Result<Measured> {
    let mut table = LiveTable::new();
    let mut draw_at = Instant::now() + DRAW_EVERY;
    let mut signals = 0;
    loop {
        host.turn(draw_at.saturating_duration_since(Instant::now()));
        if host.was_interrupted() {
            signals += 1;
            if signals > 1 {
                bail!("the measurement was interrupted");
            }
            host.station.stop().map_err(|refusal| anyhow!("{refusal}"))?;
        }
        match host.station.outcome(number) {
            Outcome::Done(measured) => {
                table.clear();
                return Ok(measured.clone());
            }
            Outcome::Failed(why) => bail!("{why}"),
            Outcome::Unknown => bail!("the measurement was given up"),
            Outcome::UnderWay => {}
        }
        if Instant::now() >= draw_at {
            table.draw(&mut host.station);
            draw_at += DRAW_EVERY;
        }
    }
}
