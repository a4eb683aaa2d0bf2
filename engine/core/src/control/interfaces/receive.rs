//! The receive queues of interfaces: who serves them, and how.

use super::{Interface, InterfaceError};
use crate::control::engine::Engine;
use crate::graph::builder::BuildError;
use crate::ids::{InterfaceId, NodeId, WorkerId};
use crate::worker::device::{RxMode, RxQueue};
use crate::worker::{Input, Worker};

/// A receive queue as the control thread knows it.
#[derive(Clone, Debug)]
pub struct RxPlacement {
    /// Its number on the interface.
    pub queue: u16,
    /// Who serves it.
    pub worker: WorkerId,
    /// How.
    pub mode: RxMode,
    /// The input node that it is counted under.
    pub input_node: NodeId,
}

/// What the operator wants of an interface's receive queues, of those too that come later (a peer
/// that connects brings its queues).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RxWish {
    /// Which queue; `None` for all that have no wish of their own.
    pub queue: Option<u16>,
    /// Who is to serve it.
    pub worker: Option<WorkerId>,
    /// How.
    pub mode: Option<RxMode>,
}

impl Interface {
    /// A new wish takes the place of what it contradicts.
    fn remember(&mut self, wish: RxWish) {
        for old in
            self.rx_wishes.iter_mut().filter(|w| wish.queue.is_none() || w.queue == wish.queue)
        {
            old.worker = old.worker.filter(|_| wish.worker.is_none());
            old.mode = old.mode.filter(|_| wish.mode.is_none());
        }
        self.rx_wishes.push(wish);
        self.rx_wishes.retain(|w| w.worker.is_some() || w.mode.is_some());
    }

    fn forget(&mut self, queue: Option<u16>, worker: bool, mode: bool) {
        for old in self.rx_wishes.iter_mut().filter(|wish| wish.queue == queue) {
            old.worker = old.worker.filter(|_| !worker);
            old.mode = old.mode.filter(|_| !mode);
        }
        self.rx_wishes.retain(|w| w.worker.is_some() || w.mode.is_some());
    }

    /// The configured value of a queue: its own, or else the one for all queues.
    fn wish<T>(&self, queue: u16, of: impl Fn(&RxWish) -> Option<T>) -> Option<T> {
        let own = self.rx_wishes.iter().filter(|w| w.queue == Some(queue)).find_map(&of);
        own.or_else(|| self.rx_wishes.iter().filter(|w| w.queue.is_none()).find_map(&of))
    }
}

impl Engine {
    /// Give a receive queue to a worker (the next in turn when none is named). Returns its number.
    ///
    /// # Errors
    /// The interface, the node or the worker does not exist, or a worker does not answer.
    pub fn add_rx_queue(
        &mut self,
        id: InterfaceId,
        input_node: &str,
        queue: Box<dyn RxQueue>,
        mode: RxMode,
        worker: Option<WorkerId>,
    ) -> Result<u16, InterfaceError> {
        let node = self.node_id(input_node).ok_or_else(|| BuildError::EdgeMissing {
            node: self.interface_name(id),
            missing: input_node.to_owned(),
        })?;
        let interface = self.interface(id).ok_or(InterfaceError::Unknown)?;
        let number = (0..).find(|n| interface.rx.iter().all(|p| p.queue != *n)).unwrap_or(0);
        let worker = interface.wish(number, |w| w.worker).or(worker);
        let mode = interface.wish(number, |w| w.mode).unwrap_or(mode);
        let workers = self.workers.len();
        let worker = worker.unwrap_or_else(|| {
            let turn = self.interfaces.next_worker;
            self.interfaces.next_worker = (turn + 1) % workers;
            WorkerId((turn % workers) as u16)
        });
        if worker.index() >= workers {
            return Err(InterfaceError::NoWorker(worker.0));
        }
        let mode = if queue.wake_fd().is_none() { RxMode::Polling } else { mode };
        let input =
            Input { queue, node, interface: id, number, mode, empty_passes: 0, asleep: false };
        if self.place_input(worker, input)?.is_some() {
            return Err(InterfaceError::QueuesMax(worker.0));
        }
        if let Some(Some(interface)) = self.interfaces.list.get_mut(id.index()) {
            interface.rx.push(RxPlacement { queue: number, worker, mode, input_node: node });
            interface.rx.sort_by_key(|p| p.queue);
        }
        Ok(number)
    }

    /// Give a queue to a worker; it comes back when the worker serves as many as it can.
    fn place_input(
        &mut self,
        worker: WorkerId,
        input: Input,
    ) -> Result<Option<Input>, InterfaceError> {
        let mut input = Some(input);
        Ok(self
            .call(worker, move |w: &mut Worker| input.take().and_then(|i| w.add_input(i).err()))?)
    }

    fn take_input(
        &mut self,
        worker: WorkerId,
        id: InterfaceId,
        number: u16,
    ) -> Result<Option<Input>, InterfaceError> {
        Ok(self.call(worker, move |w: &mut Worker| w.remove_input(id, number))?)
    }

    /// Take all receive queues of an interface away from their workers; they are dropped here.
    ///
    /// # Errors
    /// The interface does not exist, or a worker does not answer.
    pub fn remove_rx_queues(&mut self, id: InterfaceId) -> Result<(), InterfaceError> {
        let interface = self.interface(id).ok_or(InterfaceError::Unknown)?;
        let numbers: Vec<u16> = interface.rx.iter().map(|p| p.queue).collect();
        numbers.into_iter().try_for_each(|number| self.remove_rx_queue(id, number))
    }

    /// Take one receive queue away from its worker; it is dropped here. Nothing happens when there
    /// is no queue of this number.
    ///
    /// # Errors
    /// The interface does not exist, or a worker does not answer.
    pub fn remove_rx_queue(&mut self, id: InterfaceId, number: u16) -> Result<(), InterfaceError> {
        let interface = self.interface(id).ok_or(InterfaceError::Unknown)?;
        let Some(placement) = interface.rx.iter().find(|p| p.queue == number) else {
            return Ok(());
        };
        drop(self.take_input(placement.worker, id, number)?);
        if let Some(Some(interface)) = self.interfaces.list.get_mut(id.index()) {
            interface.rx.retain(|p| p.queue != number);
        }
        Ok(())
    }

    /// Serve one receive queue, or all, by another worker or in another way, and those that come
    /// later too. When one queue refuses, nothing has changed.
    ///
    /// # Errors
    /// The interface, the queue or the worker does not exist, the queue cannot be
    /// waited for, the worker has no place for it, or a worker does not answer.
    pub fn wish_rx(&mut self, id: InterfaceId, wish: RxWish) -> Result<(), InterfaceError> {
        let interface = self.interface(id).ok_or(InterfaceError::Unknown)?;
        if let Some(worker) = wish.worker.filter(|w| w.index() >= self.workers.len()) {
            return Err(InterfaceError::NoWorker(worker.0));
        }
        let concerned = |p: &&RxPlacement| wish.queue.is_none_or(|queue| queue == p.queue);
        let placed: Vec<RxPlacement> = interface.rx.iter().filter(concerned).cloned().collect();
        if let (Some(queue), true, false) = (wish.queue, placed.is_empty(), interface.rx.is_empty())
        {
            return Err(InterfaceError::NoQueue(queue));
        }
        for (done, placement) in placed.iter().enumerate() {
            if let Err(error) = self.set_rx(id, placement.queue, wish.worker, wish.mode) {
                for before in &placed[..done] {
                    self.set_rx(id, before.queue, Some(before.worker), Some(before.mode))?;
                }
                return Err(error);
            }
        }
        if let Some(Some(interface)) = self.interfaces.list.get_mut(id.index()) {
            interface.remember(wish);
        }
        Ok(())
    }

    /// Forget what [`wish_rx`](Self::wish_rx) was told of a queue, or of all: its worker, its mode.
    /// Queues stay as they are.
    ///
    /// # Errors
    /// The interface does not exist.
    pub fn forget_rx_wish(
        &mut self,
        id: InterfaceId,
        queue: Option<u16>,
        worker: bool,
        mode: bool,
    ) -> Result<(), InterfaceError> {
        let interface = self.interfaces.list.get_mut(id.index());
        interface
            .and_then(Option::as_mut)
            .ok_or(InterfaceError::Unknown)?
            .forget(queue, worker, mode);
        Ok(())
    }

    /// Move a receive queue to another worker, or serve it in another way.
    ///
    /// # Errors
    /// The interface, the queue or the worker does not exist, the queue cannot be
    /// waited for, the worker has no place for it, or a worker does not answer.
    pub fn set_rx(
        &mut self,
        id: InterfaceId,
        number: u16,
        worker: Option<WorkerId>,
        mode: Option<RxMode>,
    ) -> Result<(), InterfaceError> {
        let interface = self.interface(id).ok_or(InterfaceError::Unknown)?;
        let placement = interface.rx.iter().find(|p| p.queue == number);
        let placement = placement.ok_or(InterfaceError::NoQueue(number))?.clone();
        let worker = worker.unwrap_or(placement.worker);
        if worker.index() >= self.workers.len() {
            return Err(InterfaceError::NoWorker(worker.0));
        }
        self.call(worker, |_: &mut Worker| ())?; // it will take the queue, too
        let Some(mut input) = self.take_input(placement.worker, id, number)? else {
            return Err(InterfaceError::NoQueue(number));
        };
        let can_sleep = input.queue.wake_fd().is_some();
        let refused = mode.is_some_and(|m| m != RxMode::Polling) && !can_sleep;
        if !refused {
            input.mode = mode.unwrap_or(input.mode);
        }
        input.asleep = false;
        input.queue.arm(false);
        let mode = input.mode;
        let worker = if refused { placement.worker } else { worker };
        if let Some(back) = self.place_input(worker, input)? {
            self.place_input(placement.worker, back)?; // there was room for it a moment ago
            return Err(InterfaceError::QueuesMax(worker.0));
        }
        if let Some(Some(interface)) = self.interfaces.list.get_mut(id.index()) {
            for p in interface.rx.iter_mut().filter(|p| p.queue == number) {
                p.worker = worker;
                p.mode = mode;
            }
        }
        if refused { Err(InterfaceError::CannotSleep) } else { Ok(()) }
    }
}
