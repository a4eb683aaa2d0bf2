//! Neighbours: ARP and neighbour discovery, ageing, and the packets that wait for an answer.

pub(crate) mod address_routes;
pub(crate) mod advertisement;
pub(crate) mod ageing;
pub(crate) mod arp_input;
pub(crate) mod confirm;
pub(crate) mod control;
pub(crate) mod discovery;
pub(crate) mod notification_rate;
pub(crate) mod own_frames;
pub(crate) mod pending_packets;
pub(crate) mod pending_resolutions;
pub(crate) mod proxies;
pub(crate) mod release;
pub(crate) mod resolution;
pub(crate) mod solicitation;
