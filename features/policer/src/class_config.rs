//! Which access lists name a policer, on the control thread.

use std::collections::BTreeMap;

use quiver_access_lists::{ListSlot, hold, release};
use quiver_control::{Output, Refusal, Work};
use quiver_core::control::interfaces::InterfaceError;
use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::Family;

use crate::classes::Class;
use crate::config::Config;
use crate::tables::Direction;

/// Lists of an interface and direction at most: a packet that none takes is compared with all.
const CLASSES_MAX: usize = 64;

/// An interface and a direction.
pub(crate) type On = (InterfaceId, Direction);

/// What a list takes, of an interface and direction.
pub(crate) struct ConfiguredClass {
    /// The policer's name.
    pub policer: String,
    slot: ListSlot,
    /// In whose name the list is held.
    user: String,
}

/// The classes of an interface and direction, by list.
pub(crate) type ClassesOf = BTreeMap<u32, ConfiguredClass>;

impl Config {
    /// An interface, direction and list of which a policer meters packets.
    pub fn class_with(&self, policer: &str) -> Option<(On, u32)> {
        self.classes.iter().find_map(|(on, of)| {
            let (list, _) = of.iter().find(|(_, class)| class.policer == policer)?;
            Some((*on, *list))
        })
    }

    fn publish_classes(&self, on: On) {
        let of = self.classes.get(&on).into_iter().flatten();
        let class = |(_, class): (&u32, &ConfiguredClass)| {
            let policer = self.policers.get(&class.policer)?.number;
            Some(Class { list: class.slot, policer })
        };
        self.class_table.publish(on.0, on.1, of.filter_map(class).collect());
    }
}

/// Let the nodes stand on an interface's path, or no more.
fn place(engine: &mut Engine, (id, direction): On, enabled: bool) -> Result<(), InterfaceError> {
    let families = [Family::Ip4, Family::Ip6];
    for family in families {
        let done = engine.set_feature(id, direction.arc(), direction.class_node(family), enabled);
        if done.is_err() {
            for family in families {
                let node = direction.class_node(family);
                let _ = engine.set_feature(id, direction.arc(), node, !enabled);
            }
            return done;
        }
    }
    Ok(())
}

/// Let a policer meter the packets that a list takes, or another one instead.
pub(crate) fn attach(
    engine: &mut Engine,
    on: On,
    list: u32,
    policer: &str,
) -> Result<Work<Engine>, Refusal> {
    let config = engine.get::<Config>().ok_or_else(|| Refusal::new("policers are busy"))?;
    config.known(policer)?;
    let of = config.classes.get(&on);
    if of.is_some_and(|of| of.contains_key(&list)) {
        exchange(engine, on, list, policer);
        return Ok(Work::Done(Output::none()));
    }
    let name = engine.interface_name(on.0).to_string();
    if of.is_some_and(|of| of.len() >= CLASSES_MAX) {
        let what = format!("{name} has policers for {CLASSES_MAX} access lists already");
        return Err(Refusal::new(what).remedy("put their rules into one list"));
    }
    let user = format!("a policer of the {} of {name} (`show policer classify`)", on.1.word());
    let (holder, policer) = (user.clone(), policer.to_owned());
    hold(engine, list, holder, move |engine, slot| {
        add(engine, on, list, ConfiguredClass { policer, slot, user })?;
        Ok(Output::none())
    })
}

fn exchange(engine: &mut Engine, on: On, list: u32, policer: &str) {
    engine.with(|_, config: &mut Config| {
        if let Some(class) = config.classes.get_mut(&on).and_then(|of| of.get_mut(&list)) {
            policer.clone_into(&mut class.policer);
        }
        config.publish_classes(on);
    });
}

/// The list is compiled, perhaps a while after the command.
fn add(engine: &mut Engine, on: On, list: u32, class: ConfiguredClass) -> Result<(), Refusal> {
    engine.with(|engine, config: &mut Config| {
        config.known(&class.policer)?;
        let interface = engine.interface(on.0);
        let is_bare = interface.map(|interface| interface.row().mac == [0; 6]);
        let is_bare = is_bare.ok_or_else(|| Refusal::new("the interface was deleted meanwhile"))?;
        config.class_table.set_bare(on.0, is_bare);
        if !config.classes.contains_key(&on) {
            place(engine, on, true)?;
        }
        config.classes.entry(on).or_default().insert(list, class);
        config.publish_classes(on);
        Ok(())
    })
}

/// No policer meters what a list takes any more.
pub(crate) fn detach(engine: &mut Engine, on: On, list: u32) -> Result<(), Refusal> {
    let gone = engine.with(|engine, config: &mut Config| {
        let of = config.classes.get_mut(&on).filter(|of| of.contains_key(&list));
        let Some(of) = of else {
            let (name, word) = (engine.interface_name(on.0), on.1.word());
            let what = format!(
                "no policer meters what access list {list} takes of the {word} of \
                                {name}"
            );
            return Err(Refusal::new(what).remedy("`show policer classify` lists what does"));
        };
        if of.len() == 1 {
            place(engine, on, false)?;
        }
        let gone = of.remove(&list);
        if of.is_empty() {
            config.classes.remove(&on);
        }
        config.publish_classes(on);
        Ok(gone)
    })?;
    if let Some(class) = gone {
        release(engine, list, &class.user);
    }
    Ok(())
}

/// An interface that goes lets its lists go.
pub(crate) fn forget_interface(engine: &mut Engine, id: InterfaceId) {
    for direction in Direction::ALL {
        let gone = engine.with(|_, config: &mut Config| {
            let gone = config.classes.remove(&(id, direction)).unwrap_or_default();
            config.publish_classes((id, direction));
            gone
        });
        for (list, class) in gone {
            release(engine, list, &class.user);
        }
    }
}
