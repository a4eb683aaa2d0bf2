//! What sessions stand on: bindings of ends (RFC 6146 §3.1), subscribers with a limit, and
//! permissions of remote addresses. All are objects of eight words that two keys lead to.
//!
//! | word | content |
//! | --- | --- |
//! | 0 to 2 | first key: an address, then port 16, kind 8, protocol 8, table 24 bits |
//! | 3 to 5 | second key: of a binding external address and port, then the same |
//! | 6 | sessions that use it |
//! | 7 | 1: configured, lives without sessions |
//!
//! The key of a permission is the remote address, then its kind and the number of the binding.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quiver_tables::sessions::{SessionError, SessionObjects, SessionTable, SessionsWriter};
use quiver_wire::IpProtocol;

use crate::{End, Flags};

const WORDS: usize = 8;
const KEY_WORDS: usize = 3;
const USERS: usize = 6;
const STATIC: usize = 7;

/// A key.
pub type Key = [u64; KEY_WORDS];
type Objects = SessionObjects<WORDS, KEY_WORDS>;
type Table = SessionTable<WORDS, KEY_WORDS>;
/// Who makes them.
pub type Writer = SessionsWriter<WORDS, KEY_WORDS>;

/// How many sessions a subscriber may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Sessions at most.
    pub sessions: u32,
    /// Bits of an address that name its subscriber.
    pub prefix_length: u8,
}

/// Kinds of keys.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Kind {
    Inside = 1,
    Outside,
    Subscriber,
    SubscriberOther,
    Permission,
    PermissionOther,
}

fn key(address: u128, rest: u64) -> Key {
    [(address >> 64) as u64, address as u64, rest]
}

fn rest(port: u16, kind: Kind, protocol: IpProtocol, table: u32) -> u64 {
    u64::from(port) << 48
        | (kind as u64) << 40
        | u64::from(protocol.0) << 32
        | u64::from(table & 0xff_ffff)
}

/// The key of a host's end; `table` is the small number of its table.
pub fn inside_key(host: u128, port: u16, protocol: IpProtocol, table: u32) -> Key {
    key(host, rest(port, Kind::Inside, protocol, table))
}

/// The key of an external end; `table` is the small number of the table outside.
pub fn outside_key(end: End, protocol: IpProtocol, table: u32) -> Key {
    key(end.address, rest(end.port, Kind::Outside, protocol, table))
}

/// The subscriber of a host: the first bits of its address.
pub fn subscriber(host: u128, length: u8) -> u128 {
    host & u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0)
}

fn subscriber_keys(subscriber: u128, table: u32) -> [Key; 2] {
    [Kind::Subscriber, Kind::SubscriberOther]
        .map(|kind| key(subscriber, rest(0, kind, IpProtocol(0), table)))
}

fn permission_keys(binding: u32, remote: u128) -> [Key; 2] {
    [Kind::Permission, Kind::PermissionOther]
        .map(|kind| key(remote, (kind as u64) << 40 | u64::from(binding)))
}

/// A binding, a subscriber or a permission as everybody reads it.
#[derive(Clone, Copy)]
pub struct Binding<'o>(&'o [AtomicU64; WORDS]);

impl Binding<'_> {
    fn word(self, at: usize) -> u64 {
        self.0[at].load(Ordering::Relaxed)
    }

    fn address(self, at: usize) -> u128 {
        u128::from(self.word(at)) << 64 | u128::from(self.word(at + 1))
    }

    /// Is it a binding of ends?
    pub fn is_binding(self) -> bool {
        (self.word(2) >> 40) as u8 == Kind::Inside as u8
    }

    /// Of a binding: the host's address and port.
    pub fn host(self) -> (u128, u16) {
        (self.address(0), (self.word(2) >> 48) as u16)
    }

    /// Of a binding: the protocol, as its keys have it.
    pub fn protocol(self) -> IpProtocol {
        IpProtocol((self.word(2) >> 32) as u8)
    }

    /// Of a binding: small number of the host's table.
    pub fn table(self) -> u32 {
        self.word(2) as u32 & 0xff_ffff
    }

    /// Of a binding: the external end.
    pub fn external(self) -> End {
        End { address: self.address(3), port: (self.word(5) >> 48) as u16 }
    }

    /// Sessions that use it.
    pub fn users(self) -> u32 {
        self.word(USERS) as u32
    }

    /// Is it configured?
    pub fn is_static(self) -> bool {
        self.word(STATIC) != 0
    }

    fn set_users(self, users: u32) {
        self.0[USERS].store(users.into(), Ordering::Relaxed);
    }
}

/// What everybody looks bindings up in.
#[derive(Clone)]
pub struct Readers {
    /// The look-up table.
    pub table: Table,
    objects: Arc<Objects>,
}

impl Readers {
    /// The number of what a key leads to.
    pub fn number(&self, key: &Key) -> Option<u32> {
        self.table.lookup(key).map(|index| index >> 1)
    }

    /// The binding of this number.
    pub fn get(&self, number: u32) -> Binding<'_> {
        Binding(self.objects.get(number))
    }

    /// The binding of this number, if it is one of ends and its key leads to it.
    pub fn live(&self, number: u32) -> Option<Binding<'_>> {
        let binding = self.get(number);
        let (host, port) = binding.host();
        let key = inside_key(host, port, binding.protocol(), binding.table());
        (binding.is_binding() && self.number(&key) == Some(number)).then_some(binding)
    }

    /// The binding of an external end.
    pub fn of_external(&self, end: End, protocol: IpProtocol, table: u32) -> Option<Binding<'_>> {
        self.number(&outside_key(end, protocol, table)).map(|number| self.get(number))
    }
}

/// The owner's bindings.
pub struct Bindings {
    /// Who makes them.
    pub writer: Writer,
    /// What everybody reads.
    pub read: Readers,
    count: usize,
}

impl Bindings {
    /// Those that a writer makes, of which there is none.
    pub fn new(writer: Writer) -> Bindings {
        let read = Readers { table: writer.table(), objects: writer.objects().clone() };
        Bindings { writer, read, count: 0 }
    }

    /// Live bindings of ends.
    pub fn count(&self) -> usize {
        self.count
    }

    /// End all and give the memory back (control thread).
    pub fn disable(&mut self) {
        self.writer.disable();
        self.count = 0;
    }

    fn make(&mut self, keys: [Key; 2], is_static: bool) -> Result<u32, SessionError> {
        let [[a, b, c], [d, e, f]] = keys;
        self.writer.insert([a, b, c, d, e, f, 0, is_static.into()])
    }

    /// Bind a host's end to an external one; the number of the binding.
    ///
    /// # Errors
    /// One of both ends is bound, or there is no room.
    pub fn bind(
        &mut self,
        inside: Key,
        outside: Key,
        is_static: bool,
    ) -> Result<u32, SessionError> {
        let number = self.make([inside, outside], is_static)?;
        self.count += 1;
        Ok(number)
    }

    /// End a binding.
    pub fn unbind(&mut self, number: u32) {
        if self.writer.remove(number) {
            self.count = self.count.saturating_sub(1);
        }
    }

    /// End a binding that no session uses, unless it is configured; `ended` gets it before.
    pub fn discard(&mut self, number: u32, ended: impl FnOnce(Binding<'_>)) {
        let binding = self.read.get(number);
        if self.writer.is_live(number) && binding.users() == 0 && !binding.is_static() {
            ended(binding);
            self.unbind(number);
        }
    }

    /// Sessions of a host's subscriber.
    pub fn used(&self, limit: Limit, host: u128, table: u32) -> u32 {
        let [key, _] = subscriber_keys(subscriber(host, limit.prefix_length), table);
        self.read.number(&key).map_or(0, |number| self.read.get(number).users())
    }

    /// May a remote address send to this binding?
    pub fn is_permitted(&self, number: u32, remote: u128) -> bool {
        self.read.number(&permission_keys(number, remote)[0]).is_some()
    }

    /// One more session of what two keys lead to, which is made when it is not there.
    fn add_user(&mut self, keys: [Key; 2]) -> Result<(), SessionError> {
        let number = match self.read.number(&keys[0]) {
            Some(number) => number,
            None => self.make(keys, false)?,
        };
        let used = self.read.get(number);
        used.set_users(used.users() + 1);
        Ok(())
    }

    /// One session less; without sessions it ends.
    fn drop_user(&mut self, key: &Key) {
        let Some(number) = self.read.number(key) else { return };
        let used = self.read.get(number);
        let users = used.users().saturating_sub(1);
        used.set_users(users);
        if users == 0 {
            self.writer.remove(number);
        }
    }

    /// A session of this binding with a remote address begins; what its flags are.
    ///
    /// # Errors
    /// There is no room.
    pub fn begin(
        &mut self,
        number: u32,
        remote: u128,
        limit: Option<Limit>,
    ) -> Result<Flags, SessionError> {
        let binding = self.read.get(number);
        let ((host, _), table) = (binding.host(), binding.table());
        let mut flags = Flags::default();
        if let Some(limit) = limit {
            self.add_user(subscriber_keys(subscriber(host, limit.prefix_length), table))?;
            flags = flags.with(Flags::counted(limit.prefix_length));
        }
        if let Err(error) = self.add_user(permission_keys(number, remote)) {
            self.discount(flags, host, table);
            return Err(error);
        }
        let binding = self.read.get(number);
        binding.set_users(binding.users() + 1);
        Ok(flags.with(Flags::PERMITTED))
    }

    /// A session ends, or did not begin after all. Its binding goes with its last session; `ended`
    /// gets it before.
    pub fn end(
        &mut self,
        number: u32,
        remote: u128,
        flags: Flags,
        ended: impl FnOnce(Binding<'_>),
    ) {
        let binding = self.read.get(number);
        let ((host, _), table) = (binding.host(), binding.table());
        self.discount(flags, host, table);
        if flags.has(Flags::PERMITTED) {
            self.drop_user(&permission_keys(number, remote)[0]);
        }
        let binding = self.read.get(number);
        binding.set_users(binding.users().saturating_sub(1));
        self.discard(number, ended);
    }

    fn discount(&mut self, flags: Flags, host: u128, table: u32) {
        if let Some(length) = flags.subscriber_length() {
            self.drop_user(&subscriber_keys(subscriber(host, length), table)[0]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_different_kinds_differ() {
        let end = End { address: 5, port: 6 };
        let mut all =
            vec![inside_key(5, 6, IpProtocol::UDP, 0), outside_key(end, IpProtocol::UDP, 0)];
        all.extend(subscriber_keys(5, 0));
        all.extend(permission_keys(0, 5));
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
