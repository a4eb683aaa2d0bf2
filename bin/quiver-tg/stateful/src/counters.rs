//! Counters of a side. The worker writes, any thread reads.

use quiver_core::graph::counters::Count;

use super::program::{Ending, Failure};

macro_rules! counters {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident,)* }) => {
        $(#[$doc])*
        #[derive(Default)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: Count,)*
        }
        impl $name {
            /// All, by name, in order.
            pub fn all(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($field), self.$field.get()),)*]
            }
        }
    };
}

counters! {
    /// Packets of one side, and what was found in them.
    Packets {
        /// Packets of transactions sent.
        tx_packets,
        /// Their bytes, without FCS.
        tx_bytes,
        /// Packets of transactions received.
        rx_packets,
        /// Their bytes, without FCS.
        rx_bytes,
        /// Not sent: there was no buffer.
        no_buffer,
        /// Segments sent again, for whatever reason.
        retransmitted,
        /// Of these, after three duplicate acknowledgements or in the recovery that follows.
        fast_retransmitted,
        /// Times that a retransmission timer ran out.
        timer_ran_out,
        /// Segments that came out of order.
        out_of_order,
        /// Segments or packets that had come before.
        repeated,
        /// Segments that a connection did not accept.
        unacceptable,
        /// Resets sent.
        resets_sent,
        /// Resets received.
        resets_received,
        /// Packets for hosts that are played, of no transaction.
        stray,
        /// Packets whose checksum is wrong.
        bad_checksum,
        /// Packets that contradict themselves.
        malformed,
        /// Fragments; they are not put together.
        fragments,
        /// Other frames: for nobody here, or of other protocols.
        foreign,
    }
}

/// The transactions of one side.
#[derive(Default)]
pub struct Transactions {
    /// Began, or should have begun.
    pub attempted: Count,
    /// Of these, those whose first packet was sent (client) or came (server).
    pub started: Count,
    /// Of these, those whose handshake was done or first response came.
    pub connected: Count,
    /// Came to their end.
    pub successful: Count,
    /// Failed, by [`Failure`].
    pub failed: [Count; Failure::ALL.len()],
    /// The most that were open at a time.
    pub open_max: Count,
}

impl Transactions {
    /// Those that failed, by why.
    pub fn failures(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        Failure::ALL.iter().map(|(failure, name)| (*name, self.failed[*failure as usize].get()))
    }

    /// All that failed.
    pub fn failed_total(&self) -> u64 {
        self.failed.iter().map(Count::get).sum()
    }

    /// Neither successful nor failed.
    pub fn open(&self) -> u64 {
        (self.attempted.get())
            .saturating_sub(self.successful.get())
            .saturating_sub(self.failed_total())
    }

    /// One failed.
    #[inline]
    pub fn fail(&self, failure: Failure) {
        self.failed[failure as usize].add(1);
    }

    /// One ended.
    #[inline]
    pub fn end(&self, ending: Ending) {
        match ending {
            Ending::Complete => self.successful.add(1),
            Ending::Failed(failure) => self.fail(failure),
        }
    }
}

/// One side's counters.
#[derive(Default)]
pub struct Counters {
    /// Packets.
    pub packets: Packets,
    /// Transactions.
    pub transactions: Transactions,
}
