//! What the owner writes for the router that stands by: changes into a ring, and what it remembers
//! to have said of each session.

use quiver_export::records::Recorder;

use crate::change::Change;

/// Of a session that the peer made, in what the feed remembers of it.
const OF_PEER: u64 = 1 << 63;
/// Nothing was said of a session.
const UNSAID: u64 = u64::MAX;

/// The owner's end of the ring to the control thread.
pub struct Feed {
    recorder: Recorder<Change>,
    /// By the number of a session: second of the last refresh that the peer knows, and the state of
    /// TCP above it.
    said: Vec<u64>,
    refresh_s: u32,
}

impl Feed {
    /// For so many sessions, which are refreshed once in `refresh_s` at most (control thread).
    pub(crate) fn new(recorder: Recorder<Change>, sessions: usize, refresh_s: u32) -> Feed {
        // Written, so that no worker waits for a page.
        Feed { recorder, said: vec![UNSAID; sessions], refresh_s }
    }

    /// Seconds that sessions of the peer live longer than their timeout: what it says of them may
    /// be so old.
    pub fn grace_s(&self) -> u32 {
        // A round of the clock hand takes ten seconds, in both routers.
        2 * self.refresh_s + 20
    }

    /// Tell the peer.
    pub fn write(&mut self, change: Change) {
        self.recorder.write(change);
    }

    /// Tell the peer of the session with this number, which was refreshed at `seen_s`.
    pub fn write_session(&mut self, number: u32, change: Change, seen_s: u32) {
        self.write(change);
        self.note(number, said(seen_s, change.tcp));
    }

    /// Has the peer heard so lately of a session that it need not hear of it now?
    #[inline]
    pub fn knows(&self, number: u32, seen_s: u32, tcp: u8) -> bool {
        let word = self.said.get(number as usize).copied().unwrap_or(UNSAID);
        word >> 32 == said(seen_s, tcp) >> 32 && seen_s.saturating_sub(word as u32) < self.refresh_s
    }

    /// The peer has told of a session, which it has refreshed at `seen_s`.
    pub fn note_peer(&mut self, number: u32, seen_s: u32, tcp: u8) {
        self.note(number, said(seen_s, tcp) | OF_PEER);
    }

    fn note(&mut self, number: u32, word: u64) {
        if let Some(place) = self.said.get_mut(number as usize) {
            *place = word;
        }
    }
}

fn said(seen_s: u32, tcp: u8) -> u64 {
    u64::from(seen_s) | u64::from(tcp) << 32
}
