//! The one list of superblocks: nodes that run in one pass over the vector where nothing stands between
//! them ([`quiver_core::superblock`]). It is a room of its own because it is the one place that knows
//! several features: a chain's stages are compiled into one loop, so their types must meet somewhere.

#![forbid(unsafe_code)]

use quiver_bridge::{L2FloodInput, L2Forward, L2Input, L2Learn};
use quiver_control::Registry;
use quiver_core::stage::LookUp;
use quiver_core::superblock::{SuperblockSpec, Tail};
use quiver_ethernet::{Cross, EthernetInput, VlanInput};
use quiver_ip::{Ip4Input, Ip4Lookup, Ip4Rewrite, Ip6Input, Ip6Lookup, Ip6Rewrite};
use quiver_reassembly::SortFragments;
use quiver_srv6::{
    BindingEncaps, BindingInsert, Compressed, CompressedCross, CrossConnect, DecapsulateCross,
    DecapsulateFrame, DecapsulateLookUp, DecapsulateToBridge, Encaps, EncapsL2, Endpoint, FromFunction,
    Gateway, Insert, MapSegment, Masquerade, MobileToSegments4, MobileToSegments6, NextCsid, ReplaceCsid,
    SegmentsToMobile4, SegmentsToMobile6, SteerL2, ToFunction, TunnelL2, Unmask,
};
use quiver_tables::ip::{Ip4, Ip6};

/// `ip4-sv-reassembly-feature`, `ip6-sv-reassembly-feature`.
type Virtual<const SIX: bool> = SortFragments<true, SIX>;

/// To a local SID of this node, and on.
fn local_sid<T: Tail>() -> SuperblockSpec {
    SuperblockSpec::with_look_up::<(EthernetInput, Ip6Input), Ip6Lookup, T>()
}

/// To a local SID of this node that looks up where the packet goes from there, and on.
fn local_sid_with_look_up<L: LookUp, T: Tail>() -> SuperblockSpec {
    SuperblockSpec::with_two_look_ups::<(EthernetInput, Ip6Input), Ip6Lookup, L, T>()
}

/// Declare all superblocks; those whose nodes are not built in are left out.
pub fn register(registry: &mut Registry) {
    for spec in [
        // l2-patch, l2-xconnect → NAME-output
        SuperblockSpec::straight::<Cross<true>>(),
        SuperblockSpec::straight::<Cross<false>>(),
        // l2-input → l2-learn → l2-fwd → NAME-output; and where nothing is learned
        SuperblockSpec::with_look_ups::<(L2Input,), (L2Learn, L2Forward)>(),
        SuperblockSpec::with_look_ups::<(L2Input,), (L2Forward,)>(),
        // l2-flood-input → l2-flood-learn, to l2-flood
        SuperblockSpec::with_look_ups::<(L2FloodInput,), (L2Learn<true>,)>(),
        // ethernet-input → ip4-input → ip4-lookup → ip4-rewrite → NAME-output; and from ip4-input on
        SuperblockSpec::with_look_up::<(EthernetInput, Ip4Input), Ip4Lookup, Ip4Rewrite>(),
        SuperblockSpec::with_look_up::<(Ip4Input,), Ip4Lookup, Ip4Rewrite>(),
        // with virtual reassembly in the arc, where packets that are no fragments stay on the way; with a proxy's return
        SuperblockSpec::with_look_up::<(EthernetInput, Ip4Input, Virtual<false>), Ip4Lookup, Ip4Rewrite>(),
        SuperblockSpec::with_look_ups::<(EthernetInput, Ip4Input), (FromFunction<Ip4>,)>(),
        // the same for IPv6. What leaves the first of a family for its features finds those before another family's
        SuperblockSpec::with_look_up::<(EthernetInput, Ip6Input), Ip6Lookup, Ip6Rewrite>(),
        SuperblockSpec::with_look_up::<(Ip6Input,), Ip6Lookup, Ip6Rewrite>(),
        SuperblockSpec::with_look_up::<(EthernetInput, Ip6Input, Virtual<true>), Ip6Lookup, Ip6Rewrite>(),
        SuperblockSpec::with_look_ups::<(EthernetInput, Ip6Input), (FromFunction<Ip6>,)>(),
        SuperblockSpec::with_look_up::<(EthernetInput, Ip6Input), Unmask, Ip6Rewrite>(),
        // the same on ports with sub-interfaces: vlan-input → …
        SuperblockSpec::with_look_up::<(VlanInput, Ip4Input), Ip4Lookup, Ip4Rewrite>(),
        SuperblockSpec::with_look_up::<(VlanInput, Ip6Input), Ip6Lookup, Ip6Rewrite>(),
        SuperblockSpec::steered::<(VlanInput,), Cross<false>>(),
        // into SRv6 policies: … → ip6-lookup → sr-pl-rewrite-… → NAME-output, by prefixes and binding SIDs; and frames
        SuperblockSpec::with_look_up::<(EthernetInput, Ip6Input), Ip6Lookup, Encaps<Ip6>>(),
        SuperblockSpec::with_look_up::<(EthernetInput, Ip4Input), Ip4Lookup, Encaps<Ip4>>(),
        SuperblockSpec::with_look_up::<(EthernetInput, Ip6Input), Ip6Lookup, Insert>(),
        local_sid::<BindingEncaps>(),
        local_sid::<BindingInsert>(),
        SuperblockSpec::with_look_ups::<(SteerL2,), (EncapsL2,)>(),
        SuperblockSpec::with_look_ups::<(TunnelL2,), (EncapsL2,)>(),
        // local SIDs: … → ip6-lookup → sr-localsid… → ip4-rewrite or ip6-rewrite → NAME-output
        local_sid_with_look_up::<Endpoint, Ip6Rewrite>(),
        local_sid_with_look_up::<Endpoint, Ip4Rewrite>(),
        local_sid::<(CrossConnect, Ip6Rewrite)>(),
        local_sid::<(DecapsulateCross, Ip4Rewrite)>(),
        local_sid::<(DecapsulateCross, Ip6Rewrite)>(),
        local_sid_with_look_up::<DecapsulateLookUp, Ip4Rewrite>(),
        local_sid_with_look_up::<DecapsulateLookUp, Ip6Rewrite>(),
        local_sid::<DecapsulateFrame<false>>(),
        // to bridge domains: … → ip6-lookup → sr-localsid-dt2u, -dt2m, to l2-input or l2-flood-input
        local_sid::<DecapsulateToBridge<false>>(),
        local_sid::<DecapsulateToBridge<true>>(),
        // compressed ones: … → ip6-lookup → sr-next-csid…, sr-replace-csid… → ip6-rewrite → NAME-output
        local_sid_with_look_up::<Compressed<NextCsid>, Ip6Rewrite>(),
        local_sid_with_look_up::<Compressed<NextCsid>, Ip4Rewrite>(),
        local_sid::<(CompressedCross<NextCsid>, Ip6Rewrite)>(),
        local_sid_with_look_up::<Compressed<ReplaceCsid>, Ip6Rewrite>(),
        local_sid::<(CompressedCross<ReplaceCsid>, Ip6Rewrite)>(),
        // proxies: … → ip6-lookup → sr-localsid-as, -ad, -am → ip4-rewrite or ip6-rewrite → NAME-output
        local_sid::<(ToFunction<false>, Ip4Rewrite)>(),
        local_sid::<(ToFunction<false>, Ip6Rewrite)>(),
        local_sid::<ToFunction<false>>(),
        local_sid::<(ToFunction<true>, Ip4Rewrite)>(),
        local_sid::<(ToFunction<true>, Ip6Rewrite)>(),
        local_sid::<ToFunction<true>>(),
        local_sid::<(Masquerade, Ip6Rewrite)>(),
        // the mobile user plane: … → ip4-lookup → sr-pl-gtp4-d → ip6-rewrite → NAME-output, and its local SIDs
        SuperblockSpec::with_two_look_ups::<
            (EthernetInput, Ip4Input),
            Ip4Lookup,
            MobileToSegments4,
            Ip6Rewrite,
        >(),
        local_sid_with_look_up::<Gateway<MobileToSegments6>, Ip6Rewrite>(),
        local_sid_with_look_up::<Gateway<SegmentsToMobile4>, Ip4Rewrite>(),
        local_sid_with_look_up::<Gateway<SegmentsToMobile6>, Ip6Rewrite>(),
        local_sid_with_look_up::<Gateway<MapSegment>, Ip6Rewrite>(),
    ] {
        registry.graph.superblock(spec);
    }
}
