//! The network: two paths between the nodes, a link from each to the actuator and back.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use bumpless_standby::message::{Fragment, Heartbeat, Reply, Request};
use rand::RngExt;
use rand_pcg::Pcg64Mcg;

/// One direction of one link.
#[derive(Debug, Clone, Default)]
pub struct Link {
    pub latency_ns: u64,
    /// Added to the latency, drawn anew for each message: this reorders.
    pub jitter_ns: u64,
    /// Chance of each message to be lost.
    pub loss: f64,
    /// Chance of each fragment to be lost, in addition.
    pub fragment_loss: f64,
    /// Chance of each message to come twice.
    pub repeat: f64,
    pub is_cut: bool,
    /// What is sent before this time is held back until then; 0: nothing is.
    pub clogged_until_ns: u64,
}

impl Link {
    pub fn with_latency(latency_ns: u64) -> Self {
        Self {
            latency_ns,
            ..Self::default()
        }
    }

    /// When a message that is sent now arrives: never, once or twice.
    fn arrivals(&self, now_ns: u64, rng: &mut Pcg64Mcg) -> [Option<u64>; 2] {
        if self.is_cut || (self.loss > 0.0 && rng.random_bool(self.loss)) {
            return [None, None];
        }
        let first = self.arrival(now_ns, rng);
        let is_repeated = self.repeat > 0.0 && rng.random_bool(self.repeat);
        [Some(first), is_repeated.then(|| self.arrival(now_ns, rng))]
    }

    fn arrival(&self, now_ns: u64, rng: &mut Pcg64Mcg) -> u64 {
        let jitter_ns = if self.jitter_ns == 0 {
            0
        } else {
            rng.random_range(0..=self.jitter_ns)
        };
        now_ns.max(self.clogged_until_ns) + self.latency_ns + jitter_ns
    }
}

/// All links. Indices are the sender's, for replies the receiver's.
#[derive(Debug, Clone)]
pub struct Links {
    pub sync: [[Link; 2]; 2],
    pub requests: [Link; 2],
    pub replies: [Link; 2],
}

impl Links {
    pub fn with_latency(latency_ns: u64) -> Self {
        let pair = || [(); 2].map(|()| Link::with_latency(latency_ns));
        Self {
            sync: [pair(), pair()],
            requests: pair(),
            replies: pair(),
        }
    }

    /// Both paths, both directions.
    pub fn each_sync(&mut self, mut change: impl FnMut(&mut Link)) {
        self.sync.iter_mut().flatten().for_each(&mut change);
    }

    /// Both paths of one sender.
    pub fn each_sync_from(&mut self, from: usize, mut change: impl FnMut(&mut Link)) {
        self.sync
            .iter_mut()
            .for_each(|path| change(&mut path[from]));
    }

    /// Both directions between this node and the actuator.
    pub fn each_actuator(&mut self, node: usize, mut change: impl FnMut(&mut Link)) {
        change(&mut self.requests[node]);
        change(&mut self.replies[node]);
    }
}

/// What is under way to whom.
#[derive(Debug, Clone)]
pub enum Message<V> {
    Heartbeat {
        to: usize,
        path: u8,
        heartbeat: Heartbeat,
    },
    Fragment {
        to: usize,
        path: u8,
        fragment: Fragment,
    },
    Request(Request<V>),
    Reply {
        to: usize,
        reply: Reply,
    },
}

/// What is under way, the next arrival first.
#[derive(Debug)]
pub struct Queue<V> {
    heap: BinaryHeap<Due<V>>,
    sent: u64,
}

#[derive(Debug)]
struct Due<V> {
    at_ns: u64,
    order: u64,
    message: Box<Message<V>>,
}

impl<V: Clone> Queue<V> {
    pub fn new() -> Self {
        Self {
            heap: BinaryHeap::new(),
            sent: 0,
        }
    }

    /// Sends a message over a link.
    pub fn send(&mut self, now_ns: u64, link: &Link, rng: &mut Pcg64Mcg, message: Message<V>) {
        let is_fragment = matches!(message, Message::Fragment { .. });
        if is_fragment && link.fragment_loss > 0.0 && rng.random_bool(link.fragment_loss) {
            return;
        }
        let [first, second] = link.arrivals(now_ns, rng);
        if let Some(at_ns) = second {
            self.put(at_ns, message.clone());
        }
        if let Some(at_ns) = first {
            self.put(at_ns, message);
        }
    }

    /// Puts a message where it arrives at this time, whatever the links do.
    pub fn put(&mut self, at_ns: u64, message: Message<V>) {
        self.sent += 1;
        self.heap.push(Due {
            at_ns,
            order: self.sent,
            message: Box::new(message),
        });
    }

    pub fn next_at_ns(&self) -> u64 {
        self.heap.peek().map_or(u64::MAX, |due| due.at_ns)
    }

    pub fn pop(&mut self) -> Option<Message<V>> {
        self.heap.pop().map(|due| *due.message)
    }
}

impl<V> Due<V> {
    fn rank(&self) -> (u64, u64) {
        (self.at_ns, self.order)
    }
}

/// The heap's greatest is the earliest.
impl<V> Ord for Due<V> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.rank().cmp(&self.rank())
    }
}

impl<V> PartialOrd for Due<V> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<V> PartialEq for Due<V> {
    fn eq(&self, other: &Self) -> bool {
        self.rank() == other.rank()
    }
}

impl<V> Eq for Due<V> {}
