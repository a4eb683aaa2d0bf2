//! End.AS, End.AD and End.AM as `sr localsid` knows them.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv6Addr};

use quiver_control::{Args, Refusal};
use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::Family;
use quiver_wire::ip6::address;
use quiver_wire::srh::{Form, Repr};
use quiver_wire::{Header, Ip6Header, IpProtocol};

use super::cached_header::CachedHeader;
use super::flows::{FLOWS, Flows};
use super::outer_header::OuterHeader;
use super::proxies::{self, Taking};
use super::return_interfaces::Around;
use super::{masquerade, to_function};
use crate::endpoint::adjacent::Adjacent;
use crate::endpoint::inner_packet::ETHERNET;
use crate::endpoint::sid_entry::SidEntry;
use crate::local_sids::{Behavior, Held, Kind, Names, Place};

/// The hop limit of a static proxy's outer headers unless the operator says another (RFC 8986
/// §5.1).
const HOP_LIMIT: u8 = 64;

/// The path that a static proxy knows.
#[derive(Clone, Debug)]
struct Path {
    source: Ipv6Addr,
    segments: Vec<Ipv6Addr>,
    form: Form,
    hop_limit: u8,
}

/// Which proxy.
#[derive(Clone, Debug)]
enum Proxying {
    /// End.AS.
    Static(Path),
    /// End.AD.
    Dynamic,
    /// End.AD.Flow, with so many flows.
    ByFlow(u32),
    /// End.AM.
    Masquerading { nat: bool, keeps: bool },
}

/// The control side.
#[derive(Debug)]
struct Proxy {
    proxying: Proxying,
    /// The function's address; none when it takes frames.
    function: Option<IpAddr>,
    out: InterfaceId,
    back: InterfaceId,
    /// Do packets of another kind go on to the next segment?
    bypass: bool,
    to: Adjacent,
}

/// The header that a path is travelled with; `None` when there is no room for it.
fn front(path: &Path, inside: IpProtocol) -> Option<Box<OuterHeader>> {
    let first = path.segments.first().copied()?;
    // One segment in the reduced form stands in the destination alone (RFC 8986 §5.2).
    let srh = (path.segments.len() > 1 || path.form == Form::Full)
        .then(|| Repr::new(&path.segments, path.form, inside));
    let srh_len = srh.as_ref().map_or(0, Repr::len);
    let mut front = Box::<OuterHeader>::default();
    let header = front.lay_out(Ip6Header::LEN + srh_len)?;
    let next = if srh.is_some() { IpProtocol::ROUTING } else { inside };
    Ip6Header::new(path.source, first, next, path.hop_limit, 0).write(header).ok()?;
    if let Some(srh) = srh {
        srh.emit(header.get_mut(Ip6Header::LEN..)?).ok()?;
    }
    Some(front)
}

impl Proxy {
    /// The family of what the function takes; none for frames.
    fn family(&self) -> Option<Family> {
        self.function.map(Family::of)
    }

    fn taking(&self) -> Taking {
        match (&self.proxying, self.family()) {
            (Proxying::Masquerading { .. }, _) => Taking::MASKED,
            (_, Some(Family::Ip4)) => Taking::IP4,
            (_, Some(Family::Ip6)) => Taking::IP6,
            (_, None) => Taking::FRAMES,
        }
    }

    fn around(&self) -> Result<Around, Refusal> {
        let inside = match self.family() {
            Some(Family::Ip4) => IpProtocol::IPV4,
            Some(Family::Ip6) => IpProtocol::IPV6,
            None => ETHERNET,
        };
        Ok(match &self.proxying {
            Proxying::Static(path) => Around::Fixed(front(path, inside).ok_or_else(|| {
                Refusal::new(format!(
                    "{} segments are more than fit in front of a packet",
                    path.segments.len()
                ))
                .remedy("at most 11, or 12 with `reduced`")
            })?),
            Proxying::Dynamic => Around::CachedHeader(Box::new(CachedHeader::new())),
            Proxying::ByFlow(flows) => Around::Flows(Box::new(Flows::new(*flows))),
            Proxying::Masquerading { nat, keeps } => {
                Around::Masked { nat: *nat, kept: keeps.then(|| Box::new(CachedHeader::new())) }
            }
        })
    }

    fn node(&self) -> &'static str {
        match self.proxying {
            Proxying::Static(_) => to_function::STATIC,
            Proxying::Dynamic | Proxying::ByFlow(_) => to_function::DYNAMIC,
            Proxying::Masquerading { .. } => masquerade::NODE,
        }
    }
}

impl Behavior for Proxy {
    fn words(&self, names: &Names<'_>) -> String {
        let mut words = match self.proxying {
            Proxying::Static(_) => "end.as",
            Proxying::Dynamic => "end.ad",
            Proxying::ByFlow(_) => "end.ad.flow",
            Proxying::Masquerading { .. } => "end.am",
        }
        .to_owned();
        // Writing to a string never fails.
        if let Some(function) = self.function {
            let _ = write!(words, " nh {function}");
        }
        let name = |id| names.engine.interface_name(id);
        let _ = write!(words, " oif {} iif {}", name(self.out), name(self.back));
        match &self.proxying {
            Proxying::Static(path) => {
                let _ = write!(words, " src {}", path.source);
                path.segments.iter().for_each(|segment| words += &format!(" next {segment}"));
                words += if path.form == Form::Reduced { " reduced" } else { "" };
                if path.hop_limit != HOP_LIMIT {
                    let _ = write!(words, " hop-limit {}", path.hop_limit);
                }
            }
            Proxying::Masquerading { nat, keeps } => {
                words += if *nat { " nat" } else { "" };
                words += if *keeps { " cache" } else { "" };
            }
            Proxying::ByFlow(flows) if *flows != FLOWS => {
                let _ = write!(words, " flows {flows}");
            }
            Proxying::Dynamic | Proxying::ByFlow(_) => {}
        }
        words + if self.bypass { " bypass" } else { "" }
    }

    fn hold(&mut self, engine: &mut Engine, place: Place) -> Result<Held, Refusal> {
        let node = engine.node_id(self.node());
        let node = node.ok_or_else(|| Refusal::new("the node of this proxy is not built in"))?;
        let around = self.around()?;
        let mut entry =
            SidEntry { interface: self.out.0, argument: self.back.0, ..SidEntry::default() };
        match self.family() {
            Some(Family::Ip4) => entry.four = self.to.hold(engine, place, Family::Ip4)?,
            Some(Family::Ip6) => entry.six = self.to.hold(engine, place, Family::Ip6)?,
            None => {}
        }
        if let Err(refused) = proxies::claim(engine, self.back, place, self.taking(), around) {
            self.to.release(engine);
            return Err(refused);
        }
        let keeps = matches!(self.proxying, Proxying::Masquerading { keeps: true, .. });
        entry.proxy_option = (self.bypass | keeps).into();
        Ok(Held { node, words: entry.words() })
    }

    fn release(&mut self, engine: &mut Engine) {
        proxies::release(engine, self.back, self.taking());
        self.to.release(engine);
    }

    fn names(&self, interface: InterfaceId) -> bool {
        self.out == interface || self.back == interface
    }
}

fn make(
    engine: &Engine,
    args: &Args<'_>,
    proxying: Proxying,
) -> Result<Box<dyn Behavior>, Refusal> {
    let (out, back) = (args.interface(engine, "oif")?, args.interface(engine, "iif")?);
    let function = args.optional::<IpAddr>("function")?;
    let to = Adjacent::to(function.map(|function| (function, out)));
    Ok(Box::new(Proxy { proxying, function, out, back, bypass: args.has("bypass"), to }))
}

fn make_static(engine: &mut Engine, args: &Args<'_>) -> Result<Box<dyn Behavior>, Refusal> {
    let source = args.get::<Ipv6Addr>("src")?;
    if !address::is_unicast(source) || address::is_link_local(source) {
        return Err(
            args.refuse("src", format!("{source} is no address that segments can be sent from"))
        );
    }
    let segment = |next: Args<'_>| {
        let segment = next.get::<Ipv6Addr>("segment")?;
        match address::is_unicast(segment) && !address::is_link_local(segment) {
            true => Ok(segment),
            false => Err(next.refuse("segment", format!("{segment} cannot be a segment"))),
        }
    };
    let segments = args.groups("next").map(segment).collect::<Result<Vec<_>, Refusal>>()?;
    let form = if args.has("reduced") { Form::Reduced } else { Form::Full };
    make(
        engine,
        args,
        Proxying::Static(Path { source, segments, form, hop_limit: args.or("hops", HOP_LIMIT)? }),
    )
}

fn make_dynamic(engine: &mut Engine, args: &Args<'_>) -> Result<Box<dyn Behavior>, Refusal> {
    make(engine, args, Proxying::Dynamic)
}

fn make_by_flow(engine: &mut Engine, args: &Args<'_>) -> Result<Box<dyn Behavior>, Refusal> {
    make(engine, args, Proxying::ByFlow(args.or("flows", FLOWS)?))
}

fn make_masquerading(engine: &mut Engine, args: &Args<'_>) -> Result<Box<dyn Behavior>, Refusal> {
    if args.optional::<IpAddr>("function")?.is_some_and(|function| function.is_ipv4()) {
        let what = "a masqueraded packet is IPv6, and so is its next hop";
        return Err(args.refuse("function", what).remedy("give an IPv6 address"));
    }
    make(engine, args, Proxying::Masquerading { nat: args.has("nat"), keeps: args.has("cache") })
}

/// What the command knows.
pub(super) const KINDS: [Kind; 4] = [
    Kind {
        name: "end.as",
        syntax: "[nh <function:ip>] oif <oif:interface> iif <iif:interface> src <src:ip6> (next \
                 <segment:ip6>)... {[reduced] [hop-limit <hops:1-255>] [bypass]}",
        help: "inner packets to a function that knows no segments; what comes back goes along this \
               list of segments",
        words: &[
            (
                "nh",
                "the function's address, of the family that it takes; without it the function \
                 takes frames",
            ),
            ("oif", "the interface that leads to the function"),
            ("iif", "the interface by which packets come back; no other SID may have it"),
            ("src", "the source of the headers that go in front of what comes back"),
            ("next", "a segment, in the order of the path"),
            ("reduced", "leave the first segment out of the list"),
            ("hop-limit", "of the headers that go in front; 64"),
            (
                "bypass",
                "packets of another kind than the function takes go on to the next segment; \
                 without it they die",
            ),
        ],
        example: "end.as nh 10.0.0.2 oif e0 iif e1 src 2001:db8::1 next fc00:0:2::1 next \
                  fc00:0:3::6",
        make: make_static,
    },
    Kind {
        name: "end.ad",
        syntax: "[nh <function:ip>] oif <oif:interface> iif <iif:interface> [bypass]",
        help: "inner packets to a function that knows no segments; what comes back gets the \
               headers of the last packet to the SID",
        words: &[],
        example: "end.ad nh 10.0.0.2 oif e0 iif e1",
        make: make_dynamic,
    },
    Kind {
        name: "end.ad.flow",
        syntax: "nh <function:ip> oif <oif:interface> iif <iif:interface> {[bypass] [flows \
                 <flows:1-65536>]}",
        help: "inner packets to a function that knows no segments; what comes back gets the \
               headers of the last packet of its flow",
        words: &[(
            "flows",
            "flows whose headers are kept; 1024. A flow without packets for 30 s gives its place \
             to another one",
        )],
        example: "end.ad.flow nh 10.0.0.2 oif e0 iif e1",
        make: make_by_flow,
    },
    Kind {
        name: "end.am",
        syntax: "nh <function:ip> oif <oif:interface> iif <iif:interface> {[nat] [cache]}",
        help: "IPv6 packets to a function that knows no segments, as if they went to their last \
               segment",
        words: &[
            ("nat", "the destination that the function gives a packet becomes its last segment"),
            (
                "cache",
                "packets that the function sends of its own go along the segments of the last \
                 packet to the SID; until one has come, they die",
            ),
        ],
        example: "end.am nh 2001:db8::2 oif e0 iif e1",
        make: make_masquerading,
    },
];

#[cfg(test)]
mod tests {
    use quiver_wire::srh::Srh;

    use super::*;

    fn path(count: u16, form: Form) -> Path {
        let segments = (1..=count).map(|at| Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, at)).collect();
        Path { source: Ipv6Addr::LOCALHOST, segments, form, hop_limit: HOP_LIMIT }
    }

    #[test]
    fn the_reduced_form_of_one_segment_has_no_srh() {
        let alone =
            front(&Path { hop_limit: 9, ..path(1, Form::Reduced) }, IpProtocol::IPV4).unwrap();
        assert_eq!((alone.len(), &alone.header()[6..8]), (40, &[4, 9][..]));
        let full = front(&path(1, Form::Full), IpProtocol::IPV4).unwrap();
        assert_eq!((full.len(), full.header()[6], full.header()[40]), (64, 43, 4));
        let (srh, _) = Srh::parse(&full.header()[40..]).unwrap();
        assert_eq!(srh.active(), Some(path(1, Form::Full).segments[0]));
    }

    #[test]
    fn as_many_segments_fit_as_the_refusal_says() {
        for (count, form, fits) in [
            (11, Form::Full, true),
            (12, Form::Full, false),
            (12, Form::Reduced, true),
            (13, Form::Reduced, false),
        ] {
            assert_eq!(front(&path(count, form), ETHERNET).is_some(), fits, "{count} {form:?}");
        }
    }
}
