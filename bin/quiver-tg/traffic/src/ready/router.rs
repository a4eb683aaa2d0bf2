//! The router's commands for a ready profile, complete, so that they can be executed as
//! they stand.

use std::path::Path;

use quiver_control::client::{CallError, Connection, Peer};
use serde_json::{Value as Json, json};

use super::{Behaviour, Joined, READY, Ready, SEGMENTS, Shape, Traffic};

/// The peer, for messages.
const ROUTER: Peer = Peer {
    name: "router",
    remedy: "start it with `quiverd -c startup.conf`",
    forbidden: "this user may not use it (unix { gid … })",
    other: "its API is at api.sock",
};

/// The bridge domain of both ports.
const BRIDGE: u32 = 1;
/// The commands that steer packets into the segments.
const POLICY: &str = "2001:2:0:f000::1";
/// Where it sends them along: segments of a router behind the other port, in the order of travel.
const BEYOND: [&str; 2] = ["2001:2:0:e001::1", "2001:2:0:e001::2"];
/// The source of the packets around.
const ENCAPSULATOR: &str = "2001:2:0:ff00::1";

/// The router's own interfaces that `profile router` makes.
pub const INTERFACES: [&str; 2] = ["memif0/0", "memif0/1"];

impl Ready {
    /// The router's commands for a profile with these parameters, on interfaces of these names,
    /// which are there.
    ///
    /// # Errors
    /// When a parameter is not of the form `key=value`, or the profile does not have it.
    pub fn router(
        &self,
        interfaces: [&str; 2],
        parameters: &[String],
    ) -> Result<Vec<String>, String> {
        let shape = self.shape(parameters)?;
        Ok(self.commands(interfaces, &shape))
    }

    pub(super) fn commands(&self, interfaces: [&str; 2], shape: &Shape) -> Vec<String> {
        let mut commands: Vec<String> =
            interfaces.iter().map(|name| format!("set interface state {name} up")).collect();
        if let Traffic::Stations(joined) = self.traffic {
            commands.extend(join(joined, interfaces));
            return commands;
        }
        let mut named = interfaces.map(str::to_owned);
        if let Some(vlan) = shape.vlan {
            for name in &mut named {
                commands.push(format!("create sub-interfaces {name} {vlan}"));
                *name += &format!(".{vlan}");
                commands.push(format!("set interface state {name} up"));
            }
        }
        let [one, other] = &named;
        for (number, name) in named.iter().enumerate() {
            commands.push(match self.is_ip6() {
                true => format!("set interface ip address {name} 2001:2:0:{number}::1/64"),
                false => format!("set interface ip address {name} 198.18.{number}.1/24"),
            });
        }
        commands.extend(self.routes(one, other, shape));
        commands
    }

    fn is_ip6(&self) -> bool {
        matches!(self.traffic, Traffic::Routes6 | Traffic::Segments(..))
    }

    /// Where its packets go.
    fn routes(&self, one: &str, other: &str, shape: &Shape) -> Vec<String> {
        let Shape { flows, label, .. } = shape;
        let (next4, back4) = (format!("via 198.18.1.2 {other}"), format!("via 198.18.0.2 {one}"));
        let (next6, back6) = (format!("via 2001:2:0:1::2 {other}"), format!("via 2001:2::2 {one}"));
        match self.traffic {
            Traffic::Stations(_) => Vec::new(),
            Traffic::Flows4 => {
                vec![
                    format!("ip route add 48.0.0.0/8 {next4}"),
                    format!("ip route add 16.0.0.0/8 {back4}"),
                ]
            }
            Traffic::Routes4 => vec![
                format!("ip route add 20.0.0.0/32 count {flows} {next4}"),
                format!("ip route add 10.0.0.0/32 count {flows} {back4}"),
            ],
            Traffic::Routes6 => vec![
                format!("ip route add 2001:2:0:b000::/128 count {flows} {next6}"),
                format!("ip route add 2001:2:0:a000::/128 count {flows} {back6}"),
            ],
            Traffic::Label => vec![
                "mpls table add 0".to_owned(),
                format!("set interface mpls {one} enable"),
                format!("set interface mpls {other} enable"),
                format!("mpls local-label add {label} eos {next4} out-labels {}", label + 1),
                format!("mpls local-label add {} eos {back4} out-labels {label}", label + 1),
            ],
            Traffic::Segments(behaviour, segments) => {
                let used = &BEYOND[..usize::from(segments).max(1)];
                let next: Vec<String> =
                    used.iter().map(|segment| format!("next {segment}")).collect();
                let mut routes = vec![
                    format!("set sr encaps source addr {ENCAPSULATOR}"),
                    format!("sr policy add bsid {POLICY} {} encap", next.join(" ")),
                    format!("sr steer l3 2001:2:0:b000::/64 via bsid {POLICY}"),
                ];
                routes.extend(behaviour.commands(one));
                routes.push(format!("ip route add 2001:2:0:e001::/64 {next6}"));
                // What comes back from a function is put into segments again, and goes on by the
                // other port.
                let on = match behaviour {
                    Behaviour::Dynamic | Behaviour::Static => &next6,
                    _ => &back6,
                };
                routes.push(format!("ip route add 2001:2:0:e000::/64 {on}"));
                routes.push(format!("ip route add 2001:2:0:a000::/64 {back6}"));
                routes
            }
        }
    }
}

fn join(joined: Joined, [one, other]: [&str; 2]) -> Vec<String> {
    match joined {
        Joined::Patch => {
            vec![
                format!("test l2patch rx {one} tx {other}"),
                format!("test l2patch rx {other} tx {one}"),
            ]
        }
        Joined::CrossConnect => vec![
            format!("set interface l2 xconnect {one} {other}"),
            format!("set interface l2 xconnect {other} {one}"),
        ],
        Joined::Bridge => vec![
            format!("create bridge-domain {BRIDGE}"),
            format!("set interface l2 bridge {one} {BRIDGE}"),
            format!("set interface l2 bridge {other} {BRIDGE}"),
        ],
    }
}

impl Behaviour {
    /// What the router does with packets that come to the segments; `one` leads to where they go
    /// afterwards.
    fn commands(self, one: &str) -> Vec<String> {
        let sid = |segment: &str, behaviour: &str| {
            format!("sr localsid address {segment} behavior {behaviour}")
        };
        let proxy = |name: &str| {
            vec![sid(SEGMENTS[0], &format!("{name} nh 2001:2::2 oif {one} iif {one}"))]
        };
        match self {
            Behaviour::End => vec![sid(SEGMENTS[0], "end")],
            Behaviour::EndDecapsulating => vec![sid(SEGMENTS[0], "end usd")],
            Behaviour::EndThenDx6 => {
                vec![sid(SEGMENTS[0], "end"), sid(SEGMENTS[1], &format!("end.dx6 {one} 2001:2::2"))]
            }
            Behaviour::Dynamic => proxy("end.ad"),
            Behaviour::Masquerading => proxy("end.am"),
            Behaviour::Static => vec![sid(
                SEGMENTS[0],
                &format!(
                    "end.as nh 2001:2::2 oif {one} iif {one} src {ENCAPSULATOR} next {}",
                    SEGMENTS[1]
                ),
            )],
        }
    }
}

/// The memifs that the other commands are about.
pub fn interfaces() -> impl Iterator<Item = String> {
    (0..INTERFACES.len()).map(|id| format!("create interface memif id {id} master"))
}

/// The ready profiles, each with the commands that a running router does not know.
///
/// # Errors
/// When the router cannot be reached, or does not list its commands.
pub fn ask(router: &Path) -> Result<Vec<(&'static Ready, Vec<String>)>, String> {
    let mut connection = Connection::open(router, ROUTER)?;
    let answer = connection.call::<()>("commands", json!({}), &mut |_, _| Ok(()));
    let schema = answer.map_err(|why| match why {
        CallError::Unreachable(why) => why,
        CallError::Refused(_) | CallError::Interrupted | CallError::Caller(()) => {
            "the router does not say which commands it has".to_owned()
        }
    })?;
    let known = known(&schema);
    let missing = |ready: &Ready| {
        let commands = ready.router(INTERFACES, &[])?;
        let is_missing = |command: &String| !known.iter().any(|one| one.has(command));
        Ok::<_, String>(commands.into_iter().filter(is_missing).collect())
    };
    READY.iter().map(|ready| Ok((ready, missing(ready)?))).collect()
}

/// A command that a router has.
struct Known<'a> {
    name: &'a str,
    words: Vec<&'a str>,
}

impl Known<'_> {
    /// Is this one of its kind, and are its words known? Addresses and interfaces are no words.
    fn has(&self, command: &str) -> bool {
        let Some(rest) = command.strip_prefix(self.name) else { return false };
        let is_word = |word: &&str| {
            word.starts_with(|first: char| first.is_ascii_alphabetic())
                && !word.contains(['/', ':'])
        };
        rest.starts_with(' ')
            && rest.split_whitespace().filter(is_word).all(|word| self.words.contains(&word))
    }
}

/// The router's list of commands.
fn known(schema: &Json) -> Vec<Known<'_>> {
    let is_between = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'));
    let forms = schema.as_array().into_iter().flatten();
    let texts = forms.filter_map(|form| Some((form["command"].as_str()?, form["usage"].as_str()?)));
    texts.map(|(name, usage)| Known { name, words: usage.split(is_between).collect() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_router_that_has_a_command_need_not_know_all_of_its_words() {
        let usage = "sr localsid address (<sid:ip6> | <locator:prefix6>) behavior (end {[psp]} | \
            end.dx6 <interface>)";
        let schema = json!([{"command": "sr localsid address", "usage": usage}]);
        let known = known(&schema);
        let has = |command: &str| known.iter().any(|one| one.has(command));
        assert!(has("sr localsid address fc00::1 behavior end.dx6 memif0/0 fc00::2"));
        assert!(!has(
            "sr localsid address fc00::1 behavior end.ad nh fc00::2 oif memif0/0 iif memif0/0"
        ));
        assert!(!has("sr policy add bsid fc00::1 next fc00::2 encap"));
        assert!(!has("sr localsid addresses"));
    }
}
