//! How many `ip route add … via …` lines a second are split, matched and handed over.
//! `cargo run --release -p quiver-control --example parse_rate`

use std::net::Ipv4Addr;
use std::time::Instant;

use quiver_control::*;

/// Lines in the script.
const LINES: u32 = 1_000_000;

struct Routes {
    sum: u64,
}

impl Names for Routes {}

fn main() {
    let mut commands = Commands::new();
    commands.add(
        Command::new(
            "ip route add|del <prefix> [table <:u32>] [count <:1-16777216>] (via (<next-hop:ip> \
             [<interface>] | drop | ip4-lookup-in-table <table:u32>) {[weight <:1-255>] \
             [preference <:u8>] [out-labels <label:0-1048575>...]})...",
        )
        .help("Add or remove a route")
        .run(|_: &mut Routes, _| Ok(Output::none()))
        .run_many("prefix", |routes, batch| {
            let take = |args: Args<'_>| -> Result<u64, Refusal> {
                let mut sum = 0;
                for path in args.groups("via") {
                    let next_hop: Ipv4Addr = path.get("next-hop")?;
                    sum += u64::from(next_hop.to_bits()) + path.or("weight", 1u64)?;
                }
                Ok(sum)
            };
            let forms: Result<Vec<u64>, Refusal> =
                (0..batch.forms()).map(|form| take(batch.form(form))).collect();
            let forms = forms.map_err(|refusal| BatchRefusal { applied: 0, refusal })?;
            for (form, value) in batch.rows() {
                if let Some(Value::Prefix(prefix)) = value {
                    routes.sum += u64::from(prefix.length) + forms[form];
                }
            }
            Ok(batch.len())
        }),
    );
    let text: String = (0..LINES)
        .map(|i| {
            format!(
                "ip route add {}/24 via 192.0.2.{}\n",
                Ipv4Addr::from_bits((20 << 24) + (i << 8)),
                i & 255
            )
        })
        .collect();
    let mut routes = Routes { sum: 0 };
    let mut best = f64::INFINITY;
    for _ in 0..7 {
        let start = Instant::now();
        let script = commands.start_script(text.clone(), None, OnRefusal::Stop);
        if let Err(refusal) = script.finish(&commands, &mut routes, &mut Collected::default()) {
            eprintln!("{refusal}");
            std::process::exit(1);
        }
        best = best.min(start.elapsed().as_secs_f64());
    }
    println!(
        "{:.2} million lines a second, {:.0} ns a line",
        f64::from(LINES) / best / 1e6,
        best * 1e9 / f64::from(LINES)
    );
}
