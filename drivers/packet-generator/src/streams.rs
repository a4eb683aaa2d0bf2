//! Streams as the control thread holds them: added, enabled, disabled, deleted.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use quiver_core::control::interfaces::InterfaceError;
use quiver_core::graph::frame::FRAME_PACKETS_MAX;
use quiver_core::worker::device::RxMode;
use quiver_core::worker::poll::Bell;
use quiver_core::{Engine, InterfaceId, WorkerId};

use crate::edit::{Edit, RunningEdit};
use crate::queue::{Pacer, Progress, StreamQueue};
use crate::template::{PACKET_BYTES_MAX, STREAM_BYTES_MAX, Templates};

/// Streams that can exist at a time.
pub const STREAMS_MAX: usize = 1024;
/// Edits in one stream.
pub const EDITS_MAX: usize = 16;

/// What a stream sends, and how.
#[derive(Clone, Debug)]
pub struct StreamConfig {
    /// Its name, unique.
    pub name: String,
    /// The packets, sent in turn, from the first byte of layer 2 (or of whatever `node` expects).
    pub packets: Vec<Vec<u8>>,
    /// Fields that change from packet to packet.
    pub edits: Vec<Edit>,
    /// Packets to send; 0 = no limit.
    pub limit: u64,
    /// Packets per second; 0 = as fast as possible.
    pub rate_pps: f64,
    /// The node that they go to; none = where the interface's received packets go.
    pub node: Option<String>,
    /// The worker that sends; none = the next in turn.
    pub worker: Option<WorkerId>,
    /// Packets in one pass at most, 1 to [`FRAME_PACKETS_MAX`].
    pub per_pass_max: usize,
}

impl StreamConfig {
    /// These packets in turn, as fast as possible, without end, the usual way of the interface.
    pub fn new(name: impl Into<String>, packets: Vec<Vec<u8>>) -> StreamConfig {
        StreamConfig {
            name: name.into(),
            packets,
            edits: Vec::new(),
            limit: 0,
            rate_pps: 0.0,
            node: None,
            worker: None,
            per_pass_max: FRAME_PACKETS_MAX,
        }
    }
}

/// Why something cannot be done with a stream.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// There is one of this name.
    #[error("stream {0} exists already; `packet-generator delete {0}` removes it")]
    Exists(String),
    /// There is none.
    #[error("there is no stream {0}; `show packet-generator` lists them")]
    Unknown(String),
    /// Limits.
    #[error("there are {STREAMS_MAX} streams already")]
    TooMany,
    /// Nothing to send.
    #[error("stream {0} has no packets")]
    Empty(String),
    /// A length that cannot be.
    #[error(
        "packet {number} of stream {stream} has {bytes} bytes; 1 to {PACKET_BYTES_MAX} are possible"
    )]
    PacketBytes {
        /// The stream.
        stream: String,
        /// Which packet, from 1.
        number: usize,
        /// Its length.
        bytes: usize,
    },
    /// Too much memory.
    #[error(
        "the packets of stream {stream} take {mib} MiB; at most {} MiB are possible",
        STREAM_BYTES_MAX >> 20
    )]
    TooLarge {
        /// The stream.
        stream: String,
        /// What they take.
        mib: usize,
    },
    /// An edit that cannot be.
    #[error("stream {stream}: the field at byte {offset}: {what}")]
    Edit {
        /// The stream.
        stream: String,
        /// Where the field is.
        offset: u16,
        /// What is wrong.
        what: String,
    },
    /// No such node.
    #[error("there is no node {0}")]
    NoNode(String),
    /// A number out of range.
    #[error("{0}")]
    Range(String),
    /// The engine refuses.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// The system refuses.
    #[error(transparent)]
    System(#[from] std::io::Error),
}

/// A stream.
pub(crate) struct Stream {
    pub(crate) name: String,
    pub(crate) interface: InterfaceId,
    pub(crate) node: Option<String>,
    pub(crate) limit: u64,
    pub(crate) rate_pps: f64,
    pub(crate) worker: Option<WorkerId>,
    pub(crate) per_pass_max: usize,
    pub(crate) templates: Arc<Templates>,
    pub(crate) edits: Vec<Edit>,
    pub(crate) progress: Arc<Progress>,
    /// The number of its queue on the interface while it is enabled.
    pub(crate) queue: Option<u16>,
    /// The command that made it, without its name; none when a program made it.
    pub(crate) command: Option<String>,
}

/// How a stream is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamCounts {
    /// It sends, or would if it were not at its limit.
    pub enabled: bool,
    /// It has sent all that its limit allows.
    pub done: bool,
    /// Packets made since it was enabled.
    pub sent: u64,
    /// Packets that were due and found no buffer.
    pub no_buffer: u64,
}

impl Stream {
    pub(crate) fn counts(&self) -> StreamCounts {
        let sent = self.progress.sent.load(Ordering::Relaxed);
        StreamCounts {
            enabled: self.queue.is_some(),
            done: self.limit > 0 && sent >= self.limit,
            sent,
            no_buffer: self.progress.no_buffer.load(Ordering::Relaxed),
        }
    }
}

/// All streams of a router.
#[derive(Default)]
pub(crate) struct Streams(pub(crate) Vec<Stream>);

impl Streams {
    fn place(&self, name: &str) -> Result<usize, StreamError> {
        self.0
            .iter()
            .position(|s| s.name == name)
            .ok_or_else(|| StreamError::Unknown(name.to_owned()))
    }
}

/// Add a stream to an interface. It sends from [`enable_stream`] on.
///
/// # Errors
/// The name is taken, the interface is none of this driver, or the configuration contradicts
/// itself.
pub fn add_stream(
    engine: &mut Engine,
    interface: InterfaceId,
    config: StreamConfig,
) -> Result<(), StreamError> {
    add(engine, interface, config, None)
}

pub(crate) fn add(
    engine: &mut Engine,
    interface: InterfaceId,
    config: StreamConfig,
    command: Option<String>,
) -> Result<(), StreamError> {
    check(&config)?;
    engine.interface(interface).ok_or(InterfaceError::Unknown)?;
    if let Some(node) = &config.node {
        engine.node_id(node).ok_or_else(|| StreamError::NoNode(node.clone()))?;
    }
    if config.worker.is_some_and(|w| w.index() >= engine.worker_count()) {
        return Err(InterfaceError::NoWorker(config.worker.map_or(0, |w| w.0)).into());
    }
    engine.with::<Streams, _>(|_, streams| {
        if streams.place(&config.name).is_ok() {
            return Err(StreamError::Exists(config.name));
        }
        if streams.0.len() == STREAMS_MAX {
            return Err(StreamError::TooMany);
        }
        streams.0.push(Stream {
            name: config.name,
            interface,
            node: config.node,
            limit: config.limit,
            rate_pps: config.rate_pps,
            worker: config.worker,
            per_pass_max: config.per_pass_max,
            templates: Arc::new(Templates::new(config.packets.iter().map(Vec::as_slice))),
            edits: config.edits,
            progress: Arc::default(),
            queue: None,
            command,
        });
        Ok(())
    })
}

fn check(config: &StreamConfig) -> Result<(), StreamError> {
    let stream = || config.name.clone();
    if config.packets.is_empty() {
        return Err(StreamError::Empty(stream()));
    }
    let mut total = 0;
    let mut shortest = usize::MAX;
    for (index, packet) in config.packets.iter().enumerate() {
        if packet.is_empty() || packet.len() > PACKET_BYTES_MAX {
            let (stream, number, bytes) = (stream(), index + 1, packet.len());
            return Err(StreamError::PacketBytes { stream, number, bytes });
        }
        total += packet.len().next_multiple_of(64);
        shortest = shortest.min(packet.len());
    }
    if total > STREAM_BYTES_MAX {
        return Err(StreamError::TooLarge { stream: stream(), mib: total >> 20 });
    }
    if config.edits.len() > EDITS_MAX {
        return Err(StreamError::Range(format!(
            "stream {}: at most {EDITS_MAX} fields can change",
            config.name
        )));
    }
    for edit in &config.edits {
        let what = match edit.fault() {
            Some(fault) => fault.to_owned(),
            None if edit.end() > shortest => {
                format!(
                    "the field or its checksum ends at byte {}, a packet at {shortest}",
                    edit.end()
                )
            }
            None => continue,
        };
        return Err(StreamError::Edit { stream: stream(), offset: edit.offset, what });
    }
    if !(1..=FRAME_PACKETS_MAX).contains(&config.per_pass_max) {
        return Err(StreamError::Range(format!("maxframe is 1 to {FRAME_PACKETS_MAX}")));
    }
    if !config.rate_pps.is_finite() || config.rate_pps < 0.0 {
        return Err(StreamError::Range("a rate is a number of packets per second, or 0".into()));
    }
    Ok(())
}

/// Let a stream send, from its first packet on. One that is at its limit begins again; nothing
/// happens to one that is sending.
///
/// # Errors
/// There is no such stream, or a worker does not answer.
pub fn enable_stream(engine: &mut Engine, name: &str) -> Result<(), StreamError> {
    engine.with::<Streams, _>(|engine, streams| {
        let place = streams.place(name)?;
        let stream = &mut streams.0[place];
        let counts = stream.counts();
        if counts.enabled && !counts.done {
            return Ok(());
        }
        stop(engine, stream)?;
        let next = match &stream.node {
            Some(node) => {
                Some(engine.node_id(node).ok_or_else(|| StreamError::NoNode(node.clone()))?)
            }
            None => None,
        };
        stream.progress = Arc::default();
        let running = |(seed, edit): (usize, &Edit)| RunningEdit::new(edit.clone(), seed as u64);
        let queue = StreamQueue {
            interface: stream.interface,
            next,
            templates: stream.templates.clone(),
            edits: stream.edits.iter().enumerate().map(running).collect(),
            pacer: Pacer::new(stream.rate_pps),
            left: if stream.limit == 0 { u64::MAX } else { stream.limit },
            per_pass_max: stream.per_pass_max,
            progress: stream.progress.clone(),
            bell: Bell::new()?,
            at: 0,
        };
        let (interface, worker) = (stream.interface, stream.worker);
        stream.queue = Some(engine.add_rx_queue(
            interface,
            "pg-input",
            Box::new(queue),
            RxMode::Interrupt,
            worker,
        )?);
        Ok(())
    })
}

fn stop(engine: &mut Engine, stream: &mut Stream) -> Result<(), StreamError> {
    match stream.queue.take() {
        Some(queue) => Ok(engine.remove_rx_queue(stream.interface, queue)?),
        None => Ok(()),
    }
}

/// Let a stream send no more. What it has sent stays counted.
///
/// # Errors
/// There is no such stream, or a worker does not answer.
pub fn disable_stream(engine: &mut Engine, name: &str) -> Result<(), StreamError> {
    engine.with::<Streams, _>(|engine, streams| {
        let place = streams.place(name)?;
        stop(engine, &mut streams.0[place])
    })
}

/// Remove a stream.
///
/// # Errors
/// There is no such stream, or a worker does not answer.
pub fn delete_stream(engine: &mut Engine, name: &str) -> Result<(), StreamError> {
    engine.with::<Streams, _>(|engine, streams| {
        let place = streams.place(name)?;
        stop(engine, &mut streams.0[place])?;
        streams.0.remove(place);
        Ok(())
    })
}

/// How a stream is doing.
pub fn stream_counts(engine: &Engine, name: &str) -> Option<StreamCounts> {
    engine.get::<Streams>()?.0.iter().find(|s| s.name == name).map(Stream::counts)
}

/// All streams' names.
pub fn stream_names(engine: &Engine) -> Vec<String> {
    engine.get::<Streams>().map_or_else(Vec::new, |s| s.0.iter().map(|s| s.name.clone()).collect())
}

/// An interface goes away, and its streams with it.
pub(crate) fn interface_deleted(engine: &mut Engine, interface: InterfaceId) {
    if let Some(streams) = engine.get_mut::<Streams>() {
        streams.0.retain(|s| s.interface != interface);
    }
}
