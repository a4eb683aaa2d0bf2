//! The commands of a generator. Their declarations are also their help, completion and JSON form.

use std::path::Path;

use quiver_control::{Args, Command, Commands, Output, Refusal, Work};

use super::job::{Changing, Linking, To, Waiting, numbered};
use super::session::{Session, UNTIL_STOPPED_S, parse, read_regular};
use super::shows;
use quiver_tg_measuring::request::{Measure, WARMUP_S};
use quiver_tg_measuring::surroundings::Surroundings;
use quiver_tg_traffic::profile::StreamRate;

/// All of them.
pub fn commands<S: Surroundings + 'static>() -> Commands<Session<S>> {
    let mut commands = Commands::new();
    add_profile(&mut commands);
    add_streams(&mut commands);
    add_measurement(&mut commands);
    add_changes(&mut commands);
    shows::add(&mut commands);
    commands.add(
        Command::new("shutdown")
            .group("Session")
            .help("End the generator")
            .example("shutdown")
            .run(|session: &mut Session<S>, _| {
                session.quits = true;
                Ok(Output::text("ends"))
            }),
    );
    commands
}

fn add_profile<S: Surroundings + 'static>(commands: &mut Commands<Session<S>>) {
    commands.add(
        Command::new("load (<file:path> | inline <profile:rest>)")
            .group("Profile")
            .help("Read a profile, make its ports and wait for their links")
            .details(
                "What was loaded before goes, unless the new profile cannot be read; ports that \
                 are the same stay, \
                 and their links with them. While a measurement is under way nothing is loaded. \
                 `inline` takes the profile itself, as JSON in one line.",
            )
            .word("file", "A profile, YAML or JSON; the path is the generator's")
            .word("profile", "A profile as JSON")
            .example("load profile.yaml")
            .begin(|session: &mut Session<S>, args| {
                let profile = match args.optional::<&str>("file")? {
                    Some(file) => read_regular(Path::new(file))?,
                    None => parse(args.get("profile")?)?,
                };
                session.load(profile)?;
                Ok(Box::new(Linking))
            }),
    );
    commands.add(
        Command::new("unload")
            .group("Profile")
            .help("Let the ports of the profile go")
            .example("unload")
            .run(|session: &mut Session<S>, _| session.unload().map(|()| Output::none())),
    );
}

fn add_streams<S: Surroundings + 'static>(commands: &mut Commands<Session<S>>) {
    let definition = "A stream as a profile has it, as JSON";
    let details = "Ports stay as they are. While a measurement is under way no stream comes or \
        goes; one that the \
                   profile has with `paused: true` is begun by `resume stream N`.";
    commands.add(
        Command::new("stream add <stream:rest>")
            .group("Profile")
            .help("Add a stream to the profile that is loaded")
            .details(details)
            .word("stream", definition)
            .example(r#"stream add {"from": 0, "to": 1, "rate": "10%"}"#)
            .begin(|session: &mut Session<S>, args| {
                let stream = args.get("stream")?;
                session.change_streams(|streams| streams.add(stream))?;
                Ok(Box::new(Linking))
            }),
    );
    commands.add(
        Command::new("stream replace <number:0-255> <stream:rest>")
            .group("Profile")
            .help("Put another stream in the place of one")
            .details(details)
            .word("number", "The stream's number in the profile")
            .word("stream", definition)
            .example(r#"stream replace 0 {"from": 0, "to": 1, "frame": "imix"}"#)
            .begin(|session: &mut Session<S>, args| {
                let (number, stream) = (args.get("number")?, args.get("stream")?);
                session.change_streams(|streams| streams.replace(number, stream))?;
                Ok(Box::new(Linking))
            }),
    );
    commands.add(
        Command::new("stream delete <number:0-255>")
            .group("Profile")
            .help("Take a stream out of the profile; those behind it move up")
            .details(details)
            .word("number", "The stream's number in the profile")
            .example("stream delete 1")
            .begin(|session: &mut Session<S>, args| {
                let number = args.get("number")?;
                session.change_streams(|streams| streams.delete(number))?;
                Ok(Box::new(Linking))
            }),
    );
}

fn add_measurement<S: Surroundings + 'static>(commands: &mut Commands<Session<S>>) {
    commands.add(
        with_words(Command::new(
            "start { [rate <:word>] [duration <:seconds>] [warmup <:seconds>] [drain <:seconds>] \
             [no-make-up] [histograms] }",
        ))
        .help("Begin to send, and say the measurement's number")
        .details("Without a duration it sends until `stop`, a day at most.")
        .example("start rate 1Mpps duration 10")
        .run(|session: &mut Session<S>, args| {
            let request = request(session, args, UNTIL_STOPPED_S)?;
            Ok(numbered("has begun", session.start(&request)?))
        }),
    );
    commands.add(
        with_words(Command::new(
            "measure { [rate <:word>] [duration <:seconds>] [warmup <:seconds>] [drain \
             <:seconds>] [no-make-up] [histograms] }",
        ))
        .help("Send, wait for the end, and answer with the result")
        .details("10 s unless a duration is given. It is stopped when its client leaves.")
        .example("measure rate 500kpps duration 2")
        .run_or_begin(|session: &mut Session<S>, args| {
            let request = request(session, args, DURATION_S)?;
            let number = session.start(&request)?;
            let (waiting, owner) = Waiting::owning(number);
            session.owner = Some(owner);
            Ok(Work::Begun(Box::new(waiting)))
        }),
    );
    commands.add(
        Command::new("stop")
            .group("Measurement")
            .help("End the sending, wait for late frames, and answer with the result")
            .example("stop")
            .begin(|session: &mut Session<S>, _| Ok(Box::new(Waiting::new(session.stop()?)))),
    );
    commands.add(
        Command::new("wait")
            .group("Measurement")
            .help("Wait for the end of the measurement, and answer with its result")
            .example("wait")
            .begin(|session: &mut Session<S>, _| {
                if session.measurement == 0 {
                    return Err(Refusal::new("nothing has been measured").remedy("`start` begins"));
                }
                Ok(Box::new(Waiting::new(session.measurement)))
            }),
    );
}

fn add_changes<S: Surroundings + 'static>(commands: &mut Commands<Session<S>>) {
    commands.add(
        Command::new("rate <rate:word> [stream <:0-255>]")
            .group("Measurement")
            .help("Change how fast is sent, from now on, without a gap")
            .details(
                "All streams together keep their shares; with a number, one stream has this rate. \
                 Bits a second \
                 and per cent are those of a profile's rates; in per cent all together are as \
                 fast as the \
                 line allows that has most to carry. While the warm-up lasts it waits for its end.",
            )
            .word("rate", RATE_WORDS)
            .word("stream", "The stream's number in the profile")
            .example("rate 2Mpps")
            .example("rate 100kpps stream 1")
            .example("rate 2.5Gbps")
            .example("rate 40%")
            .begin(|session: &mut Session<S>, args| {
                let (rate, stream) = (read_rate(args.get("rate")?)?, args.optional("stream")?);
                session.measuring()?;
                let rate = session.rate(rate, stream)?;
                Ok(Box::new(Changing { stream, to: To::Rate(rate) }))
            }),
    );
    for (is_paused, syntax, help) in [
        (true, "pause [stream <:0-255>]", "Send nothing until `resume`; time goes on"),
        (false, "resume [stream <:0-255>]", "Go on after `pause`; what was missed is not sent"),
    ] {
        commands.add(
            Command::new(syntax)
                .group("Measurement")
                .help(help)
                .word("stream", "The stream's number in the profile; all when not given")
                .example(if is_paused { "pause" } else { "resume" })
                .begin(move |session: &mut Session<S>, args| {
                    session.measuring()?;
                    let to = if is_paused { To::Paused } else { To::Resumed };
                    Ok(Box::new(Changing { stream: args.optional("stream")?, to }))
                }),
        );
    }
}

/// A measurement without a duration of its own, seconds.
const DURATION_S: f64 = 10.0;
/// Help text of rates.
const RATE_WORDS: &str = "How fast, all streams together: 20000, 500kpps, 1.5Mpps, 10Gbps (on a \
    wire), \
                          10GbpsL2 (with FCS), 40% (of the ports' line_rate), or max";

fn with_words<S>(command: Command<S>) -> Command<S> {
    command
        .group("Measurement")
        .word("rate", RATE_WORDS)
        .word("duration", "How long counted frames are sent, seconds")
        .word("warmup", "How long frames are sent before that without counting, seconds")
        .word("drain", "How long late frames are waited for, again after each that comes, seconds")
        .word("no-make-up", "What a delay of the generator missed is not sent later")
        .word("histograms", "The result has the histograms of times, too")
}

fn read_rate(text: &str) -> Result<StreamRate, Refusal> {
    StreamRate::read(text).map_err(Refusal::new)
}

fn request<S: Surroundings>(
    session: &mut Session<S>,
    args: &Args<'_>,
    duration_s: f64,
) -> Result<Measure, Refusal> {
    let rate = args.optional::<&str>("rate")?.map_or(Ok(StreamRate::Max), read_rate)?;
    let rate = session.rate(rate, None)?;
    let usual = Measure::new(rate, args.or("duration", duration_s)?);
    let request = Measure {
        warmup_s: args.or("warmup", WARMUP_S)?,
        drain_s: args.or("drain", usual.drain_s)?,
        make_up: !args.has("no-make-up"),
        histograms: args.has("histograms"),
        ..usual
    };
    request.check().map_err(Refusal::new)?;
    Ok(request)
}
