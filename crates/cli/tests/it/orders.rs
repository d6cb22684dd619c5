//! Orders to a node of a standby pair, given from a shell.

use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;

use crate::rig::{await_that, process, send};

#[test]
fn who_is_stopped_while_it_awaits_the_answer_gets_it_when_it_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let node = UnixDatagram::bind(folder.path().join("orders")).expect("a socket");
    node.set_read_timeout(Some(Duration::from_secs(60)))
        .expect("a timeout");
    let mut order = Command::new(env!("CARGO_BIN_EXE_bumpless"));
    order.args(["standby", "switch-over", "--state-dir"]);
    order.arg(folder.path()).stderr(Stdio::piped());
    let order = order.spawn().expect("the program runs");
    let mut word = [0; 64];
    let (len, from) = node.recv_from(&mut word).expect("an order");
    assert_eq!(&word[..len], b"switch-over");
    let is_in = |state| process(order.id()).is_some_and(|process| process.state == state);
    await_that("it awaits the answer", || is_in('S'));
    send(order.id(), Signal::STOP);
    await_that("it stands still", || is_in('T'));
    send(order.id(), Signal::CONT);
    await_that("it awaits the answer again, or has ended", || {
        is_in('S') || process(order.id()).is_none()
    });
    let to = from.as_pathname().expect("a path");
    // Where it has ended with an error nobody takes it.
    let _ = node.send_to(b"ok", to);
    let output = order.wait_with_output().expect("a child of ours");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}
