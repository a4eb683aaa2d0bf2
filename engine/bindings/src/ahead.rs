//! Sessions of two lines: a look-up asks for the line of the key that it compares, and packets need
//! the other one, too.

use quiver_core::cpu::prefetch;
use quiver_core::memory::buffer::CACHE_LINE_BYTES;
use quiver_tables::sessions::SessionObjects;

/// Ask for the first and the last line of the sessions that a look-up has found, some of which its
/// comparison has brought. For sessions of at most two lines; `found` are indexes of their table.
#[inline(always)]
pub fn prefetch_sessions<const W: usize, const N: usize>(
    objects: &SessionObjects<W, N>,
    found: &[u32],
) {
    const {
        // The first of them begins with a line, another one at most `unit` before its end.
        let bytes = W * size_of::<u64>();
        let unit = 1 << bytes.trailing_zeros();
        let unit = if unit < CACHE_LINE_BYTES { unit } else { CACHE_LINE_BYTES };
        assert!(CACHE_LINE_BYTES - unit + bytes <= 2 * CACHE_LINE_BYTES, "two lines at most");
    };
    // What is not found is an index past the end, which reads as session 0.
    for index in found {
        let words = objects.get(index >> 1);
        prefetch(&words[0]);
        prefetch(&words[W - 1]);
    }
}
