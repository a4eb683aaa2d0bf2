//! What is configured, on the control thread.

use std::collections::BTreeMap;
use std::sync::Arc;

use quiver_control::Refusal;
use quiver_core::control::interfaces::InterfaceChange;
use quiver_core::memory::epoch::Epochs;
use quiver_core::{Engine, InterfaceId};

use crate::class_config::{self, ClassesOf, On};
use crate::classes::Classes;
use crate::meter::{Kind, Meter, Rates, Unit};
use crate::tables::{Action, Counts, Direction, POLICERS_MAX, Policer, Policers};

/// Letters of a name at most.
const NAME_MAX: usize = 64;
/// A burst below the frames of Ethernet lets none of full length pass.
const FRAME_BYTES: u64 = 1514;

/// What a policer is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wish {
    pub rates: Rates,
    /// By colour.
    pub actions: [Action; 3],
    pub is_colour_aware: bool,
}

impl Wish {
    /// Do the rates fit the type?
    fn check(&self) -> Result<(), Refusal> {
        let Rates { kind, committed, excess, excess_burst, .. } = self.rates;
        let refuse = |what: String, remedy: &str| Err(Refusal::new(what).remedy(remedy));
        let word = kind.word();
        match kind {
            Kind::OneRateTwoColours if excess_burst > 0 => {
                refuse(format!("{word} has one burst"), "leave eb out, or say type 1r3c")
            }
            Kind::OneRateTwoColours | Kind::OneRateThreeColours if excess > 0 => {
                refuse(format!("{word} has one rate"), "leave eir out, or say type 2r3c-4115")
            }
            Kind::TwoRates2698 if excess < committed => refuse(
                format!("eir is the peak rate of {word} and at least as high as cir"),
                "raise eir, or say type 2r3c-4115, whose rates add up",
            ),
            Kind::TwoRates4115 if excess == 0 => {
                refuse(format!("{word} needs a second rate"), "say eir, or type 1r3c")
            }
            _ => Ok(()),
        }
    }

    /// What an operator should know of it.
    pub fn warning(&self) -> Option<String> {
        let Rates { unit, committed_burst, .. } = self.rates;
        (unit == Unit::Bits && committed_burst < FRAME_BYTES).then(|| {
            format!(
                "the burst of {committed_burst} bytes is shorter than a frame of {FRAME_BYTES}: \
                 such frames never conform"
            )
        })
    }
}

/// A policer that is configured.
pub(crate) struct Configured {
    pub number: u16,
    pub wish: Wish,
    pub counts: Arc<Counts>,
}

/// All policers.
pub(crate) struct Config {
    pub policers: BTreeMap<String, Configured>,
    /// Which one an interface has.
    pub attached: BTreeMap<(InterfaceId, Direction), String>,
    /// Which one meters what a list takes.
    pub classes: BTreeMap<On, ClassesOf>,
    pub class_table: Arc<Classes>,
    /// Numbers that were given back, and the first that nobody has had.
    free: Vec<u16>,
    fresh: u16,
    published: Arc<Policers>,
}

impl Config {
    pub fn new(epochs: &Arc<Epochs>) -> Config {
        let (policers, attached) = (BTreeMap::new(), BTreeMap::new());
        Config {
            policers,
            attached,
            classes: BTreeMap::new(),
            class_table: Arc::new(Classes::new(epochs)),
            free: Vec::new(),
            fresh: 0,
            published: Arc::new(Policers::new(epochs)),
        }
    }

    pub fn published(&self) -> &Arc<Policers> {
        &self.published
    }

    /// Let workers have it, with full buckets.
    fn publish(&self, of: &Configured, now_ns: u64) {
        let Wish { rates, actions, is_colour_aware } = of.wish;
        let (meter, counts) = (Meter::new(rates, now_ns), of.counts.clone());
        let counts_packets = rates.unit == Unit::Packets;
        let policer = Policer::new(meter, actions, is_colour_aware, counts_packets, counts);
        self.published.publish(of.number, Some(policer));
    }

    pub fn known(&self, name: &str) -> Result<&Configured, Refusal> {
        self.policers.get(name).ok_or_else(|| {
            Refusal::new(format!("there is no policer {name}"))
                .remedy("`show policer` lists them; `policer add name …` makes one")
        })
    }
}

/// Make a policer, or give it other rates. What it has counted stays.
pub(crate) fn put(engine: &mut Engine, name: &str, wish: Wish) -> Result<(), Refusal> {
    wish.check()?;
    if name.len() > NAME_MAX {
        let what = format!("a policer's name has at most {NAME_MAX} letters");
        return Err(Refusal::new(what).remedy("give it a shorter name"));
    }
    engine.with(|engine, config: &mut Config| {
        let now_ns = engine.now_ns();
        let (number, counts) = match config.policers.get(name) {
            Some(known) => (known.number, known.counts.clone()),
            None => (config.take_number()?, Arc::default()),
        };
        let configured = Configured { number, wish, counts };
        config.publish(&configured, now_ns);
        config.policers.insert(name.to_owned(), configured);
        Ok(())
    })
}

impl Config {
    fn take_number(&mut self) -> Result<u16, Refusal> {
        if let Some(number) = self.free.pop() {
            return Ok(number);
        }
        let number = self.fresh;
        if usize::from(number) >= POLICERS_MAX {
            let what = format!("there are {POLICERS_MAX} policers already");
            return Err(Refusal::new(what).remedy("`policer del name NAME` deletes one"));
        }
        self.fresh += 1;
        Ok(number)
    }
}

/// Delete a policer that nobody has.
pub(crate) fn delete(engine: &mut Engine, name: &str) -> Result<(), Refusal> {
    engine.with(|engine, config: &mut Config| {
        let number = config.known(name)?.number;
        if let Some(((id, direction), _)) = config.attached.iter().find(|(_, of)| *of == name) {
            let (on, word) = (engine.interface_name(*id), direction.word());
            let what = format!("policer {name} meters the {word} of {on}");
            let remedy = format!("`policer {word} name {name} {on} unapply` first");
            return Err(Refusal::new(what).remedy(remedy));
        }
        if let Some(((id, direction), list)) = config.class_with(name) {
            let (on, word) = (engine.interface_name(id), direction.word());
            let what = format!(
                "policer {name} meters what access list {list} takes of the {word} \
                                of {on}"
            );
            let remedy =
                format!("`set policer classify interface {on} {word} acl {list} del` first");
            return Err(Refusal::new(what).remedy(remedy));
        }
        config.policers.remove(name);
        config.published.publish(number, None);
        config.free.push(number);
        Ok(())
    })
}

/// Fill the buckets of a policer.
pub(crate) fn reset(engine: &mut Engine, name: &str) -> Result<(), Refusal> {
    engine.with(|engine, config: &mut Config| {
        config.publish(config.known(name)?, engine.now_ns());
        Ok(())
    })
}

/// Let a policer meter what an interface receives or sends.
pub(crate) fn attach(
    engine: &mut Engine,
    on: InterfaceId,
    direction: Direction,
    name: &str,
) -> Result<(), Refusal> {
    engine.with(|engine, config: &mut Config| {
        let number = config.known(name)?.number;
        let is_first = !config.attached.contains_key(&(on, direction));
        config.published.attach(on, direction, Some(number));
        if is_first
            && let Err(error) = engine.set_feature(on, direction.arc(), direction.node(), true)
        {
            config.published.attach(on, direction, None);
            return Err(error.into());
        }
        config.attached.insert((on, direction), name.to_owned());
        Ok(())
    })
}

/// No policer meters it any more.
pub(crate) fn detach(
    engine: &mut Engine,
    on: InterfaceId,
    direction: Direction,
    name: &str,
) -> Result<(), Refusal> {
    engine.with(|engine, config: &mut Config| {
        config.known(name)?;
        if config.attached.get(&(on, direction)).is_none_or(|of| of != name) {
            let (on, word) = (engine.interface_name(on), direction.word());
            let what = format!("policer {name} does not meter the {word} of {on}");
            return Err(Refusal::new(what).remedy("`show policer interface` lists what does"));
        }
        engine.set_feature(on, direction.arc(), direction.node(), false)?;
        config.published.attach(on, direction, None);
        config.attached.remove(&(on, direction));
        Ok(())
    })
}

/// An interface that goes lets its policers go.
pub(crate) fn follow_interface(engine: &mut Engine, id: InterfaceId, change: InterfaceChange) {
    if change != InterfaceChange::Deleted {
        return;
    }
    engine.with(|_, config: &mut Config| {
        for direction in Direction::ALL {
            config.published.attach(id, direction, None);
            config.attached.remove(&(id, direction));
        }
    });
    class_config::forget_interface(engine, id);
}
