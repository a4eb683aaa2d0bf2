//! The router under a limit of its address space: it starts, or it says what it has no memory for and ends. It is never
//! ended by a signal, and it never hangs.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// A folder of its own, gone at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        let path = std::env::temp_dir().join(format!("quiverd-limits-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn start(folder: &Folder, limit_kib: u64) -> Child {
    let path = folder.0.display();
    let config = format!(
        "unix {{ runtime-dir {path} cli-listen {path}/cli.sock }}\n\
         cpu {{ workers 1 }}\nbuffers {{ buffers-per-numa 1024 }}\n"
    );
    let file = folder.0.join("startup.conf");
    std::fs::write(&file, config).expect("written");
    // The limit is the shell's, who becomes the router.
    let line = format!("ulimit -c 0; ulimit -v {limit_kib} && exec \"$0\" --foreground -c \"$1\" 2>&1");
    Command::new("sh")
        .args(["-c", &line, env!("CARGO_BIN_EXE_quiverd")])
        .arg(&file)
        .env("RUST_BACKTRACE", "0")
        .stdout(Stdio::piped())
        .spawn()
        .expect("started")
}

#[test]
fn without_memory_the_router_says_so_and_ends() {
    let folder = Folder::new();
    let mut refused = 0;
    let mut limit_kib = 48 << 10;
    loop {
        assert!(limit_kib < 64 << 20, "it starts with 64 GiB");
        let mut child = start(&folder, limit_kib);
        let mut said = String::new();
        let mut is_ready = false;
        for line in BufReader::new(child.stdout.take().expect("piped")).lines().map_while(Result::ok) {
            is_ready |= line.contains("ready");
            said.push_str(&line);
            said.push('\n');
            if is_ready {
                break;
            }
        }
        if is_ready {
            child.kill().expect("it runs");
            child.wait().expect("it ran");
            break;
        }
        let status = child.wait().expect("it ran");
        assert_eq!((status.signal(), status.success()), (None, false), "{limit_kib} KiB: {status}\n{said}");
        let of_memory = ["memory", "address space", "allocate", "shared object", "libraries"];
        assert!(of_memory.iter().any(|word| said.contains(word)), "{limit_kib} KiB:\n{said}");
        refused += 1;
        limit_kib += limit_kib / 4;
    }
    assert!(refused > 3, "so little memory is not enough");
}
