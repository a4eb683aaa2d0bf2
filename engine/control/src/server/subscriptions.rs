//! Subscriptions: clients hear of events (a neighbour, a learned MAC address, a link) as they
//! happen.
//!
//! A topic is declared once ([`Topic`]): its name, what it says, and its fields. A crate that knows
//! of an event calls [`publish`] with one value for each field. `subscribe` is a job like `ping`:
//! its client gets one answer for each event until it leaves.
//!
//! Memory is bounded whatever clients do. Each topic has one ring of [`EVENTS_MAX`] events for all
//! clients, and a client is a place in each ring. A client that does not read fast enough loses the
//! oldest events and is told how many. Without a subscriber of a topic, publishing costs one
//! look-up and makes nothing.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use quiver_core::control::interfaces::InterfaceChange;
use quiver_core::{Engine, InterfaceId};
use serde_json::{Map, Value as Json, json};

use crate::args::Args;
use crate::error::Refusal;
use crate::grammar::Command;
use crate::job::{Job, Sink, Step};
use crate::output::{Column, Output, Table};
use crate::registry::Registry;

/// Events of one topic that are kept for clients that have not taken them yet.
pub const EVENTS_MAX: usize = 4096;
/// Events that one client gets in one turn of the control loop at most.
const EVENTS_PER_TURN: usize = 256;
/// How often a client's job looks for events.
const LOOK: Duration = Duration::from_millis(20);

/// A kind of event: declared once, as a constant of the crate that publishes it.
#[derive(Debug)]
pub struct Topic {
    /// Its name, as `subscribe` takes it.
    pub name: &'static str,
    /// What it tells, in a line.
    pub help: &'static str,
    /// The fields of each of its events, in order.
    pub fields: &'static [Field],
}

/// A field of the events of a topic.
#[derive(Debug)]
pub struct Field {
    /// Its key in JSON, with the unit last where it has one.
    pub key: &'static str,
    /// What it says.
    pub help: &'static str,
}

/// A value of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum EventValue {
    /// One of a few words.
    Word(&'static str),
    /// A name.
    Text(String),
    /// A number.
    Number(u64),
    /// Yes or no.
    Flag(bool),
    /// A MAC address.
    Mac([u8; 6]),
    /// An IP address.
    Ip(IpAddr),
    /// Nothing; JSON's null.
    None,
}

impl EventValue {
    fn to_json(&self) -> Json {
        match self {
            EventValue::Word(word) => json!(word),
            EventValue::Text(text) => json!(text),
            EventValue::Number(number) => json!(number),
            EventValue::Flag(flag) => json!(flag),
            EventValue::Mac(_) => json!(self.to_text()),
            EventValue::Ip(address) => json!(address.to_string()),
            EventValue::None => Json::Null,
        }
    }

    fn to_text(&self) -> String {
        match self {
            EventValue::Word(word) => (*word).to_owned(),
            EventValue::Text(text) => text.clone(),
            EventValue::Number(number) => number.to_string(),
            EventValue::Flag(flag) => if *flag { "yes" } else { "no" }.to_owned(),
            EventValue::Mac([a, b, c, d, e, f]) => {
                format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
            }
            EventValue::Ip(address) => address.to_string(),
            EventValue::None => "-".to_owned(),
        }
    }
}

/// An event as it waits for clients.
#[derive(Clone, Debug)]
struct Event {
    /// Its number among the events of all topics, from 1.
    number: u64,
    at_ns: u64,
    values: Box<[EventValue]>,
}

/// The events of one topic.
struct Ring {
    topic: &'static Topic,
    events: VecDeque<Event>,
    /// How many events the ring has lost at its front: the place of its first one.
    first: u64,
    subscribers: usize,
    published: u64,
}

impl Ring {
    fn end(&self) -> u64 {
        self.first + self.events.len() as u64
    }
}

/// All topics, on the control thread.
#[derive(Clone)]
pub struct Subscriptions(Rc<RefCell<Rings>>);

struct Rings {
    rings: Vec<Ring>,
    last_number: u64,
    /// Events that a ring keeps.
    kept_max: usize,
}

impl Subscriptions {
    pub(crate) fn new(topics: &[&'static Topic]) -> Subscriptions {
        Subscriptions::keeping(topics, EVENTS_MAX)
    }

    fn keeping(topics: &[&'static Topic], kept_max: usize) -> Subscriptions {
        let ring = |topic: &&'static Topic| Ring {
            topic,
            events: VecDeque::new(),
            first: 0,
            subscribers: 0,
            published: 0,
        };
        let rings = topics.iter().map(ring).collect();
        Subscriptions(Rc::new(RefCell::new(Rings { rings, last_number: 0, kept_max })))
    }

    /// Does anybody want events of a topic?
    pub fn wants(&self, topic: &'static Topic) -> bool {
        let rings = self.0.borrow();
        rings.rings.iter().any(|ring| ring.subscribers > 0 && std::ptr::eq(ring.topic, topic))
    }

    fn add(&self, topic: &'static Topic, at_ns: u64, values: Box<[EventValue]>) {
        debug_assert_eq!(
            values.len(),
            topic.fields.len(),
            "a value for each field of {}",
            topic.name
        );
        let mut rings = self.0.borrow_mut();
        let number = rings.last_number + 1;
        let kept_max = rings.kept_max;
        let ring = rings.rings.iter_mut().find(|ring| std::ptr::eq(ring.topic, topic));
        let Some(ring) = ring.filter(|ring| ring.subscribers > 0) else { return };
        if ring.events.len() >= kept_max {
            ring.events.pop_front();
            ring.first += 1;
        }
        ring.events.push_back(Event { number, at_ns, values });
        ring.published += 1;
        rings.last_number = number;
    }

    /// So many events are lost, and those that wait with them, for they are older.
    fn lose(&self, topic: &'static Topic, count: u64) {
        let mut rings = self.0.borrow_mut();
        let ring = rings.rings.iter_mut().find(|ring| std::ptr::eq(ring.topic, topic));
        if let Some(ring) = ring.filter(|ring| ring.subscribers > 0) {
            ring.first = ring.end() + count;
            ring.events.clear();
        }
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.0.borrow().rings.iter().map(|ring| ring.topic.name.to_owned()).collect()
    }

    pub(crate) fn find(&self, name: &str) -> Option<u32> {
        self.0
            .borrow()
            .rings
            .iter()
            .position(|ring| ring.topic.name == name)
            .map(|place| place as u32)
    }

    /// A client that hears of these topics from now on; of all when none is named.
    fn subscribe(&self, topics: &[usize]) -> Subscription {
        let mut rings = self.0.borrow_mut();
        let all = 0..rings.rings.len();
        let mut places: Vec<usize> =
            all.filter(|at| topics.is_empty() || topics.contains(at)).collect();
        places.dedup();
        let cursors = places.into_iter().map(|at| {
            let ring = &mut rings.rings[at];
            ring.subscribers += 1;
            (at, ring.end())
        });
        let cursors = cursors.collect();
        Subscription { all: self.clone(), cursors }
    }
}

/// One client's places in the rings.
struct Subscription {
    all: Subscriptions,
    /// Ring and the place of the next event there.
    cursors: Vec<(usize, u64)>,
}

/// What a client gets next.
#[derive(Debug, PartialEq)]
enum Next {
    /// Events that it was too slow for.
    Lost(u64),
    /// An event, as text and as JSON.
    Event(String, Json),
}

impl Subscription {
    /// The next events, the oldest first, `max` at most.
    fn take(&mut self, max: usize) -> Vec<Next> {
        let rings = self.all.0.borrow();
        let mut out = Vec::new();
        let mut lost = 0;
        for (at, place) in &mut self.cursors {
            let first = rings.rings[*at].first;
            lost += first.saturating_sub(*place);
            *place = first.max(*place);
        }
        if lost > 0 {
            out.push(Next::Lost(lost));
        }
        while out.len() < max {
            let front = |(at, place): &(usize, u64)| {
                let ring = &rings.rings[*at];
                ring.events
                    .get((*place - ring.first) as usize)
                    .map(|event| (event.number, ring.topic, event))
            };
            let waiting = self.cursors.iter().enumerate();
            let oldest =
                waiting.filter_map(|(which, cursor)| front(cursor).map(|event| (which, event)));
            let Some((which, (_, topic, event))) = oldest.min_by_key(|(_, (number, ..))| *number)
            else {
                break;
            };
            out.push(rendered(topic, event));
            self.cursors[which].1 += 1;
        }
        out
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut rings = self.all.0.borrow_mut();
        for (at, _) in &self.cursors {
            let ring = &mut rings.rings[*at];
            ring.subscribers -= 1;
            if ring.subscribers == 0 {
                ring.first = ring.end();
                ring.events = VecDeque::new();
            }
        }
    }
}

/// An event in words and in JSON.
fn rendered(topic: &Topic, event: &Event) -> Next {
    let time_s = event.at_ns as f64 / 1e9;
    let mut text = format!("{time_s:.3} {}", topic.name);
    let mut object = Map::new();
    object.insert("number".into(), json!(event.number));
    object.insert("time_s".into(), json!(time_s));
    object.insert("topic".into(), json!(topic.name));
    for (field, value) in topic.fields.iter().zip(&event.values) {
        if *value != EventValue::None {
            // Writing to a String cannot fail.
            let _ = write!(text, " {} {}", field.key, value.to_text());
        }
        object.insert(field.key.into(), value.to_json());
    }
    Next::Event(text, Json::Object(object))
}

/// Does any client want events of a topic? Who makes many asks before.
pub fn wants(engine: &Engine, topic: &'static Topic) -> bool {
    engine.get::<Subscriptions>().is_some_and(|all| all.wants(topic))
}

/// Publish an event: one value for each field of the topic. Does nothing when no client wants it.
pub fn publish<const N: usize>(engine: &Engine, topic: &'static Topic, values: [EventValue; N]) {
    if let Some(all) = engine.get::<Subscriptions>() {
        all.add(topic, engine.now_ns(), Box::new(values));
    }
}

/// Say that events of a topic were lost before they could be published: every subscriber is told.
pub fn publish_lost(engine: &Engine, topic: &'static Topic, count: u64) {
    if let Some(all) = engine.get::<Subscriptions>() {
        all.lose(topic, count);
    }
}

/// `subscribe`: a job that ends with its client, or after so many events.
struct Follow {
    subscription: Subscription,
    left: Option<u64>,
}

impl Job<Engine> for Follow {
    fn step(&mut self, _: &mut Engine, sink: &mut dyn Sink) -> Result<Step, Refusal> {
        // Its client has not read what it was sent: events wait in the rings, and the oldest make
        // room.
        if sink.must_pause() {
            return Ok(Step::Until(Instant::now() + LOOK));
        }
        let max =
            self.left.map_or(EVENTS_PER_TURN, |left| left.min(EVENTS_PER_TURN as u64) as usize);
        let events = self.subscription.take(max);
        let is_more = events.len() == max;
        for event in events {
            sink.spend(1);
            match event {
                Next::Lost(count) => sink.output(Output::both(
                    format!("{count} events lost: they were not read in time"),
                    json!({ "lost": count }),
                )),
                Next::Event(text, json) => {
                    sink.output(Output::both(text, json));
                    self.left = self.left.map(|left| left - 1);
                }
            }
        }
        Ok(match self.left {
            Some(0) => Step::Done(Output::none()),
            _ if is_more => Step::Again,
            _ => Step::Until(Instant::now() + LOOK),
        })
    }
}

const GROUP: &str = "Seeing inside";

/// Interfaces: made, deleted, up, down.
static INTERFACE: Topic = Topic {
    name: "interface",
    help: "an interface was made or deleted, or went up or down",
    fields: &[
        Field { key: "interface", help: "its name" },
        Field { key: "event", help: "created, deleted, up or down" },
        Field { key: "admin_up", help: "did the operator set it up?" },
        Field { key: "link_up", help: "does its device have a link?" },
    ],
};

/// Publish what happens to interfaces.
fn follow(engine: &mut Engine, id: InterfaceId, change: InterfaceChange) {
    let Some(interface) = engine.interface(id) else { return };
    let event = match change {
        InterfaceChange::Created => "created",
        InterfaceChange::Deleted => "deleted",
        InterfaceChange::State if interface.row().up => "up",
        InterfaceChange::State => "down",
        _ => return,
    };
    let name = EventValue::Text(interface.name.clone());
    let (admin, link) = (EventValue::Flag(interface.admin_up), EventValue::Flag(interface.link_up));
    publish(engine, &INTERFACE, [name, EventValue::Word(event), admin, link]);
}

pub(crate) fn register(registry: &mut Registry) {
    registry.topic(&INTERFACE);
    registry.on_start(|engine| engine.on_interface_change(follow));
    registry.command(
        Command::new("subscribe [(event <topic:event>)...] [count <:1-4294967295>]")
            .group(GROUP)
            .help("Hear of events as they happen: of those named, or of all")
            .details(
                "The command goes on until its client leaves, or until so many events as count \
                 says were told. A client of the JSON-RPC socket gets each event as an `output` \
                 notification, whose `json` has the fields that `show subscriptions` lists. 4096 \
                 events of each kind wait for a client that does not read; then it loses the \
                 oldest ones and is told how many (`lost`).",
            )
            .word("event", "this kind of event; `show subscriptions` lists them")
            .example("subscribe event interface count 1")
            .begin(begin),
    );
    registry.command(
        Command::new("show subscriptions")
            .group(GROUP)
            .help(
                "Show the events that clients can subscribe to, the fields of each, and how many \
                 clients did",
            )
            .run(|engine: &mut Engine, _| Ok(show(engine))),
    );
}

fn begin(engine: &mut Engine, args: &Args<'_>) -> Result<Box<dyn Job<Engine>>, Refusal> {
    let mut topics = Vec::new();
    for event in args.groups("event") {
        topics.push(event.named(engine, "event", "topic")? as usize);
    }
    let all =
        engine.get::<Subscriptions>().ok_or_else(|| Refusal::new("there are no events here"))?;
    Ok(Box::new(Follow { subscription: all.subscribe(&topics), left: args.optional("count")? }))
}

fn show(engine: &Engine) -> Output {
    let mut table = Table::new([
        Column::left("Event"),
        Column::right("Subscribers"),
        Column::right("Published"),
        Column::right("Waiting"),
        Column::left("Fields"),
        Column::left("Help"),
    ])
    .when_empty("nothing that is built in publishes events");
    if let Some(all) = engine.get::<Subscriptions>() {
        for ring in &all.0.borrow().rings {
            let keys: Vec<&str> = ring.topic.fields.iter().map(|field| field.key).collect();
            let fields = ring.topic.fields.iter();
            let fields: Vec<Json> =
                fields.map(|field| json!({ "name": field.key, "help": field.help })).collect();
            let row = table.row().cell(ring.topic.name).cell(ring.subscribers).cell(ring.published);
            let row = row.cell(ring.events.len());
            row.cell(crate::output::Cell::new(keys.join(" "), fields)).cell(ring.topic.help);
        }
    }
    Output::none().table("events", table)
}

#[cfg(test)]
mod tests {
    use super::*;

    static LINK: Topic = Topic {
        name: "link",
        help: "a link",
        fields: &[Field { key: "interface", help: "which" }, Field { key: "up", help: "is it up" }],
    };
    static STATION: Topic =
        Topic { name: "mac", help: "an address", fields: &[Field { key: "mac", help: "which" }] };

    fn add_link(all: &Subscriptions, at_ns: u64) {
        all.add(&LINK, at_ns, Box::new([EventValue::Text("e0".into()), EventValue::Flag(true)]));
    }

    fn add_station(all: &Subscriptions, last: u8) {
        all.add(&STATION, 0, Box::new([EventValue::Mac([2, 0, 0, 0, 0, last])]));
    }

    fn numbers(events: &[Next]) -> Vec<u64> {
        let number = |event: &Next| match event {
            Next::Lost(_) => None,
            Next::Event(_, json) => json["number"].as_u64(),
        };
        events.iter().filter_map(number).collect()
    }

    #[test]
    fn a_client_gets_the_events_of_its_topics_in_their_order() {
        let all = Subscriptions::keeping(&[&LINK, &STATION], 8);
        add_link(&all, 0); // nobody listens
        let (mut both, mut one) = (all.subscribe(&[]), all.subscribe(&[1]));
        add_link(&all, 1_500_000_000);
        add_station(&all, 7);
        add_link(&all, 0);
        assert_eq!(numbers(&both.take(10)), [1, 2, 3]);
        let got = one.take(10);
        let Next::Event(text, json) = &got[0] else { panic!("{got:?}") };
        assert_eq!((text.as_str(), got.len()), ("0.000 mac mac 02:00:00:00:00:07", 1));
        assert_eq!(
            *json,
            json!({"number": 2, "time_s": 0.0, "topic": "mac", "mac": "02:00:00:00:00:07"})
        );
        assert!(both.take(10).is_empty());
    }

    #[test]
    fn a_client_that_does_not_read_loses_the_oldest_events_and_is_told_how_many() {
        let all = Subscriptions::keeping(&[&LINK, &STATION], 8);
        let mut slow = all.subscribe(&[]);
        add_link(&all, 0);
        (0..20).for_each(|n| add_station(&all, n));
        let got = slow.take(100);
        assert_eq!(got[0], Next::Lost(12));
        // A flood of one topic takes nothing from another.
        assert_eq!(numbers(&got), [1, 14, 15, 16, 17, 18, 19, 20, 21]);
        assert!(slow.take(100).is_empty());
    }

    #[test]
    fn events_that_were_lost_before_they_were_published_are_told_too() {
        let all = Subscriptions::keeping(&[&LINK, &STATION], 8);
        let mut client = all.subscribe(&[1]);
        (0..3).for_each(|n| add_station(&all, n));
        all.lose(&STATION, 5);
        add_station(&all, 9);
        let got = client.take(10);
        assert_eq!((&got[0], numbers(&got)), (&Next::Lost(8), vec![4]));
    }

    #[test]
    fn a_client_takes_no_more_in_a_turn_than_it_may_and_what_nobody_wants_is_not_kept() {
        let all = Subscriptions::keeping(&[&LINK, &STATION], 8);
        let mut client = all.subscribe(&[1]);
        (0..8).for_each(|n| add_station(&all, n));
        assert_eq!(numbers(&client.take(3)), [1, 2, 3]);
        assert_eq!(numbers(&client.take(3)), [4, 5, 6]);
        assert!(all.wants(&STATION) && !all.wants(&LINK));
        drop(client);
        assert!(!all.wants(&STATION));
        assert!(all.0.borrow().rings.iter().all(|ring| ring.events.is_empty()));
        // Who comes later does not hear of what was before.
        let mut later = all.subscribe(&[1]);
        add_station(&all, 9);
        assert_eq!(later.take(10).len(), 1);
    }
}
