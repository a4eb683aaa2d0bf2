//! Descriptors as weapons: those that nobody asked for, those whose close or whose every call
//! blocks, and eventfds that are made to block.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::PathBuf;

use super::{FakeSlave, accept_with_eventfds, assert_in_order, borrowed_ring, has_died, init};
use crate::config::Role;
use crate::interrupt::tests::fill;
use crate::protocol::{AddRing, MESSAGE_BYTES, Message};
use crate::reasons::MemifReason;
use crate::router::{Router, frame, socket};
use crate::socket::{Channel, Listener};

/// A TCP socket whose last close waits for an hour, as nobody reads what it has sent; and its peer.
fn lingering() -> (std::net::TcpStream, std::net::TcpStream) {
    let listener = std::net::TcpListener::bind("[::1]:0").expect("bind");
    let sender =
        std::net::TcpStream::connect(listener.local_addr().expect("address")).expect("connect");
    let (receiver, _) = listener.accept().expect("accept");
    sender.set_nonblocking(true).expect("flag");
    while std::io::Write::write(&mut &sender, &[0; 1 << 16]).is_ok() {}
    sender.set_nonblocking(false).expect("flag");
    let linger = libc::linger { l_onoff: 1, l_linger: 3600 };
    // SAFETY: the option and its size belong together and live through the call.
    let set = unsafe {
        let size = size_of_val(&linger) as libc::socklen_t;
        let option = (&raw const linger).cast();
        libc::setsockopt(sender.as_raw_fd(), libc::SOL_SOCKET, libc::SO_LINGER, option, size)
    };
    assert_eq!(set, 0);
    (sender, receiver)
}

/// A message of `bytes` with these descriptors.
fn send_descriptors(channel: &Channel, bytes: &[u8], descriptors: &[RawFd]) {
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let mut control = [0u64; 140];
    // SAFETY: all zero is a valid msghdr; what is put in lives through `sendmsg`, and the control
    // buffer holds up to 253 descriptors.
    let sent = unsafe {
        let mut header: libc::msghdr = std::mem::zeroed();
        let payload = size_of_val(descriptors) as u32;
        (header.msg_iov, header.msg_iovlen) = (&mut part, 1);
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = libc::CMSG_SPACE(payload) as _;
        let first = libc::CMSG_FIRSTHDR(&header);
        ((*first).cmsg_level, (*first).cmsg_type) = (libc::SOL_SOCKET, libc::SCM_RIGHTS);
        (*first).cmsg_len = libc::CMSG_LEN(payload) as _;
        let data = libc::CMSG_DATA(first).cast::<RawFd>();
        descriptors.iter().enumerate().for_each(|(n, fd)| data.add(n).write_unaligned(*fd));
        libc::sendmsg(channel.fd(), &header, libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT)
    };
    assert_eq!(sent, bytes.len() as isize);
}

/// Every copy of one end of a pair that was sent away is closed: the other end sees it.
fn assert_all_closed(mut rest: std::os::unix::net::UnixStream) {
    assert_eq!(std::io::Read::read(&mut rest, &mut [0; 1]).expect("readable"), 0);
}

#[test]
fn descriptors_of_every_message_that_is_not_wanted_are_closed() {
    let path = socket("stowaways");
    let (mut master, id) = Router::with(&path, Role::Master, |_| {});
    let [ack, region] =
        [Message::Ack, Message::AddRegion { index: 0, size: 4096 }].map(|m| m.encode());
    let messages: [&[u8]; 7] =
        [b"", b"short", &[7; 300], &[0xff; MESSAGE_BYTES], &ack, &region, &init(0).encode()];
    for message in messages {
        for count in [1, 2, 4, 253] {
            let channel = Channel::connect(&path).expect("connect");
            let (sent, rest) = std::os::unix::net::UnixStream::pair().expect("pair");
            send_descriptors(&channel, message, &vec![sent.as_raw_fd(); count]);
            drop(sent);
            (0..3).for_each(|_| master.turn());
            assert_all_closed(rest);
        }
    }
    // Also those that nobody has looked at when the interface goes.
    let channel = Channel::connect(&path).expect("connect");
    let (sent, rest) = std::os::unix::net::UnixStream::pair().expect("pair");
    send_descriptors(&channel, &ack, &[sent.as_raw_fd()]);
    drop(sent);
    quiver_memif::delete(&mut master.engine, id).expect("deleted");
    assert_all_closed(rest);
}

/// A test that fails hangs: the control thread waits for an hour.
#[test]
fn a_descriptor_whose_close_blocks_holds_up_nobody() {
    let path = socket("linger");
    let (mut master, id) = Router::with(&path, Role::Master, |_| {});
    let region = Message::AddRegion { index: 0, size: 4096 }.encode();
    let ring =
        AddRing { flags: 1, index: 0, region: 0, offset: 0, log2_size: 3, private_header_bytes: 0 };
    let ring = Message::AddRing(ring).encode();
    let messages: [(&[u8], bool); 6] = [
        (b"", false),
        (b"x", false),
        (&[0; MESSAGE_BYTES], false),
        (&[9; 200], false),
        (&region, true),
        (&ring, true),
    ];
    let mut receivers = Vec::new();
    for (message, after_init) in messages {
        let channel = Channel::connect(&path).expect("connect");
        if after_init {
            channel.send(&init(0), None).expect("send");
        }
        let (sender, receiver) = lingering();
        send_descriptors(&channel, message, &[sender.as_raw_fd()]);
        send_descriptors(&channel, message, &[sender.as_raw_fd()]); // one stays unread
        drop(sender);
        (0..5).for_each(|_| master.turn());
        receivers.push(receiver);
        drop(channel);
        (0..2).for_each(|_| master.turn());
    }
    assert_in_order(&path, &mut master, id);
}

/// A test that fails hangs: the worker waits in `write`.
#[test]
fn a_slave_that_makes_its_eventfd_block_holds_up_nobody() {
    let path = socket("blocking-slave");
    let (mut master, id) = Router::with(&path, Role::Master, |_| {});
    for _ in 0..2 * crate::connection::ENDING_MAX {
        let fake = FakeSlave::connect(&path, &mut master, id);
        fill(fake.to_slave.fd());
        fake.m2s.set_flags(0);
        for number in 0..8 {
            master.send(id, &frame(number, 64));
            master.turn();
        }
        assert!(master.count(MemifReason::Interrupts) > 0);
        drop(fake);
        assert!(has_died(&mut master, id));
        // The next one is let in when the thread of this one has ended.
        crate::interrupt::tests::until("its thread ends", || {
            master.pass_ms(1000);
            master.engine.with::<crate::state::Memif, _>(|_, memif| memif.ending.is_empty())
        });
    }
    assert_in_order(&path, &mut master, id);
}

#[test]
fn a_master_that_makes_our_eventfd_block_holds_up_nobody() {
    for zero_copy in [false, true] {
        let path = socket(&format!("blocking-master-{zero_copy}"));
        let listener = Listener::bind(&path).expect("bind");
        let change = |c: &mut crate::MemifConfig| (c.ring_size, c.zero_copy) = (16, zero_copy);
        let (mut slave, id) = Router::with(&path, Role::Slave, change);
        let (channel, regions, eventfds) = accept_with_eventfds(&listener, &mut slave);
        eventfds.iter().for_each(|fd| fill(fd.as_raw_fd()));
        let s2m = borrowed_ring(&regions, 0);
        s2m.set_flags(0);
        for number in 0..8 {
            slave.send(id, &frame(number, 64));
            slave.turn();
        }
        assert!(slave.count(MemifReason::Interrupts) > 0);
        drop(channel);
        (0..4).for_each(|_| slave.turn());
        assert!(!slave.is_up(id));
        slave.assert_balance();
    }
}

#[test]
fn a_region_that_is_no_sealed_memory_is_refused_and_the_peer_is_told() {
    let path = socket("no-memory");
    let (mut master, id) = Router::with(&path, Role::Master, |_| {});
    let program = std::fs::File::open(std::env::current_exe().expect("path")).expect("file");
    let channel = Channel::connect(&path).expect("connect");
    channel.send(&init(0), None).expect("send");
    let region = Message::AddRegion { index: 0, size: 4096 };
    channel.send(&region, Some(program.as_raw_fd())).expect("send");
    (0..4).for_each(|_| master.turn());
    assert!(master.reason(id).contains("no shared memory"), "{}", master.reason(id));
    assert_in_order(&path, &mut master, id);
}

/// A file system whose server answers nothing but what it takes to open its one file.
struct SilentFuse {
    /// The mount lasts as long as this is open.
    _device: OwnedFd,
    folder: PathBuf,
}

impl SilentFuse {
    /// `None`, with a reason printed, where nothing can be mounted.
    fn mount() -> Option<SilentFuse> {
        let folder = std::env::temp_dir().join(format!("quiver-memif-fuse-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("folder");
        let device = std::fs::OpenOptions::new().read(true).write(true).open("/dev/fuse");
        let device: OwnedFd =
            device.map_err(|error| eprintln!("skipped: /dev/fuse: {error}")).ok()?.into();
        let options = format!("fd={},rootmode=40000,user_id=0,group_id=0\0", device.as_raw_fd());
        let target = std::ffi::CString::new(folder.to_str().expect("UTF-8")).expect("no zero");
        // SAFETY: strings that end with a zero and live through the call.
        let mounted = unsafe {
            let flags = libc::MS_NOSUID | libc::MS_NODEV;
            let options = options.as_ptr().cast();
            libc::mount(c"quiver-test".as_ptr(), target.as_ptr(), c"fuse".as_ptr(), flags, options)
        };
        if mounted != 0 {
            eprintln!("skipped: FUSE cannot be mounted: {}", std::io::Error::last_os_error());
            return None;
        }
        let server = device.try_clone().expect("dup");
        std::thread::spawn(move || serve(&server));
        Some(SilentFuse { _device: device, folder })
    }

    fn open(&self) -> std::fs::File {
        let mut options = std::fs::OpenOptions::new();
        options.read(true).write(true).open(self.folder.join("region")).expect("opened")
    }
}

impl Drop for SilentFuse {
    fn drop(&mut self) {
        let target = std::ffi::CString::new(self.folder.to_str().expect("UTF-8")).expect("no zero");
        // SAFETY: a string that ends with a zero. A forced unmount ends the process that waits for
        // an answer.
        unsafe { libc::umount2(target.as_ptr(), libc::MNT_FORCE | libc::MNT_DETACH) };
        let _ = std::fs::remove_dir(&self.folder);
    }
}

/// Answer INIT, LOOKUP, GETATTR of the root, and OPEN; leave all else without an answer.
fn serve(device: &OwnedFd) {
    const LOOKUP: u32 = 1;
    const GETATTR: u32 = 3;
    const OPEN: u32 = 14;
    const INIT: u32 = 26;
    let mut request = vec![0u8; 1 << 17];
    loop {
        // SAFETY: room for as many bytes as announced.
        let size =
            unsafe { libc::read(device.as_raw_fd(), request.as_mut_ptr().cast(), request.len()) };
        if size < 40 {
            return; // unmounted
        }
        let u32_at = |at: usize| u32::from_ne_bytes(request[at..at + 4].try_into().expect("four"));
        let node = u32_at(16);
        let attributes = |mode: u32| {
            // Inode, size, blocks and times; then nanoseconds, mode, links, owner, device, block
            // size, flags.
            let long = [2u64, 1 << 20, 2048, 0, 0, 0].map(u64::to_ne_bytes).concat();
            let short = [0, 0, 0, mode, 1, 0, 0, 0, 4096, 0].map(u32::to_ne_bytes).concat();
            [long, short].concat()
        };
        let body = match (u32_at(4), node) {
            (INIT, _) => {
                let mut out = [7u32, 31, 0, 0, 0, 1 << 16, 1].map(u32::to_ne_bytes).concat();
                out.resize(64, 0);
                out
            }
            (LOOKUP, _) => {
                let mut out = [2u64, 0, 3600, 3600, 0].map(u64::to_ne_bytes).concat();
                out.extend(attributes(0o100_666));
                out
            }
            (GETATTR, 1) => {
                let mut out = [3600u64, 0].map(u64::to_ne_bytes).concat();
                out.extend(attributes(0o040_777));
                out
            }
            (OPEN, _) => vec![0; 16],
            _ => continue,
        };
        let mut answer = (16 + body.len() as u32).to_ne_bytes().to_vec();
        answer.extend(0u32.to_ne_bytes());
        answer.extend(&request[8..16]);
        answer.extend(body);
        // SAFETY: as many bytes as announced.
        unsafe { libc::write(device.as_raw_fd(), answer.as_ptr().cast(), answer.len()) };
    }
}

/// A test that fails hangs: FUSE answers neither `fstat` nor `statfs` nor `close`.
#[test]
fn a_file_whose_server_never_answers_holds_up_nobody() {
    let Some(fuse) = SilentFuse::mount() else { return };
    let path = socket("fuse");
    let (mut master, id) = Router::with(&path, Role::Master, |_| {});
    let region = Message::AddRegion { index: 0, size: 4096 };
    let ring =
        AddRing { flags: 1, index: 0, region: 0, offset: 0, log2_size: 3, private_header_bytes: 0 };
    for message in [region, Message::AddRing(ring), Message::Ack] {
        let channel = Channel::connect(&path).expect("connect");
        channel.send(&init(0), None).expect("send");
        let file = fuse.open();
        channel.send(&message, Some(file.as_raw_fd())).expect("send");
        // Its server answers our close neither: a thread of its own, which the unmount ends.
        std::thread::spawn(move || drop(file));
        (0..5).for_each(|_| master.turn());
        assert!(!master.is_up(id));
        drop(channel);
    }
    assert_in_order(&path, &mut master, id);
}
