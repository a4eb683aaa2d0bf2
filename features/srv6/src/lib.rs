#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod calls;
mod commands;
mod csid;
mod endpoint;
mod headend;
mod l2_tunnel;
mod local_sids;
mod mobile;
mod proxy;
mod srh_place;

use quiver_control::{Registry, along, order};

pub use crate::csid::{Compressed, CompressedCross, NextCsid, ReplaceCsid};
pub use crate::endpoint::{
    CrossConnect, DecapsulateCross, DecapsulateFrame, DecapsulateLookUp, DecapsulateToBridge,
    Endpoint,
};
pub use crate::headend::{BindingEncaps, BindingInsert, Encaps, EncapsL2, Insert, SteerL2};
pub use crate::l2_tunnel::TunnelL2;
pub use crate::mobile::{
    MapSegment, MobileToSegments4, MobileToSegments6, SegmentsToMobile4, SegmentsToMobile6,
};
pub use crate::proxy::{FromFunction, Masquerade, ToFunction, Unmask};

/// Register nodes and commands.
pub fn register(registry: &mut Registry) {
    registry.feature("srv6", "SRv6: local SIDs and what they do, policies and what goes by them");
    let local_sids = local_sids::LocalSids::new(&registry.graph);
    let Some(local_sids) = registry.require(local_sids) else { return };
    let mut kinds = endpoint::register(registry, local_sids.lines());
    kinds.extend(csid::register(registry, local_sids.lines()));
    kinds.extend(proxy::register(registry, local_sids.lines()));
    kinds.extend(mobile::register(registry, local_sids.lines()));
    commands::register(registry, kinds);
    // The source of outer headers may be a SID: those are made first.
    registry.running_config_in_slices(order::ROUTES, along(commands::write_config));
    headend::register(registry, local_sids.lines());
    l2_tunnel::register(registry);
    registry.memory(local_sids::memory);
    registry.on_start(move |engine| {
        local_sids::start(engine, local_sids);
        calls::start(engine);
    });
}
