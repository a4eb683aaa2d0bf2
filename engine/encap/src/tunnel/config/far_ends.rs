//! Far ends of ports: their encapsulation entries, and how ICMP errors find them.

use std::net::IpAddr;

use quiver_core::InterfaceId;
use quiver_forwarding::fib::Fib;

use super::super::protocol::{EndWords, TunnelProtocol};
use super::super::table::{End, bits, far_key};
use super::{Peer, TunnelConfig, TunnelError, Tunnels};

impl<P: TunnelProtocol> Tunnels<P> {
    /// An entry for frames to one of the far ends of a port, and of others that send from the same
    /// source. ICMP errors about these frames are matched, whatever network they are of.
    pub(in crate::tunnel) fn add_far_end(
        &mut self,
        fib: &mut Fib,
        port: InterfaceId,
        config: &TunnelConfig<P::Extra>,
        (remote, table): (IpAddr, u32),
    ) -> Result<Peer, TunnelError> {
        let config = TunnelConfig { key: Some(0), destination: Some(remote), ..*config };
        let mut peer = self.add_peer(fib, &config, remote, table)?;
        let udp_port = config.udp.map_or(0, |udp| udp.remote_port);
        peer.key = far_key(bits(remote), bits(config.source), table, udp_port);
        let words = EndWords::default();
        let end = End { interface: port, carries_frames: true, entry: peer.entry, words };
        match self.insert_end(&peer, end) {
            Ok(()) => Ok(peer),
            Err(error) => {
                self.remove_peer(fib, peer);
                Err(error)
            }
        }
    }

    /// Workers find this far end no more.
    pub(in crate::tunnel) fn remove_far_end(&mut self, fib: &mut Fib, peer: Peer) {
        self.remove_end(&peer);
        self.remove_peer(fib, peer);
    }

    /// The MTU of the path of packets to a peer, in bytes, if it is known.
    pub(in crate::tunnel) fn path_mtu_bytes(&self, peer: &Peer) -> Option<u16> {
        self.path_mtus.get(peer.entry).map(|path| path.mtu_bytes)
    }
}
