//! `ip4-punt`, `ip6-punt`: packets that are the host's to deal with. They may be limited in number,
//! and redirected to a next hop where the host is; without a redirect they go to the node that
//! takes what is for the host of their interface, or are counted and freed.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quiver_core::graph::counters::INTERFACES_MAX;
use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::memory::packet::PacketFlags;
use quiver_core::throttle::TokenBucket;
use quiver_core::{Context, Frame, InterfaceId, NodeId};
use quiver_forwarding::fib::{Family, Fib, FibError, Path};
use quiver_forwarding::ip::IpTables;
use quiver_forwarding::ip::{IpFamily, choose};
use quiver_forwarding::nodes;
use quiver_tables::GroupId;

quiver_core::reasons! {
    /// What `ip4-punt` and `ip6-punt` count.
    pub enum Punt {
        /// Too many.
        Policed = "policed", "more packets for the host than the policer lets pass (`ip punt \
            policer`)";
        /// For the host.
        Punted = info "punted", "packets for the host";
        /// Sent on.
        Redirected = info "redirected", "of these, sent on to the next hop of `ip punt redirect`";
    }
}

/// How many packets for the host a worker lets pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rate {
    /// In a second; 0 for all.
    pub packets: u32,
    /// At once.
    pub burst: u32,
}

/// What workers read: of each family, the group that packets of an interface go to, and the rate.
pub(crate) struct PuntTable {
    /// By receiving interface, and behind them for all others: the group and one more, or 0.
    redirects: [Box<[AtomicU64]>; 2],
    rates: [AtomicU64; 2],
}

impl Default for PuntTable {
    fn default() -> Self {
        let column = || (0..=INTERFACES_MAX).map(|_| AtomicU64::new(0)).collect();
        PuntTable { redirects: [column(), column()], rates: [AtomicU64::new(0), AtomicU64::new(0)] }
    }
}

fn place(rx: Option<InterfaceId>) -> usize {
    rx.map_or(INTERFACES_MAX, |rx| rx.index().min(INTERFACES_MAX))
}

impl PuntTable {
    fn redirect(&self, family: Family, rx: InterfaceId) -> Option<GroupId> {
        let column = &self.redirects[family as usize];
        let of = |place: usize| column[place].load(Ordering::Acquire).checked_sub(1);
        let own = rx.index() < INTERFACES_MAX;
        let group = own.then(|| of(rx.index())).flatten().or_else(|| of(INTERFACES_MAX))?;
        Some(GroupId(group as u32))
    }

    fn set_redirect(&self, family: Family, rx: Option<InterfaceId>, group: Option<GroupId>) {
        let word = group.map_or(0, |group| u64::from(group.0) + 1);
        self.redirects[family as usize][place(rx)].store(word, Ordering::Release);
    }

    /// How many packets of a family pass.
    pub fn rate(&self, family: Family) -> Rate {
        let word = self.rates[family as usize].load(Ordering::Relaxed);
        Rate { packets: word as u32, burst: (word >> 32) as u32 }
    }

    /// Let so many packets of a family pass.
    pub fn set_rate(&self, family: Family, rate: Rate) {
        let word = u64::from(rate.burst) << 32 | u64::from(rate.packets);
        self.rates[family as usize].store(word, Ordering::Relaxed);
    }
}

/// A redirect: where packets of one interface, or of all others, go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Redirect {
    /// The next hop.
    pub next_hop: IpAddr,
    /// Its interface.
    pub out: InterfaceId,
    group: GroupId,
}

/// The control side.
#[derive(Default)]
pub(crate) struct Punts {
    pub table: Arc<PuntTable>,
    redirects: BTreeMap<(Family, Option<InterfaceId>), Redirect>,
}

impl Punts {
    /// All redirects, by family and receiving interface; none for all others.
    pub fn redirects(&self) -> impl Iterator<Item = (Family, Option<InterfaceId>, &Redirect)> {
        self.redirects.iter().map(|((family, rx), redirect)| (*family, *rx, redirect))
    }

    /// Send packets for the host that came by `rx` to a next hop.
    pub fn redirect(
        &mut self,
        fib: &mut Fib,
        rx: Option<InterfaceId>,
        next_hop: IpAddr,
        out: InterfaceId,
    ) -> Result<(), FibError> {
        let family = Family::of(next_hop);
        let group = fib.hold_paths(family, 0, &[Path::via(next_hop, Some(out))])?;
        self.table.set_redirect(family, rx, Some(group));
        if let Some(old) = self.redirects.insert((family, rx), Redirect { next_hop, out, group }) {
            fib.release_paths(old.group);
        }
        Ok(())
    }

    /// No more; false when there was none.
    pub fn end(&mut self, fib: &mut Fib, family: Family, rx: Option<InterfaceId>) -> bool {
        let Some(old) = self.redirects.remove(&(family, rx)) else { return false };
        self.table.set_redirect(family, rx, None);
        fib.release_paths(old.group);
        true
    }

    /// The interface is gone, and with it redirects of it and to it.
    pub fn forget_interface(&mut self, fib: &mut Fib, id: InterfaceId) {
        let names = |(key, redirect): (&(Family, Option<InterfaceId>), &Redirect)| {
            (key.1 == Some(id) || redirect.out == id).then_some(*key)
        };
        let gone: Vec<_> = self.redirects.iter().filter_map(names).collect();
        for (family, rx) in gone {
            self.end(fib, family, rx);
        }
    }
}

struct Punting<F> {
    tables: IpTables,
    punts: Arc<PuntTable>,
    rate: Rate,
    bucket: TokenBucket,
    done: NodeId,
    family: PhantomData<fn() -> F>,
}

impl<F: IpFamily> Node for Punting<F> {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        cx.count(Punt::Punted, frame.len() as u64);
        let rate = self.punts.rate(F::FAMILY);
        if rate != self.rate {
            self.rate = rate;
            self.bucket = TokenBucket::new(rate.packets.into(), rate.burst.max(1).into());
        }
        frame.route(|packet| {
            cx.interface_counters(packet.rx).punts.add(1);
            if rate.packets > 0 && !self.bucket.take(cx.now_ns) {
                return Err(Punt::Policed);
            }
            let Some(group) = self.punts.redirect(F::FAMILY, packet.rx) else {
                let host = cx.interface(packet.rx).and_then(|row| row.host);
                return Ok(host.unwrap_or(self.done));
            };
            cx.count(Punt::Redirected, 1);
            // It is for the host as it came: no hop is counted, and no error told about it.
            packet.set(PacketFlags::LOCALLY_ORIGINATED);
            Ok(choose::<F>(&self.tables.groups, group, packet))
        });
    }
}

/// The declaration of one of the two.
pub(crate) fn spec<F: IpFamily>(tables: &IpTables, punts: &Arc<PuntTable>) -> NodeSpec {
    let (tables, punts) = (tables.clone(), punts.clone());
    let six = F::FAMILY == Family::Ip6;
    let name = if six { nodes::ip6::PUNT } else { nodes::ip4::PUNT };
    NodeSpec::new(
        name,
        "Counts, polices and redirects packets that are for the host",
        move |wiring| {
            let next = match six {
                false => [
                    nodes::ip4::REWRITE,
                    nodes::ip4::ARP,
                    nodes::ip4::CONFIRM_NEIGHBOR,
                    nodes::ip4::DROP,
                ],
                true => [
                    nodes::ip6::REWRITE,
                    nodes::ip6::DISCOVER_NEIGHBOR,
                    nodes::ip6::CONFIRM_NEIGHBOR,
                    nodes::ip6::DROP,
                ],
            };
            for name in next {
                wiring.node(name);
            }
            Box::new(Punting::<F> {
                tables: tables.clone(),
                punts: punts.clone(),
                rate: Rate::default(),
                bucket: TokenBucket::new(1, 1),
                done: wiring.node(nodes::IP_DONE),
                family: PhantomData,
            })
        },
    )
    .reasons::<Punt>()
    .describe(move |record, names| {
        let words =
            if six { quiver_forwarding::ip6::describe } else { quiver_forwarding::ip4::describe };
        format!("{}, to {}", words(record.bytes()), names.node(record.next))
    })
}
