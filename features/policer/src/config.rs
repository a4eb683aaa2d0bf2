//! What is configured, on the control thread.

use std::collections::BTreeMap;
use std::sync::Arc;

use quiver_control::Refusal;
use quiver_core::control::interfaces::InterfaceChange;
use quiver_core::{Engine, InterfaceId};
use quiver_policing::meter::{Kind, Rates, Unit};
use quiver_policing::{Counts, POLICERS_MAX, Policer, PolicerNames, Policers, Terms, unknown};

use crate::class_config::{self, ClassesOf, On};
use crate::classes::Classes;
use crate::subscriber_config::{self, Subscribers};
use crate::tables::{Attached, Direction};

/// Letters of a name at most.
const NAME_MAX: usize = 64;
/// A burst below the frames of Ethernet lets none of full length pass.
const FRAME_BYTES: u64 = 1514;

/// Do the rates fit the type?
fn check(terms: &Terms) -> Result<(), Refusal> {
    let Rates { kind, committed, excess, excess_burst, .. } = terms.rates;
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

/// What an operator should know of a policer's terms.
pub(crate) fn warning(terms: &Terms) -> Option<String> {
    let Rates { unit, committed_burst, .. } = terms.rates;
    (unit == Unit::Bits && committed_burst < FRAME_BYTES).then(|| {
        format!(
            "the burst of {committed_burst} bytes is shorter than a frame of {FRAME_BYTES}: such \
             frames never conform"
        )
    })
}

/// A policer that is configured.
pub(crate) struct Configured {
    pub number: u16,
    pub terms: Terms,
    pub counts: Arc<Counts>,
    /// When the buckets of its subscribers were filled, nanoseconds; 0: never.
    reset_ns: u64,
}

/// All policers.
pub(crate) struct Config {
    pub policers: BTreeMap<String, Configured>,
    /// Which one an interface has.
    pub attached: BTreeMap<(InterfaceId, Direction), String>,
    /// Which one meters what a list takes.
    pub classes: BTreeMap<On, ClassesOf>,
    pub class_table: Arc<Classes>,
    pub subscribers: Subscribers,
    /// Numbers that were given back, and the first that nobody has had.
    free: Vec<u16>,
    fresh: u16,
    published: Arc<Policers>,
    attached_table: Arc<Attached>,
}

impl Config {
    pub fn new(
        published: Arc<Policers>,
        attached_table: Arc<Attached>,
        class_table: Arc<Classes>,
        subscribers: Subscribers,
    ) -> Config {
        Config {
            policers: BTreeMap::new(),
            attached: BTreeMap::new(),
            classes: BTreeMap::new(),
            class_table,
            subscribers,
            free: Vec::new(),
            fresh: 0,
            published,
            attached_table,
        }
    }

    /// Let workers have it, with full buckets.
    fn publish(&self, of: &Configured, now_ns: u64) {
        let policer = Policer::new(of.terms, now_ns, of.counts.clone()).reset_at(of.reset_ns);
        self.published.publish(of.number, Some(policer));
    }

    pub fn known(&self, name: &str) -> Result<&Configured, Refusal> {
        self.policers.get(name).ok_or_else(|| unknown(name))
    }
}

/// Make a policer, or give it other rates. What it has counted stays.
pub(crate) fn put(engine: &mut Engine, name: &str, terms: Terms) -> Result<(), Refusal> {
    check(&terms)?;
    if name.len() > NAME_MAX {
        let what = format!("a policer's name has at most {NAME_MAX} letters");
        return Err(Refusal::new(what).remedy("give it a shorter name"));
    }
    engine.with(|engine, config: &mut Config| {
        let now_ns = engine.now_ns();
        let (number, counts, reset_ns) = match config.policers.get(name) {
            Some(known) => (known.number, known.counts.clone(), known.reset_ns),
            None => (config.take_number()?, Arc::default(), 0),
        };
        let configured = Configured { number, terms, counts, reset_ns };
        config.publish(&configured, now_ns);
        if let Some(names) = engine.get_mut::<PolicerNames>() {
            names.add(name, number);
        }
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
        if let Some(prefix) = config.subscribers.prefix_with(name) {
            let what = format!("policer {name} meters subscribers of {prefix}");
            return Err(
                Refusal::new(what).remedy(format!("`policer subscriber del {prefix}` first"))
            );
        }
        let names = engine.get_mut::<PolicerNames>();
        if let Some(user) = names.as_ref().and_then(|names| names.user_of(name)) {
            return Err(Refusal::new(format!("policer {name} is used by {user}"))
                .remedy("take it away there first"));
        }
        if let Some(names) = names {
            names.remove(name);
        }
        config.policers.remove(name);
        config.published.publish(number, None);
        config.free.push(number);
        Ok(())
    })
}

/// Nanoseconds from which on a reset counts, behind its command: workers that meter by the policer
/// as it was until then leave lines that are younger than the command.
const RESET_NS: u64 = 1_000_000;

/// Fill the buckets of a policer, and those of all subscribers that it meters.
pub(crate) fn reset(engine: &mut Engine, name: &str) -> Result<(), Refusal> {
    engine.with(|engine, config: &mut Config| {
        let now_ns = engine.now_ns();
        if let Some(known) = config.policers.get_mut(name) {
            known.reset_ns = now_ns + RESET_NS;
        }
        config.publish(config.known(name)?, now_ns);
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
        config.attached_table.attach(on, direction, Some(number));
        if is_first
            && let Err(error) = engine.set_feature(on, direction.arc(), direction.node(), true)
        {
            config.attached_table.attach(on, direction, None);
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
        config.attached_table.attach(on, direction, None);
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
            config.attached_table.attach(id, direction, None);
            config.attached.remove(&(id, direction));
        }
        subscriber_config::forget_interface(&mut config.subscribers, id);
    });
    class_config::forget_interface(engine, id);
}
