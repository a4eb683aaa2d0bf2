//! `acl-plugin-macip`: who may send from an interface, by the address of layer 2 and that of the
//! IP or ARP packet in the frame.
//!
//! Rules are compiled as those of other lists are: the address of layer 3 is the source, where IPv4
//! is mapped into IPv6 (RFC 4291 §2.5.5.2), and that of layer 2 the first 48 bits of the
//! destination.

use std::fmt;
use std::sync::Arc;

use quiver_classifier::{Classifier, Key, NONE, Rule as Compiled, field};
use quiver_core::cpu::Variant;
use quiver_core::graph::arc::DEVICE_INPUT;
use quiver_core::graph::counters::INTERFACES_MAX;
use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::stage::{LookUp, StageContext};
use quiver_core::memory::epoch::{Epochs, Pass, PublishedSlots};
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_tables::prefix::{IpPrefix, Prefix};
use quiver_wire::arp::ArpHeader;
use quiver_wire::ethernet::{EtherType, EthernetHeader};
use quiver_wire::vlan::Tags;
use quiver_wire::{Header, Ip4Header, Ip6Header, MacAddress};

use crate::rules::Action;
use crate::tables::{NOBODY, PASS};

/// The name of the node.
pub(crate) const MACIP: &str = "acl-plugin-macip";
/// Bits behind the address of layer 2 in a classifier's destination.
const MAC_SHIFT: u32 = 128 - MAC_BITS;
const MAC_BITS: u32 = 48;
/// An IPv4 address mapped into IPv6.
const MAPPED: u128 = 0xffff << 32;
/// The bits before it.
const MAPPED_BITS: u8 = 96;
/// The protocol field of a key whose layer 3 is IPv4 or ARP, and IPv6.
const IS_IP4: u32 = 4;
const IS_IP6: u32 = 6;
/// [`Key::owner`] has this bit when an ARP packet has another address of layer 2 than its frame.
const FORGED: u32 = 1 << 31;
/// Found: such a packet.
const FORGED_FOUND: u32 = NONE - 2;
/// What is found has this bit when the frame is dropped.
const DENY: u32 = 1;

quiver_core::reasons! {
    /// Why frames are dropped.
    pub enum MacipDrop {
        /// A rule says so.
        Denied = "acl-macip-deny",
            "a rule of a macip list denies the source (`show acl-plugin macip acl`)";
        /// None permits it.
        NoRule = "acl-macip-no-rule", "no rule of the interface's macip list matches the source";
        /// RFC 826: the two are the same.
        Forged = "acl-macip-arp", "an ARP packet names another sender than its frame";
        /// Gone meanwhile.
        Gone = "interface-removed", "the interface was deleted while the packet was under way";
    }
}

/// A rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MacipRule {
    pub denies: bool,
    /// `None`: every address of both families.
    prefix: Option<IpPrefix>,
    mac: MacAddress,
    /// How many of the address's first bits are compared.
    mac_bits: u8,
}

fn bits_of(mac: [u8; 6]) -> u64 {
    mac.iter().fold(0, |bits, byte| bits << 8 | u64::from(*byte))
}

fn mac_of(bits: u64) -> MacAddress {
    MacAddress(std::array::from_fn(|at| (bits >> (40 - 8 * at)) as u8))
}

/// The mask of so many first bits.
fn mask_of(bits: u8) -> u64 {
    ((1 << MAC_BITS) - 1) & !((1 << (MAC_BITS - u32::from(bits).min(MAC_BITS))) - 1)
}

impl MacipRule {
    /// Check a rule; without a mask, all of the address is compared. The error is a sentence.
    pub fn new(
        action: Action,
        prefix: Option<IpPrefix>,
        mac: Option<[u8; 6]>,
        mask: Option<[u8; 6]>,
    ) -> Result<MacipRule, String> {
        if mask.is_some() && mac.is_none() {
            return Err("a mask is for a MAC address: give both".to_owned());
        }
        let whole = if mac.is_some() { [0xff; 6] } else { [0; 6] };
        let mask = bits_of(mask.unwrap_or(whole));
        let mac_bits = mask.count_ones() as u8;
        if mask != mask_of(mac_bits) {
            return Err(format!("{} is no mask of first bits", mac_of(mask)));
        }
        Ok(MacipRule {
            denies: action == Action::Deny,
            prefix,
            mac: mac_of(bits_of(mac.unwrap_or_default()) & mask),
            mac_bits,
        })
    }

    fn compiled(&self, place: u32) -> Compiled<u128> {
        let number = place << 1 | if self.denies { DENY } else { 0 };
        let all = Compiled::all(number);
        let (source, family) = match self.prefix {
            None => (Prefix::ALL, None),
            Some(IpPrefix::V4(prefix)) => {
                let mapped = MAPPED | u128::from(prefix.first());
                (Prefix::new(mapped, MAPPED_BITS + prefix.len()), Some(IS_IP4))
            }
            Some(IpPrefix::V6(prefix)) => (prefix, Some(IS_IP6)),
        };
        let mac = u128::from(bits_of(self.mac.0)) << MAC_SHIFT;
        Compiled {
            source,
            destination: Prefix::new(mac, self.mac_bits),
            value: family.unwrap_or(0),
            mask: family.map_or(0, |_| field::PROTOCOL),
            ..all
        }
    }
}

/// In the words of the command.
impl fmt::Display for MacipRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.denies { "deny" } else { "permit" })?;
        if let Some(prefix) = self.prefix {
            write!(f, " ip {prefix}")?;
        }
        if self.mac_bits > 0 {
            write!(f, " mac {}", self.mac)?;
        }
        if self.mac_bits > 0 && u32::from(self.mac_bits) < MAC_BITS {
            write!(f, " mask {}", mac_of(mask_of(self.mac_bits)))?;
        }
        Ok(())
    }
}

/// A list, compiled.
pub(crate) struct MacipList {
    pub tag: String,
    pub rules: Vec<MacipRule>,
    classifier: Classifier<u128>,
}

impl MacipList {
    /// Compile rules, the first one first. The error is a sentence.
    pub fn new(tag: String, rules: Vec<MacipRule>) -> Result<MacipList, String> {
        let compiled: Vec<Compiled<u128>> =
            rules.iter().zip(0..).map(|(rule, place)| rule.compiled(place)).collect();
        let classifier = Classifier::new(&compiled).map_err(|error| error.to_string())?;
        Ok(MacipList { tag, rules, classifier })
    }
}

/// What workers read: the list of each interface.
pub(crate) struct MacipTables(PublishedSlots<Arc<MacipList>>);

impl MacipTables {
    pub fn new(epochs: &Arc<Epochs>) -> MacipTables {
        MacipTables(PublishedSlots::new(epochs, INTERFACES_MAX))
    }

    /// Let a list say who may send from an interface, or none.
    pub fn publish(&self, on: InterfaceId, list: Option<Arc<MacipList>>) {
        self.0.publish(on.index(), list);
    }

    fn find(&self, variant: Variant, pass: Pass<'_>, keys: &[Key<u128>], found: &mut [u32]) {
        let (mut keys, mut found) = (keys, found);
        while let Some(owner) = keys.first().map(|key| key.owner) {
            let count = keys.iter().take_while(|key| key.owner == owner).count();
            let (now, later) = keys.split_at(count);
            let (answers, rest) = found.split_at_mut(count.min(found.len()));
            let list = self.0.read((owner & !FORGED) as usize, pass);
            match list.filter(|_| owner != NOBODY) {
                None => answers.fill(PASS),
                Some(_) if owner & FORGED != 0 => answers.fill(FORGED_FOUND),
                Some(list) => list.classifier.find(variant, now, answers),
            }
            (keys, found) = (later, rest);
        }
    }
}

/// The sender of a frame as rules see it: of IP and ARP, behind up to two tags; others are
/// nobody's.
#[inline(always)]
fn key_of(frame: &[u8], owner: u32) -> Option<Key<u128>> {
    let (ethernet, behind) = EthernetHeader::split(frame)?;
    let tags = Tags::walk(ethernet.ether_type(), behind)?;
    let behind = behind.get(tags.len..)?;
    let mac = u128::from(bits_of(ethernet.source.0)) << MAC_SHIFT;
    let key = |source, family, owner| Key {
        source,
        destination: mac,
        fields: family,
        length: 1,
        owner,
        ..Key::default()
    };
    match tags.ether_type {
        EtherType::IPV4 => {
            let header = Ip4Header::overlay(behind)?;
            Some(key(MAPPED | u128::from(header.source_bits()), IS_IP4, owner))
        }
        EtherType::IPV6 => {
            let (header, _) = Ip6Header::split(behind)?;
            Some(key(header.source_bits(), IS_IP6, owner))
        }
        EtherType::ARP => {
            let arp = ArpHeader::overlay(behind)?;
            let is_forged = arp.sender_mac != ethernet.source;
            let owner = if is_forged { owner | FORGED } else { owner };
            let sender = arp.sender_ip().to_bits();
            Some(key(MAPPED | u128::from(sender), IS_IP4, owner))
        }
        _ => None,
    }
}

/// The node.
pub(crate) struct Macip {
    tables: Arc<MacipTables>,
}

impl LookUp for Macip {
    const NAME: &'static str = MACIP;
    type Reason = MacipDrop;
    type Key = Key<u128>;
    type Found = u32;
    type InterfaceState = ();

    fn interface_state(&self, _: &Context<'_>, _: InterfaceId) {}

    #[inline(always)]
    fn key(&self, (): (), packet: &mut Packet) -> Key<u128> {
        let owner = packet.rx.index() as u32;
        let nobody = Key { owner: NOBODY, ..Key::default() };
        key_of(packet.bytes(), owner).unwrap_or(nobody)
    }

    fn find(&self, _: Variant, (): (), _: &[Key<u128>], found: &mut [u32]) {
        found.fill(NONE); // the loop calls the others
    }

    #[inline(always)]
    fn find_in(
        &self,
        context: StageContext<'_>,
        variant: Variant,
        (): (),
        keys: &[Key<u128>],
        found: &mut [u32],
    ) {
        self.tables.find(variant, context.pass(), keys, found);
    }

    #[inline(always)]
    fn find_uniform_in(
        &self,
        context: StageContext<'_>,
        variant: Variant,
        (): (),
        keys: &[Key<u128>],
        found: &mut [u32],
    ) {
        self.tables.find(variant, context.pass(), keys, found);
    }

    #[inline(always)]
    fn resolve(
        &self,
        context: StageContext<'_>,
        (): (),
        _: Key<u128>,
        found: u32,
        packet: &mut Packet,
    ) -> Result<NodeId, MacipDrop> {
        match found {
            NONE => Err(MacipDrop::NoRule),
            FORGED_FOUND => Err(MacipDrop::Forged),
            found if found & DENY != 0 => Err(MacipDrop::Denied),
            _ => {
                let row = context.interface(packet.rx).ok_or(MacipDrop::Gone)?;
                Ok(context.next_in_arc(DEVICE_INPUT, packet.rx, packet, row.input))
            }
        }
    }
}

/// The declaration.
pub(crate) fn spec(tables: &Arc<MacipTables>) -> NodeSpec {
    let tables = tables.clone();
    let help = "Lets received frames pass whose sender a macip list permits";
    NodeSpec::look_up(help, move |_| Macip { tables: tables.clone() })
        .takes_offloads()
        .describe(|record, names| format!("to {}", names.node(record.next)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_mask_has_its_ones_first() {
        let rule = |mac, mask| MacipRule::new(Action::Permit, None, mac, mask);
        let mac = Some([2, 0x11, 0x22, 0x33, 0x44, 0x55]);
        let of_vendor = rule(mac, Some([0xff, 0xff, 0xff, 0, 0, 0])).expect("a mask");
        let words = "permit mac 02:11:22:00:00:00 mask ff:ff:ff:00:00:00";
        assert_eq!(of_vendor.to_string(), words);
        assert_eq!(rule(mac, None).expect("whole").to_string(), "permit mac 02:11:22:33:44:55");
        assert!(rule(mac, Some([0xff, 0, 0xff, 0, 0, 0])).is_err());
        assert!(rule(None, Some([0xff; 6])).is_err());
    }

    proptest! {
        #[test]
        fn no_frame_panics(frame in prop::collection::vec(any::<u8>(), 0..80), kind in 0usize..4) {
            let mut frame = frame;
            let kinds = [[8, 0], [8, 6], [0x86, 0xdd], [0x81, 0]];
            if let Some(place) = frame.get_mut(12..14) {
                place.copy_from_slice(&kinds[kind]);
            }
            let _ = key_of(&frame, 1);
        }

        #[test]
        fn the_first_rule_that_matches_decides(
            rules in prop::collection::vec((any::<bool>(), 0u8..=48, 20u8..=32), 1..90),
            packets in prop::collection::vec((0u64..6, 0u32..6), 1..30),
        ) {
            let mac = |n: u64| n << 45 | n;
            let rules: Vec<(MacipRule, u64, u64, Prefix<u32>)> = rules
                .into_iter()
                .zip(0u64..)
                .map(|((denies, mac_bits, length), n)| {
                    let (mac, mask) = (mac(n % 6), mask_of(mac_bits));
                    let prefix = Prefix::new(0x0a00_0000 + (n % 6) as u32, length);
                    let action = if denies { Action::Deny } else { Action::Permit };
                    let of = IpPrefix::V4(prefix);
                    let rule =
                        MacipRule::new(action, Some(of), Some(mac_of(mac).0), Some(mac_of(mask).0));
                    (rule.expect("a rule"), mac & mask, mask, prefix)
                })
                .collect();
            let list = MacipList::new(String::new(), rules.iter().map(|rule| rule.0).collect());
            let list = list.expect("compiles");
            for (n, host) in packets {
                let (mac, address) = (mac(n), 0x0a00_0000 + host);
                let key = Key {
                    source: MAPPED | u128::from(address),
                    destination: u128::from(mac) << MAC_SHIFT,
                    fields: IS_IP4,
                    ..Key::default()
                };
                let mut found = [0];
                list.classifier.find(Variant::best(), &[key], &mut found);
                let matches = |(_, wanted, mask, prefix): &&(MacipRule, u64, u64, Prefix<u32>)| {
                    mac & mask == *wanted && prefix.contains(address)
                };
                let first = rules.iter().find(matches);
                let expected = first.map(|(rule, ..)| rule.denies);
                let decided = (found[0] != NONE).then_some(found[0] & DENY != 0);
                prop_assert_eq!(decided, expected);
            }
        }
    }
}
