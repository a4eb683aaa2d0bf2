//! The bpf(2) system call, as far as this driver needs it: maps, programs, the link that holds a
//! program at a network device, and runs of a program on frames of ours.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;

use crate::program::Instruction;

// linux/bpf.h
const MAP_CREATE: libc::c_int = 0;
const MAP_UPDATE_ELEM: libc::c_int = 2;
const PROG_LOAD: libc::c_int = 5;
const PROG_TEST_RUN: libc::c_int = 10;
const LINK_CREATE: libc::c_int = 28;
const MAP_TYPE_ARRAY: u32 = 2;
const MAP_TYPE_XSKMAP: u32 = 17;
const MAP_IS_MMAPABLE: u32 = 1 << 10;
const PROG_TYPE_XDP: u32 = 6;
const PROG_KNOWS_FRAGMENTS: u32 = 1 << 5;
const ATTACH_XDP: u32 = 37;
const TEST_RUN_LIVE_FRAMES: u32 = 1 << 1;

/// Only functions that every licence may call are called.
const LICENCE: &std::ffi::CStr = c"Apache-2.0";
/// How a program's list of maps names it in `bpftool`.
const NAME: [u8; 16] = *b"quiver_xdp\0\0\0\0\0\0";

/// Which hook of a device a program stands at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// In the device's driver, before the kernel has made anything of a frame.
    Native,
    /// Behind the driver; every device has it.
    Generic,
}

impl Hook {
    /// As `ip link` calls it.
    pub fn name(self) -> &'static str {
        match self {
            Hook::Native => "native",
            Hook::Generic => "generic",
        }
    }

    /// XDP_FLAGS_DRV_MODE, XDP_FLAGS_SKB_MODE.
    fn flag(self) -> u32 {
        match self {
            Hook::Native => 1 << 2,
            Hook::Generic => 1 << 1,
        }
    }
}

/// The call itself; `T` is the part of `union bpf_attr` that the command reads.
fn call<T>(command: libc::c_int, attributes: &mut T) -> io::Result<i32> {
    let size = size_of::<T>();
    // SAFETY: the attributes live through the call and their size is given; what they point to is
    // answered for by the callers below.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, &raw mut *attributes, size) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as i32) }
}

fn owned(fd: i32) -> OwnedFd {
    // SAFETY: the kernel has just made it for us.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

#[repr(C)]
struct MapAttributes {
    map_type: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
    flags: u32,
}

#[repr(C)]
struct UpdateAttributes {
    map: u32,
    _pad: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// A map from receive queues to AF_XDP sockets.
pub fn socket_map(queues: u32) -> io::Result<OwnedFd> {
    let mut attributes = MapAttributes {
        map_type: MAP_TYPE_XSKMAP,
        key_bytes: 4,
        value_bytes: 4,
        entries: queues,
        flags: 0,
    };
    call(MAP_CREATE, &mut attributes).map(owned)
}

/// Frames of this queue go to this socket.
pub fn set_socket(map: BorrowedFd<'_>, queue: u32, socket: i32) -> io::Result<()> {
    let (key, value) = (queue, socket);
    let mut attributes = UpdateAttributes {
        map: map.as_raw_fd() as u32,
        _pad: 0,
        key: (&raw const key) as u64,
        value: (&raw const value) as u64,
        flags: 0,
    };
    // Key and value are of the map's sizes, and live through the call.
    call(MAP_UPDATE_ELEM, &mut attributes).map(drop)
}

/// One value of a map, shared between us and programs.
pub struct SharedValue {
    map: OwnedFd,
    memory: NonNull<u8>,
    bytes: usize,
}

// SAFETY: it owns its mapping; who uses the memory answers for how.
unsafe impl Send for SharedValue {}
// SAFETY: it gives away nothing but the address.
unsafe impl Sync for SharedValue {}

impl SharedValue {
    /// Of `bytes`, all zero; whole pages.
    pub fn new(bytes: usize) -> io::Result<SharedValue> {
        let mut attributes = MapAttributes {
            map_type: MAP_TYPE_ARRAY,
            key_bytes: 4,
            value_bytes: bytes as u32,
            entries: 1,
            flags: MAP_IS_MMAPABLE,
        };
        let map = owned(call(MAP_CREATE, &mut attributes)?);
        let (protection, kind) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_POPULATE);
        // SAFETY: a fresh mapping of our own map; the result is checked.
        let memory = unsafe {
            libc::mmap(std::ptr::null_mut(), bytes, protection, kind, map.as_raw_fd(), 0)
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let memory = NonNull::new(memory.cast())
            .ok_or_else(|| io::Error::other("mapped at address zero"))?;
        Ok(SharedValue { map, memory, bytes })
    }

    /// Where it begins.
    pub fn memory(&self) -> NonNull<u8> {
        self.memory
    }

    /// The map's descriptor, which programs name it by.
    pub fn map(&self) -> i32 {
        self.map.as_raw_fd()
    }
}

impl Drop for SharedValue {
    fn drop(&mut self) {
        // SAFETY: mapped by us with this size, and nothing refers to it any more.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.bytes) };
    }
}

#[repr(C)]
struct LoadAttributes {
    program_type: u32,
    instruction_count: u32,
    instructions: u64,
    licence: u64,
    log_level: u32,
    log_bytes: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
}

/// Load a program for the hook of a network device.
pub fn load(instructions: &[Instruction]) -> io::Result<OwnedFd> {
    let mut attributes = LoadAttributes {
        program_type: PROG_TYPE_XDP,
        instruction_count: instructions.len() as u32,
        instructions: instructions.as_ptr() as u64,
        licence: LICENCE.as_ptr() as u64,
        log_level: 0,
        log_bytes: 0,
        log: 0,
        kernel_version: 0,
        flags: PROG_KNOWS_FRAGMENTS,
        name: NAME,
    };
    // The instructions are eight bytes each, as the kernel has them, and live through the call.
    call(PROG_LOAD, &mut attributes).map(owned)
}

#[repr(C)]
struct LinkAttributes {
    program: u32,
    device: u32,
    attach_type: u32,
    flags: u32,
}

/// Put a program at a device's hook, in the calling thread's namespace. It goes when the descriptor
/// is closed.
pub fn attach(program: BorrowedFd<'_>, device: i32, hook: Hook) -> io::Result<OwnedFd> {
    let mut attributes = LinkAttributes {
        program: program.as_raw_fd() as u32,
        device: device as u32,
        attach_type: ATTACH_XDP,
        flags: hook.flag(),
    };
    call(LINK_CREATE, &mut attributes).map(owned)
}

#[repr(C)]
#[derive(Default)]
struct RunAttributes {
    program: u32,
    result: u32,
    data_in_bytes: u32,
    data_out_bytes: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
    context_in_bytes: u32,
    context_out_bytes: u32,
    context_in: u64,
    context_out: u64,
    flags: u32,
    cpu: u32,
    batch: u32,
    _pad: u32,
}

/// `struct xdp_md`.
#[repr(C)]
#[derive(Default)]
struct FrameContext {
    data: u32,
    data_end: u32,
    data_meta: u32,
    ingress_device: u32,
    rx_queue: u32,
    egress_device: u32,
}

/// Run a program `repeat` times on live frames that begin as `frame` and came in at a device,
/// `batch` at a time; what it decides is done. It returns early (EINTR) for a signal.
pub fn run_live(
    program: BorrowedFd<'_>,
    frame: &[u8],
    device: i32,
    repeat: u32,
    batch: u32,
) -> io::Result<()> {
    let context = FrameContext {
        data_end: frame.len() as u32,
        ingress_device: device as u32,
        ..Default::default()
    };
    let mut attributes = RunAttributes {
        program: program.as_raw_fd() as u32,
        data_in_bytes: frame.len() as u32,
        data_in: frame.as_ptr() as u64,
        repeat,
        context_in_bytes: size_of::<FrameContext>() as u32,
        context_in: (&raw const context) as u64,
        flags: TEST_RUN_LIVE_FRAMES,
        batch,
        ..Default::default()
    };
    // Frame and context live through the call, and the kernel only reads them.
    call(PROG_TEST_RUN, &mut attributes).map(drop)
}
