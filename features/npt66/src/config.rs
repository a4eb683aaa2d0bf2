//! What is configured, on the control thread.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use quiver_control::{IpPrefix, Refusal};
use quiver_core::control::interfaces::InterfaceChange;
use quiver_core::{Engine, InterfaceId};

use crate::bindings::Bindings;
use crate::input::INPUT;
use crate::mapping::{LENGTH_MAX, Mapping};
use crate::output::OUTPUT;

/// Pairs of an interface at most: each packet is compared with all of them.
const BINDINGS_MAX: usize = 16;
/// Where the nodes stand.
pub(crate) const PLACES: [(&str, &str); 2] = [("ip6-unicast", INPUT), ("interface-output", OUTPUT)];

/// Two prefixes that stand for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Binding {
    pub internal: IpPrefix,
    pub external: IpPrefix,
}

fn bits(prefix: IpPrefix) -> u128 {
    match prefix.address {
        IpAddr::V6(address) => address.to_bits(),
        IpAddr::V4(_) => 0,
    }
}

impl Binding {
    /// The longer length counts: the other prefix goes on with zeros (RFC 6296 §3.1).
    fn length(&self) -> u8 {
        self.internal.length.max(self.external.length)
    }

    pub fn mapping(&self) -> Mapping {
        Mapping::new(bits(self.internal), bits(self.external), self.length())
    }

    /// Have the addresses of one side some that the other binding's have on the same side?
    fn overlaps(&self, other: &Binding) -> bool {
        let (one, two) = (self.mapping(), other.mapping());
        let either = |is: fn(&Mapping, u128) -> bool, side: fn(&Binding) -> IpPrefix| {
            is(&one, bits(side(other))) || is(&two, bits(side(self)))
        };
        either(Mapping::is_internal, |binding| binding.internal)
            || either(Mapping::is_external, |binding| binding.external)
    }
}

/// The state of NPTv6.
pub(crate) struct Npt66 {
    bindings: BTreeMap<InterfaceId, Vec<Binding>>,
    published: Arc<Bindings>,
}

impl Npt66 {
    pub fn new(published: Arc<Bindings>) -> Npt66 {
        Npt66 { bindings: BTreeMap::new(), published }
    }

    /// The pairs of an interface, in the order in which they came.
    pub fn of(&self, interface: InterfaceId) -> &[Binding] {
        self.bindings.get(&interface).map_or(&[], |bindings| bindings)
    }

    /// The interfaces that have some.
    pub fn interfaces(&self) -> impl Iterator<Item = InterfaceId> {
        self.bindings.keys().copied()
    }

    fn publish(&mut self, interface: InterfaceId) {
        let mappings = self.of(interface).iter().map(Binding::mapping).collect();
        self.published.set(interface, mappings);
        self.bindings.retain(|_, bindings| !bindings.is_empty());
    }
}

/// Let two prefixes stand for each other where an interface leads outside.
///
/// # Errors
/// There is no such pair of prefixes, they overlap others there, or there are too many.
pub(crate) fn add(
    engine: &mut Engine,
    interface: InterfaceId,
    binding: Binding,
) -> Result<(), Refusal> {
    check(&binding)?;
    engine.with(|engine, npt66: &mut Npt66| {
        let bindings = npt66.of(interface);
        if bindings.contains(&binding) {
            return Ok(());
        }
        let name = engine.interface_name(interface);
        if let Some(other) = bindings.iter().find(|other| other.overlaps(&binding)) {
            let Binding { internal, external } = other;
            let what = format!("{name} translates {internal} as {external} already");
            return Err(Refusal::new(what)
                .remedy("delete that binding first, or choose prefixes beside it"));
        }
        if bindings.len() == BINDINGS_MAX {
            return Err(Refusal::new(format!("{name} has {BINDINGS_MAX} bindings already"))
                .remedy("join some into a shorter prefix"));
        }
        let is_first = bindings.is_empty();
        npt66.bindings.entry(interface).or_default().push(binding);
        npt66.publish(interface);
        if is_first && let Err(error) = stand(engine, interface, true) {
            npt66.bindings.remove(&interface);
            npt66.publish(interface);
            return Err(error);
        }
        Ok(())
    })
}

/// The pair no more.
///
/// # Errors
/// There is no such pair on the interface.
pub(crate) fn delete(
    engine: &mut Engine,
    interface: InterfaceId,
    binding: Binding,
) -> Result<(), Refusal> {
    engine.with(|engine, npt66: &mut Npt66| {
        let at = npt66.of(interface).iter().position(|other| *other == binding);
        let bindings = npt66.bindings.get_mut(&interface);
        let (Some(at), Some(bindings)) = (at, bindings) else {
            let Binding { internal, external } = binding;
            let name = engine.interface_name(interface);
            return Err(Refusal::new(format!(
                "{name} does not translate {internal} as {external}"
            ))
            .remedy("`show npt66 bindings` lists what is"));
        };
        if bindings.len() == 1 {
            stand(engine, interface, false)?;
        }
        bindings.remove(at);
        npt66.publish(interface);
        Ok(())
    })
}

fn check(Binding { internal, external }: &Binding) -> Result<(), Refusal> {
    for prefix in [internal, external] {
        if prefix.length == 0 || prefix.length > LENGTH_MAX {
            let what = format!("{prefix} is not from 1 to {LENGTH_MAX} bits long");
            return Err(Refusal::new(what).remedy(
                "RFC 6296 leaves 64 bits of an address to its host: one of their words takes the \
                 difference of the checksums",
            ));
        }
        let reserved = [(0xff00 << 112, 8), (0xfe80 << 112, 10)];
        let is_reserved = reserved.iter().any(|(start, length)| {
            let length = (*length).min(prefix.length);
            (bits(*prefix) ^ start) >> (128 - length) == 0
        });
        if is_reserved {
            let what = format!("{prefix} has link-local or multicast addresses, which stay");
            return Err(Refusal::new(what).remedy("name a prefix of unicast addresses"));
        }
    }
    let binding = Binding { internal: *internal, external: *external };
    let mapping = binding.mapping();
    if mapping.is_internal(bits(*external)) || mapping.is_external(bits(*internal)) {
        return Err(Refusal::new(format!("{internal} and {external} overlap"))
            .remedy("an address must be on one side only"));
    }
    Ok(())
}

/// Let the nodes stand on the interface's way, or no more.
fn stand(engine: &mut Engine, interface: InterfaceId, on: bool) -> Result<(), Refusal> {
    for (done, (arc, node)) in PLACES.into_iter().enumerate() {
        if let Err(error) = engine.set_feature(interface, arc, node, on) {
            for (arc, node) in PLACES.into_iter().take(done) {
                engine.set_feature(interface, arc, node, !on)?;
            }
            return Err(error.into());
        }
    }
    Ok(())
}

/// What others see of an address, or what stands behind it: interface, pair, and the address on the
/// other side, if there is one.
pub(crate) fn counterparts(
    npt66: &Npt66,
    address: Ipv6Addr,
) -> Vec<(InterfaceId, &'static str, Option<Ipv6Addr>)> {
    let bits = address.to_bits();
    let mut found = Vec::new();
    for interface in npt66.interfaces() {
        for mapping in npt66.of(interface).iter().map(Binding::mapping) {
            if mapping.is_internal(bits) {
                let other = mapping.to_external(bits).map(Ipv6Addr::from_bits);
                found.push((interface, "external", other));
            } else if mapping.is_external(bits) {
                let other = mapping.to_internal(bits).map(Ipv6Addr::from_bits);
                found.push((interface, "internal", other));
            }
        }
    }
    found
}

/// An interface that goes takes its pairs along.
pub(crate) fn follow_interface(engine: &mut Engine, id: InterfaceId, change: InterfaceChange) {
    if change == InterfaceChange::Deleted {
        engine.with(|_, npt66: &mut Npt66| {
            npt66.bindings.remove(&id);
            npt66.publish(id);
        });
    }
}
