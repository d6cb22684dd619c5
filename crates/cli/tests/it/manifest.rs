//! What is hashed, what is left out, and what the manifest says.

use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::process::Stdio;

use crate::rig::{Rig, Said};

#[test]
fn sha256sum_agrees_with_the_manifest_of_files_with_odd_names_and_sizes() {
    let rig = Rig::with_files(300, 1000);
    rig.file("tree/empty", b"");
    rig.file("tree/large", &vec![7; 3_000_001]);
    for name in [
        "a b",
        " *star",
        "new\nline",
        "back\\slash",
        "\\n",
        "cr\r",
        "-",
    ] {
        rig.file(format!("tree/odd/{name}"), name.as_bytes());
    }
    rig.file(OsStr::from_bytes(b"tree/odd/latin-\xe4"), b"latin");
    let said = rig.run_words("--workers 2 --json --manifest sums tree");
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert_eq!((said.count("files"), said.count("accepted")), (310, 310));
    assert_eq!(rig.complaints("sums"), "");
    assert_eq!(rig.names(), ["sums", "tree"]);
}

#[test]
fn the_manifest_is_the_same_each_time_and_leaves_itself_out() {
    let rig = Rig::with_files(50, 10);
    rig.file("tree/.sums.123.partial", b"left by a pool that was killed");
    let first = rig.run_words("--workers 2 --manifest tree/sums tree");
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    let once = std::fs::read(rig.at("tree/sums")).unwrap();
    let second = rig.run_words("--workers 1 --manifest tree/sums ./tree tree/000 --json");
    assert_eq!(second.count("files"), 50);
    let twice = std::fs::read_to_string(rig.at("tree/sums")).unwrap();
    assert_eq!(twice.replace("./tree", "tree").as_bytes(), once);
}

#[test]
fn without_a_manifest_standard_output_is_it_and_nothing_else() {
    let rig = Rig::with_files(20, 10);
    let said = rig.run_words("tree no-such-file --json");
    assert_eq!(said.code, Some(1));
    let text = String::from_utf8(said.stdout.clone()).unwrap();
    assert_eq!(text.lines().count(), 20);
    std::fs::write(rig.at("sums"), said.stdout).unwrap();
    assert_eq!(rig.complaints("sums"), "");
    assert!(
        said.stderr.contains("bumpless: no-such-file: No such file"),
        "{}",
        said.stderr
    );
}

#[test]
fn a_file_that_cannot_be_read_is_failed_and_named_and_stops_nothing() {
    let rig = Rig::with_files(20, 10);
    // A regular file whose first page is in nobody's memory.
    let said = rig.run_words("--manifest sums --json /proc/self/mem tree");
    assert_eq!(said.code, Some(1));
    assert_eq!((said.count("accepted"), said.count("failed")), (20, 1));
    assert!(
        said.stderr
            .contains("/proc/self/mem: read: Input/output error"),
        "{}",
        said.stderr
    );
    assert_eq!(rig.complaints("sums"), "");
}

#[test]
fn special_files_are_skipped_and_symlinks_below_a_path_are_not_followed() {
    let rig = Rig::with_files(3, 10);
    symlink("000/00", rig.at("tree/link")).unwrap();
    let fifo = rustix::fs::FileType::Fifo;
    let mode = rustix::fs::Mode::RUSR;
    rustix::fs::mknodat(rustix::fs::CWD, rig.at("tree/fifo"), fifo, mode, 0).unwrap();
    let said = rig.run_words("--manifest sums tree");
    assert_eq!(said.code, Some(0));
    assert!(said.stderr.starts_with("3 files in "), "{}", said.stderr);
    assert!(
        said.stderr.contains("1 special files skipped"),
        "{}",
        said.stderr
    );
}

#[test]
fn names_come_from_standard_input_with_nul_between_them() {
    let rig = Rig::with_files(2, 10);
    rig.file("new\nline", b"x");
    let mut command = rig.pool("--files-from - -0 --json --manifest sums".split(' '));
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut names = child.stdin.take().unwrap();
    names
        .write_all(b"new\nline\0tree/000/00\0tree/000/00\0tree/000/01")
        .unwrap();
    drop(names);
    let said = Said::of(child.wait_with_output().unwrap());
    assert_eq!(
        (said.code, said.count("files")),
        (Some(0), 3),
        "{}",
        said.stderr
    );
    assert_eq!(rig.complaints("sums"), "");
}

#[test]
fn no_file_at_all_is_an_empty_manifest() {
    let rig = Rig::new();
    let said = rig.run_words("--manifest sums --json tree");
    assert_eq!((said.code, said.count("files")), (Some(0), 0));
    assert_eq!(std::fs::read(rig.at("sums")).unwrap(), b"");
}

#[test]
fn a_manifest_that_cannot_be_written_is_told_before_any_work() {
    let rig = Rig::with_files(1, 10);
    let said = rig.run_words("--manifest no/such/folder/sums tree");
    assert_eq!(said.code, Some(2));
    assert!(said.stderr.contains("no/such/folder"), "{}", said.stderr);
    assert_eq!(rig.names(), ["tree"]);
}

#[test]
fn the_help_has_an_example_and_says_that_commands_run_at_least_once() {
    let said = Rig::new().run(["--help"]);
    let text = String::from_utf8(said.stdout).unwrap();
    for wanted in [
        "bumpless pool --workers 4 --manifest",
        "AT LEAST ONCE",
        "kill=R/s,stop=R/s",
    ] {
        assert!(text.contains(wanted), "{wanted} in {text}");
    }
    assert!(!text.contains("pool-worker"));
}
