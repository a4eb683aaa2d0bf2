//! The return interfaces of all proxies, on the control thread: whose each is, and what it was
//! before.

use std::collections::BTreeMap;
use std::sync::Arc;

use quiver_control::Refusal;
use quiver_control::modes::{self, Held, Modes, Own};
use quiver_core::memory::epoch::Epochs;
use quiver_core::{Engine, InterfaceId, NodeId};

use super::return_interfaces::{Around, Back, BackTable, Backs, Coming, Counts};
use super::{from_function, from_function_l2, unmask};
use crate::local_sids::Place;

/// How what comes back is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taking {
    pub coming: Coming,
    /// The arc and the feature in it; none when all frames of the interface are taken.
    feature: Option<(&'static str, &'static str)>,
}

impl Taking {
    pub const IP4: Taking =
        Taking { coming: Coming::Ip4, feature: Some(("ip4-unicast", from_function::IP4)) };
    pub const IP6: Taking =
        Taking { coming: Coming::Ip6, feature: Some(("ip6-unicast", from_function::IP6)) };
    pub const MASKED: Taking =
        Taking { coming: Coming::Ip6, feature: Some(("ip6-unicast", unmask::NODE)) };
    pub const FRAMES: Taking = Taking { coming: Coming::Frames, feature: None };
}

/// The return interface of a SID.
pub(super) struct Claim {
    pub place: Place,
    /// Where its frames went before, if all are taken.
    routed: NodeId,
    counts: Arc<Counts>,
    /// What was counted when the operator cleared the counts.
    cleared: [u64; 4],
}

impl Claim {
    /// Packets and bytes that came back, and those of them that went no further.
    pub fn counted(&self) -> [u64; 4] {
        let sums = self.counts.sums();
        std::array::from_fn(|place| sums[place].wrapping_sub(self.cleared[place]))
    }
}

/// All of them.
pub(crate) struct Proxies {
    claims: BTreeMap<(InterfaceId, Coming), Claim>,
    backs: Backs,
    workers: usize,
}

impl Proxies {
    /// None yet.
    pub fn new(epochs: &Arc<Epochs>, workers: usize) -> Proxies {
        Proxies { claims: BTreeMap::new(), backs: Arc::new(BackTable::new(epochs)), workers }
    }

    /// What workers read.
    pub(super) fn backs(&self) -> &Backs {
        &self.backs
    }

    /// By return interface.
    pub(super) fn iter(&self) -> impl Iterator<Item = (InterfaceId, &Claim)> {
        self.claims.iter().map(|((id, _), claim)| (*id, claim))
    }

    /// Let all counts begin at zero again.
    pub fn clear(&mut self) {
        self.claims.values_mut().for_each(|claim| claim.cleared = claim.counts.sums());
    }
}

/// What an interface is called in a refusal, and whose it is.
fn whose(engine: &Engine, id: InterfaceId, place: Place) -> String {
    format!(
        "{} is the return interface of local SID {}",
        engine.interface_name(id),
        place.words(engine)
    )
}

/// May what comes by an interface be taken?
fn check(
    engine: &Engine,
    proxies: &Proxies,
    id: InterfaceId,
    taking: Taking,
) -> Result<(), Refusal> {
    let same = |of: &(InterfaceId, Coming)| {
        of.0 == id
            && (of.1 == taking.coming || Coming::Frames == of.1 || Coming::Frames == taking.coming)
    };
    if let Some((_, claim)) = proxies.claims.iter().find(|(of, _)| same(of)) {
        return Err(Refusal::new(format!("{} already", whose(engine, id, claim.place)))
            .remedy(format!("sr localsid del address {}", claim.place.words(engine))));
    }
    let name = engine.interface_name(id);
    modes::check_free(engine, id)?;
    if taking != Taking::FRAMES {
        return Ok(());
    }
    if let Some(other) = engine.get::<Modes>().and_then(|modes| modes.of(id)) {
        return Err(Refusal::new(format!(
            "{name} is in {} {}, which has its frames",
            other.mode, other.with
        ))
        .remedy(format!("set interface l3 {name}")));
    }
    modes::check_hold(engine, id).map_err(|no| {
        no.remedy(format!(
            "`show interface address {name}`; frames that come back need a port without addresses"
        ))
    })
}

/// Take what comes back by an interface for a SID.
pub(super) fn claim(
    engine: &mut Engine,
    id: InterfaceId,
    place: Place,
    taking: Taking,
    around: Around,
) -> Result<(), Refusal> {
    engine.with(|engine, proxies: &mut Proxies| {
        check(engine, proxies, id, taking)?;
        let interface =
            engine.interface(id).ok_or_else(|| Refusal::new("the interface is gone"))?;
        let (routed, own) = (interface.row().input, Own::of(interface.row()));
        let counts = Arc::new(Counts::new(proxies.workers));
        let back = Back { around, table: place.table, counts: counts.clone() };
        proxies.backs.publish(id, taking.coming, Some(back));
        if let Err(refused) = take(engine, id, place, taking, own) {
            proxies.backs.publish(id, taking.coming, None);
            return Err(refused);
        }
        proxies
            .claims
            .insert((id, taking.coming), Claim { place, routed, counts, cleared: [0; 4] });
        Ok(())
    })
}

fn take(
    engine: &mut Engine,
    id: InterfaceId,
    place: Place,
    taking: Taking,
    own: Own,
) -> Result<(), Refusal> {
    let Some((arc, node)) = taking.feature else {
        let node = engine.node_id(from_function_l2::NODE);
        let node =
            node.ok_or_else(|| Refusal::new("the node of frames that come back is not built in"))?;
        engine.set_input_node(id, node)?;
        let words = place.words(engine);
        let what = format!("the return interface of local SID {words}");
        modes::hold(
            engine,
            id,
            Held { what, remedy: format!("sr localsid del address {words}"), own },
        );
        return Ok(());
    };
    Ok(engine.set_feature(id, arc, node, true)?)
}

/// What comes by an interface is nobody's any more.
pub(super) fn release(engine: &mut Engine, id: InterfaceId, taking: Taking) {
    engine.with(|engine, proxies: &mut Proxies| {
        let Some(claim) = proxies.claims.remove(&(id, taking.coming)) else { return };
        let done = match taking.feature {
            Some((arc, node)) => engine.set_feature(id, arc, node, false),
            None => {
                modes::let_go(engine, id);
                engine.set_input_node(id, claim.routed)
            }
        };
        if let Err(refused) = done {
            tracing::debug!("{}: {refused}", engine.interface_name(id));
        }
        proxies.backs.publish(id, taking.coming, None);
    });
}
