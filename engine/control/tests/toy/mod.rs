//! A toy router for the tests: interfaces by name, routes as counted, and commands in the words of
//! the real one.
#![allow(dead_code)]

use std::net::IpAddr;
use std::time::{Duration, Instant};

use quiver_control::*;

/// What the toy remembers.
#[derive(Debug, Default)]
pub struct Toy {
    pub interfaces: Vec<String>,
    pub up: Vec<bool>,
    pub routes: Vec<(IpPrefix, Vec<String>)>,
    pub batches: Vec<usize>,
    pub log: Vec<String>,
    /// Rows that `show numbers` has made.
    pub rows_made: std::sync::Arc<std::sync::atomic::AtomicUsize>,
    pub jobs_dropped: std::sync::Arc<std::sync::atomic::AtomicUsize>,
}

impl Names for Toy {
    fn find(&self, kind: &str, name: &str) -> Option<u32> {
        let known = self.interfaces.iter().position(|known| known == name)?;
        (kind == "interface").then_some(known as u32)
    }

    fn list(&self, kind: &str) -> Vec<String> {
        if kind == "interface" { self.interfaces.clone() } else { Vec::new() }
    }
}

impl Toy {
    pub fn new() -> Toy {
        Toy { interfaces: vec!["e0".into(), "e1".into()], up: vec![false; 2], ..Toy::default() }
    }
}

struct Ping {
    left: u64,
    address: IpAddr,
    next: Instant,
    interval: Duration,
    dropped: std::sync::Arc<std::sync::atomic::AtomicUsize>,
}

impl Job<Toy> for Ping {
    fn step(&mut self, _: &mut Toy, sink: &mut dyn Sink) -> Result<Step, Refusal> {
        if Instant::now() < self.next {
            return Ok(Step::Until(self.next));
        }
        sink.line(&format!("reply from {}", self.address));
        self.left -= 1;
        self.next += self.interval;
        Ok(if self.left == 0 { Step::Done(Output::text("done")) } else { Step::Until(self.next) })
    }
}

impl Drop for Ping {
    fn drop(&mut self) {
        self.dropped.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    }
}

fn add_route(toy: &mut Toy, args: &Args<'_>) -> Result<(), Refusal> {
    let prefix: IpPrefix = args.get("prefix")?;
    let mut paths = Vec::new();
    for path in args.groups("via") {
        let mut text = match path.optional::<IpAddr>("next-hop")? {
            Some(next_hop) => next_hop.to_string(),
            None if path.has("drop") => "drop".into(),
            None => format!("table {}", path.get::<u32>("table")?),
        };
        if path.has("interface") {
            text += &format!(" if{}", path.interface(toy, "interface")?.0);
        }
        if let Some(weight) = path.optional::<u8>("weight")? {
            text += &format!(" weight {weight}");
        }
        let labels: Vec<u32> = path.all("label")?;
        if !labels.is_empty() {
            text += &format!(" labels {labels:?}");
        }
        paths.push(text);
    }
    if args.has("del") {
        toy.routes.retain(|(known, _)| *known != prefix);
    } else {
        toy.routes.push((prefix, paths));
    }
    Ok(())
}

/// The toy's commands.
pub fn commands() -> Commands<Toy> {
    let mut commands = Commands::new();
    commands.add(
        Command::new("set interface state <interface> <state:up|down>")
            .help("Bring an interface up or down")
            .run(|toy: &mut Toy, args| {
                let interface = args.interface(toy, "interface")?;
                toy.up[interface.index()] = args.get::<&str>("state")? == "up";
                Ok(Output::none())
            }),
    );
    commands.add(
        Command::new(
            "ip route add|del <prefix> [table <:u32>] [count <:1-16777216>] (via (<next-hop:ip> \
             [<interface>] | drop | ip4-lookup-in-table <table:u32>) {[weight <:1-255>] \
             [preference <:u8>] [out-labels <label:0-1048575>...]})...",
        )
        .help("Add or remove a route")
        .run(|toy: &mut Toy, args| {
            if args.get::<IpPrefix>("prefix")?.has_host_bits() {
                return Err(args.refuse("prefix", "bits are set behind the length"));
            }
            add_route(toy, args).map(|()| Output::none())
        })
        .run_many("prefix", |toy, batch| {
            toy.batches.push(batch.len());
            batch.each(|args| {
                if args.get::<IpPrefix>("prefix").is_ok_and(|prefix| prefix.has_host_bits()) {
                    return Err(args.refuse("prefix", "bits are set behind the length"));
                }
                add_route(toy, args)
            })
        }),
    );
    commands.add(
        Command::new(
            "create interface memif {id <:u32> [socket-id <:u32>] master|slave [mode \
             <:ethernet|ip>] [ring-size <:64-65536>] [secret <:secret>] [hw-addr <:mac>]}",
        )
        .help("Create a memif interface")
        .word("ring-size", "entries per ring, a power of two")
        .example("create interface memif id 0 socket-id 1 master ring-size 1024")
        .run(|toy: &mut Toy, args| {
            let name = format!("memif{}/{}", args.or("socket-id", 0u32)?, args.get::<u32>("id")?);
            if toy.interfaces.contains(&name) {
                return Err(args.refuse("id", format!("{name} exists already")));
            }
            toy.interfaces.push(name.clone());
            toy.up.push(false);
            Ok(Output::text(name))
        }),
    );
    commands.add(
        Command::new(
            "packet-generator new '{' {name <:word> [limit <:u64>] [rate <:rate>] [size <:range>] \
             [node <:node>] [data <:block>]} '}'",
        )
        .help("Create a stream of packets")
        .run(|toy: &mut Toy, args| {
            toy.log.push(format!(
                "{:?} {:?}",
                args.optional::<f64>("rate")?,
                args.optional::<&str>("data")?
            ));
            Ok(Output::none())
        }),
    );
    commands.add(
        Command::new(
            "create sub-interfaces <interface> <id:u32> [dot1q|dot1ad <outer:1-4094|any> \
             [inner-dot1q <inner:1-4094|any>]] [exact-match] [default|untagged]",
        )
        .help("Create a sub-interface")
        .run(|_: &mut Toy, _| Ok(Output::none())),
    );
    commands.add(
        Command::new("create loopback interface {[mac <:mac>] [instance <:u32>]}")
            .also("loopback create-interface {[mac <:mac>] [instance <:u32>]}")
            .help("Create a loopback interface")
            .run(|toy: &mut Toy, args| {
                toy.interfaces.push(format!("loop{}", args.or("instance", 0u32)?));
                toy.up.push(false);
                Ok(Output::none())
            }),
    );
    commands.add(Command::new("show interface [<interface>]").help("Show interfaces").run(
        |toy: &mut Toy, args| {
            let only = args.optional_interface(toy, "interface")?;
            let mut table =
                Table::new([Column::left("Name"), Column::right("Idx"), Column::left("State")]);
            for (index, name) in toy.interfaces.iter().enumerate() {
                if only.is_none_or(|only| only.index() == index) {
                    table.row().cell(name).cell(index).cell(if toy.up[index] {
                        "up"
                    } else {
                        "down"
                    });
                }
            }
            Ok(table.into())
        },
    ));
    commands.add(
        Command::new("show interface address")
            .help("Show addresses")
            .run(|_: &mut Toy, _| Ok(Output::text("none"))),
    );
    commands.add(
        Command::new("show runtime [max] [<what:summary|verbose>]")
            .also("show run [max] [<what:summary|verbose>]")
            .help("Show what the nodes did")
            .run(|_: &mut Toy, _| Ok(Output::text("runtime"))),
    );
    commands.add(
        Command::new("show numbers <count:u64> [total]").help("Show numbers").run_or_begin(
            |toy: &mut Toy, args| {
                let (count, has_total) = (args.get::<u64>("count")?, args.has("total"));
                let mut next = 0;
                let columns = [Column::left("Name"), Column::right("Number")];
                let listing =
                    Listing::new("numbers", columns, move |toy: &mut Toy, table, most| {
                        while next < count && table.len() < most {
                            table.row().cell(format!("number {next}")).cell(next);
                            toy.rows_made.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                            next += 1;
                        }
                        Ok((next == count).then(Output::none))
                    });
                let head = Output::none().field("Total", count);
                if has_total { listing.head(head) } else { listing }.begin(toy)
            },
        ),
    );
    commands.add(
        Command::new("ping <address:ip> {[repeat <:1-100000>] [interval <:seconds>]}")
            .help("Send echo requests")
            .begin(|toy: &mut Toy, args| {
                Ok(Box::new(Ping {
                    left: args.or("repeat", 5)?,
                    address: args.get("address")?,
                    next: Instant::now(),
                    interval: Duration::from_secs_f64(args.or("interval", 1.0)?),
                    dropped: toy.jobs_dropped.clone(),
                }))
            }),
    );
    commands.contribute(order::INTERFACE_SETTINGS, "toy", |toy: &Toy, config| {
        for (name, up) in toy.interfaces.iter().zip(&toy.up) {
            if *up {
                config.command(format_args!("set interface state {name} up"));
            }
        }
    });
    commands.contribute(order::ROUTES, "toy", |toy: &Toy, config| {
        for (prefix, paths) in &toy.routes {
            let paths: Vec<String> = paths.iter().map(|path| format!("via {path}")).collect();
            config.command(format_args!("ip route add {prefix} {}", paths.join(" ")));
        }
    });
    commands
}
