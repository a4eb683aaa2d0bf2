//! Traffic between two Linux hosts: echoes, and transfers by iperf3.

use super::Namespace;

/// Echo requests of [`ping`], none of which may be lost.
const ECHO_REQUESTS: usize = 20;

/// Twenty echoes of so many bytes, none of which may be lost.
///
/// With `-c` alone, ping(8) waits for the last replies no longer than twice the longest time that
/// one took. With `-w` it goes on to send until that many have come, so the first ones have to be
/// there.
pub fn ping(from: &Namespace, address: &str, bytes: usize) {
    let text =
        from.run(&format!("ping -i 0.02 -c {ECHO_REQUESTS} -w 60 -M do -s {bytes} {address}"));
    let answered = |number: usize| text.contains(&format!(" icmp_seq={number} "));
    assert!((1..=ECHO_REQUESTS).all(answered), "{text}");
}

/// What an iperf3 client and its server said of so many bytes that were sent.
pub struct Transfer {
    /// What the client has sent.
    pub sent_bytes: u64,
    /// What the server has received.
    pub received_bytes: u64,
}

impl Transfer {
    /// TCP brings everything.
    pub fn is_whole(&self) -> bool {
        self.sent_bytes >= TCP_BYTES && self.received_bytes > 0
    }

    /// Of UDP something arrives: a receiver that is not scheduled loses what its socket cannot
    /// hold.
    pub fn has_arrived(&self) -> bool {
        self.sent_bytes > 0 && self.received_bytes > 0
    }
}

/// Bytes of a transfer by TCP.
const TCP_BYTES: u64 = 16 << 20;
/// Bytes of a transfer by UDP.
const UDP_BYTES: u64 = 2 << 20;
/// Where iperf3 listens (iperf3(1), `--port`).
pub const IPERF_PORT: u16 = 5201;

/// A transfer from one host to the other, by UDP when `options` have `-u`.
pub fn iperf(client: &Namespace, server: &Namespace, address: &str, options: &str) -> Transfer {
    let daemon = server.start("iperf3 -s -1 --forceflush");
    server.wait_for_listener(IPERF_PORT);
    let bytes = if options.contains("-u") { UDP_BYTES } else { TCP_BYTES };
    let text = client.run(&format!("iperf3 -c {address} -n {bytes} -J {options}"));
    daemon.stop();
    let json: serde_json::Value = serde_json::from_str(&text).expect("json");
    let told = |side: &str| {
        let end = &json["end"];
        let sum = if end[side].is_null() { &end["sum"] } else { &end[side] };
        sum["bytes"].as_u64().expect("bytes")
    };
    Transfer { sent_bytes: told("sum_sent"), received_bytes: told("sum_received") }
}
