//! The generator for a profile, of streams or of transactions.

use std::cell::Cell;
use std::rc::Rc;

use quiver_tg_measuring::drivers::Drivers;
use quiver_tg_measuring::self_test;
use quiver_tg_traffic::profile::Profile;

use crate::AnyGenerator;

/// Make and start what a profile is measured with, without waiting for links. A generator of
/// streams measures itself first, unless the profile says `self_test: false`. `quit` ends whatever
/// it waits for.
///
/// # Errors
/// When the ports or the frames cannot be made, or the generator cannot measure itself.
pub fn make_generator(
    profile: &Profile,
    quit: Rc<Cell<bool>>,
) -> anyhow::Result<AnyGenerator<Drivers>> {
    match profile.stateful {
        None => Ok(self_test::make_tested(profile, quit)?.into()),
        Some(_) => Ok(quiver_tg_stateful::session::make(profile, quit)?.into()),
    }
}
