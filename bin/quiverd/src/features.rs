//! The one list of what is built in. A feature that is not here does not exist.

use quiver_control::{Registry, StartupPart};

/// Register everything: the engine's own commands, then what is built in.
pub fn register(registry: &mut Registry) {
    quiver_control::commands::register(registry);
    built_in(registry);
}

/// Register drivers, then features.
pub fn built_in(registry: &mut Registry) {
    crate::logging::register(registry);
    quiver_metrics::register(registry);
    quiver_export::register(registry);
    quiver_nat_log::register(registry);
    quiver_af_packet::register(registry);
    quiver_af_xdp::register(registry);
    quiver_memif::register(registry);
    quiver_packet_generator::register(registry);
    quiver_pcap::register(registry);
    quiver_tap::register(registry);
    quiver_bfd::register(registry);
    quiver_bond::register(registry);
    quiver_bridge::register(registry);
    quiver_dhcp::register(registry);
    quiver_ethernet::register(registry);
    quiver_ip::register(registry);
    quiver_multicast::register(registry);
    quiver_group_membership::register(registry);
    quiver_router_advertisement::register(registry);
    quiver_reassembly::register(registry);
    quiver_urpf::register(registry);
    quiver_cop::register(registry);
    quiver_acl::register(registry);
    quiver_linux_mirror::register(registry);
    quiver_lldp::register(registry);
    quiver_flowprobe::register(registry);
    quiver_sflow::register(registry);
    quiver_span::register(registry);
    quiver_nat44::register(registry);
    quiver_nat64::register(registry);
    quiver_nat66::register(registry);
    quiver_siit::register(registry);
    quiver_map::register(registry);
    quiver_npt66::register(registry);
    quiver_det44::register(registry);
    quiver_pbr::register(registry);
    quiver_policer::register(registry);
    quiver_qos::register(registry);
    quiver_classify::register(registry);
    quiver_shaper::register(registry);
    quiver_srv6::register(registry);
    quiver_teib::register(registry);
    quiver_gre::register(registry);
    quiver_mpls::register(registry);
    quiver_vxlan::register(registry);
    quiver_gro::register(registry);
    quiver_gso::register(registry);
    quiver_ipip::register(registry);
    quiver_six_rd::register(registry);
    quiver_geneve::register(registry);
    quiver_lisp::register(registry);
    quiver_udp_encap::register(registry);
    quiver_l2tpv3::register(registry);
    quiver_vrrp::register(registry);
    quiver_fused::register(registry);
    registry.commands.publish_answers(include_str!("../answers.json"));
}

/// The sections of the start-up file that features have.
pub fn startup() -> Vec<StartupPart> {
    let features = quiver_ip::startup()
        .into_iter()
        .chain(quiver_bridge::startup())
        .chain(quiver_acl::startup())
        .chain(quiver_linux_mirror::startup());
    [crate::logging::startup(), quiver_metrics::startup()].into_iter().chain(features).collect()
}
