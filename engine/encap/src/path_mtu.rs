//! Path MTUs of encapsulation entries, as routers of the underlay report them (RFC 2473 §7, RFC
//! 8201, RFC 1191), on the control thread.

use std::collections::BTreeMap;

use crate::entries::EncapEntries;
use crate::entry::set_path_mtu;

/// How long a report is believed (RFC 8201 §4: 10 minutes); then the path is tried anew.
pub const PATH_MTU_AGE_NS: u64 = 600 * 1_000_000_000;
/// How often old reports are looked for.
pub const SWEEP_NS: u64 = 1_000_000_000;

/// What is known of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathMtu {
    /// The longest outer packet, in bytes.
    pub mtu_bytes: u16,
    /// When it is forgotten.
    pub until_ns: u64,
}

/// The known path MTUs, by entry.
#[derive(Debug, Default)]
pub struct PathMtus(BTreeMap<u32, PathMtu>);

impl PathMtus {
    /// What is known of the path of an entry.
    pub fn get(&self, entry: u32) -> Option<PathMtu> {
        self.0.get(&entry).copied()
    }

    /// A router reports the MTU of an entry's path; workers know it at once. A greater MTU than the
    /// known one changes nothing. Returns whether it did.
    pub fn learn(
        &mut self,
        entries: &EncapEntries,
        entry: u32,
        mtu_bytes: u16,
        now_ns: u64,
    ) -> bool {
        let is_news = self.get(entry).is_none_or(|known| mtu_bytes < known.mtu_bytes);
        if is_news {
            self.0.insert(entry, PathMtu { mtu_bytes, until_ns: now_ns + PATH_MTU_AGE_NS });
            set_path_mtu(entries, entry, Some(mtu_bytes));
        }
        is_news
    }

    /// An entry is not used any more.
    pub fn entry_gone(&mut self, entry: u32) {
        self.0.remove(&entry);
    }

    /// Forget reports that are over by `now_ns`; workers try those paths anew. Returns their
    /// entries.
    pub fn expire(&mut self, entries: &EncapEntries, now_ns: u64) -> Vec<u32> {
        let over = |(entry, path): (&u32, &PathMtu)| (path.until_ns <= now_ns).then_some(*entry);
        let old: Vec<u32> = self.0.iter().filter_map(over).collect();
        for entry in &old {
            self.0.remove(entry);
            set_path_mtu(entries, *entry, None);
        }
        old
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::EntryView;
    use quiver_core::WorkerId;
    use quiver_core::memory::epoch::Epochs;

    #[test]
    fn a_path_mtu_only_falls_until_it_is_forgotten() {
        let mut entries = EncapEntries::new("test", 1, &Epochs::new(1)).expect("address space");
        let entry = entries.add(&[1; 40], [7, 0xffff_0006, 3]).expect("room");
        let seen = |entries: &EncapEntries| {
            let worker = entries.of(WorkerId(0));
            let words = EntryView(worker.get(entry));
            (words.path_mtu_bytes(), words.protocol_offset(), words.table())
        };
        let mut paths = PathMtus::default();
        assert!(paths.learn(&entries, entry, 1400, 5));
        assert!(!paths.learn(&entries, entry, 1450, 6));
        assert_eq!(seen(&entries), (1400, 6, 3));
        assert!(paths.expire(&entries, 5 + PATH_MTU_AGE_NS - 1).is_empty());
        assert_eq!(paths.expire(&entries, 5 + PATH_MTU_AGE_NS), [entry]);
        assert_eq!((seen(&entries), paths.get(entry)), ((u16::MAX, 6, 3), None));
    }
}
