//! Addresses of this process's own, and waiting for what is on its way.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use bumpless_standby::link::{Link, Server};

/// Far more than any frame takes, also on a busy machine.
const LONG: Duration = Duration::from_secs(60);

/// An address on the loopback that no other process and no other test has.
pub fn address() -> SocketAddr {
    static NEXT_PORT: AtomicU16 = AtomicU16::new(20_000);
    let loopback = 0x7f00_0000 | std::process::id() & 0x00ff_ffff;
    // Relaxed: a number of one's own.
    let port = NEXT_PORT.fetch_add(1, Ordering::Relaxed);
    (Ipv4Addr::from_bits(loopback), port).into()
}

/// Asks until there is an answer.
#[track_caller]
pub fn await_some<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + LONG;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < end, "{what} did not come");
        std::thread::yield_now();
    }
}

/// The next frame that is not dropped, and over which path.
#[track_caller]
pub fn await_frame(link: &mut impl Link) -> (u8, Vec<u8>) {
    let mut frame = Vec::new();
    await_some("a frame", || {
        let path = link.receive(&mut frame)?;
        (!frame.is_empty()).then(|| (path, std::mem::take(&mut frame)))
    })
}

/// The next request, and from whom.
#[track_caller]
pub fn await_request<S: Server>(server: &mut S) -> (S::Peer, Vec<u8>) {
    let mut frame = Vec::new();
    let peer = await_some("a request", || server.receive(&mut frame));
    (peer, frame)
}
