//! Mark and sweep: a client gives all routes of a table, all addresses or all configured neighbours
//! again, and those that it did not give go.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use quiver_control::{
    Args, Command, IpPrefix as Written, Job, Output, Progress, Refusal, Registry,
};
use quiver_control::{Sink, Step, Work};
use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::{Family, Fib};
use quiver_forwarding::neighbour::NeighbourState;
use quiver_tables::prefix::IpPrefix;

use super::{GROUP, busy, fib, table_of};
use crate::addresses::interfaces;
use crate::state::{IpState, with_ip};

/// How long a sweep works before the control loop goes on.
const SLICE: Duration = Duration::from_millis(5);
/// Routes between two looks at the clock.
const ROUTES_AT_ONCE: usize = 1024;

/// What was given again since a replacement began; none while there is none.
#[derive(Debug, Default)]
pub(crate) struct Replacing {
    addresses: Option<BTreeSet<(InterfaceId, IpAddr, u8)>>,
    neighbours: Option<BTreeSet<(InterfaceId, IpAddr)>>,
}

impl Replacing {
    /// An address was given. Is a replacement under way?
    pub fn give_address(&mut self, id: InterfaceId, address: IpAddr, length: u8) -> bool {
        self.addresses.as_mut().map(|given| given.insert((id, address, length))).is_some()
    }

    /// A neighbour was configured.
    pub fn give_neighbour(&mut self, on: InterfaceId, address: IpAddr) {
        self.neighbours.as_mut().map(|given| given.insert((on, address)));
    }
}

pub(super) fn register(registry: &mut Registry) {
    for (family, syntax, example) in [
        (
            Family::Ip4,
            "ip table replace begin|end|cancel [<table:u32>]",
            "ip table replace begin 10",
        ),
        (
            Family::Ip6,
            "ip6 table replace begin|end|cancel [<table:u32>]",
            "ip6 table replace end 10",
        ),
    ] {
        registry.command(
            Command::new(syntax)
                .group(GROUP)
                .help("Replace the static routes of a table without a gap: mark and sweep")
                .details(
                    "After `begin` add every route that is to be there. Its paths are the new \
                     ones, and routes that stay as they are forward without interruption. `end` \
                     removes the static routes that were not added, `cancel` keeps them. VPP: \
                     ip_table_replace_begin, ip_table_replace_end.",
                )
                .example(example)
                .run_or_begin(move |engine: &mut Engine, args| {
                    replace_routes(engine, args, family)
                }),
        );
    }
    registry.command(
        Command::new("set interface ip address-replace begin|end|cancel")
            .group("Interfaces")
            .help("Replace the addresses of all interfaces without a gap: mark and sweep")
            .details(
                "After `begin` give every address that is to be there; one that is there already \
                 is no error then. `end` takes away those that were not given, `cancel` keeps \
                 them. VPP: sw_interface_address_replace_begin, sw_interface_address_replace_end.",
            )
            .example("set interface ip address-replace begin")
            .run(|engine: &mut Engine, args| replace_addresses(engine, args)),
    );
    registry.command(
        Command::new("ip neighbor-replace begin|end|cancel")
            .also("set ip neighbor-replace begin|end|cancel")
            .group(GROUP)
            .help(
                "Replace the configured neighbours of both families without a gap: mark and sweep",
            )
            .details(
                "After `begin` give every neighbour that is to be there. `end` removes the \
                 configured ones that were not given, `cancel` keeps them. Learned neighbours \
                 stay. VPP: ip_neighbor_replace_begin, ip_neighbor_replace_end.",
            )
            .example("ip neighbor-replace begin")
            .run(|engine: &mut Engine, args| replace_neighbours(engine, args)),
    );
}

fn replace_routes(
    engine: &mut Engine,
    args: &Args<'_>,
    family: Family,
) -> Result<Work<Engine>, Refusal> {
    let table = table_of(engine, args, family, "table")?;
    if args.has("end") {
        if !fib(engine)?.is_replacing(family, table) {
            let error = quiver_forwarding::fib::FibError::ReplaceNotBegun(family);
            return Err(Refusal::of_table(engine, error));
        }
        let sweep = SweepJob { family, table, after: None, seen: 0, removed: 0, done: false };
        return Ok(Work::Begun(Box::new(sweep)));
    }
    let fib = engine.get_mut::<Fib>().ok_or_else(busy)?;
    let done = match args.has("begin") {
        true => fib.begin_replace(family, table),
        false => fib.cancel_replace(family, table),
    };
    done.map_err(|error| Refusal::of_table(engine, error))?;
    Ok(Work::Done(Output::none()))
}

/// Removes the stale routes of a table, a slice at a time.
struct SweepJob {
    family: Family,
    table: u32,
    after: Option<IpPrefix>,
    seen: u64,
    removed: usize,
    done: bool,
}

impl Job<Engine> for SweepJob {
    fn step(&mut self, engine: &mut Engine, sink: &mut dyn Sink) -> Result<Step, Refusal> {
        let deadline = Instant::now() + SLICE;
        while !self.done {
            let fib = engine.get_mut::<Fib>().ok_or_else(busy)?;
            let swept = fib.sweep_stale(self.family, self.table, self.after, ROUTES_AT_ONCE);
            let swept = swept.map_err(|error| {
                self.done = true;
                Refusal::of_table(engine, error)
            })?;
            (self.seen, self.removed) =
                (self.seen + swept.seen as u64, self.removed + swept.removed);
            (self.after, self.done) = (swept.next, swept.next.is_none());
            if !self.done && Instant::now() >= deadline {
                let what = "routes looked at".to_owned();
                sink.progress(Progress { what, done: self.seen, total: self.seen });
                return Ok(Step::Again);
            }
        }
        if let Some(fib) = engine.get_mut::<Fib>() {
            let _ = fib.cancel_replace(self.family, self.table); // the table may be gone meanwhile
        }
        Ok(Step::Done(removed(self.removed, "routes")))
    }

    fn must_end(&self) -> bool {
        !self.done
    }
}

fn removed(count: usize, what: &str) -> Output {
    Output::none().line(format!("{count} {what} removed"))
}

/// Begin, or take what was given, of one kind of things; `Ok(None)` when nothing is to be swept.
fn turn<T: Default>(
    args: &Args<'_>,
    given: &mut Option<T>,
    what: &str,
) -> Result<Option<T>, Refusal> {
    if args.has("begin") {
        if given.is_some() {
            return Err(Refusal::new(format!("{what} are being replaced already"))
                .remedy("end or cancel that first"));
        }
        *given = Some(T::default());
        return Ok(None);
    }
    let taken = given.take();
    if taken.is_none() {
        return Err(
            Refusal::new(format!("{what} are not being replaced")).remedy("begin that first")
        );
    }
    Ok(taken.filter(|_| args.has("end")))
}

fn replace_addresses(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let ip = engine.get_mut::<IpState>().ok_or_else(busy)?;
    let Some(given) = turn(args, &mut ip.replacing.addresses, "addresses")? else {
        return Ok(Output::none());
    };
    let mut stale = Vec::new();
    for (id, own) in &ip.interfaces {
        let given = own.ip4.iter().filter(|address| own.leased != Some(**address));
        let ip4 = given.map(|own| (IpAddr::V4(own.address()), own.length()));
        let ip6 = own.configured6().chain(&own.chosen_link_local);
        let ip6 = ip6.map(|own| (IpAddr::V6(own.address()), own.length()));
        stale.extend(ip4.chain(ip6).map(|(address, length)| (*id, address, length)));
    }
    stale.retain(|known| !given.contains(known));
    for (id, address, length) in &stale {
        interfaces::remove(engine, *id, Written { address: *address, length: *length })?;
    }
    Ok(removed(stale.len(), "addresses"))
}

fn replace_neighbours(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let done = with_ip(engine, |_, ip, fib| {
        let Some(given) = turn(args, &mut ip.replacing.neighbours, "neighbours")? else {
            return Ok(Ok(None));
        };
        let configured =
            fib.neighbours().iter().filter(|(.., known)| known.state == NeighbourState::Static);
        let stale: Vec<_> = configured
            .map(|(on, address, _)| (on, address))
            .filter(|known| !given.contains(known))
            .collect();
        let gone = stale.iter().try_for_each(|(on, address)| fib.remove_neighbour(*on, *address));
        Ok::<_, Refusal>(gone.map(|()| Some(stale.len())))
    })?;
    let count = done.map_err(|error| Refusal::of_table(engine, error))?;
    Ok(count.map_or_else(Output::none, |count| removed(count, "neighbours")))
}
