//! Other streams for a generator whose ports stay as they are: links stay up, neighbours stay
//! known.

use anyhow::{Context as _, bail};

use super::assembly::{Generator, gateway};
use crate::surroundings::Surroundings;
use quiver_tg_traffic::frames::Source;
use quiver_tg_traffic::profile::Profile;

impl<S: Surroundings> Generator<S> {
    /// Send the streams of this profile, which [has the ports](Profile::has_ports_of) of the one
    /// before, from the next measurement on.
    ///
    /// # Errors
    /// When a measurement is under way, a file of values or packets cannot be read, a frame does
    /// not fit a port, or the worker does not answer. Then nothing has changed.
    pub fn set_streams(&mut self, profile: &Profile) -> anyhow::Result<()> {
        if self.running.is_some() {
            bail!("a measurement is under way");
        }
        let made = Self::make_streams(profile)?;
        for (number, sources) in made.sources.iter().enumerate() {
            let id = self.ports[number].interface;
            self.check_frames(id, &profile.ports[number].value, sources)
                .with_context(|| format!("port {number}"))?;
        }
        self.own = self.surroundings.own_share(&mut self.engine, profile);
        self.exchange_sources(made.sources)?;
        (self.streams, self.sendings) = (made.facts, made.sendings);
        self.burst = profile.burst.as_ref().map(|burst| burst.value);
        self.link_timeout_s = profile.link_timeout_s;
        for (number, parts) in self.ports.iter_mut().enumerate() {
            parts.gateway = gateway(profile, number, parts);
        }
        Ok(())
    }

    /// Let every port make the frames of these streams; what made those before goes.
    fn exchange_sources(&mut self, sources: Vec<Vec<Source>>) -> anyhow::Result<()> {
        for (port, sources) in self.ports.iter_mut().zip(sources) {
            port.transmitter.set_sources(sources);
        }
        let deadline = self.worker_deadline();
        let mut waiting: Vec<usize> = (0..self.ports.len()).collect();
        loop {
            waiting.retain(|port| self.ports[*port].transmitter.take_sources().is_none());
            if waiting.is_empty() {
                return Ok(());
            }
            self.wait_for_worker(deadline)?;
        }
    }
}
