//! What the control thread has workers do between two passes, and what they tell it.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Engine;
use super::workers::WorkerHandle;
use crate::control::watchdog::{Stalled, WORKER_CALLS_WAITING_MAX, Wait};
use crate::ids::WorkerId;
use crate::worker::event::{EVENTS_MAX, Event};
use crate::worker::{Worker, WorkerCall};

impl Engine {
    /// Have `worker call` done on a worker between two passes; what it holds is dropped here
    /// afterwards. Returns false, and nothing is done, when as many worker calls wait for that
    /// worker as may.
    pub fn post(
        &mut self,
        worker: WorkerId,
        call: impl FnMut(&mut Worker) + Send + 'static,
    ) -> bool {
        let has_room = self.workers[worker.index()].waiting.len() < WORKER_CALLS_WAITING_MAX;
        if has_room {
            self.post_always(worker, call);
        }
        has_room
    }

    /// As `post`, for a change that [`make_room`](Self::make_room) has let pass.
    pub(super) fn post_always(
        &mut self,
        worker: WorkerId,
        call: impl FnMut(&mut Worker) + Send + 'static,
    ) {
        self.post_boxed(worker, Box::new(Plain(call)));
    }

    fn post_boxed(&mut self, worker: WorkerId, mut call: Box<dyn WorkerCall>) {
        let handle = &mut self.workers[worker.index()];
        if let Some(inline) = &mut handle.inline {
            call.run(inline);
            handle.returned.push_back(call);
            return;
        }
        handle.waiting.push_back(call);
        handle.pump();
    }

    /// Have something done on a worker and wait for its answer. When it does not come, the worker
    /// will not do it later either.
    ///
    /// # Errors
    /// The worker does not answer in time.
    pub fn call<R: Send + 'static>(
        &mut self,
        worker: WorkerId,
        call: impl FnMut(&mut Worker) -> R + Send + 'static,
    ) -> Result<R, Stalled> {
        static TICKET: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        let mut wait = Wait::begin();
        self.check_answering(worker, &wait)?;
        let ticket = TICKET.fetch_add(1, Ordering::Relaxed);
        let taken = Arc::new(AtomicBool::new(false));
        let answer = Answer { ticket, value: None };
        self.post_boxed(worker, Box::new(Call { call, taken: taken.clone(), answer }));
        let mut is_late = false;
        loop {
            let handle = &mut self.workers[worker.index()];
            handle.pump();
            while let Some(mut returned) = handle.returned.pop_front() {
                if let Some(answer) = returned.answer().and_then(|a| a.downcast_mut::<Answer<R>>())
                    && answer.ticket == ticket
                    && let Some(answer) = answer.value.take()
                {
                    return Ok(answer);
                }
            }
            if wait.is_over() {
                self.look_after_workers();
                // Who takes it first: the worker, to do it, or this thread, so that nobody does.
                if is_late || !taken.swap(true, Ordering::AcqRel) {
                    return Err(self.stalled(worker, &wait));
                }
                is_late = true; // it is being done just now
                wait.has_begun();
            }
            std::thread::yield_now();
        }
    }

    /// All workers' answers.
    ///
    /// # Errors
    /// A worker does not answer in time.
    pub fn call_all<R: Send + 'static>(
        &mut self,
        call: impl FnMut(&mut Worker) -> R + Send + Clone + 'static,
    ) -> Result<Vec<R>, Stalled> {
        (0..self.workers.len()).map(|w| self.call(WorkerId(w as u16), call.clone())).collect()
    }

    /// Free what came back and what no worker sees any more; hand events to their handlers.
    pub(crate) fn collect(&mut self) {
        for index in 0..self.workers.len() {
            self.workers[index].pump();
            self.workers[index].returned.clear();
            for _ in 0..EVENTS_MAX {
                let Some(event) = self.workers[index].events.take() else { break };
                self.handle_event(&event);
            }
        }
        self.look_after_workers();
        self.epochs.collect();
        self.publish_stale_rows();
    }

    fn handle_event(&mut self, event: &Event) {
        if let Some(mut handler) = self.handlers.remove(&event.node) {
            handler(self, event);
            self.handlers.entry(event.node).or_insert(handler);
        }
    }

    /// Call `handler` for every event that the node called `name` sends.
    pub fn on_event(&mut self, name: &str, handler: impl FnMut(&mut Engine, &Event) + 'static) {
        if let Some(id) = self.node_id(name) {
            self.handlers.insert(id, Box::new(handler));
        }
    }

    /// Wait until what was posted to a worker is done, and what it put before nodes has left them.
    ///
    /// # Errors
    /// The worker does not answer in time.
    pub fn wait_for_worker(&mut self, worker: WorkerId) -> Result<(), Stalled> {
        self.call(worker, |_: &mut Worker| ())?;
        match self.inline_worker(worker) {
            Some(worker) => drop(worker.pass()),
            None => self.call(worker, |_: &mut Worker| ())?, // the pass of the first one is over
        }
        Ok(())
    }
}

impl WorkerHandle {
    /// Send what waits and fetch what came back.
    pub(crate) fn pump(&mut self) {
        let mut sent = false;
        while let Some(call) = self.waiting.pop_front() {
            if let Err(call) = self.worker_calls.put(call) {
                self.waiting.push_front(call);
                break;
            }
            sent = true;
        }
        if sent || !self.waiting.is_empty() {
            self.shared.wake.ring();
        }
        while let Some(call) = self.done.take() {
            self.returned.push_back(call);
        }
    }
}

/// A worker call without an answer.
struct Plain<F>(F);

impl<F: FnMut(&mut Worker) + Send> WorkerCall for Plain<F> {
    fn run(&mut self, worker: &mut Worker) {
        (self.0)(worker);
    }
}

/// A worker call with an answer.
struct Call<F, R> {
    call: F,
    /// By the worker, or by a sender who gave up.
    taken: Arc<AtomicBool>,
    answer: Answer<R>,
}

struct Answer<R> {
    ticket: u64,
    value: Option<R>,
}

impl<R: Send + 'static, F: FnMut(&mut Worker) -> R + Send> WorkerCall for Call<F, R> {
    fn run(&mut self, worker: &mut Worker) {
        if !self.taken.swap(true, Ordering::AcqRel) {
            self.answer.value = Some((self.call)(worker));
        }
    }

    fn answer(&mut self) -> Option<&mut dyn Any> {
        Some(&mut self.answer)
    }
}
