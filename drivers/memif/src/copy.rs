//! Copying between shared memory and our own. The peer may write while we read. The moves are
//! inline assembly: to the compiler such bytes are whatever the processor found, and nothing
//! follows from them, as it would from an ordinary read that races with a write. They are looked at
//! only after they lie in our buffer.
#![allow(unsafe_code)]

/// Bytes moved at a time.
pub(crate) const PIECE_BYTES: usize = 64;

/// `bytes` rounded up to whole pieces: what [`copy_pieces`] touches on both sides.
#[inline(always)]
pub(crate) const fn in_pieces(bytes: usize) -> usize {
    bytes.next_multiple_of(PIECE_BYTES)
}

/// The registers that a piece is moved through.
pub(crate) trait Registers {
    /// Move one piece.
    ///
    /// # Safety
    /// [`PIECE_BYTES`] can be read at `from` and written at `to`; the processor has the registers.
    unsafe fn move_piece(from: *const u8, to: *mut u8);
}

/// Four registers of 16 bytes: any x86-64.
pub(crate) struct Sse;
/// Two registers of 32 bytes: AVX.
#[cfg(target_arch = "x86_64")]
pub(crate) struct Avx;
/// One register of 64 bytes: AVX-512.
#[cfg(target_arch = "x86_64")]
pub(crate) struct Avx512;

impl Registers for Sse {
    #[inline(always)]
    unsafe fn move_piece(from: *const u8, to: *mut u8) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: by the contract of this function.
        unsafe {
            std::arch::asm!(
                "movups {a}, [{from}]",
                "movups {b}, [{from} + 16]",
                "movups {c}, [{from} + 32]",
                "movups {d}, [{from} + 48]",
                "movups [{to}], {a}",
                "movups [{to} + 16], {b}",
                "movups [{to} + 32], {c}",
                "movups [{to} + 48], {d}",
                from = in(reg) from,
                to = in(reg) to,
                a = out(xmm_reg) _,
                b = out(xmm_reg) _,
                c = out(xmm_reg) _,
                d = out(xmm_reg) _,
                options(nostack, preserves_flags)
            );
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        // SAFETY: by the contract of this function.
        unsafe {
            copy_exactly(from, to, PIECE_BYTES)
        };
    }
}

#[cfg(target_arch = "x86_64")]
impl Registers for Avx {
    #[inline(always)]
    unsafe fn move_piece(from: *const u8, to: *mut u8) {
        // SAFETY: by the contract of this function.
        unsafe {
            std::arch::asm!(
                "vmovdqu {a:y}, [{from}]",
                "vmovdqu {b:y}, [{from} + 32]",
                "vmovdqu [{to}], {a:y}",
                "vmovdqu [{to} + 32], {b:y}",
                from = in(reg) from,
                to = in(reg) to,
                a = out(xmm_reg) _,
                b = out(xmm_reg) _,
                options(nostack, preserves_flags)
            );
        }
    }
}

#[cfg(target_arch = "x86_64")]
impl Registers for Avx512 {
    #[inline(always)]
    unsafe fn move_piece(from: *const u8, to: *mut u8) {
        // SAFETY: by the contract of this function.
        unsafe {
            std::arch::asm!(
                "vmovdqu64 {a:z}, [{from}]",
                "vmovdqu64 [{to}], {a:z}",
                from = in(reg) from,
                to = in(reg) to,
                a = out(xmm_reg) _,
                options(nostack, preserves_flags)
            );
        }
    }
}

/// Copy whole pieces of 64 bytes, at least one, until `length` is covered. A frame of minimum size
/// is one piece: two loads and two stores where the processor has 32-byte registers.
///
/// # Safety
/// [`in_pieces`]`(length.max(1))` bytes can be read at `from` and written at `to`; the two do not
/// overlap. The processor has the registers.
#[inline(always)]
pub(crate) unsafe fn copy_pieces<R: Registers>(from: *const u8, to: *mut u8, length: usize) {
    let mut at = 0;
    loop {
        // SAFETY: by the contract of this function.
        unsafe { R::move_piece(from.add(at), to.add(at)) };
        at += PIECE_BYTES;
        if at >= length {
            return;
        }
    }
}

/// Copy exactly `length` bytes, byte by byte as far as anybody can tell.
///
/// # Safety
/// `length` bytes can be read at `from` and written at `to`; the two do not overlap.
#[inline]
pub(crate) unsafe fn copy_exactly(from: *const u8, to: *mut u8, length: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: by the contract of this function; the direction flag is clear, as everywhere.
    unsafe {
        std::arch::asm!(
            "rep movsb",
            inout("rcx") length => _,
            inout("rsi") from => _,
            inout("rdi") to => _,
            options(nostack, preserves_flags)
        );
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    for at in 0..length {
        // SAFETY: by the contract of this function.
        unsafe { to.add(at).write_volatile(from.add(at).read_volatile()) };
    }
}

/// Ask for a cache line that will be written to: it is taken away from the other core at once, not
/// first shared with it.
#[inline(always)]
pub(crate) fn prefetch_to_write(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults, whatever the address; processors without this one ignore it.
    unsafe {
        std::arch::asm!(
            "prefetchw [{}]", in(reg) address, options(nostack, preserves_flags, readonly)
        );
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// The same loop compiled for each [`Variant`](quiver_core::cpu::Variant): a piece is two loads and
/// two stores with registers of 32 bytes, one of each with those of 64. The loop's last generic
/// parameter is the [`Registers`]. The compiler does not see which registers pieces go through, so
/// the upper halves are cleared here: code with 16-byte registers is slow while they are in use.
macro_rules! in_all_variants {
    (
        $(#[$doc:meta])* $name:ident = $body:ident, ($($argument:ident: $type:ty),*) -> $result:ty,
        <$($generic:ident: $bound:path), *>
    ) => {
        $(#[$doc])*
        #[inline]
        pub(crate) fn $name<$($generic: $bound),*>(
            variant: quiver_core::cpu::Variant, $($argument: $type),*
        ) -> $result {
            #[cfg(target_arch = "x86_64")]
            {
                use quiver_core::cpu::Variant;
                use std::arch::x86_64::_mm256_zeroupper;
                use $crate::copy::{Avx, Avx512};
                #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
                fn avx2<$($generic: $bound),*>($($argument: $type),*) -> $result {
                    let result = $body::<$($generic,)* Avx>($($argument),*);
                    _mm256_zeroupper();
                    result
                }
                #[target_feature(
                    enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,\
                              popcnt"
                )]
                fn avx512<$($generic: $bound),*>($($argument: $type),*) -> $result {
                    let result = $body::<$($generic,)* Avx512>($($argument),*);
                    _mm256_zeroupper();
                    result
                }
                match variant.min(Variant::best()) {
                    Variant::Scalar => {}
                    // SAFETY: the processor has these instructions: `best` has seen them.
                    Variant::Avx2 => return unsafe { avx2::<$($generic),*>($($argument),*) },
                    // SAFETY: as above.
                    Variant::Avx512 => return unsafe { avx512::<$($generic),*>($($argument),*) },
                }
            }
            $body::<$($generic,)* $crate::copy::Sse>($($argument),*)
        }
    };
}
pub(crate) use in_all_variants;

#[cfg(test)]
mod tests {
    use super::*;
    use quiver_core::cpu::Variant;

    fn pieces_are_right<R: Registers>() {
        for length in [1, 63, 64, 65, 127, 128, 1500] {
            let from: Vec<u8> = (0..2048).map(|i| (i % 251) as u8).collect();
            let mut to = vec![0xee; 2048];
            // SAFETY: both are longer than the rounded length, and offset by one byte.
            unsafe { copy_pieces::<R>(from.as_ptr().add(1), to.as_mut_ptr().add(3), length) };
            let end = in_pieces(length);
            assert_eq!(to[3..3 + end], from[1..1 + end]);
            assert!(to[..3].iter().chain(&to[3 + end..]).all(|b| *b == 0xee));
        }
    }

    #[test]
    fn pieces_cover_the_length_and_touch_no_more_than_they_say() {
        for variant in Variant::available() {
            match variant {
                Variant::Scalar => pieces_are_right::<Sse>(),
                #[cfg(target_arch = "x86_64")]
                Variant::Avx2 => pieces_are_right::<Avx>(),
                #[cfg(target_arch = "x86_64")]
                Variant::Avx512 => pieces_are_right::<Avx512>(),
                #[cfg(not(target_arch = "x86_64"))]
                _ => {}
            }
        }
    }

    #[test]
    fn exact_copies_are_exact() {
        let from: Vec<u8> = (0..100).collect();
        for length in [0, 1, 7, 64, 99] {
            let mut to = [0xee; 100];
            // SAFETY: both are longer.
            unsafe { copy_exactly(from.as_ptr().add(1), to.as_mut_ptr(), length) };
            assert_eq!(to[..length], from[1..=length]);
            assert!(to[length..].iter().all(|b| *b == 0xee));
        }
    }
}
