//! The programs that run in the kernel, a few instructions each (RFC 9669), put together here: no
//! compiler is needed where Quiver runs.

/// One instruction, as the kernel has it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    opcode: u8,
    /// The low half names the destination, the high half the source.
    registers: u8,
    offset: i16,
    value: i32,
}

/// A register: r0 a result, r1 to r5 arguments, r6 to r9 what calls keep, r10 the end of the stack.
#[derive(Clone, Copy)]
struct R(u8);

/// Verdicts, of `enum xdp_action`.
const DROP: i32 = 1;
const PASS: i32 = 2;
/// Functions, of `enum bpf_func_id`.
const REDIRECT: i32 = 23;
const ADJUST_HEAD: i32 = 44;
const REDIRECT_MAP: i32 = 51;
const ADJUST_TAIL: i32 = 65;
const STORE_BYTES: i32 = 190;
/// Where `rx_queue_index` lies in `struct xdp_md`.
const RX_QUEUE: i16 = 16;
/// What the source register of a wide load says about its value.
const MAP: u8 = 1;
const MAP_VALUE: u8 = 2;

/// The ring that [`from_ring`] takes frames from: the value of a map. Both positions count bytes
/// and only grow; a record begins where the position is, counted from [`RECORDS`](ring::RECORDS)
/// and modulo the ring's size.
pub mod ring {
    /// Where the producer's position lies.
    pub const PRODUCED: usize = 0;
    /// Where the consumer's position lies, on a line of its own.
    pub const CONSUMED: usize = 64;
    /// Where the records begin.
    pub const RECORDS: usize = 128;
    /// Bytes for records, a power of two.
    pub const RECORDS_BYTES: usize = 256 << 10;
    /// A record's length in bytes and the number of its device, 32 bits each, stand in front of the
    /// frame.
    pub const RECORD_HEADER: usize = 8;
    /// Records begin on lines.
    pub const LINE: usize = 64;
    /// Longest frame, bytes: what a page holds beside what the kernel and the router's headers
    /// need.
    pub const FRAME_BYTES_MAX: usize = 3000;
    /// The value's size: a record that begins at the end goes on behind it.
    pub const VALUE_BYTES: usize = RECORDS_BYTES + 4096;
    /// Bytes from one record to the next.
    pub fn stride(frame_bytes: usize) -> usize {
        (RECORD_HEADER + frame_bytes).next_multiple_of(LINE)
    }
}

/// Bytes in front of a frame besides the kernel's 256, so that a router puts its headers there.
pub const MORE_HEADROOM_BYTES: usize = 128;
/// Bytes of the frame that each run begins with, behind the headroom.
pub const BLANK_BYTES: usize = 64;

fn op(opcode: u8, to: R, from: R, offset: i16, value: i32) -> Instruction {
    Instruction { opcode, registers: to.0 | from.0 << 4, offset, value }
}

/// `to = value`.
fn set(to: R, value: i32) -> Instruction {
    op(0xb7, to, R(0), 0, value)
}

/// `to = *(u32 *)(from + offset)`.
fn load32(to: R, from: R, offset: i16) -> Instruction {
    op(0x61, to, from, offset, 0)
}

/// `to = *(u64 *)(from + offset)`.
fn load64(to: R, from: R, offset: i16) -> Instruction {
    op(0x79, to, from, offset, 0)
}

/// `*(u64 *)(to + offset) = from`.
fn store64(to: R, offset: i16, from: R) -> Instruction {
    op(0x7b, to, from, offset, 0)
}

/// `to = from`.
fn copy(to: R, from: R) -> Instruction {
    op(0xbf, to, from, 0, 0)
}

/// `to += from`.
fn add_register(to: R, from: R) -> Instruction {
    op(0x0f, to, from, 0, 0)
}

/// `to += value`.
fn add(to: R, value: i32) -> Instruction {
    op(0x07, to, R(0), 0, value)
}

/// `to &= value`.
fn and(to: R, value: i32) -> Instruction {
    op(0x57, to, R(0), 0, value)
}

/// Jumps, over so many instructions: `if left OP right`.
const EQUAL: u8 = 0x15;
const NOT_EQUAL: u8 = 0x55;
const ABOVE: u8 = 0x25;
const BELOW: u8 = 0xa5;

fn jump(over: i16, condition: u8, left: R, right: i32) -> Instruction {
    op(condition, left, R(0), over, right)
}

/// `to =` the map of this descriptor.
fn map(to: R, descriptor: i32) -> [Instruction; 2] {
    [op(0x18, to, R(MAP), 0, descriptor), op(0, R(0), R(0), 0, 0)]
}

/// `to =` the address of the first value of the map of this descriptor.
fn value(to: R, descriptor: i32) -> [Instruction; 2] {
    [op(0x18, to, R(MAP_VALUE), 0, descriptor), op(0, R(0), R(0), 0, 0)]
}

/// `r0 = function(r1, …)`.
fn call(function: i32) -> Instruction {
    op(0x85, R(0), R(0), 0, function)
}

/// `return r0`.
fn exit() -> Instruction {
    op(0x95, R(0), R(0), 0, 0)
}

/// What stands at the hook: a frame goes to the socket of its queue, and to Linux where there is
/// none.
pub fn to_sockets(socket_map: i32) -> Vec<Instruction> {
    let mut program = vec![load32(R(2), R(1), RX_QUEUE)];
    program.extend(map(R(1), socket_map));
    program.extend([set(R(3), PASS), call(REDIRECT_MAP), exit()]);
    program
}

/// What runs on frames that do not come from anywhere: each takes the next record of the ring,
/// becomes its frame, and goes to its device; while the ring is empty, frames are dropped.
pub fn from_ring(ring_map: i32) -> Vec<Instruction> {
    let (context, base, position, record) = (R(6), R(7), R(8), R(9));
    let length_on_stack = -8;
    let at = |place: usize| place as i16;
    let mut program = vec![copy(context, R(1))];
    program.extend(value(base, ring_map));
    program.extend([
        load64(position, base, at(ring::CONSUMED)),
        load64(record, base, at(ring::PRODUCED)),
        op(0x5d, position, record, 2, 0), // is there one? then over the next two
        set(R(0), DROP),
        exit(),
        // Where it lies.
        copy(R(1), position),
        and(R(1), (ring::RECORDS_BYTES - ring::LINE) as i32),
        copy(record, base),
        add_register(record, R(1)),
        add(record, ring::RECORDS as i32),
        // Its length; the next one begins behind it.
        load32(R(2), record, 0),
        store64(R(10), length_on_stack, R(2)),
        add(R(2), (ring::RECORD_HEADER + ring::LINE - 1) as i32),
        and(R(2), -(ring::LINE as i32)),
        add_register(position, R(2)),
        store64(base, at(ring::CONSUMED), position),
        // Room in front, and the frame's length.
        copy(R(1), context),
        set(R(2), MORE_HEADROOM_BYTES as i32),
        call(ADJUST_HEAD),
        load64(R(2), R(10), length_on_stack),
        add(R(2), -(BLANK_BYTES as i32)),
        jump(3, EQUAL, R(2), 0),
        copy(R(1), context),
        call(ADJUST_TAIL),
        jump(12, NOT_EQUAL, R(0), 0),
        // Its bytes.
        load64(R(4), R(10), length_on_stack),
        jump(10, ABOVE, R(4), ring::FRAME_BYTES_MAX as i32),
        jump(9, BELOW, R(4), 1),
        copy(R(3), record),
        add(R(3), ring::RECORD_HEADER as i32),
        copy(R(1), context),
        set(R(2), 0),
        call(STORE_BYTES),
        // Its way.
        load32(R(1), record, 4),
        set(R(2), 0),
        call(REDIRECT),
        exit(),
        set(R(0), DROP),
        exit(),
    ]);
    program
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instruction_is_eight_bytes() {
        assert_eq!(size_of::<Instruction>(), 8);
        assert_eq!(op(0x61, R(2), R(1), 16, 0).registers, 0x12);
    }
}
