//! Standby pairs on a machine that is busy, and on a port that somebody floods.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::false_deaths::await_time;
use crate::pair::Pair;
use crate::scene::Scene;
use crate::setup::{Setup, words};
use crate::takeovers::summary;

const LASTS: u64 = 20;
const BUSY_THREADS: usize = 4;
/// In the gate; `BUMPLESS_XPROC_SECONDS` for longer.
const SECONDS: u64 = 3;
const JUNK_PER_SECOND: u64 = 100_000;
const PERIOD_NS: u64 = 10_000_000;

/// 148.
pub fn busy_machine_causes_no_false_takeover(scene: &Scene) {
    let (pair, _) = Pair::start(scene, "busy", Setup::loopback(0, 1, false));
    let burden = Burden::start(BUSY_THREADS, std::hint::spin_loop);
    await_time(seconds());
    drop(burden);
    let (figures, _) = pair.report();
    scene.note(&format!(
        "{} s, {BUSY_THREADS} busy threads: {} takeovers, 0 false; latest cycles {} us; {}",
        seconds().as_secs(),
        figures["takeovers"],
        figures["late_us_max"],
        summary(&figures)
    ));
}

/// 156.
pub fn storm_of_junk_costs_no_time_and_no_role(scene: &Scene) {
    let (mut pair, primary) = Pair::start(scene, "junk", Setup::loopback(0, 1, false));
    let at_ns = pair.note("junk", primary);
    let target = pair.setup_mut().nodes[usize::from(1 - primary)][1].clone();
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let sent = Arc::new(AtomicU64::new(0));
    let (count, begin) = (Arc::clone(&sent), Instant::now());
    // Two, as one thread of a busy machine does not come to it.
    let burden = Burden::start(2, move || {
        // Relaxed: a count, read when its threads have ended.
        let due = begin.elapsed().as_micros() as u64 * JUNK_PER_SECOND / 1_000_000;
        if count.load(Ordering::Relaxed) < due {
            let _ = socket.send_to(&[0x42; 64], &target);
            count.fetch_add(1, Ordering::Relaxed);
        } else {
            std::thread::yield_now();
        }
    });
    await_time(seconds());
    drop(burden);
    let stormed = begin.elapsed();
    let spent: Vec<u64> = {
        let cycles = pair.cycles(1 - primary).into_iter();
        let mut spent: Vec<u64> = cycles
            .filter(|cycle| cycle.begin_ns > at_ns)
            .map(|cycle| cycle.spent_ns)
            .collect();
        spent.sort_unstable();
        spent
    };
    let at = |percent: usize| spent[(spent.len() - 1) * percent / 100];
    assert!(at(50) < PERIOD_NS / 10, "a cycle takes {} ns", at(50));
    let (figures, _) = pair.report();
    // Relaxed: its threads have ended.
    let rate = sent.load(Ordering::Relaxed) as f64 / stormed.as_secs_f64();
    scene.note(&format!(
        "{rate:.0} frames/s: a cycle takes {} us, p99 {} us; {}",
        at(50) / 1_000,
        at(99) / 1_000,
        summary(&figures)
    ));
}

/// 157.
pub fn node_with_another_key_is_nobody(scene: &Scene) {
    let mut setup = Setup::loopback(0, 1, false);
    let [key, other] = ["key", "other"].map(|name| {
        let path = scene.path(name);
        std::fs::write(&path, [name.len() as u8; 32]).expect("written");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&path, mode).expect("private");
        path.to_str().expect("a path in letters").to_owned()
    });
    setup.all = words(&["--key", &key]);
    let (mut pair, primary) = Pair::start(scene, "keys", setup);
    let standby = 1 - primary;
    pair.signal(standby, "exchange", rustix::process::Signal::KILL);
    pair.await_event(primary, "PartnerLost");
    pair.setup_mut().all = words(&["--key", &other]);
    pair.start_node(standby);
    pair.await_cycles(standby, 2 * LASTS);
    assert_eq!(pair.state(standby), "init", "with another key");
    let told = pair.events_of_last_life(standby);
    let found = told.iter().any(|event| event["event"] == "PartnerFound");
    assert!(!found, "with another key: {told:?}");
    let (figures, _) = pair.report();
    scene.note(&summary(&figures));
}

fn seconds() -> Duration {
    let wanted = std::env::var("BUMPLESS_XPROC_SECONDS").ok();
    Duration::from_secs(wanted.and_then(|word| word.parse().ok()).unwrap_or(SECONDS))
}

/// Threads that do the same again and again, until it is dropped.
struct Burden {
    stop: Arc<AtomicBool>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Burden {
    fn start(threads: usize, work: impl Fn() + Send + Sync + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let work = Arc::new(work);
        let threads = (0..threads)
            .map(|_| {
                let (stop, work) = (Arc::clone(&stop), Arc::clone(&work));
                // Relaxed: a flag on its own.
                std::thread::spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        work();
                    }
                })
            })
            .collect();
        Self { stop, threads }
    }
}

impl Drop for Burden {
    fn drop(&mut self) {
        // Relaxed: a flag on its own.
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
