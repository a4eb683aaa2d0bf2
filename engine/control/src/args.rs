//! The arguments of a command, typed, as its handler takes them.

use std::fs::File;
use std::path::{Path, PathBuf};

use quiver_core::{InterfaceId, NodeId};

use crate::error::{Refusal, either, nearest, printable};
use crate::files::{Access, NewFile};
use crate::names::Names;
use crate::running::HIDDEN;
use crate::value::{FromValue, Value};

/// A value with its name and its place in the command.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Slot<'a> {
    pub(crate) value: Value<'a>,
    /// Index in the command's names.
    pub(crate) name: u16,
    /// The word it was written as, from 0.
    pub(crate) word: u16,
}

impl Slot<'_> {
    /// Its name, of the command's names.
    pub(crate) fn name_in(&self, names: &[&'static str]) -> &'static str {
        names[self.name as usize]
    }
}

/// The arguments of one command, or of one repetition of a group in it.
#[derive(Clone, Copy, Debug)]
pub struct Args<'a> {
    pub(crate) names: &'a [&'static str],
    pub(crate) slots: &'a [Slot<'a>],
    pub(crate) command: &'a str,
    /// Opens the files that the command names; `None` where a command names none.
    pub(crate) access: Option<&'a Access>,
}

/// How many names a message lists.
const NAMES_LISTED_MAX: usize = 8;

impl<'a> Args<'a> {
    /// The slots of this level, each with its place; what is inside groups is left out.
    fn level(self) -> impl Iterator<Item = (usize, &'a Slot<'a>)> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let slot = self.slots.get(at)?;
            let here = at;
            at += 1;
            if let Value::Group(length) = slot.value {
                at += length as usize;
            }
            Some((here, slot))
        })
    }

    #[inline]
    fn slot(&self, name: &str) -> Option<&'a Slot<'a>> {
        self.level().find(|(_, slot)| self.names[slot.name as usize] == name).map(|(_, slot)| slot)
    }

    /// Was this flag, value or group given?
    #[inline]
    pub fn has(&self, name: &str) -> bool {
        self.slot(name).is_some()
    }

    /// The value of this name.
    ///
    /// # Errors
    /// The argument was not given, or its value has another form.
    #[inline]
    pub fn get<T: FromValue<'a>>(&self, name: &str) -> Result<T, Refusal> {
        match self.slot(name) {
            Some(slot) => self.convert(slot),
            None => Err(self.missing(name)),
        }
    }

    /// The value of this name, when it was given.
    ///
    /// # Errors
    /// The value has another form.
    #[inline]
    pub fn optional<T: FromValue<'a>>(&self, name: &str) -> Result<Option<T>, Refusal> {
        self.slot(name).map(|slot| self.convert(slot)).transpose()
    }

    /// The value of this name, or what stands for it.
    ///
    /// # Errors
    /// The value has another form.
    #[inline]
    pub fn or<T: FromValue<'a>>(&self, name: &str, default: T) -> Result<T, Refusal> {
        Ok(self.optional(name)?.unwrap_or(default))
    }

    /// The secret of this name, when it was given: not one that was hidden when it was printed.
    ///
    /// # Errors
    /// The value has another form, or stands for a secret that was hidden.
    pub fn secret(&self, name: &str) -> Result<Option<String>, Refusal> {
        let secret: Option<String> = self.optional(name)?;
        match secret.as_deref() {
            Some(HIDDEN) => Err(self
                .refuse(name, "the secret was hidden when this command was printed")
                .remedy("`show running-config secrets` prints it")),
            _ => Ok(secret),
        }
    }

    /// The values of a name that may be repeated.
    ///
    /// # Errors
    /// A value has another form.
    pub fn all<T: FromValue<'a>>(&self, name: &str) -> Result<Vec<T>, Refusal> {
        let named = |slot: &Slot<'_>| self.names[slot.name as usize] == name;
        self.level().filter(|(_, slot)| named(slot)).map(|(_, slot)| self.convert(slot)).collect()
    }

    /// The repetitions of a group, known by its first word.
    pub fn groups(&self, name: &str) -> impl Iterator<Item = Args<'a>> {
        let args = *self;
        self.level().filter_map(move |(at, slot)| match slot.value {
            Value::Group(length) if args.names[slot.name as usize] == name => {
                Some(Args { slots: &args.slots[at + 1..at + 1 + length as usize], ..args })
            }
            _ => None,
        })
    }

    /// The interface of this name, which must exist.
    ///
    /// # Errors
    /// The argument was not given, or there is no such interface.
    #[inline]
    pub fn interface<N: Names>(&self, names: &N, name: &str) -> Result<InterfaceId, Refusal> {
        self.named(names, "interface", name).map(InterfaceId)
    }

    /// The interface of this name, when it was given; then it must exist.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn optional_interface<N: Names>(
        &self,
        names: &N,
        name: &str,
    ) -> Result<Option<InterfaceId>, Refusal> {
        self.has(name).then(|| self.interface(names, name)).transpose()
    }

    /// The node of this name, which must exist.
    ///
    /// # Errors
    /// The argument was not given, or there is no such node.
    pub fn node<N: Names>(&self, names: &N, name: &str) -> Result<NodeId, Refusal> {
        let number = self.named(names, "node", name)?;
        u16::try_from(number)
            .map(NodeId)
            .map_err(|_| Refusal::new(format!("node {number} is out of range")))
    }

    /// The number of the existing thing of `kind` whose name stands under `name`.
    ///
    /// # Errors
    /// The argument was not given, or nothing of this kind has the name.
    #[inline]
    pub fn named<N: Names>(&self, names: &N, kind: &str, name: &str) -> Result<u32, Refusal> {
        let slot = self.slot(name).ok_or_else(|| self.missing(name))?;
        let text: &str = self.convert(slot)?;
        names.find(kind, text).ok_or_else(|| unknown_name(names, kind, text, slot.word))
    }

    /// What the command's client may open.
    pub fn access(&self) -> Access {
        self.access.cloned().unwrap_or_default()
    }

    /// The file of this name, opened for reading, when it was given. Also its path.
    ///
    /// # Errors
    /// The file cannot be opened, or the client may not name it.
    pub fn file_to_read(&self, name: &str) -> Result<Option<(PathBuf, File)>, Refusal> {
        self.opened(name, |access, path| {
            Ok((access.path_to_read(path), access.open_to_read(path)?))
        })
    }

    /// A new file that takes this name over when it is finished, when it was given.
    ///
    /// # Errors
    /// The file cannot be made, or the client may not name it.
    pub fn file_to_write(&self, name: &str) -> Result<Option<NewFile>, Refusal> {
        self.opened(name, Access::create)
    }

    /// The path of a socket, when it was given.
    ///
    /// # Errors
    /// The client may not name the path.
    pub fn socket_path(&self, name: &str) -> Result<Option<PathBuf>, Refusal> {
        self.opened(name, Access::socket_path)
    }

    fn opened<T>(
        &self,
        name: &str,
        open: impl Fn(&Access, &Path) -> Result<T, String>,
    ) -> Result<Option<T>, Refusal> {
        let Some(path) = self.optional::<&str>(name)? else { return Ok(None) };
        open(&self.access(), Path::new(path)).map(Some).map_err(|what| self.refuse(name, what))
    }

    /// Refuse because of the value of `name`: the message points at its word.
    pub fn refuse(&self, name: &str, what: impl Into<String>) -> Refusal {
        let refusal = Refusal::new(what);
        match self.slot(name) {
            Some(slot) => refusal.at_word(u32::from(slot.word) + 1, &text_of(slot.value)),
            None => refusal,
        }
    }

    /// The command's own words: `set interface state`.
    pub fn command(&self) -> &'a str {
        self.command
    }

    #[inline]
    fn convert<T: FromValue<'a>>(&self, slot: &Slot<'a>) -> Result<T, Refusal> {
        T::from_value(slot.value).map_err(|must_be| {
            let name = self.names[slot.name as usize];
            Refusal::new(format!("'{}' does not do for {name}", text_of(slot.value)))
                .at_word(u32::from(slot.word) + 1, &text_of(slot.value))
                .remedy(format!("it must be {must_be}"))
        })
    }

    #[cold]
    fn missing(&self, name: &str) -> Refusal {
        Refusal::new(format!("{}: {name} is missing", self.command))
    }
}

fn text_of(value: Value<'_>) -> String {
    match value {
        Value::Word(word) => word.to_string(),
        Value::Number(n) => n.to_string(),
        Value::Real(x) => x.to_string(),
        Value::Ip4(address) => address.to_string(),
        Value::Ip6(address) => address.to_string(),
        Value::Prefix(prefix) => prefix.to_string(),
        Value::Mac([a, b, c, d, e, f]) => {
            format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
        }
        Value::Range(low, high) => format!("{low}-{high}"),
        Value::Text(text) => printable(text),
        Value::Group(_) => String::new(),
    }
}

#[cold]
fn unknown_name(names: &dyn Names, kind: &str, text: &str, word: u16) -> Refusal {
    let known = names.list(kind);
    let near = nearest(text, known.iter().map(String::as_str));
    let remedy = match known.len() {
        0 => format!("there is no {kind} yet"),
        _ if !near.is_empty() => format!("did you mean {}?", either(&near)),
        1..=NAMES_LISTED_MAX => format!("there is {}", known.join(", ")),
        count => format!("there are {count}, the first is {}", known[0]),
    };
    Refusal::new(format!("no {kind} '{}'", printable(text)))
        .at_word(u32::from(word) + 1, text)
        .remedy(remedy)
}
