//! Hostile names and files, all made here.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use super::{Access, Places, Trust};

/// A folder with a directory for files in it, and a secret outside of that.
struct Fixture {
    folder: PathBuf,
    confined: Access,
    full: Access,
}

impl Fixture {
    fn new(name: &str) -> Fixture {
        let folder =
            std::env::temp_dir().join(format!("quiver-files-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("files/inner")).unwrap();
        fs::write(folder.join("secret"), "secret").unwrap();
        fs::write(folder.join("files/inner/here"), "here").unwrap();
        let places = Places {
            files_dir: folder.join("files"),
            sockets_dir: folder.join("sockets"),
            group: None,
        };
        let user = rustix::process::geteuid().as_raw();
        let trust = Trust::Confined { user, group: rustix::process::getegid().as_raw() };
        let confined = Access { trust, places: places.clone() };
        Fixture { folder, confined, full: Access { trust: Trust::Full, places } }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join("files").join(name)
    }

    fn refused(&self, name: &str) -> String {
        let name = Path::new(name);
        let read = self.confined.open_to_read(name).expect_err("is read");
        self.confined.create(name).expect_err("is written");
        self.confined.open_to_continue(name).expect_err("is continued");
        read
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn text(access: &Access, name: impl AsRef<Path>) -> Result<String, String> {
    let mut text = String::new();
    access.open_to_read(name.as_ref())?.read_to_string(&mut text).unwrap();
    Ok(text)
}

#[test]
fn a_confined_client_names_files_inside_the_directory_alone() {
    let here = Fixture::new("inside");
    assert_eq!(text(&here.confined, "inner/here").unwrap(), "here");
    assert_eq!(text(&here.confined, here.file("inner/here")).unwrap(), "here");
    for outside in ["../secret", "/etc/passwd", "inner/../../secret", "/proc/self/environ", "", "."]
    {
        let said = here.refused(outside);
        assert!(said.contains("is not inside"), "{outside}: {said}");
    }
    assert_eq!(text(&here.full, here.folder.join("secret")).unwrap(), "secret");
}

#[test]
fn links_lead_nowhere() {
    let here = Fixture::new("links");
    symlink(here.folder.join("secret"), here.file("link")).unwrap();
    symlink(&here.folder, here.file("up")).unwrap();
    symlink("/proc/self/root", here.file("magic")).unwrap();
    for name in ["link", "up/secret", "magic/etc/passwd"] {
        let said = here.refused(name);
        assert!(said.contains("symbolic link"), "{name}: {said}");
    }
    fs::hard_link(here.folder.join("secret"), here.file("hard")).unwrap();
    assert!(here.refused("hard").contains("hard links"));
    // A user with all rights does not write through a link either: another user may have put it
    // there.
    assert!(here.full.create(&here.file("link")).unwrap_err().contains("symbolic link"));
    assert!(here.full.open_to_continue(&here.file("link")).unwrap_err().contains("symbolic link"));
    assert!(here.full.create(&here.file("hard")).unwrap_err().contains("hard links"));
    assert_eq!(fs::read(here.folder.join("secret")).unwrap(), b"secret");
}

#[test]
fn only_regular_files_are_opened() {
    let here = Fixture::new("regular");
    let fifo = here.file("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0)
        .unwrap();
    for access in [&here.confined, &here.full] {
        for name in [fifo.clone(), here.file("inner")] {
            let said = access.open_to_read(&name).unwrap_err();
            assert!(said.contains("is not a regular file"), "{said}");
            assert!(access.create(&name).unwrap_err().contains("is not a regular file"));
            access.open_to_continue(&name).unwrap_err();
        }
    }
    for kernel in ["/proc/self/environ", "/sys/kernel/mm/transparent_hugepage/enabled", "/dev/zero"]
    {
        let said = here.full.open_to_read(Path::new(kernel)).unwrap_err();
        assert!(said.contains("is not a regular file"), "{said}");
    }
    let hostname = Path::new("/proc/sys/kernel/hostname");
    here.full.create(hostname).unwrap_err();
    here.full.open_to_continue(hostname).unwrap_err();
}

#[test]
fn a_new_file_takes_the_name_over_when_it_is_finished() {
    let here = Fixture::new("new");
    fs::write(here.file("out"), "old").unwrap();
    let mut new = here.confined.create(Path::new("out")).unwrap();
    new.file().write_all(b"new").unwrap();
    assert_eq!(fs::read(here.file("out")).unwrap(), b"old");
    new.finish().unwrap();
    assert_eq!(fs::read(here.file("out")).unwrap(), b"new");
    drop(here.confined.create(Path::new("inner/other")).unwrap());
    let left: Vec<_> =
        fs::read_dir(here.file("inner")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["here"], "what is not finished is removed");
    // A link that takes the place meanwhile is not replaced.
    let new = here.confined.create(Path::new("out")).unwrap();
    fs::remove_file(here.file("out")).unwrap();
    symlink(here.folder.join("secret"), here.file("out")).unwrap();
    assert!(new.finish().unwrap_err().contains("symbolic link"));
    assert_eq!(fs::read(here.folder.join("secret")).unwrap(), b"secret");
}

#[test]
fn a_confined_client_reads_what_its_user_may() {
    let here = Fixture::new("may");
    let Access { trust: Trust::Confined { .. }, places } = here.confined.clone() else {
        unreachable!()
    };
    let other = Access { trust: Trust::Confined { user: 4_000_000, group: 4_000_000 }, places };
    let set = |mode| {
        fs::set_permissions(here.file("inner/here"), fs::Permissions::from_mode(mode)).unwrap();
    };
    set(0o644);
    assert!(text(&other, "inner/here").is_ok());
    set(0o640);
    assert!(text(&other, "inner/here").unwrap_err().contains("ermission denied"));
    let in_group = Access {
        places: Places { group: Some(rustix::process::getegid().as_raw()), ..other.places.clone() },
        ..other
    };
    assert!(text(&in_group, "inner/here").is_ok());
    set(0o600);
    assert!(text(&in_group, "inner/here").is_err());
}

#[test]
fn a_confined_client_replaces_its_own_files_alone() {
    let here = Fixture::new("own");
    let client = |user| Access {
        trust: Trust::Confined { user, group: user },
        places: here.confined.places.clone(),
    };
    let (one, other) = (client(4_000_001), client(4_000_002));
    let write = |access: &Access, text: &str| {
        let mut new = access.create(Path::new("capture"))?;
        new.file().write_all(text.as_bytes()).unwrap();
        new.finish().map(drop)
    };
    write(&one, "first").unwrap();
    if !rustix::process::geteuid().is_root() {
        // A file that the router could not give away may be anybody's.
        assert!(write(&one, "second").unwrap_err().contains("belongs to user"));
        return;
    }
    let about = fs::metadata(here.file("capture")).unwrap();
    assert_eq!((about.uid(), about.gid(), about.mode() & 0o777), (4_000_001, 4_000_001, 0o640));
    write(&one, "second").unwrap();
    let said = write(&other, "third").unwrap_err();
    assert!(said.contains("belongs to user 4000001: remove it"), "{said}");
    assert!(other.open_to_continue(Path::new("capture")).unwrap_err().contains("belongs to"));
    assert!(one.open_to_continue(Path::new("capture")).unwrap().is_some());
    // Nor one that another user put there while it was written.
    let new = other.create(Path::new("late")).unwrap();
    one.create(Path::new("late")).unwrap().finish().unwrap();
    assert!(new.finish().unwrap_err().contains("belongs to"));
    assert_eq!(fs::read(here.file("capture")).unwrap(), b"second");
    write(&here.full, "root's").unwrap();
    assert!(write(&one, "mine").unwrap_err().contains("belongs to user 0"));
}

#[test]
fn sockets_of_confined_clients_are_in_one_folder() {
    let here = Fixture::new("sockets");
    let folder = here.folder.join("sockets");
    let path = |name: &str| here.confined.socket_path(Path::new(name));
    assert_eq!(path("one.sock").unwrap(), folder.join("one.sock"));
    assert_eq!(path(folder.join("one.sock").to_str().unwrap()).unwrap(), folder.join("one.sock"));
    for outside in ["/run/dbus.sock", "../x", "a/b", "", "@abstract"] {
        path(outside).unwrap_err();
    }
    assert_eq!(here.full.socket_path(Path::new("@abstract")).unwrap(), Path::new("@abstract"));
    assert!(
        here.confined.bare_name("/proc/1/ns/net").is_err()
            && here.confined.bare_name("lab").is_ok()
    );
}
