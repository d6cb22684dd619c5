//! Progress by systemd's protocol: datagrams of `NAME=value` lines to the socket `NOTIFY_SOCKET`.
//!
//! Contract: counts only what the kernel says was sent by a process of the command's group. A sender that has
//! ended and was waited for since has no group any more; it is believed, as only this user can reach the
//! socket: a script's short-lived helper would else be heard or not by chance, and a healthy command be taken
//! for silent. All else is ignored and counted: other senders, what is no text or no `NAME=value` lines, what
//! is too long. Names that mean nothing here are no junk: the protocol has many. A datagram that carries
//! descriptors is ignored, too; the kernel closes them, which is what a sender of `BARRIER=1` waits for.
//!
//! | line | leads to |
//! |---|---|
//! | `READY=1`, `WATCHDOG=1`, `RELOADING=1` | progress |
//! | `STOPPING=1` | trusted for as long as it may take to stop |
//! | `STATUS=text` | a line on standard error |

use std::io::IoSliceMut;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, UnixCredentials, recvmsg, setsockopt, sockopt,
};
use rustix::process::{Pid, getpgid};

use super::progress::Progress;
use super::say;
use crate::kept::Group;

/// A longer datagram is junk.
const LEN_MAX: usize = 4096;

/// What one datagram says.
#[derive(Debug, Default, PartialEq, Eq)]
struct Notice {
    progress: bool,
    stopping: bool,
    status: Option<String>,
}

/// What was not from the command, or not of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Junk {
    /// Not of the group; 0: of another pid namespace.
    Sender(i32),
    Descriptors,
    Content,
}

/// Opens the socket; its folder is the user's alone.
///
/// # Errors
/// What the system said.
pub fn open(path: &Path) -> std::io::Result<UnixDatagram> {
    let socket = UnixDatagram::bind(path)?;
    setsockopt(&socket, sockopt::PassCred, &true)?;
    Ok(socket)
}

/// Takes in notices until the socket is shut down, and what was said before to the last word.
pub fn watch(socket: &UnixDatagram, group: Group, progress: &Progress, stop_within: Duration) {
    let mut ignored = 0_u64;
    while let Ok(received) = receive(socket, group.id()) {
        let now = Instant::now();
        match received {
            Ok(notice) => {
                if notice.progress {
                    progress.shown(now);
                }
                if notice.stopping {
                    progress.trust_for(stop_within, now);
                    say("the command says that it is stopping");
                }
                if let Some(status) = notice.status {
                    say(&format!("status: {status}"));
                }
            }
            Err(junk) => {
                ignored += 1;
                // The first of ten, of a hundred: a storm of junk is no storm of lines.
                if ignored
                    .checked_ilog10()
                    .is_some_and(|power| ignored == 10_u64.pow(power))
                {
                    say(&format!("notification ignored ({ignored} so far): {junk}"));
                }
            }
        }
    }
}

/// One datagram; an error when the socket was shut down and nothing is left in it.
fn receive(socket: &UnixDatagram, group: Pid) -> Result<Result<Notice, Junk>, Errno> {
    let mut bytes = [0; LEN_MAX];
    // No room for descriptors: the kernel closes what it cannot deliver.
    let mut space = cmsg_space!(UnixCredentials);
    let mut into = [IoSliceMut::new(&mut bytes)];
    let received = loop {
        let flags = MsgFlags::empty();
        match recvmsg::<()>(socket.as_raw_fd(), &mut into, Some(&mut space), flags) {
            Err(Errno::EINTR) => {}
            other => break other?,
        }
    };
    let Ok(mut messages) = received.cmsgs() else {
        return Ok(Err(Junk::Descriptors));
    };
    let sender = messages.find_map(|message| match message {
        ControlMessageOwned::ScmCredentials(sender) => Some(sender.pid()),
        _ => None,
    });
    // The kernel adds the sender to whatever was sent.
    let sender = sender.ok_or(Errno::ESHUTDOWN)?;
    let is_of = |pid| {
        let found = getpgid(Some(pid));
        found == Ok(group) || found == Err(rustix::io::Errno::SRCH)
    };
    if !Pid::from_raw(sender).is_some_and(is_of) {
        return Ok(Err(Junk::Sender(sender)));
    }
    let (len, is_cut) = (received.bytes, received.flags.contains(MsgFlags::MSG_TRUNC));
    Ok(if is_cut { None } else { parse(&bytes[..len]) }.ok_or(Junk::Content))
}

fn parse(bytes: &[u8]) -> Option<Notice> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut notice = Notice::default();
    let mut lines = 0;
    for line in text.lines().filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once('=')?;
        match (name, value) {
            ("READY" | "WATCHDOG" | "RELOADING", "1") => notice.progress = true,
            ("STOPPING", "1") => notice.stopping = true,
            ("STATUS", status) => {
                notice.status = Some(status.chars().flat_map(char::escape_debug).collect());
            }
            _ => {}
        }
        lines += 1;
    }
    (lines > 0).then_some(notice)
}

impl std::fmt::Display for Junk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Sender(pid) => write!(f, "pid {pid} is not of the command's group"),
            Self::Descriptors => f.write_str("it carries descriptors"),
            Self::Content => f.write_str("no lines NAME=value"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::Shutdown;

    use bumpless_substrate::unusual::{ForkedChild, fork_and_run};
    use nix::sys::socket::{ControlMessage, sendmsg};
    use rustix::process::{getpgrp, getpid};

    use super::*;

    #[test]
    fn lines_are_taken_for_what_they_say_and_unknown_names_are_none_of_ours() {
        let ready = Notice {
            progress: true,
            status: Some("up\\u{1b}[2J".to_owned()),
            ..Notice::default()
        };
        assert_eq!(parse(b"READY=1\nSTATUS=up\x1b[2J\n"), Some(ready));
        let stopping = Notice {
            stopping: true,
            ..Notice::default()
        };
        assert_eq!(parse(b"STOPPING=1\nMAINPID=1"), Some(stopping));
        assert_eq!(
            parse(b"FDSTORE=1\nWATCHDOG=trigger"),
            Some(Notice::default())
        );
    }

    #[test]
    fn what_is_no_notice_is_junk() {
        for junk in [
            &b""[..],
            b"\n\n",
            b"WATCHDOG",
            b"READY=1\nx",
            b"\xff=1",
            b"\0",
        ] {
            assert_eq!(parse(junk), None, "{junk:?}");
        }
    }

    #[test]
    fn only_a_process_of_the_group_is_heard_and_nothing_too_long() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        let socket = open(&path).expect("a socket");
        let speaker = UnixDatagram::unbound().expect("a socket");
        let hear = |said: &[u8], group| {
            speaker.send_to(said, &path).expect("sent");
            receive(&socket, group).expect("received")
        };
        let progress = Notice {
            progress: true,
            ..Notice::default()
        };
        assert_eq!(hear(b"WATCHDOG=1", getpgrp()), Ok(progress));
        // The first process's group is not ours.
        let foreign = Junk::Sender(getpid().as_raw_nonzero().get());
        assert_eq!(hear(b"WATCHDOG=1", Pid::INIT), Err(foreign));
        assert_eq!(hear(&[b'x'; LEN_MAX + 1], getpgrp()), Err(Junk::Content));
    }

    #[test]
    fn a_sender_that_has_ended_since_is_heard() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        let socket = open(&path).expect("a socket");
        let speaker = UnixDatagram::unbound().expect("a socket");
        speaker.connect(&path).expect("connected");
        let child = fork_and_run(|| i32::from(speaker.send(b"STOPPING=1").is_err()));
        assert_eq!(child.and_then(ForkedChild::wait).expect("ended"), Some(0));
        let stopping = Notice {
            stopping: true,
            ..Notice::default()
        };
        assert_eq!(receive(&socket, getpgrp()), Ok(Ok(stopping)));
    }

    #[test]
    fn what_was_said_before_the_socket_was_shut_down_is_heard_and_then_it_ends() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        let socket = open(&path).expect("a socket");
        let speaker = UnixDatagram::unbound().expect("a socket");
        for said in [&b"WATCHDOG=1"[..], b""] {
            speaker.send_to(said, &path).expect("sent");
        }
        socket.shutdown(Shutdown::Both).expect("shut down");
        assert!(matches!(receive(&socket, getpgrp()), Ok(Ok(_))));
        assert_eq!(receive(&socket, getpgrp()), Ok(Err(Junk::Content)));
        assert_eq!(receive(&socket, getpgrp()), Err(Errno::ESHUTDOWN));
    }

    #[test]
    fn descriptors_that_come_along_are_closed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        let socket = open(&path).expect("a socket");
        let speaker = UnixDatagram::unbound().expect("a socket");
        speaker.connect(&path).expect("connected");
        let (mut barrier, waited_for) = std::io::pipe().expect("a pipe");
        let said = [std::io::IoSlice::new(b"BARRIER=1")];
        let carried = [ControlMessage::ScmRights(&[waited_for.as_raw_fd()])];
        let flags = MsgFlags::empty();
        sendmsg::<()>(speaker.as_raw_fd(), &said, &carried, flags, None).expect("sent");
        drop(waited_for);
        let heard = receive(&socket, getpgrp()).expect("received");
        assert_eq!(heard, Err(Junk::Descriptors));
        assert_eq!(barrier.read(&mut [0]).expect("no writer is left"), 0);
    }
}
