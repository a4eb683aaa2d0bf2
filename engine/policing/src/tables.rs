//! How the words `set policer classify` reach who keeps classifier tables.

use quiver_control::Refusal;
use quiver_core::{Engine, InterfaceId};

/// The classifier tables that packets of an interface are looked up in for their policer, by
/// number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PolicerTables {
    /// That of IPv4 packets.
    pub ip4: Option<u16>,
    /// That of IPv6 packets.
    pub ip6: Option<u16>,
    /// That of all others.
    pub l2: Option<u16>,
}

/// An interface, and whether it is about packets that it sends (true) or receives.
type On = (InterfaceId, bool);
/// Lets an interface have tables.
type SetTables = fn(&mut Engine, On, PolicerTables) -> Result<(), Refusal>;
/// The tables that an interface has.
type GetTables = fn(&Engine, On) -> PolicerTables;

/// Who keeps classifier tables; in the engine where there are such tables.
#[derive(Clone, Copy)]
pub struct TableKeeper {
    /// [`set_tables`] without its look for somebody who keeps them.
    pub set: SetTables,
    /// [`tables_of`] without that look.
    pub get: GetTables,
}

/// The tables that packets of an interface are looked up in for their policer. `is_output`: packets
/// that it sends.
pub fn tables_of(engine: &Engine, (on, is_output): (InterfaceId, bool)) -> PolicerTables {
    let keeper = engine.get::<TableKeeper>();
    keeper.map_or_else(PolicerTables::default, |keeper| (keeper.get)(engine, (on, is_output)))
}

/// Let the sessions that packets of an interface meet in these tables say which policer meters
/// them; in none without tables. `is_output`: packets that it sends.
///
/// # Errors
/// There is no such table, or this router has none at all.
pub fn set_tables(
    engine: &mut Engine,
    (on, is_output): (InterfaceId, bool),
    tables: PolicerTables,
) -> Result<(), Refusal> {
    let keeper = engine.get::<TableKeeper>().copied().ok_or_else(|| {
        Refusal::new("this router has no classifier tables").remedy("name an access list")
    })?;
    (keeper.set)(engine, (on, is_output), tables)
}
