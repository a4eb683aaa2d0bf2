//! Files of vppcfg (github.com/pimvanpelt/vppcfg, docs/config-guide.md), as documents of this
//! router. What has no meaning here is noted with its line.

use std::collections::HashMap;

use super::comments::{Comments, normal};
use super::emit::emit;
use super::parse::{Key, Node, NodeValue, parse};
use super::tree::{Scalar, Tree};
use super::{INTERFACES, Position, SUB_INTERFACES};
use crate::changes::Mistake;
use crate::error::printable;

/// The packet MTU of interfaces whose file names none.
const MTU_DEFAULT: &str = "1500";

/// Switches of bridge domains: their names there and here.
const SWITCHES: [(&str, &str); 6] = [
    ("learn", "learn"),
    ("unicast-flood", "flood"),
    ("unknown-unicast-flood", "uu-flood"),
    ("unicast-forward", "forward"),
    ("arp-termination", "arp-term"),
    ("arp-unicast-forward", "arp-ufwd"),
];

/// What came of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// The document.
    pub yaml: String,
    /// What it does not say, and why.
    pub notes: Vec<(Position, String)>,
}

/// Make a document of a file of vppcfg.
///
/// # Errors
/// The file is no YAML, or no map.
pub fn from_vppcfg(text: &str) -> Result<Imported, Box<Mistake>> {
    let parsed = parse(text)?;
    let mut import = Import {
        tree: Tree::Map(super::tree::Map { is_section: true, ..Default::default() }),
        comments: Comments::default(),
        notes: Vec::new(),
        tags: HashMap::new(),
    };
    if let Some(root) = &parsed.root {
        import.file(root);
    }
    let yaml = match &import.tree {
        Tree::Map(map) => emit(map, &import.comments),
        _ => String::new(),
    };
    import.notes.sort_by_key(|(at, _)| (at.line, at.column));
    Ok(Imported { yaml, notes: import.notes })
}

struct Import {
    tree: Tree,
    comments: Comments,
    notes: Vec<(Position, String)>,
    /// VLAN tags of sub-interfaces, by their names: a bridge takes them off.
    tags: HashMap<String, u8>,
}

impl Import {
    fn note(&mut self, at: Position, what: impl Into<String>) {
        self.notes.push((at, what.into()));
    }

    fn put(&mut self, place: &[&str], value: Tree) {
        let keys: Vec<String> = place.iter().map(|key| (*key).to_owned()).collect();
        // Two sections of a file may say the same of an interface.
        let _ = self.tree.put(&keys, value, false);
    }

    fn file(&mut self, root: &Node) {
        let Some(sections) = self.members(root) else { return };
        // The encapsulation of sub-interfaces is known before they become members of bridges.
        let rank = |key: &str| (key == "bridgedomains") as u8;
        let mut order: Vec<&(Key, Node)> = sections.iter().collect();
        order.sort_by_key(|(key, _)| rank(&key.text));
        for (key, node) in order {
            match key.text.as_str() {
                "loopbacks" => self.each(node, Import::loopback),
                "bondethernets" => self.each(node, Import::bond),
                "bridgedomains" => self.each(node, Import::bridge),
                "interfaces" => self.each(node, Import::interface),
                "taps" => self.each(node, Import::tap),
                "vxlan_tunnels" => self.each(node, Import::vxlan_tunnel),
                "acls" => self.each(node, |import, key, _| {
                    let what = "access lists are not imported: `set acl-plugin acl` makes them";
                    import.note(key.at, format!("{}: {what}", printable(&key.text)));
                }),
                "prefixlists" => self.each(node, |import, key, _| {
                    let what = "prefix lists are for access lists, which are not imported";
                    import.note(key.at, format!("{}: {what}", printable(&key.text)));
                }),
                other => self.note(key.at, format!("unknown section '{}'", printable(other))),
            }
        }
    }

    /// The members of a map; a note when it is none.
    fn members<'n>(&mut self, node: &'n Node) -> Option<&'n [(Key, Node)]> {
        match &node.value {
            NodeValue::Map(members) => Some(members),
            _ if node.is_null() => Some(&[]),
            _ => {
                self.note(node.at, format!("keys must stand here, not {}", node.kind()));
                None
            }
        }
    }

    fn each(&mut self, node: &Node, one: impl Fn(&mut Import, &Key, &Node)) {
        for (key, node) in self.members(node).unwrap_or_default() {
            one(self, key, node);
        }
    }

    /// The text of a scalar; a note when it is none.
    fn text(&mut self, node: &Node) -> Option<String> {
        match &node.value {
            NodeValue::Scalar(text, _) if !node.is_null() => Some(text.clone()),
            _ => {
                self.note(node.at, format!("a value must stand here, not {}", node.kind()));
                None
            }
        }
    }

    fn scalar(&mut self, place: &[&str], node: &Node) {
        let Some(text) = self.text(node) else { return };
        let is_plain = matches!(node.value, NodeValue::Scalar(_, true));
        let scalar = match text.to_ascii_lowercase().as_str() {
            "true" if is_plain => Scalar::Truth(true),
            "false" if is_plain => Scalar::Truth(false),
            number if is_plain && number.bytes().all(|byte| byte.is_ascii_digit()) => {
                Scalar::Number(text)
            }
            _ => Scalar::Text(text),
        };
        self.put(place, Tree::Scalar(scalar));
    }

    fn texts(&mut self, node: &Node) -> Vec<(String, Position)> {
        let NodeValue::List(items) = &node.value else {
            self.note(node.at, format!("a list must stand here, not {}", node.kind()));
            return Vec::new();
        };
        items.iter().filter_map(|item| Some((self.text(item)?, item.at))).collect()
    }

    /// A description of what has no tag becomes a comment.
    fn remark(&mut self, place: &[&str], node: &Node) {
        let Some(text) = self.text(node) else { return };
        let mut remarks = &mut self.comments.root;
        for key in place {
            remarks = remarks.inside.entry(normal(key)).or_default();
        }
        remarks.above.push(format!(" {}", printable(&text)));
    }

    fn loopback(&mut self, key: &Key, node: &Node) {
        let name = key.text.as_str();
        self.put(&[INTERFACES, name, "loopback"], Tree::Map(Default::default()));
        self.put(&[INTERFACES, name, "state"], Tree::text("up"));
        let members = self.members(node).unwrap_or_default();
        for (key, value) in members {
            match key.text.as_str() {
                "mac" => self.scalar(&[INTERFACES, name, "mac"], value),
                _ => self.setting(&[INTERFACES, name], key, value),
            }
        }
        self.usual_mtu(&[INTERFACES, name], members);
    }

    fn vxlan_tunnel(&mut self, key: &Key, node: &Node) {
        let name = key.text.as_str();
        for (key, value) in self.members(node).unwrap_or_default() {
            let word = match key.text.as_str() {
                "local" => "src",
                "remote" => "dst",
                "vni" => "vni",
                _ => {
                    self.setting(&[INTERFACES, name], key, value);
                    continue;
                }
            };
            self.scalar(&[INTERFACES, name, "vxlan", word], value);
        }
    }

    /// What loopbacks, interfaces and sub-interfaces have in common.
    fn setting(&mut self, place: &[&str], key: &Key, value: &Node) {
        let below = |word: &'static str| -> Vec<String> {
            place.iter().copied().chain([word]).map(str::to_owned).collect()
        };
        let word = match key.text.as_str() {
            "description" => "tag",
            "lcp" => "lcp",
            "mtu" => "mtu",
            "state" => "state",
            "l2xc" => "xconnect",
            "addresses" => {
                let all = self.texts(value).into_iter().map(|(text, _)| Tree::text(text)).collect();
                let keys = below("addresses");
                let _ = self.tree.put(&keys, Tree::List(all), false);
                return;
            }
            other => {
                let what = format!("'{}' has no meaning here", printable(other));
                return self.note(key.at, what);
            }
        };
        let keys = below(word);
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        self.scalar(&keys, value);
    }

    fn usual_mtu(&mut self, place: &[&str], members: &[(Key, Node)]) {
        if !members.iter().any(|(key, _)| key.text == "mtu") {
            let keys: Vec<&str> = place.iter().copied().chain(["mtu"]).collect();
            self.put(&keys, Tree::Scalar(Scalar::Number(MTU_DEFAULT.to_owned())));
        }
    }

    fn bond(&mut self, key: &Key, node: &Node) {
        let name = key.text.as_str();
        let members = self.members(node).unwrap_or_default();
        let find = |word: &str| members.iter().find(|(key, _)| key.text == word);
        let mode = find("mode").and_then(|(_, value)| self.text(value));
        let mode = mode.unwrap_or_else(|| "lacp".to_owned());
        let hashes = matches!(mode.as_str(), "lacp" | "xor");
        let bond = [INTERFACES, name, "bond"];
        self.put(&bond, Tree::Map(Default::default()));
        self.put(&[INTERFACES, name, "bond", "mode"], Tree::text(mode));
        if hashes && find("load-balance").is_none() {
            self.put(&[INTERFACES, name, "bond", "load-balance"], Tree::text("l34"));
        }
        for (key, value) in members {
            match key.text.as_str() {
                "mode" => {}
                "load-balance" => self.scalar(&[INTERFACES, name, "bond", "load-balance"], value),
                "mac" => self.scalar(&[INTERFACES, name, "bond", "mac"], value),
                "description" => self.remark(&[INTERFACES, name], value),
                "interfaces" => {
                    for (member, _) in self.texts(value) {
                        let empty = Tree::Map(Default::default());
                        self.put(&[INTERFACES, name, "members", &member], empty);
                    }
                }
                other => {
                    self.note(key.at, format!("'{}' has no meaning here", printable(other)));
                }
            }
        }
    }

    fn interface(&mut self, key: &Key, node: &Node) {
        let name = key.text.as_str();
        let members = self.members(node).unwrap_or_default();
        for (key, value) in members {
            match key.text.as_str() {
                "mac" => self.scalar(&[INTERFACES, name, "mac"], value),
                "device-type" => {
                    let what = "the start-up file says which devices a router has";
                    self.note(key.at, format!("device-type: {what}"));
                }
                "sub-interfaces" => {
                    self.each(value, |import, key, node| import.sub_interface(name, key, node));
                }
                _ => self.setting(&[INTERFACES, name], key, value),
            }
        }
        self.up(&[INTERFACES, name], members);
        self.usual_mtu(&[INTERFACES, name], members);
    }

    /// An interface is up unless its file says otherwise.
    fn up(&mut self, place: &[&str], members: &[(Key, Node)]) {
        if !members.iter().any(|(key, _)| key.text == "state") {
            let keys: Vec<&str> = place.iter().copied().chain(["state"]).collect();
            self.put(&keys, Tree::text("up"));
        }
    }

    fn sub_interface(&mut self, parent: &str, key: &Key, node: &Node) {
        let number = key.text.as_str();
        let place = [INTERFACES, parent, SUB_INTERFACES, number];
        let mut tags = 1;
        let members = self.members(node).unwrap_or_default();
        let encapsulation = members.iter().find(|(key, _)| key.text == "encapsulation");
        match encapsulation {
            Some((_, value)) => {
                for (key, value) in self.members(value).unwrap_or_default() {
                    let word = key.text.as_str();
                    match word {
                        "dot1q" | "dot1ad" | "inner-dot1q" => {
                            tags += u8::from(word == "inner-dot1q");
                            self.scalar(&[&place[..], &[word]].concat(), value);
                        }
                        "exact-match" => {
                            if self
                                .text(value)
                                .is_some_and(|text| text.eq_ignore_ascii_case("true"))
                            {
                                self.scalar(&[&place[..], &[word]].concat(), value);
                            }
                        }
                        other => {
                            self.note(key.at, format!("'{}' has no meaning here", printable(other)))
                        }
                    }
                }
            }
            None => {
                let tag = Tree::Scalar(Scalar::Number(number.to_owned()));
                self.put(&[&place[..], &["dot1q"]].concat(), tag);
                let exact = Tree::Scalar(Scalar::Truth(true));
                self.put(&[&place[..], &["exact-match"]].concat(), exact);
            }
        }
        self.tags.insert(format!("{parent}.{number}"), tags);
        for (key, value) in members.iter().filter(|(key, _)| key.text != "encapsulation") {
            self.setting(&place, key, value);
        }
        self.up(&place, members);
    }

    fn tap(&mut self, key: &Key, node: &Node) {
        let name = key.text.as_str();
        self.put(&[INTERFACES, name, "tap"], Tree::Map(Default::default()));
        for (key, value) in self.members(node).unwrap_or_default() {
            match key.text.as_str() {
                "description" => self.scalar(&[INTERFACES, name, "tag"], value),
                "rx-ring-size" | "tx-ring-size" => {
                    self.scalar(&[INTERFACES, name, "tap", &key.text], value);
                }
                "host" => self.each(value, |import, key, value| {
                    let word = match key.text.as_str() {
                        "name" => "host-if-name",
                        "mac" => "host-mac-addr",
                        "mtu" => "host-mtu-size",
                        "namespace" => "host-ns",
                        other => {
                            let what = "Linux is told by its own commands";
                            let what = format!("'{}': {what}", printable(other));
                            return import.note(key.at, what);
                        }
                    };
                    import.scalar(&[INTERFACES, name, "tap", word], value);
                }),
                other => self.note(key.at, format!("'{}' has no meaning here", printable(other))),
            }
        }
    }

    fn bridge(&mut self, key: &Key, node: &Node) {
        let Some(number) = key.text.strip_prefix("bd") else {
            let what = format!("'{}' is no bridge domain: bdN", printable(&key.text));
            return self.note(key.at, what);
        };
        const DOMAINS: &str = "bridge-domains";
        self.put(&[DOMAINS, number], Tree::Map(Default::default()));
        for (key, value) in self.members(node).unwrap_or_default() {
            match key.text.as_str() {
                "description" => self.remark(&[DOMAINS, number], value),
                "mtu" => self.note(key.at, "mtu: a bridge domain has that of its interfaces"),
                "bvi" => {
                    if let Some(name) = self.text(value) {
                        self.bridged(&name, number);
                        let place = [INTERFACES, &name, "bridge", "bvi"];
                        self.put(&place, Tree::Scalar(Scalar::Truth(true)));
                    }
                }
                "interfaces" => {
                    for (name, _) in self.texts(value) {
                        self.bridged(&name, number);
                    }
                }
                "settings" => self.each(value, |import, key, value| {
                    let known = SWITCHES.iter().find(|(there, _)| *there == key.text);
                    match (known, key.text.as_str()) {
                        (Some((_, here)), _) => import.scalar(&[DOMAINS, number, here], value),
                        (None, "mac-age-minutes") => {
                            import.scalar(&[DOMAINS, number, "mac-age"], value);
                        }
                        (None, other) => import
                            .note(key.at, format!("'{}' has no meaning here", printable(other))),
                    }
                }),
                other => self.note(key.at, format!("'{}' has no meaning here", printable(other))),
            }
        }
    }

    /// Make an interface a member of a bridge domain; its VLAN tags come off on the way in.
    fn bridged(&mut self, name: &str, domain: &str) {
        let sub = self.tags.get(name).copied().zip(name.rsplit_once('.'));
        let place: Vec<&str> = match sub {
            Some((_, (parent, number))) => vec![INTERFACES, parent, SUB_INTERFACES, number],
            None => vec![INTERFACES, name],
        };
        let domain = Tree::Scalar(Scalar::Number(domain.to_owned()));
        self.put(&[&place[..], &["bridge", "domain"]].concat(), domain);
        if let Some((tags, _)) = sub {
            let count = Tree::Scalar(Scalar::Number(tags.to_string()));
            self.put(&[&place[..], &["tag-rewrite", "pop"]].concat(), count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_bonds_and_bridges_become_a_document() {
        let text = "\
loopbacks:
  loop1: {lcp: bvi1, mtu: 2000, addresses: [10.1.0.1/24]}
bondethernets:
  BondEthernet0: {description: core, interfaces: [e0, e1]}
bridgedomains:
  bd10:
    mtu: 2000
    bvi: loop1
    interfaces: [BondEthernet0.500, vxlan_tunnel1]
    settings: {learn: false, mac-age-minutes: 5}
vxlan_tunnels:
  vxlan_tunnel1: {description: far, local: 192.0.2.1, remote: 192.0.2.2, vni: 101}
interfaces:
  vxlan_tunnel1: {mtu: 2000}
  BondEthernet0:
    mtu: 2004
    sub-interfaces:
      100: {lcp: be0.100, addresses: [192.0.2.1/30]}
      500: {mtu: 2000, encapsulation: {dot1ad: 7, inner-dot1q: 8}}
";
        let imported = from_vppcfg(text).unwrap();
        let expected = "\
bridge-domains:
  10:
    learn: false
    mac-age: 5

interfaces:
  # core
  BondEthernet0:
    bond:
      load-balance: l34
      mode: lacp
    members:
      e0: {}
      e1: {}
    mtu: 2004
    state: up
    sub-interfaces:
      100:
        addresses: [192.0.2.1/30]
        dot1q: 100
        exact-match: true
        lcp: be0.100
        state: up
      500:
        bridge:
          domain: 10
        dot1ad: 7
        inner-dot1q: 8
        mtu: 2000
        state: up
        tag-rewrite:
          pop: 2
  loop1:
    addresses: [10.1.0.1/24]
    bridge:
      bvi: true
      domain: 10
    lcp: bvi1
    loopback: {}
    mtu: 2000
    state: up
  vxlan_tunnel1:
    bridge:
      domain: 10
    mtu: 2000
    state: up
    tag: far
    vxlan:
      dst: 192.0.2.2
      src: 192.0.2.1
      vni: 101
";
        assert_eq!(imported.yaml, expected);
        let notes: Vec<String> =
            imported.notes.iter().map(|(at, what)| format!("{}: {what}", at.line)).collect();
        assert_eq!(notes, ["7: mtu: a bridge domain has that of its interfaces"]);
    }
}
