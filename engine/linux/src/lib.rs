//! Linux network devices as drivers see them: links and their state, network namespaces, the
//! checksum and segmentation offloads that the kernel leaves to the receiver of its frames,
//! addresses of devices that are this machine's alone. And descriptors that others send: refused,
//! or closed where nobody waits for it.

#![warn(clippy::missing_errors_doc)]

pub mod arrival;
pub mod disposal;
pub mod followed;
#[cfg(feature = "lab")]
pub mod lab;
pub mod link;
pub mod machine;
pub mod namespace;
pub mod rights;
pub mod scatter;
pub mod tap_maker;
pub mod virtio_net;

pub use arrival::{Arrival, RxDrop, VECTOR_PACKETS_MAX};
pub use followed::{FollowedLink, FollowsLink};
pub use link::{LinkError, LinkSocket, LinkState};
pub use namespace::in_namespace;
pub use scatter::{FRAME_BYTES_MAX, Scatter};
pub use tap_maker::{AttachTap, TapKind, TapMaker, TapWish};
pub use virtio_net::VirtioNetHeader;
