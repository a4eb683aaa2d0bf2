//! What tests of hostile packets begin with: the frames of the golden cases.

use std::path::Path;

/// All frames that come in, of all cases.
pub fn golden_frames() -> Vec<Vec<u8>> {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden"));
    let mut frames = Vec::new();
    let cases = std::fs::read_dir(folder).expect("golden cases").flatten();
    for case in cases.filter(|case| case.path().is_dir()) {
        for file in std::fs::read_dir(case.path()).expect("a case").flatten() {
            if file.file_name().to_string_lossy().contains("-in.e") {
                let bytes = std::fs::read(file.path()).expect("a capture");
                let mut rest = &bytes[24..];
                while rest.len() >= 16 {
                    let length = u32::from_le_bytes([rest[8], rest[9], rest[10], rest[11]]) as usize;
                    frames.push(rest[16..16 + length].to_vec());
                    rest = &rest[16 + length..];
                }
            }
        }
    }
    assert!(frames.len() > 200, "the golden cases have frames");
    frames
}
