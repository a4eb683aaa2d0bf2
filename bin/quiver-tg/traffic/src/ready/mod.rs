//! Ready profiles: the eight load tests of the operator's article (seed 002) and the traffic of
//! every forwarding mode of the CSIT report (seed 004 §1.5.2), from one schema and one table.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value as Json, json};

use crate::profile::Profile;

mod router;

pub use self::router::{INTERFACES, ask, interfaces};

/// How the router joins its ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Joined {
    /// By a patch.
    Patch,
    /// By a cross-connect.
    CrossConnect,
    /// By a bridge.
    Bridge,
}

/// The router's behaviour at the segments of encapsulated traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Behaviour {
    /// End.
    End,
    /// End of a packet without a routing header: what is inside goes on (RFC 8986 §4.16.3).
    EndDecapsulating,
    /// End, then End.DX6.
    EndThenDx6,
    /// End.AD.
    Dynamic,
    /// End.AM.
    Masquerading,
    /// End.AS.
    Static,
}

/// The kind of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Traffic {
    /// From host to host; nothing is looked up, or both MAC addresses.
    Stations(Joined),
    /// UDP over IPv4 with source and destination out of /16 networks: flows as a tester makes them.
    Flows4,
    /// IPv4 to consecutive /32 routes.
    Routes4,
    /// IPv6 to consecutive /128 routes.
    Routes6,
    /// MPLS with one label.
    Label,
    /// IPv6 to be encapsulated one way; the other way as it comes encapsulated, with so many
    /// segments in a routing header (none: the segment is the destination).
    Segments(Behaviour, u8),
}

/// One profile of the table; parameters change these values.
pub struct Ready {
    /// Its name.
    pub name: &'static str,
    /// Description in one line.
    pub what: &'static str,
    traffic: Traffic,
    /// Bytes without FCS; the smallest that holds the headers when there is none.
    frame: Option<u64>,
    directions: u64,
    /// Flows, hosts or routes in each direction.
    flows: u64,
    order: &'static str,
}

const fn ready(
    name: &'static str,
    what: &'static str,
    traffic: Traffic,
    frame: u64,
    directions: u64,
    flows: u64,
) -> Ready {
    let frame = if frame == 0 { None } else { Some(frame) };
    Ready { name, what, traffic, frame, directions, flows, order: "sequential" }
}

const fn random(ready: Ready) -> Ready {
    Ready { order: "random", ..ready }
}

/// Flows of the load tests that spread over queues.
const MANY: u64 = 10_000;

/// All of them.
pub const READY: &[Ready] = &[
    random(ready("u1", "1514 B, one direction", Traffic::Flows4, 1514, 1, MANY)),
    random(ready("u2", "64 B, many flows, one direction", Traffic::Flows4, 64, 1, MANY)),
    ready("u3", "64 B, one flow, one direction", Traffic::Flows4, 64, 1, 1),
    ready("u4", "64 B, MPLS, one direction", Traffic::Label, 64, 1, 1),
    random(ready("b1", "1514 B, both directions", Traffic::Flows4, 1514, 2, MANY)),
    random(ready("b2", "64 B, many flows, both directions", Traffic::Flows4, 64, 2, MANY)),
    ready("b3", "64 B, one flow, both directions", Traffic::Flows4, 64, 2, 1),
    ready("b4", "64 B, MPLS, both directions", Traffic::Label, 64, 2, 1),
    ready(
        "l2patch",
        "layer 2 patch: one host on each side",
        Traffic::Stations(Joined::Patch),
        64,
        2,
        1,
    ),
    ready(
        "l2xc",
        "layer 2 cross-connect: one host on each side",
        Traffic::Stations(Joined::CrossConnect),
        64,
        2,
        1,
    ),
    ready(
        "l2bdbase",
        "bridge: 254 hosts on each side",
        Traffic::Stations(Joined::Bridge),
        64,
        2,
        254,
    ),
    ready(
        "l2bdscale10k",
        "bridge: 5,000 hosts on each side",
        Traffic::Stations(Joined::Bridge),
        64,
        2,
        5_000,
    ),
    ready(
        "l2bdscale100k",
        "bridge: 50,000 hosts on each side",
        Traffic::Stations(Joined::Bridge),
        64,
        2,
        50_000,
    ),
    ready(
        "l2bdscale1m",
        "bridge: 500,000 hosts on each side",
        Traffic::Stations(Joined::Bridge),
        64,
        2,
        500_000,
    ),
    ready("ip4base", "IPv4: 254 routes in each direction", Traffic::Routes4, 64, 2, 254),
    ready("ip4scale20k", "IPv4: 10,000 routes in each direction", Traffic::Routes4, 64, 2, 10_000),
    ready(
        "ip4scale200k",
        "IPv4: 100,000 routes in each direction",
        Traffic::Routes4,
        64,
        2,
        100_000,
    ),
    ready(
        "ip4scale2m",
        "IPv4: 1,000,000 routes in each direction",
        Traffic::Routes4,
        64,
        2,
        1_000_000,
    ),
    ready("ip6base", "IPv6: 254 routes in each direction", Traffic::Routes6, 0, 2, 254),
    ready("ip6scale20k", "IPv6: 10,000 routes in each direction", Traffic::Routes6, 0, 2, 10_000),
    ready(
        "ip6scale200k",
        "IPv6: 100,000 routes in each direction",
        Traffic::Routes6,
        0,
        2,
        100_000,
    ),
    ready(
        "ip6scale2m",
        "IPv6: 1,000,000 routes in each direction",
        Traffic::Routes6,
        0,
        2,
        1_000_000,
    ),
    ready(
        "srv6enc1sid",
        "SRv6: encapsulation; End without a routing header",
        Traffic::Segments(Behaviour::EndDecapsulating, 0),
        0,
        2,
        253,
    ),
    ready(
        "srv6enc2sids",
        "SRv6: encapsulation; End and End.DX6",
        Traffic::Segments(Behaviour::EndThenDx6, 2),
        0,
        2,
        253,
    ),
    ready(
        "srv6enc2sids-nodecaps",
        "SRv6: encapsulation; End alone",
        Traffic::Segments(Behaviour::End, 2),
        0,
        2,
        253,
    ),
    ready(
        "srv6proxy-dyn",
        "SRv6: encapsulation; End.AD",
        Traffic::Segments(Behaviour::Dynamic, 2),
        0,
        2,
        253,
    ),
    ready(
        "srv6proxy-masq",
        "SRv6: encapsulation; End.AM",
        Traffic::Segments(Behaviour::Masquerading, 2),
        0,
        2,
        253,
    ),
    ready(
        "srv6proxy-stat",
        "SRv6: encapsulation; End.AS",
        Traffic::Segments(Behaviour::Static, 2),
        0,
        2,
        253,
    ),
];

/// Parameters and their meaning.
pub const PARAMETERS: &[(&str, &str)] = &[
    ("frame", "bytes without FCS, or imix"),
    ("flows", "flows, hosts or routes in each direction"),
    ("directions", "1 or 2"),
    ("order", "sequential, random or zipf"),
    ("vlan", "a tag of all frames, 1 to 4094"),
    ("label", "the label of MPLS frames; those of the other direction have the next one"),
];

/// A profile as it is printed.
#[derive(Clone, Debug, PartialEq)]
struct Shape {
    frame: Option<Json>,
    flows: u64,
    directions: u64,
    order: String,
    vlan: Option<u64>,
    label: u64,
}

/// The ready profile of this name.
///
/// # Errors
/// When there is none; the message lists those that there are.
pub fn by_name(name: &str) -> Result<&'static Ready, String> {
    READY.iter().find(|ready| ready.name == name).ok_or_else(|| {
        let names: Vec<&str> = READY.iter().map(|ready| ready.name).collect();
        format!("no ready profile `{name}`; there are {}", names.join(", "))
    })
}

impl Ready {
    /// The profile's text. `ports` is `memif:SOCKET`, `af_packet:ONE,OTHER` or `tap:ONE,OTHER`;
    /// `parameters` are `key=value`.
    ///
    /// # Errors
    /// When the ports or a parameter are not of these forms, or the profile does not have the
    /// parameter.
    pub fn profile(&self, ports: &str, parameters: &[String]) -> Result<String, String> {
        let shape = self.shape(parameters)?;
        let ports = self.ports(ports, &shape)?;
        let streams: Vec<Json> =
            (0..shape.directions).map(|from| self.stream(from, &shape)).collect();
        let mut text = format!("# {}: {}\n", self.name, self.what);
        for command in self.commands(INTERFACES, &shape) {
            let _ = writeln!(text, "# router: {command}");
        }
        for (key, list) in [("ports", ports), ("streams", streams)] {
            let _ = writeln!(text, "{key}:");
            for item in list {
                let _ = writeln!(text, "  - {item}");
            }
        }
        // What is printed can be run.
        Profile::parse(&text, Path::new(self.name)).map_err(|error| error.to_string())?;
        Ok(text)
    }

    fn shape(&self, parameters: &[String]) -> Result<Shape, String> {
        let mut shape = Shape {
            frame: self.frame.map(Json::from),
            flows: self.flows,
            directions: self.directions,
            order: self.order.to_owned(),
            vlan: None,
            label: 16,
        };
        for parameter in parameters {
            let (key, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let number = |least: u64, most: u64| match value.parse::<u64>() {
                Ok(number) if (least..=most).contains(&number) => Ok(number),
                _ => Err(format!("{key}: `{value}` is no number from {least} to {most}")),
            };
            match key {
                "frame" if value == "imix" => shape.frame = Some(json!("imix")),
                "frame" => shape.frame = Some(json!(number(60, 9216)?)),
                "flows" => shape.flows = number(1, 1 << 24)?,
                "directions" => shape.directions = number(1, 2)?,
                "order" if matches!(value, "sequential" | "random" | "zipf") => {
                    shape.order = value.to_owned()
                }
                "order" => {
                    return Err(format!("order: `{value}` is none of sequential, random and zipf"));
                }
                "vlan" => shape.vlan = Some(number(1, 4094)?),
                "label" => shape.label = number(16, (1 << 20) - 2)?,
                _ => {
                    let known: Vec<&str> = PARAMETERS.iter().map(|(name, _)| *name).collect();
                    return Err(format!("no parameter `{key}`; there are {}", known.join(", ")));
                }
            }
        }
        Ok(shape)
    }

    fn is_switched(&self) -> bool {
        matches!(self.traffic, Traffic::Stations(_))
    }

    fn ports(&self, text: &str, shape: &Shape) -> Result<Vec<Json>, String> {
        let wrong = || {
            format!(
                "ports `{text}` are none of memif:SOCKET, af_packet:ONE,OTHER and tap:ONE,OTHER"
            )
        };
        let (kind, rest) = text.split_once(':').ok_or_else(wrong)?;
        let devices: Vec<Json> = match kind {
            "memif" if !rest.is_empty() => {
                (0..2).map(|id| json!({"socket": rest, "id": id})).collect()
            }
            "af_packet" | "tap" => {
                let key = if kind == "tap" { "name" } else { "interface" };
                let (one, other) = rest.split_once(',').ok_or_else(wrong)?;
                [one, other].iter().map(|name| json!({ key: name })).collect()
            }
            _ => return Err(wrong()),
        };
        let port = |(number, device): (usize, Json)| {
            let mut port = json!({ kind: device });
            port["mac"] = json!(format!("02:00:00:00:{number:02x}:01"));
            if !self.is_switched() {
                port["ip4"] = json!([format!("198.18.{number}.2")]);
                port["ip6"] = json!([format!("2001:2:0:{number}::2")]);
                port["gateway"] = match self.traffic {
                    Traffic::Routes6 | Traffic::Segments(..) => {
                        json!(format!("2001:2:0:{number}::1"))
                    }
                    _ => json!(format!("198.18.{number}.1")),
                };
            }
            if let Some(vlan) = shape.vlan {
                port["vlan"] = json!(vlan);
            }
            port
        };
        Ok(devices.into_iter().enumerate().map(port).collect())
    }

    fn stream(&self, from: u64, shape: &Shape) -> Json {
        let to = 1 - from;
        let mut stream =
            json!({"name": format!("{}:{from}-{to}", self.name), "from": from, "to": to});
        if let Some(frame) = &shape.frame {
            stream["frame"] = frame.clone();
        }
        let run = |first: &str| match shape.flows {
            1 => json!(first),
            count => json!({"first": first, "count": count}),
        };
        let is_many = shape.flows > 1;
        let side = |of: [&'static str; 2]| of[from as usize];
        match self.traffic {
            Traffic::Stations(_) => {
                let macs = ["02:10:00:00:00:00", "02:20:00:00:00:00"];
                let ethernet =
                    json!({"src": run(macs[from as usize]), "dst": run(macs[to as usize])});
                let (source, destination) = (format!("198.18.{from}.2"), format!("198.18.{to}.2"));
                stream["layers"] = json!({
                    "ethernet": ethernet, "ip4": {"src": source, "dst": destination}, "udp": {}
                });
                if is_many {
                    stream["flows"] = json!({"fields": "lockstep", "order": shape.order});
                }
            }
            Traffic::Flows4 => {
                let (source, destination) =
                    (side(["16.0.0.1", "48.0.0.1"]), side(["48.0.0.1", "16.0.0.1"]));
                stream["layers"] =
                    json!({"ip4": {"src": run(source), "dst": run(destination)}, "udp": {}});
                if is_many {
                    stream["flows"] = json!({"fields": "lockstep", "order": shape.order});
                }
            }
            Traffic::Label => {
                let (source, destination) =
                    (side(["16.0.0.1", "48.0.0.1"]), side(["48.0.0.1", "16.0.0.1"]));
                let ip4 = json!({"src": source, "dst": destination});
                stream["layers"] =
                    json!([{"mpls": {"label": shape.label + from}}, {"ip4": ip4}, {"udp": {}}]);
            }
            Traffic::Routes4 => {
                let destination = ordered(run(side(["20.0.0.0", "10.0.0.0"])), shape);
                stream["layers"] = json!({"ip4": {"dst": destination}, "udp": {}});
            }
            Traffic::Routes6 => {
                let destination = ordered(run(side(["2001:2:0:b000::", "2001:2:0:a000::"])), shape);
                stream["layers"] = json!({"ip6": {"dst": destination}, "udp": {}});
            }
            Traffic::Segments(..) if from == 0 => {
                let destination = ordered(run("2001:2:0:b000::"), shape);
                stream["layers"] = json!({"ip6": {"dst": destination}, "udp": {}});
            }
            Traffic::Segments(_, segments) => {
                let inner = json!({
                    "ip6": {"src": "2001:2:0:b000::1",
                        "dst": ordered(run("2001:2:0:a000::"), shape)}
                });
                let mut layers =
                    vec![json!({"ip6": {"dst": SEGMENTS[0]}}), inner, json!({"udp": {}})];
                if segments > 0 {
                    layers
                        .insert(1, json!({"srh": {"segments": SEGMENTS[..usize::from(segments)]}}));
                }
                stream["layers"] = Json::Array(layers);
            }
        }
        stream
    }
}

/// The segments of encapsulated traffic, in the order of travel.
const SEGMENTS: [&str; 2] = ["2001:2:0:e000::1", "2001:2:0:e000::2"];

/// A run in the requested order.
fn ordered(mut run: Json, shape: &Shape) -> Json {
    if run.is_object() {
        run["order"] = json!(shape.order);
    }
    run
}

/// The table, as text; with a `router`, also the commands that this router does not know.
///
/// # Errors
/// When the router cannot be reached, or does not list its commands.
pub fn list(router: Option<&Path>) -> Result<String, String> {
    let answers = match router {
        Some(router) => ask(router)?,
        None => READY.iter().map(|ready| (ready, Vec::new())).collect(),
    };
    let mut text = String::new();
    for (ready, missing) in answers {
        let _ = writeln!(text, "{:<24}{}", ready.name, ready.what);
        if let Some(command) = missing.first() {
            let _ = writeln!(text, "{:<24}the router does not know `{command}`", "");
        }
    }
    text.push_str("\nParameters (--param key=value):\n");
    for (name, what) in PARAMETERS {
        let _ = writeln!(text, "{name:<24}{what}");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ready_profile_is_a_profile_over_any_kind_of_port() {
        for ready in READY {
            for ports in ["memif:/run/quiver/memif.sock", "af_packet:e0,e1", "tap:t0,t1"] {
                let text =
                    ready.profile(ports, &[]).unwrap_or_else(|why| panic!("{}: {why}", ready.name));
                let profile = Profile::parse(&text, Path::new("x")).expect("a profile");
                assert_eq!(profile.streams.len() as u64, ready.directions, "{text}");
                assert_eq!(profile.ports.len(), 2);
            }
        }
    }

    #[test]
    fn parameters_change_what_is_sent() {
        let all =
            ["frame=imix", "flows=7", "directions=1", "order=zipf", "vlan=100"].map(str::to_owned);
        let text = by_name("ip4base").expect("ready").profile("tap:a,b", &all).expect("a profile");
        let profile = Profile::parse(&text, Path::new("x")).expect("a profile");
        assert_eq!(profile.streams.len(), 1);
        assert!(
            text.contains("\"count\":7,\"order\":\"zipf\"") && text.contains("\"vlan\":100"),
            "{text}"
        );
        assert!(profile.streams[0].value.sizes.genome().is_some());
    }

    #[test]
    fn what_is_not_there_is_refused_with_what_is() {
        assert!(by_name("u9").err().expect("no profile").contains("u1, u2"));
        let u1 = by_name("u1").expect("ready");
        let refused = |ports: &str, parameter: &str| {
            u1.profile(ports, &[parameter.to_owned()]).expect_err("must be refused")
        };
        assert!(refused("tap:a,b", "speed=1").contains("there are frame, flows"));
        assert!(refused("tap:a,b", "flows=0").contains("1 to 16777216"));
        assert!(refused("tap:a,b", "order=best").contains("sequential, random and zipf"));
        assert!(refused("tap:a", "flows=1").contains("tap:ONE,OTHER"));
        assert!(refused("veth", "flows=1").contains("memif:SOCKET"));
    }

    #[test]
    fn a_router_is_told_what_each_profile_needs() {
        let of = |name: &str, parameters: &[&str]| {
            let parameters: Vec<String> =
                parameters.iter().map(|text| (*text).to_owned()).collect();
            by_name(name).expect("ready").router(INTERFACES, &parameters).expect("commands")
        };
        for ready in READY {
            assert!(
                ready.router(INTERFACES, &[]).is_ok_and(|commands| commands.len() > 3),
                "{}",
                ready.name
            );
        }
        let routed = of("ip4base", &["flows=7", "vlan=100"]);
        for command in [
            "create sub-interfaces memif0/1 100",
            "set interface ip address memif0/1.100 198.18.1.1/24",
            "ip route add 20.0.0.0/32 count 7 via 198.18.1.2 memif0/1.100",
        ] {
            assert!(routed.iter().any(|one| one == command), "{command}: {routed:?}");
        }
        let label = "mpls local-label add 30 eos via 198.18.0.2 memif0/0 out-labels 29";
        assert!(of("b4", &["label=29"]).iter().any(|one| one == label));
        assert!(of("l2bdbase", &["vlan=100"]).iter().all(|one| !one.contains("sub-interfaces")));
    }

    #[test]
    fn the_eight_load_tests_are_there_in_both_directions() {
        for number in 1..=4 {
            let of = |kind: char| by_name(&format!("{kind}{number}")).expect("ready");
            assert_eq!((of('u').directions, of('b').directions), (1, 2));
            assert_eq!(of('u').traffic, of('b').traffic);
            assert_eq!(of('u').frame, of('b').frame);
        }
    }
}
