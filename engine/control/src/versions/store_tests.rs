use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::PathBuf;

use super::super::record::Waiting;
use super::*;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let name = format!("quiver-versions-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&path);
        Folder(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(FOLDER).join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn version(number: u32) -> Version {
    let (who, message) = ("root (uid 0)".to_owned(), "why\nnot".to_owned());
    Version {
        number,
        when_s: 7,
        who,
        message,
        language: record::COMMANDS.to_owned(),
        document_bytes: 0,
    }
}

fn saved(number: u32) -> Current {
    Current { saved: Some(number), last: number, ..Current::default() }
}

fn put(store: &Store, current: &Current) {
    store.put(store.prepare(current).unwrap()).unwrap();
}

#[test]
fn a_version_is_found_again_with_its_text() {
    let folder = Folder::new("found");
    let store = Store::open(&folder.0, 3).unwrap();
    assert_eq!(store.look().unwrap().current, Current::default());
    store.write(&version(1), "# a comment\nip table add 7\n", None).unwrap();
    let mut current = saved(1);
    current.waiting = Some(Waiting { version: 1, until_s: 99 });
    put(&store, &current);
    let found = store.look().unwrap();
    assert_eq!((found.current, found.versions), (current, vec![version(1)]));
    assert_eq!(store.text_of(1).unwrap().commands, "# a comment\nip table add 7\n");
    let modes = [folder.0.join(FOLDER), folder.file("1.version"), folder.file(CURRENT)]
        .map(|path| fs::metadata(path).unwrap().mode() & 0o777);
    assert_eq!(modes, [0o700, 0o600, 0o600]);
}

#[test]
fn what_a_change_that_broke_off_has_left_is_removed() {
    let folder = Folder::new("left");
    let store = Store::open(&folder.0, 3).unwrap();
    store.look().unwrap();
    store.write(&version(1), "", None).unwrap();
    put(&store, &saved(1));
    store.write(&version(2), "", None).unwrap();
    store.prepare(&saved(2)).unwrap();
    let found = store.look().unwrap();
    assert_eq!((found.current, found.versions), (saved(1), vec![version(1)]));
    assert!(!folder.file("2.version").exists() && !folder.file("current.new").exists());
}

#[test]
fn a_damaged_version_is_told_and_the_others_are_found() {
    let folder = Folder::new("damaged");
    let store = Store::open(&folder.0, 3).unwrap();
    for number in [1, 2, 3] {
        store.write(&version(number), "ip table add 7\n", None).unwrap();
    }
    put(&store, &saved(3));
    fs::write(folder.file("2.version"), "quiver").unwrap();
    let cut = fs::read(folder.file("3.version")).unwrap();
    fs::write(folder.file("3.version"), &cut[..cut.len() - 1]).unwrap();
    let found = store.look().unwrap();
    assert_eq!(found.versions, [version(1), version(3)]);
    assert!(found.faults[0].contains("2.version: it has no seal"), "{:?}", found.faults);
    assert!(store.text_of(3).unwrap_err().contains("damaged"));
    fs::write(folder.file(CURRENT), "x").unwrap();
    assert_eq!(store.look().unwrap().current.saved, Some(3));
}

#[test]
fn links_and_folders_of_others_are_refused() {
    let folder = Folder::new("links");
    fs::create_dir_all(folder.0.join("elsewhere")).unwrap();
    symlink(folder.0.join("elsewhere"), folder.0.join(FOLDER)).unwrap();
    assert!(Store::open(&folder.0, 3).unwrap_err().contains("symbolic links"));
    fs::remove_file(folder.0.join(FOLDER)).unwrap();
    let store = Store::open(&folder.0, 3).unwrap();
    assert!(Store::open(&folder.0, 3).unwrap_err().contains("another router"));
    store.look().unwrap();
    symlink("/etc/hostname", folder.file("1.version")).unwrap();
    assert!(store.text_of(1).is_err());
    // A link in place of a file that is to be written is replaced, not followed.
    let target = folder.0.join("target");
    fs::write(&target, "mine").unwrap();
    symlink(&target, folder.file("current.new")).unwrap();
    put(&store, &saved(1));
    assert_eq!(fs::read_to_string(&target).unwrap(), "mine");
    drop(store);
    fs::set_permissions(folder.0.join(FOLDER), fs::Permissions::from_mode(0o755)).unwrap();
    Store::open(&folder.0, 3).unwrap();
    assert_eq!(fs::metadata(folder.0.join(FOLDER)).unwrap().mode() & 0o777, 0o700);
}

#[test]
fn the_oldest_versions_go_but_for_those_that_are_needed() {
    let folder = Folder::new("bound");
    let store = Store::open(&folder.0, 3).unwrap();
    let all: Vec<Version> = (1..=6).map(version).collect();
    assert_eq!(store.too_many(&all, &saved(6)), [1, 2, 3]);
    assert_eq!(store.too_many(&all, &saved(1)), [2, 3, 4]);
    assert_eq!(store.too_many(&all[..3], &saved(1)), [0; 0]);
}
