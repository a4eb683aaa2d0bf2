//! The generator for a profile, of streams or of transactions.

use std::cell::Cell;
use std::rc::Rc;

use quiver_tg_measuring::drivers::Drivers;
use quiver_tg_measuring::self_test;
use quiver_tg_traffic::profile::Profile;

use crate::Machine;

/// Make and start what a profile is measured with, without waiting for links. A generator of
/// streams measures itself first, unless the profile says `self_test: false`. `quit` ends whatever
/// it waits for.
pub fn make_machine(profile: &Profile, quit: Rc<Cell<bool>>) -> anyhow::Result<Machine<Drivers>> {
    match profile.stateful {
        None => Ok(self_test::make_tested(profile, quit)?.into()),
        Some(_) => Ok(quiver_tg_stateful::session::make(profile, quit)?.into()),
    }
}
