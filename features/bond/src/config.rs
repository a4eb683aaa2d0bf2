//! Bonds as the control thread holds them: made, joined and left while traffic goes on.

use std::collections::BTreeMap;
use std::sync::Arc;

use quiver_control::modes::{self, Held, Own};
use quiver_control::{ETHERNET_INPUT, Refusal};
use quiver_core::control::interfaces::{InterfaceError, InterfaceSpec};
use quiver_core::memory::epoch::Epochs;
use quiver_core::worker::device::{Device, TxQueue};
use quiver_core::{Engine, InterfaceId};
use quiver_wire::MacAddress;

use crate::lacp::{Aggregator, Port, PortWish};
use crate::lacp_control::send;
use crate::mode::{Balance, Mode};
use crate::output::BondTx;
use crate::refresh::refresh;
use crate::tables::{BOND_MEMBERS_MAX, BondTable, Published};

/// Bonds are numbered from 0 up to this; LACP's key of a bond is its number and 1.
pub const BOND_NUMBER_MAX: u32 = 16_383;
/// The largest layer 3 packet of a bond until it is set, bytes.
const MTU_BYTES: u32 = 1500;

/// A member of a bond.
#[derive(Clone, Debug)]
pub struct Member {
    /// The interface.
    pub id: InterfaceId,
    /// LACP: wait for the partner to speak first.
    pub passive: bool,
    /// LACP: ask the partner to speak every 30 s, not every second.
    pub long_timeout: bool,
    /// Active-backup: members of more weight are preferred.
    pub weight: u32,
}

/// A bond.
#[derive(Clone, Debug)]
pub struct Bond {
    /// Its interface.
    pub id: InterfaceId,
    /// `N` of `BondEthernetN`.
    pub number: u32,
    /// Which members send.
    pub mode: Mode,
    /// What of a frame chooses the member.
    pub balance: Balance,
    /// The address it was given; without one it takes its first member's.
    pub hw_addr: Option<MacAddress>,
    /// In the order in which they came.
    pub members: Vec<Member>,
    /// Those that send, the preferred one first.
    pub active: Vec<InterfaceId>,
    /// LACP's view of the members, in that mode.
    pub aggregator: Option<Aggregator>,
}

/// All bonds.
pub struct Bonds {
    bonds: BTreeMap<InterfaceId, Bond>,
    table: Arc<Published>,
    /// What `table` holds.
    published: BondTable,
}

/// What `create bond` asks for.
#[derive(Clone, Copy, Debug)]
pub struct BondWish {
    /// Which members send.
    pub mode: Mode,
    /// What of a frame chooses the member.
    pub balance: Balance,
    /// Its address.
    pub hw_addr: Option<MacAddress>,
    /// Its number; the first free one when it has none.
    pub number: Option<u32>,
}

/// The control thread's handle.
pub(crate) struct BondDevice;

impl Device for BondDevice {
    fn kind(&self) -> &'static str {
        "bond"
    }

    fn as_any(&mut self) -> &mut dyn std::any::Any {
        self
    }
}

impl Bonds {
    pub(crate) fn new(epochs: &Arc<Epochs>) -> Bonds {
        let table = Arc::new(Published::new(epochs, BondTable::default()));
        Bonds { bonds: BTreeMap::new(), table, published: BondTable::default() }
    }

    /// Show workers the bonds as they are now, when that is another picture than they have.
    pub(crate) fn publish(&mut self, table: BondTable) {
        if self.published != table {
            self.published.clone_from(&table);
            self.table.publish(table);
        }
    }

    pub(crate) fn table(&self) -> &Arc<Published> {
        &self.table
    }

    /// All bonds, by interface.
    pub fn all(&self) -> impl Iterator<Item = &Bond> {
        self.bonds.values()
    }

    pub(crate) fn all_mut(&mut self) -> impl Iterator<Item = &mut Bond> {
        self.bonds.values_mut()
    }

    /// A bond.
    pub fn bond(&self, id: InterfaceId) -> Option<&Bond> {
        self.bonds.get(&id)
    }

    pub(crate) fn bond_mut(&mut self, id: InterfaceId) -> Option<&mut Bond> {
        self.bonds.get_mut(&id)
    }

    /// The bond that an interface is a member of.
    pub fn bond_of(&self, member: InterfaceId) -> Option<InterfaceId> {
        self.bonds.values().find(|bond| bond.member(member).is_some()).map(|bond| bond.id)
    }
}

/// An interface's number as a port of LACP: port 0 is nobody's.
pub(crate) fn port_number(id: InterfaceId) -> u16 {
    const _: () = assert!(quiver_core::graph::counters::INTERFACES_MAX < u16::MAX as usize);
    (id.0 + 1) as u16
}

impl Bond {
    /// LACP's view of a member.
    pub fn port(&self, member: InterfaceId) -> Option<&Port> {
        self.aggregator.as_ref()?.port(port_number(member))
    }

    /// A member.
    pub fn member(&self, id: InterfaceId) -> Option<&Member> {
        self.members.iter().find(|member| member.id == id)
    }

    pub(crate) fn member_mut(&mut self, id: InterfaceId) -> Option<&mut Member> {
        self.members.iter_mut().find(|member| member.id == id)
    }
}

/// The bonds, for changing; they are always there but while a command of ours is being carried out.
pub(crate) fn bonds(engine: &mut Engine) -> Result<&mut Bonds, Refusal> {
    engine.get_mut::<Bonds>().ok_or_else(|| Refusal::new("bonds are being changed"))
}

fn refusal(engine: &Engine, id: InterfaceId, error: InterfaceError) -> Refusal {
    Refusal::new(format!("{}: {error}", engine.interface_name(id)))
}

/// Make a bond without members.
pub fn create(engine: &mut Engine, wish: BondWish) -> Result<InterfaceId, Refusal> {
    let name_of = |number: u32| format!("BondEthernet{number}");
    let number = match wish.number {
        Some(number) => number,
        None => (0..=BOND_NUMBER_MAX)
            .find(|number| engine.interface_id(&name_of(*number)).is_none())
            .ok_or_else(|| {
                Refusal::new(format!("there are {} bonds already", BOND_NUMBER_MAX + 1))
            })?,
    };
    let table = bonds(engine)?.table.clone();
    let [.., high, low] = number.to_be_bytes();
    let mac = wish.hw_addr.unwrap_or(MacAddress([0x02, 0xfe, 0xb0, 0x0d, high, low]));
    let queue = |worker| Box::new(BondTx::new(table.clone(), worker)) as Box<dyn TxQueue>;
    let id = engine.create_interface(InterfaceSpec {
        name: name_of(number),
        device: Box::new(BondDevice),
        mac: mac.0,
        mtu_bytes: MTU_BYTES,
        input: ETHERNET_INPUT.to_owned(),
        link_up: false,
        tx: (0..engine.worker_count()).map(queue).collect(),
    })?;
    let BondWish { mode, balance, hw_addr, .. } = wish;
    let key = (number + 1) as u16;
    let aggregator = (mode == Mode::Lacp).then(|| Aggregator::new(mac, key));
    let (members, active) = (Vec::new(), Vec::new());
    let bond = Bond { id, number, mode, balance, hw_addr, members, active, aggregator };
    bonds(engine)?.bonds.insert(id, bond);
    refresh(engine, id);
    Ok(id)
}

/// Delete a bond; its members are what they were before.
pub fn delete(engine: &mut Engine, id: InterfaceId) -> Result<(), Refusal> {
    let bond = known(engine, id)?;
    let members: Vec<InterfaceId> = bond.members.iter().map(|member| member.id).collect();
    for member in members {
        remove_member(engine, member)?;
    }
    engine.delete_interface(id).map_err(|error| refusal(engine, id, error))
}

/// The bond of this interface, or why there is none.
pub(crate) fn known(engine: &mut Engine, id: InterfaceId) -> Result<&mut Bond, Refusal> {
    let name = engine.interface_name(id);
    bonds(engine)?.bond_mut(id).ok_or_else(|| {
        Refusal::new(format!("{name} is not a bond")).remedy("`show bond` lists what is")
    })
}

/// Why an interface cannot join a bond, if it cannot.
fn check_joins(engine: &mut Engine, bond: InterfaceId, id: InterfaceId) -> Result<Own, Refusal> {
    let name = engine.interface_name(id);
    let members = known(engine, bond)?.members.len();
    if let Some(other) = bonds(engine)?.bond_of(id) {
        let other = engine.interface_name(other);
        return Err(Refusal::new(format!("{name} is a member of {other} already"))
            .remedy(format!("bond del {name}, first")));
    }
    if members >= BOND_MEMBERS_MAX {
        let bond = engine.interface_name(bond);
        return Err(Refusal::new(format!("{bond} has {BOND_MEMBERS_MAX} members already")));
    }
    let Some(interface) = engine.interface(id) else {
        return Err(Refusal::new("there is no such interface"));
    };
    let kind = interface.device.kind();
    if matches!(kind, "bond" | "loopback" | "sub-interface") {
        return Err(Refusal::new(format!("{name} is a {kind}: a member is a port of its own")));
    }
    if engine.sub_interfaces(id).next().is_some() {
        return Err(Refusal::new(format!(
            "{name} has sub-interfaces, which would receive nothing more"
        ))
        .remedy("delete them, and make them on the bond"));
    }
    let row = interface.row();
    let input = engine.node_name(row.input);
    if input != ETHERNET_INPUT {
        return Err(Refusal::new(format!("{name} gives what it receives to {input}"))
            .remedy(format!("`set interface l3 {name}`, if it is in a bridge or cross-connect")));
    }
    let own = Own::of(row);
    modes::check_hold(engine, id)?;
    Ok(own)
}

/// Let an interface join a bond. When anything is refused, all is as before.
pub fn add_member(
    engine: &mut Engine,
    bond: InterfaceId,
    id: InterfaceId,
    passive: bool,
    long_timeout: bool,
) -> Result<(), Refusal> {
    let own = check_joins(engine, bond, id)?;
    let joined = known(engine, bond)?;
    let takes_mac = joined.members.is_empty() && joined.hw_addr.is_none();
    joined.members.push(Member { id, passive, long_timeout, weight: 0 });
    if let Some(aggregator) = &mut joined.aggregator {
        aggregator
            .add(port_number(id), PortWish { active: !passive, short_timeout: !long_timeout });
    }
    let (what, remedy) = (
        format!("a member of {}", engine.interface_name(bond)),
        "bond del IF, or do it on the bond",
    );
    modes::hold(engine, id, Held { what, remedy: remedy.to_owned(), own });
    let taken = if takes_mac { engine.set_mac(bond, own.mac) } else { Ok(()) };
    let done = taken.and_then(|()| follow_bond(engine, bond, id));
    // What the member receives is the bond's only once workers know of it.
    refresh(engine, bond);
    let done = done.and_then(|()| engine.set_feature(id, "device-input", crate::input::NODE, true));
    if let Err(error) = done {
        let refusal = refusal(engine, id, error);
        remove_member(engine, id)?;
        return Err(refusal);
    }
    Ok(())
}

/// Make a member what its bond is: address, MTU, whether it takes frames for others.
pub(crate) fn follow_bond(
    engine: &mut Engine,
    bond: InterfaceId,
    member: InterfaceId,
) -> Result<(), InterfaceError> {
    let Some(row) = engine.interface(bond).map(|interface| interface.row().clone()) else {
        return Ok(());
    };
    engine.set_mac(member, row.mac)?;
    engine.set_mtu(member, row.mtu_bytes)?;
    engine.set_promiscuous(member, row.promiscuous)
}

/// Let an interface leave its bond; it is again what it was before.
pub fn remove_member(engine: &mut Engine, id: InterfaceId) -> Result<(), Refusal> {
    let name = engine.interface_name(id);
    let bonds = bonds(engine)?;
    let bond = bonds.bond_of(id).ok_or_else(|| {
        Refusal::new(format!("{name} is no member of a bond"))
            .remedy("`show bond details` lists members")
    })?;
    // First the others take over what the bond sends, then the member receives for itself.
    let own = forget_member(engine, bond, id);
    engine
        .set_feature(id, "device-input", crate::input::NODE, false)
        .map_err(|e| refusal(engine, id, e))?;
    if let Some(own) = own {
        let restored = engine
            .set_mac(id, own.mac)
            .and_then(|()| engine.set_mtu(id, own.mtu_bytes))
            .and_then(|()| engine.set_promiscuous(id, own.promiscuous));
        restored.map_err(|error| refusal(engine, id, error))?;
    }
    Ok(())
}

/// Take a member out of its bond's lists. What it was before it joined.
pub(crate) fn forget_member(
    engine: &mut Engine,
    bond: InterfaceId,
    id: InterfaceId,
) -> Option<Own> {
    let of = engine.get_mut::<Bonds>()?.bond_mut(bond)?;
    let place = of.members.iter().position(|member| member.id == id)?;
    of.members.remove(place);
    let last = of.aggregator.as_mut().and_then(|aggregator| aggregator.remove(port_number(id)));
    if let Some(pdu) = last {
        send(engine, id, &pdu);
    }
    let own = modes::let_go(engine, id);
    refresh(engine, bond);
    own
}

/// A bond's interface is gone.
pub(crate) fn forget_bond(engine: &mut Engine, id: InterfaceId) {
    if let Some(bonds) = engine.get_mut::<Bonds>() {
        bonds.bonds.remove(&id);
    }
    refresh(engine, id);
}

/// Prefer members of more weight.
pub fn set_weight(engine: &mut Engine, id: InterfaceId, weight: u32) -> Result<(), Refusal> {
    let name = engine.interface_name(id);
    let bonds = bonds(engine)?;
    let member = bonds.all_mut().find_map(|bond| {
        let (bond_id, mode) = (bond.id, bond.mode);
        bond.member_mut(id).map(|member| (bond_id, mode, member))
    });
    let Some((bond, mode, member)) = member else {
        return Err(
            Refusal::new(format!("{name} is no member of a bond")).remedy("bond add BOND IF")
        );
    };
    if mode != Mode::ActiveBackup {
        return Err(Refusal::new(format!(
            "its bond's mode is {mode}: weights are for active-backup"
        )));
    }
    member.weight = weight;
    refresh(engine, bond);
    Ok(())
}
