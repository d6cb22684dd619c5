//! Bytes that survive: real files, a full file system, a process that is killed while it saves.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use bumpless_standby::persist::{FileStore, Store};
use tempfile::TempDir;

use crate::peer::{self, Peer};

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn scene() -> (TempDir, FileStore) {
    let folder = tempfile::tempdir().unwrap();
    let store = FileStore::new(folder.path().join("level"));
    (folder, store)
}

#[test]
fn what_is_saved_is_loaded_by_the_next_life_and_nothing_is_left_beside() {
    let (folder, mut store) = scene();
    assert_eq!(store.load(), Ok(None));
    for bytes in [&b"one"[..], b"another", b""] {
        store.save(bytes).unwrap();
        let mut next = FileStore::new(folder.path().join("level"));
        assert_eq!(next.load(), Ok(Some(bytes.to_vec())));
    }
    assert_eq!(names(folder.path()), ["level"]);
    let mode = std::fs::metadata(folder.path().join("level")).unwrap();
    assert_eq!(mode.permissions().mode() & 0o7777, 0o600);
}

#[test]
fn a_left_over_temporary_is_no_value_and_is_gone_after_the_next_save() {
    let (folder, mut store) = scene();
    let left_over = folder.path().join("level.new");
    std::fs::write(&left_over, "half").unwrap();
    assert_eq!(store.load(), Ok(None));
    store.save(b"old").unwrap();
    assert_eq!(names(folder.path()), ["level"]);

    // Nor is one followed that is a symlink.
    let elsewhere = folder.path().join("elsewhere");
    std::fs::write(&elsewhere, "not ours").unwrap();
    symlink(&elsewhere, &left_over).unwrap();
    store.save(b"new").unwrap();
    assert_eq!(store.load(), Ok(Some(b"new".to_vec())));
    assert_eq!(std::fs::read(&elsewhere).unwrap(), b"not ours");
}

#[test]
fn symlinks_folders_pipes_and_long_files_are_refused_by_name() {
    let (folder, mut store) = scene();
    let path = folder.path().join("level");
    let mut check = |why: &str| {
        let error = store.load().unwrap_err().to_string();
        assert_eq!(error, format!("cannot load {}: {why}", path.display()));
    };
    std::fs::write(folder.path().join("target"), "x").unwrap();
    symlink("target", &path).unwrap();
    check("it is a symlink");
    std::fs::remove_file(&path).unwrap();

    std::fs::create_dir(&path).unwrap();
    check("it is no file");
    std::fs::remove_dir(&path).unwrap();

    assert!(
        Command::new("mkfifo")
            .arg(&path)
            .status()
            .unwrap()
            .success()
    );
    check("it is no file");
    std::fs::remove_file(&path).unwrap();

    std::fs::write(&path, vec![0; FileStore::LEN_MAX + 1]).unwrap();
    check("4097 bytes found, at most 4096 wanted");
    std::fs::write(&path, vec![7; FileStore::LEN_MAX]).unwrap();
    assert_eq!(store.load(), Ok(Some(vec![7; FileStore::LEN_MAX])));

    let error = store.save(&[0; FileStore::LEN_MAX + 1]).unwrap_err();
    assert_eq!(error.why, "4097 bytes, at most 4096 wanted");
    assert_eq!(store.load(), Ok(Some(vec![7; FileStore::LEN_MAX])));
}

#[test]
fn a_missing_folder_is_an_error_not_a_store_that_was_never_used() {
    let (folder, _) = scene();
    let mut store = FileStore::new(folder.path().join("missing/level"));
    let loaded = store.load().unwrap_err().to_string();
    assert!(loaded.starts_with("cannot open the folder of "), "{loaded}");
    assert!(loaded.contains("missing/level: No such file"), "{loaded}");
    assert!(store.save(b"x").is_err());
    let nameless = FileStore::new("/").load().unwrap_err();
    assert_eq!(nameless.what, "name a file by /");
}

#[test]
fn on_a_full_file_system_the_old_bytes_stay_and_saving_goes_on_when_there_is_room() {
    if let Some(folder) = peer::plays("on a small file system") {
        play_on_a_small_file_system(&folder);
        peer::done();
    }
    let (folder, _) = scene();
    let wrapper: &[&str] = if rustix::process::geteuid().is_root() {
        &["unshare", "--mount"]
    } else {
        &["unshare", "--user", "--map-root-user", "--mount"]
    };
    let mut peer = Peer::start(
        wrapper,
        on_a_full_file_system_the_old_bytes_stay_and_saving_goes_on_when_there_is_room,
        "on a small file system",
        folder.path(),
    );
    match peer.hear().as_deref() {
        None | Some("no right") => {
            eprintln!("not tested: this machine lets nobody here mount a file system");
            // Without the right nothing was mounted, so nothing can be there.
            assert_eq!(names(folder.path()), [""; 0]);
        }
        Some(mounted) => {
            assert_eq!(mounted, "mounted");
            assert_eq!(peer.hear().as_deref(), Some("all as it should be"));
        }
    }
}

fn play_on_a_small_file_system(folder: &Path) {
    let mount = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=64k", "none"])
        .arg(folder)
        .status();
    if !mount.is_ok_and(|status| status.success()) {
        return peer::say("no right");
    }
    peer::say("mounted");
    let mut store = FileStore::new(folder.join("level"));
    store.save(b"old").unwrap();
    let filler = folder.join("filler");
    assert!(std::fs::write(&filler, vec![1; 1 << 17]).is_err());
    let error = store.save(b"new").unwrap_err();
    assert!(error.what.starts_with("write the new bytes of "), "{error}");
    assert!(error.why.contains("No space left"), "{error}");
    assert_eq!(store.load(), Ok(Some(b"old".to_vec())));
    assert_eq!(names(folder), ["filler", "level"]);
    std::fs::remove_file(&filler).unwrap();
    store.save(b"new").unwrap();
    assert_eq!(store.load(), Ok(Some(b"new".to_vec())));
    peer::say("all as it should be");
}

/// The value that the killed process saves as its `n`th: other lengths, every byte the same.
fn nth(n: u64) -> Vec<u8> {
    vec![n as u8; 100 + (n % 900) as usize]
}

fn number_of(bytes: &[u8]) -> u64 {
    let n = bytes.len() as u64 - 100;
    assert_eq!(bytes, nth(n), "not one whole value");
    n
}

#[test]
fn a_process_that_is_killed_while_it_saves_leaves_the_old_or_the_new_value_whole() {
    let this = a_process_that_is_killed_while_it_saves_leaves_the_old_or_the_new_value_whole;
    if let Some(folder) = peer::plays("saves") {
        let mut store = FileStore::new(folder.join("level"));
        let last = store.load().unwrap().map_or(0, |bytes| number_of(&bytes));
        for n in last + 1..900 {
            store.save(&nth(n)).unwrap();
            peer::say(n);
        }
        peer::done();
    }
    let (folder, mut store) = scene();
    let mut killed_inside = 0;
    for round in 0..50 {
        let mut peer = Peer::start(&[], this, "saves", folder.path());
        let mut heard = 0;
        // Then at some instant of the next save.
        for _ in 0..1 + round % 4 {
            heard = peer.hear().unwrap().parse().unwrap();
        }
        for _ in 0..(round * 7919) % 50_000 {
            std::hint::spin_loop();
        }
        peer.kill();
        let found = number_of(&store.load().unwrap().unwrap());
        assert!(found >= heard, "{found} found after {heard} was saved");
        killed_inside += usize::from(names(folder.path()).len() == 2);
    }
    eprintln!("{killed_inside} of 50 left a temporary");
    store.save(b"after all").unwrap();
    assert_eq!(names(folder.path()), ["level"]);
}
