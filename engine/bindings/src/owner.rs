//! What the worker that makes sessions of bindings does: it binds a host's end, and makes and ends
//! sessions. What is logged of it, and why a packet dies, is its translator's.

use std::sync::atomic::AtomicU64;

use quiver_tables::sessions::{SessionError, SessionsWriter};

use crate::bindings::{Binding, Bindings, Limit, inside_key, outside_key};
use crate::ports::{OutOfPorts, PoolAddress, Ports, Wanted};
use crate::{End, Flags};

/// Why there is no binding, or no session.
#[derive(Debug)]
pub enum NoSession {
    /// Every port that the host may have is in use.
    Ports(OutOfPorts),
    /// The table of bindings does not take what the session needs.
    Binding(SessionError),
    /// The table of sessions does not take it.
    Session(SessionError),
}

/// Where the external end of a host's comes from.
#[derive(Clone, Copy, Debug)]
pub enum External<'p> {
    /// From this pool; `has_ports`: the protocol has ports.
    Pool {
        /// Its addresses.
        pool: &'p [PoolAddress],
        /// Of a protocol without ports, an address serves one host.
        has_ports: bool,
    },
    /// It is this one.
    Own(End),
}

impl Bindings {
    /// Has the subscriber of a host as many sessions as it may have?
    pub fn is_at_limit(&self, limit: Option<Limit>, host: u128, table: u32) -> bool {
        limit.is_some_and(|limit| self.used(limit, host, table) >= limit.sessions)
    }

    /// The binding of a host's end, made when there is none: its number, and is it new?
    ///
    /// # Errors
    /// No port is left, or there is no room.
    pub fn bind_host(
        &mut self,
        ports: &mut Ports,
        wanted: Wanted,
        external: External<'_>,
    ) -> Result<(u32, bool), NoSession> {
        let Wanted { host, port, protocol, table, outside_table, .. } = wanted;
        let inside = inside_key(host, port, protocol, table);
        if let Some(number) = self.read.number(&inside) {
            return Ok((number, false));
        }
        let external = match external {
            External::Own(end) => end,
            External::Pool { pool, has_ports } => {
                let end = ports.external_end(&self.read, pool, wanted, has_ports);
                end.map_err(NoSession::Ports)?
            }
        };
        let outside = outside_key(external, protocol, outside_table);
        let number = self.bind(inside, outside, false).map_err(NoSession::Binding)?;
        Ok((number, true))
    }

    /// Make a session of a binding with a remote address; `words` are its words with its flags.
    /// Where there is no room for it, `ended` gets the binding that goes with its last session.
    ///
    /// # Errors
    /// There is no room.
    pub fn make_session<const W: usize, const N: usize>(
        &mut self,
        writer: &mut SessionsWriter<W, N>,
        (binding, remote): (u32, u128),
        limit: Option<Limit>,
        words: impl FnOnce(Flags) -> [u64; W],
        ended: impl FnOnce(Binding<'_>),
    ) -> Result<u32, NoSession> {
        let flags = self.begin(binding, remote, limit).map_err(NoSession::Binding)?;
        writer.insert(words(flags)).map_err(|error| {
            self.end(binding, remote, flags, ended);
            NoSession::Session(error)
        })
    }

    /// End the sessions for which `ends` holds among `places` from `first` on; it releases the
    /// bindings of one that ends. The clock hand stays where it is: it may turn before the next
    /// places are looked at.
    pub fn end_sessions<const W: usize, const N: usize>(
        &mut self,
        writer: &mut SessionsWriter<W, N>,
        (first, places): (u32, u32),
        mut ends: impl FnMut(&mut Bindings, u32, &[AtomicU64; W]) -> bool,
    ) {
        for number in first..first.saturating_add(places) {
            let ends = writer.is_live(number) && ends(self, number, writer.objects().get(number));
            if ends {
                writer.remove(number);
            }
        }
        self.collect(writer);
    }

    /// As [`end_sessions`](Self::end_sessions), of the next places of the clock hand; `ends` hears
    /// of all of them. How many ended.
    pub fn turn_sessions<const W: usize, const N: usize>(
        &mut self,
        writer: &mut SessionsWriter<W, N>,
        places: usize,
        mut ends: impl FnMut(&mut Bindings, u32, &[AtomicU64; W]) -> bool,
    ) -> usize {
        writer.turn(places, |number, words| !ends(self, number, words))
    }

    /// Use again what no worker sees any more.
    pub fn collect<const W: usize, const N: usize>(&mut self, writer: &mut SessionsWriter<W, N>) {
        writer.collect();
        self.writer.collect();
    }
}
