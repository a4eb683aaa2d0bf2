//! Other streams for a generator whose ports stay as they are: links stay up, neighbours stay
//! known.

use std::sync::Arc;

use anyhow::{Context as _, bail};

use crate::generator::{Generator, PortParts};
use crate::neighbours::Gateway;
use crate::surroundings::Surroundings;
use quiver_tg_traffic::frames::Source;
use quiver_tg_traffic::profile::{Profile, Stream};

impl<S: Surroundings> Generator<S> {
    /// Send the streams of this profile, which [has the ports](Profile::has_ports_of) of the one
    /// before, from the next measurement on. An error changes nothing.
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
        let deadline = self.answer_deadline();
        let mut waiting: Vec<usize> = (0..self.ports.len()).collect();
        loop {
            waiting.retain(|port| self.ports[*port].transmitter.take_sources().is_none());
            if waiting.is_empty() {
                return Ok(());
            }
            self.answer_by(deadline)?;
        }
    }
}

/// Who is asked for the MAC address that streams of a port wait for, and their places among the
/// port's streams.
pub(crate) fn gateway(
    profile: &Profile,
    number: usize,
    parts: &PortParts,
) -> Option<(Gateway, Vec<usize>)> {
    let streams = profile.streams.iter().map(|stream| &stream.value);
    let of_port = streams.filter(|stream: &&Stream| stream.from == number);
    let awaiting = of_port.enumerate().filter(|(_, stream)| stream.awaits_gateway);
    let awaiting: Vec<usize> = awaiting.map(|(place, _)| place).collect();
    let (address, question) = (profile.ports[number].value.gateway?, parts.question.clone()?);
    let gateway = || Gateway::new(address, question, Arc::clone(&parts.heard));
    (!awaiting.is_empty()).then(|| (gateway(), awaiting))
}
