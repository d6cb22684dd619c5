//! What nothing between processes is cheaper than: a futex ping-pong, a lock of a file taken and given back, a
//! datagram there and back, a look at the clock.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind};
use std::net::UdpSocket;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bumpless_heartbeat::HeartbeatTable;
use bumpless_substrate::clock::monotonic_ns;
use bumpless_substrate::futex::{wait, wake};
use bumpless_substrate::sync::{AtomicU32, Ordering};

use super::peer::{Peer, begin_together};
use super::words::Words;
use super::{ANSWER_LIMIT, Durations};
use crate::locks::ByteLock;

const SAMPLES_MAX: usize = 20_000;
/// However long each takes: fewer say nothing.
const SAMPLES_MIN: usize = 10;
const CLOCK_LOOKS: usize = 100_000;
/// Between two looks at whether the other process is still there.
const PATIENCE: Duration = Duration::from_secs(1);
/// As a value of the word: the child is to end.
const END: u32 = u32::MAX;

/// A word goes there and back: each side sleeps until the other has changed it.
pub fn futex(table: &HeartbeatTable, time: Duration) -> Result<Durations> {
    let words = Words::create(table.path())?;
    let mut peer = Peer::start("pong", table.path(), &[])?;
    let _worker = begin_together(table, 2)?;
    let word = words.word()?;
    let mut found_ns = Vec::new();
    let (started, mut value) = (Instant::now(), 0);
    while is_short(&found_ns, started, time) {
        let began_ns = monotonic_ns();
        change(word, value + 1);
        await_value(word, value + 2, || peer.require_alive())?;
        found_ns.push(monotonic_ns() - began_ns);
        value += 2;
    }
    change(word, END);
    peer.require_end()?;
    Ok(Durations::new("futex ping-pong of two processes", found_ns))
}

/// The other side of the ping-pong.
pub fn pong(path: &Path) -> Result<()> {
    let table = HeartbeatTable::attach(path)?;
    let words = Words::attach(path)?;
    let _worker = begin_together(&table, 2)?;
    let word = words.word()?;
    let mut value = 1;
    // Whoever it plays with is its parent, with which it dies.
    while await_value(word, value, || Ok(()))? == value {
        change(word, value + 1);
        value += 2;
    }
    Ok(())
}

/// Whether there are to be more samples.
fn is_short(found_ns: &[u64], started: Instant, time: Duration) -> bool {
    let count = found_ns.len();
    count < SAMPLES_MIN || count < SAMPLES_MAX && started.elapsed() < time
}

fn change(word: &AtomicU32, value: u32) {
    // Release pairs with the Acquire of `await_value`.
    word.store(value, Ordering::Release);
    wake(word, 1);
}

/// The value that was awaited, or END.
fn await_value(
    word: &AtomicU32,
    value: u32,
    mut while_waiting: impl FnMut() -> Result<()>,
) -> Result<u32> {
    let started = Instant::now();
    loop {
        // Acquire pairs with the Release of `change`.
        let found = word.load(Ordering::Acquire);
        if found == value || found == END {
            return Ok(found);
        }
        wait(word, found, Some(PATIENCE));
        if started.elapsed() > PATIENCE {
            while_waiting()?;
            ensure!(started.elapsed() < ANSWER_LIMIT, "nobody answers");
        }
    }
}

/// A byte of a file, locked and unlocked.
pub fn lock(path: &Path, time: Duration) -> Result<Durations> {
    let lock = ByteLock::new(File::create(path)?);
    let mut found_ns = Vec::new();
    let started = Instant::now();
    while is_short(&found_ns, started, time) {
        let began_ns = monotonic_ns();
        let both = lock.take() && lock.give_back();
        found_ns.push(monotonic_ns() - began_ns);
        ensure!(both, "a lock was refused");
    }
    Ok(Durations::new(
        "lock and unlock of a byte (fcntl)",
        found_ns,
    ))
}

/// A datagram of 64 bytes goes to another process and back, over the loopback.
pub fn udp(table: &HeartbeatTable, time: Duration) -> Result<Durations> {
    let mut peer = Peer::start("echo", table.path(), &[])?;
    let _worker = begin_together(table, 2)?;
    let mut line = String::new();
    BufReader::new(peer.output()?).read_line(&mut line)?;
    let port: u16 = line.trim().parse().context("the echo's port")?;
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.connect(("127.0.0.1", port))?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let (mut found_ns, mut heard) = (Vec::new(), [0; 64]);
    let started = Instant::now();
    while is_short(&found_ns, started, time) {
        let began_ns = monotonic_ns();
        socket.send(&[1; 64])?;
        let sent = Instant::now();
        let len = loop {
            match socket.recv(&mut heard) {
                Ok(len) => break len,
                Err(error) if is_no_answer_yet(&error) && sent.elapsed() < ANSWER_LIMIT => {
                    peer.require_alive()?;
                }
                Err(error) => return Err(anyhow::Error::from(error).context("no answer")),
            }
        };
        found_ns.push(monotonic_ns() - began_ns);
        ensure!(len == 64, "{len} of 64 bytes came back");
    }
    socket.send(&[])?;
    peer.require_end()?;
    Ok(Durations::new("UDP round trip, loopback", found_ns))
}

fn is_no_answer_yet(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
    )
}

/// Gives every datagram back, until an empty one comes.
pub fn echo(path: &Path) -> Result<()> {
    let table = HeartbeatTable::attach(path)?;
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    println!("{}", socket.local_addr()?.port());
    let _worker = begin_together(&table, 2)?;
    let mut heard = [0; 64];
    loop {
        let (len, from) = socket.recv_from(&mut heard)?;
        if len == 0 {
            return Ok(());
        }
        socket.send_to(&heard[..len], from)?;
    }
}

/// Two looks at the clock with nothing in between.
pub fn clock() -> Durations {
    let look = |_| {
        let began_ns = monotonic_ns();
        monotonic_ns() - began_ns
    };
    Durations::new("a look at the clock", (0..CLOCK_LOOKS).map(look).collect())
}
