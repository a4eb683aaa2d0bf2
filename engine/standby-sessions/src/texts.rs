//! The words of a translator's commands and counters, which differ in its name alone.

#[doc(hidden)]
pub use quiver_metrics::Family;

/// The words, by [`texts!`](crate::texts).
pub struct Texts {
    /// Group of the commands in the help.
    pub group: &'static str,
    /// Object that the commands stand on.
    pub plugin: &'static str,
    /// Syntax, place in the document, undo and example of `ha listener`.
    pub listener: [&'static str; 4],
    /// The same of `ha failover`.
    pub failover: [&'static str; 4],
    /// The same of `ha key`.
    pub key: [&'static str; 4],
    /// `ha resync` and `ha flush`.
    pub actions: [&'static str; 2],
    /// The show, and its other names.
    pub shows: &'static [&'static str],
    /// What begins a line of the configuration: `nat44 ha`.
    pub word: &'static str,
    /// What helps when there is no link.
    pub remedy: &'static str,
    /// Gauges of whether the link is up and whether packets come here.
    pub gauges: [Family; 2],
    /// Counters of records, and of datagrams that are refused.
    pub counters: [Family; 2],
}

/// The [`Texts`] of a translator, which has this word in commands (`nat44`) and in counters, this
/// name in sentences, this group, and these names of its show.
#[macro_export]
macro_rules! texts {
    ($word:literal, $name:literal, $group:expr, $($show:literal),+) => {
        $crate::Texts {
            group: $group,
            plugin: concat!($word, " plugin"),
            listener: [
                concat!(
                    $word,
                    " ha listener (disable | <address:ip> port <port:1-65535> ",
                    "[path-mtu <:512-9216>])"
                ),
                concat!($word, ".ha.listener: {address, port, path-mtu}"),
                concat!($word, " ha listener disable"),
                concat!($word, " ha listener 192.0.2.1 port 4741"),
            ],
            failover: [
                concat!(
                    $word,
                    " ha failover (disable | <address:ip> port <port:1-65535> ",
                    "[refresh-interval <:1-3600>])"
                ),
                concat!($word, ".ha.failover: {address, port, refresh-interval}"),
                concat!($word, " ha failover disable"),
                concat!($word, " ha failover 192.0.2.2 port 4741"),
            ],
            key: [
                concat!($word, " ha key (disable | secret <:secret>)"),
                concat!($word, ".ha.key: {secret}"),
                concat!($word, " ha key disable"),
                concat!($word, " ha key secret correct-horse"),
            ],
            actions: [concat!($word, " ha resync"), concat!($word, " ha flush")],
            shows: &[$($show),+],
            word: concat!($word, " ha"),
            remedy: concat!($word, " ha listener, ", $word, " ha failover, ", $word, " ha key"),
            gauges: [
                $crate::texts::Family::gauge(
                    concat!("quiver_", $word, "_ha_up"),
                    concat!("1 while the other router is there and is told what ", $name, " makes"),
                ),
                $crate::texts::Family::gauge(
                    concat!("quiver_", $word, "_ha_active"),
                    "1 when packets came here last, 0 when they came to the other router",
                ),
            ],
            counters: [
                $crate::texts::Family::counter(
                    concat!("quiver_", $word, "_ha_records_total"),
                    "Records to the other router and from it, by what became of them",
                ),
                $crate::texts::Family::counter(
                    concat!("quiver_", $word, "_ha_refused_datagrams_total"),
                    "Datagrams that change nothing, by the reason",
                ),
            ],
        }
    };
}
