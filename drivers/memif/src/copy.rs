//! Copying between shared memory and our own. The peer may write while we read: the bytes are then
//! whatever they are, and only looked at after they lie in our buffer.
#![allow(unsafe_code)]

/// Bytes moved at a time.
pub(crate) const PIECE_BYTES: usize = 64;

/// `bytes` rounded up to whole pieces: what [`copy_pieces`] touches on both sides.
#[inline(always)]
pub(crate) const fn in_pieces(bytes: usize) -> usize {
    bytes.next_multiple_of(PIECE_BYTES)
}

/// Copy whole pieces of 64 bytes, at least one, until `length` is covered. A frame of minimum size
/// is one piece: two loads and two stores where the processor has 32-byte registers.
///
/// # Safety
/// [`in_pieces`]`(length.max(1))` bytes can be read at `from` and written at `to`; the two do not
/// overlap.
#[inline(always)]
pub(crate) unsafe fn copy_pieces(from: *const u8, to: *mut u8, length: usize) {
    let mut at = 0;
    loop {
        // SAFETY: by the contract of this function.
        unsafe {
            let piece = from.add(at).cast::<[u8; PIECE_BYTES]>().read_unaligned();
            to.add(at).cast::<[u8; PIECE_BYTES]>().write_unaligned(piece);
        }
        at += PIECE_BYTES;
        if at >= length {
            return;
        }
    }
}

/// Copy exactly `length` bytes.
///
/// # Safety
/// `length` bytes can be read at `from` and written at `to`; the two do not overlap.
#[inline]
pub(crate) unsafe fn copy_exactly(from: *const u8, to: *mut u8, length: usize) {
    // SAFETY: by the contract of this function.
    unsafe { std::ptr::copy_nonoverlapping(from, to, length) };
}

/// Ask for a cache line that will be written to: it is taken away from the other core at once, not
/// first shared with it.
#[inline(always)]
pub(crate) fn prefetch_to_write(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults, whatever the address; processors without this one ignore it.
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// The same loop compiled for each [`Variant`](quiver_core::cpu::Variant): a piece is two loads and two
/// stores with registers of 32 bytes, one of each with those of 64.
macro_rules! in_all_variants {
    ($(#[$doc:meta])* $name:ident = $body:path, ($($argument:ident: $type:ty),*) -> $result:ty $(, <$($generic:ident: $bound:path),*>)?) => {
        $(#[$doc])*
        #[inline]
        pub(crate) fn $name$(<$($generic: $bound),*>)?(variant: quiver_core::cpu::Variant, $($argument: $type),*) -> $result {
            #[cfg(target_arch = "x86_64")]
            {
                use quiver_core::cpu::Variant;
                #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
                fn avx2$(<$($generic: $bound),*>)?($($argument: $type),*) -> $result {
                    $body($($argument),*)
                }
                #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
                fn avx512$(<$($generic: $bound),*>)?($($argument: $type),*) -> $result {
                    $body($($argument),*)
                }
                match variant.min(Variant::best()) {
                    Variant::Scalar => {}
                    // SAFETY: the processor has these instructions: `best` has seen them.
                    Variant::Avx2 => return unsafe { avx2($($argument),*) },
                    // SAFETY: as above.
                    Variant::Avx512 => return unsafe { avx512($($argument),*) },
                }
            }
            $body($($argument),*)
        }
    };
}
pub(crate) use in_all_variants;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_the_length_and_touch_no_more_than_they_say() {
        for length in [1, 63, 64, 65, 127, 128, 1500] {
            let from: Vec<u8> = (0..2048).map(|i| i as u8).collect();
            let mut to = vec![0xee; 2048];
            // SAFETY: both are longer than the rounded length.
            unsafe { copy_pieces(from.as_ptr(), to.as_mut_ptr(), length) };
            assert_eq!(to[..length], from[..length]);
            assert!(to[in_pieces(length)..].iter().all(|b| *b == 0xee));
        }
    }
}
