//! Keys of HMAC TLVs (RFC 8754 §2.1.2): their commands, and what is signed with them.

use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv6Addr;
use std::sync::Arc;

use aws_lc_rs::hmac::{self, Context, HMAC_SHA1_FOR_LEGACY_USE_ONLY, HMAC_SHA256};
use quiver_control::{Column, Command, ConfigWriter, Output, Refusal, Registry, Table, order};
use quiver_core::Engine;
use quiver_core::memory::epoch::{Epochs, Published};
use quiver_wire::srh::{HMAC_FIELD_BYTES_MAX, HmacTlv, Srh};

use super::policies::Policies;
use super::stack::SRH_PLACE;
use crate::commands::GROUP;

/// Keys at most.
pub const KEYS_MAX: usize = 1024;
/// Bytes of a secret at most: Linux takes 64.
pub const SECRET_BYTES_MAX: usize = 64;

/// The flag by which Linux knows that there is an HMAC; RFC 8754 has none.
const LINUX_FLAG: u8 = 0x08;
/// Where an SRH has its flags.
const FLAGS_PLACE: usize = 5;

/// What is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Text {
    /// As RFC 8754 §2.1.2.1 has it.
    Rfc8754,
    /// As Linux has it: without the 16 bits behind the TLV's length, and with a flag.
    Linux,
}

/// A key.
pub(crate) struct Key {
    is_sha1: bool,
    text: Text,
    secret: String,
    key: hmac::Key,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.algorithm()) // never the secret
    }
}

impl Key {
    fn algorithm(&self) -> &'static str {
        if self.is_sha1 { "sha1" } else { "sha256" }
    }

    /// The HMAC of a header that was sent by `source`, as it stands in a TLV: 32 bytes, zeroes
    /// behind a shorter digest.
    fn compute(
        &self,
        source: Ipv6Addr,
        srh: &Srh<'_>,
        tlv: &HmacTlv<'_>,
    ) -> [u8; HMAC_FIELD_BYTES_MAX] {
        let mut context = Context::with_key(&self.key);
        context.update(&source.octets());
        context.update(&[srh.header().last_entry(), srh.header().flags()]);
        if self.text == Text::Rfc8754 {
            context.update(&tlv.flags.to_be_bytes());
        }
        context.update(&tlv.key_id.to_be_bytes());
        context.update(srh.list());
        let mut field = [0; HMAC_FIELD_BYTES_MAX];
        field.iter_mut().zip(context.sign().as_ref()).for_each(|(place, byte)| *place = *byte);
        field
    }

    /// Sign an SRH whose HMAC TLV has room.
    fn sign(&self, source: Ipv6Addr, header: &mut [u8]) {
        if let Some(flags) = header.get_mut(FLAGS_PLACE).filter(|_| self.text == Text::Linux) {
            *flags |= LINUX_FLAG;
        }
        let Ok((srh, _)) = Srh::parse(header) else { return };
        let Some(tlv) = srh.hmac() else { return };
        let (field, at) = (self.compute(source, &srh, &tlv), tlv.field_offset());
        if let Some(place) = header.get_mut(at..at + HMAC_FIELD_BYTES_MAX) {
            place.copy_from_slice(&field);
        }
    }

    /// Is the HMAC of a header right? It may stand in fewer bytes, but in no fewer than the digest
    /// has.
    pub(crate) fn verifies(&self, source: Ipv6Addr, srh: &Srh<'_>, tlv: &HmacTlv<'_>) -> bool {
        let computed = self.compute(source, srh, tlv);
        let digest_bytes = if self.is_sha1 { 20 } else { 32 };
        let differ = computed.iter().zip(tlv.field).fold(0, |all, (a, b)| all | (a ^ b));
        tlv.field.len() >= digest_bytes && std::hint::black_box(differ) == 0
    }
}

/// The keys as workers read them.
pub(crate) type KeyTable = Published<BTreeMap<u32, Arc<Key>>>;

/// Sign the SRH of a packet from `source` with the key that its HMAC TLV names. False when there is
/// no such key.
pub(super) fn sign_by(keys: &BTreeMap<u32, Arc<Key>>, source: Ipv6Addr, srh: &mut [u8]) -> bool {
    let id = Srh::parse(srh).ok().and_then(|(srh, _)| srh.hmac()).map(|tlv| tlv.key_id);
    let Some(key) = id.and_then(|id| keys.get(&id)) else { return false };
    key.sign(source, srh);
    true
}

/// All keys.
pub(super) struct Keys {
    keys: BTreeMap<u32, Arc<Key>>,
    published: Arc<KeyTable>,
}

fn no_key(id: u32) -> Refusal {
    Refusal::new(format!("there is no HMAC key {id}"))
        .remedy(format!("sr hmac key {id} algo sha256 secret …"))
}

impl Keys {
    /// None yet.
    pub fn new(epochs: &Arc<Epochs>) -> Keys {
        Keys { keys: BTreeMap::new(), published: Arc::new(Published::new(epochs, BTreeMap::new())) }
    }

    /// What workers read.
    pub fn published(&self) -> &Arc<KeyTable> {
        &self.published
    }

    /// Is there such a key?
    pub fn check(&self, id: u32) -> Result<(), Refusal> {
        if self.keys.contains_key(&id) { Ok(()) } else { Err(no_key(id)) }
    }

    /// Sign an IPv6 header with an SRH behind it, whose HMAC TLV has room.
    pub fn sign(&self, id: u32, source: Ipv6Addr, header: &mut [u8]) -> Result<(), Refusal> {
        let key = self.keys.get(&id).ok_or_else(|| no_key(id))?;
        key.sign(source, header.get_mut(SRH_PLACE..).unwrap_or_default());
        Ok(())
    }

    fn publish(&self) {
        self.published.publish(self.keys.clone());
    }
}

pub(super) fn register(registry: &mut Registry) {
    registry.command(
        Command::new(
            "sr hmac key <id:1-4294967295> algo (sha1|sha256) secret <secret:secret> [linux]",
        )
        .entry(order::ROUTES, "sr.hmac-keys.<id>: {algorithm: <sha1|sha256>, secret, linux}")
        .undo("sr hmac key del <id>")
        .replaces(&["id"])
        .group(GROUP)
        .help("Set a key that SRHs are signed and verified with")
        .details(
            "Policies that sign with it sign with the new one at once. `linux` leaves the 16 \
                 bits behind the length of the TLV out of what is signed, as Linux does, and sets \
                 the flag that it asks for; RFC 8754 §2.1.2.1 has them in, and no flag.",
        )
        .word("secret", "1 to 64 characters, the same at the other end")
        .word("linux", "as Linux signs and verifies")
        .example("sr hmac key 7 algo sha256 secret correct-horse")
        .example("sr hmac key 8 algo sha1 secret battery linux")
        .run(set),
    );
    registry.command(
        Command::new("sr hmac key del <id:1-4294967295>")
            .group(GROUP)
            .help("Delete a key that no policy signs with")
            .example("sr hmac key del 7")
            .run(|engine: &mut Engine, args| {
                let id = args.get("id")?;
                engine.with(|_, policies: &mut Policies| delete(policies, id))?;
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("show sr hmac")
            .group(GROUP)
            .help("Show the keys that SRHs are signed and verified with, without their secrets")
            .run(|engine: &mut Engine, _| Ok(show_keys(engine))),
    );
}

fn set(engine: &mut Engine, args: &quiver_control::Args<'_>) -> Result<Output, Refusal> {
    let id: u32 = args.get("id")?;
    let secret = args.secret("secret")?.unwrap_or_default();
    if secret.len() > SECRET_BYTES_MAX {
        let what = format!("a secret of {} bytes", secret.len());
        return Err(args.refuse("secret", what).remedy(format!("at most {SECRET_BYTES_MAX}")));
    }
    let is_sha1 = args.has("sha1");
    let algorithm = if is_sha1 { HMAC_SHA1_FOR_LEGACY_USE_ONLY } else { HMAC_SHA256 };
    let text = if args.has("linux") { Text::Linux } else { Text::Rfc8754 };
    let key = hmac::Key::new(algorithm, secret.as_bytes());
    let key = Arc::new(Key { is_sha1, text, secret, key });
    engine.with(|engine, policies: &mut Policies| {
        if policies.keys.keys.len() >= KEYS_MAX && !policies.keys.keys.contains_key(&id) {
            let what = format!("there are {KEYS_MAX} HMAC keys already");
            return Err(Refusal::new(what).remedy("delete one: sr hmac key del ID"));
        }
        let before = policies.keys.keys.insert(id, key);
        if let Err(refused) = policies.make_all_anew(engine, |policy| policy.hmac == Some(id)) {
            policies.keys.keys.remove(&id);
            policies.keys.keys.extend(before.map(|before| (id, before)));
            return Err(refused);
        }
        policies.keys.publish();
        Ok(Output::none())
    })
}

fn delete(policies: &mut Policies, id: u32) -> Result<(), Refusal> {
    policies.keys.check(id).map_err(|refused| refused.remedy("`show sr hmac`"))?;
    if let Some((bsid, _)) = policies.iter().find(|(_, policy)| policy.hmac == Some(id)) {
        return Err(Refusal::new(format!("SR policy {bsid} signs with HMAC key {id}"))
            .remedy(format!("sr policy del bsid {bsid}")));
    }
    policies.keys.keys.remove(&id);
    policies.keys.publish();
    Ok(())
}

fn show_keys(engine: &Engine) -> Output {
    let mut table =
        Table::new([Column::right("Key"), Column::left("Algorithm"), Column::left("Text")])
            .when_empty("no HMAC keys");
    for (id, key) in engine.get::<Policies>().into_iter().flat_map(|policies| &policies.keys.keys) {
        let text = if key.text == Text::Linux { "Linux" } else { "RFC 8754" };
        table.row().cell(*id).cell(key.algorithm()).cell(text);
    }
    Output::none().table("keys", table)
}

/// The part of `show running-config`. It must hold the secret, or the router could not be what it
/// is again.
pub(super) fn write_config(engine: &Engine, config: &mut ConfigWriter) {
    for (id, key) in engine.get::<Policies>().into_iter().flat_map(|policies| &policies.keys.keys) {
        let linux = if key.text == Text::Linux { " linux" } else { "" };
        config.command(format_args!(
            "sr hmac key {id} algo {} secret {}{linux}",
            key.algorithm(),
            config.secret(&key.secret)
        ));
    }
}
