//! The hidden role that stands between the processes and can keep them apart.
//!
//! Contract: it forwards every datagram as it is, each *way* (one direction of one path) for itself;
//! one line of orders on standard input, one answer on standard output, `done AT_NS`. A way that is cut
//! swallows what comes. It ends with its input.
//!
//! ```text
//!   0>1/P, 1>0/P        from node to node over path P
//!   0>plant, plant>0    between a node and the plant; likewise 1
//! ```

use std::io::{self, Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use bumpless_substrate::clock::monotonic_ns;
use clap::Args;
use rustix::event::{PollFd, PollFlags, poll};

use crate::standby::error::StandbyError;

/// Datagrams of one way that are forwarded before the others' turn.
const BURST: u32 = 64;
/// No datagram is longer.
const DATAGRAM_LEN_MAX: usize = 65_536;

/// Where the proxy stands.
#[derive(Debug, Clone, Args)]
pub struct ProxyArguments {
    /// For each path: own end towards node 0, node 0, own end towards node 1, node 1
    #[arg(long, value_delimiter = ',')]
    partner: Vec<SocketAddr>,

    /// For each node: own end towards the node, and the plant
    #[arg(long, value_delimiter = ',')]
    plant: Vec<SocketAddr>,
}

/// A socket, and whom it talks to.
#[derive(Debug)]
struct End {
    socket: UdpSocket,
    /// Whoever spoke last, for an end that waits for a node whose port is not known.
    heard: Option<SocketAddr>,
}

#[derive(Debug)]
struct Way {
    name: String,
    from: usize,
    to: usize,
    is_cut: bool,
}

/// Runs until the input ends.
pub fn play(arguments: &ProxyArguments) -> Result<(), StandbyError> {
    let mut proxy = Proxy::open(arguments).map_err(failed("open the proxy's sockets"))?;
    proxy.run().map_err(failed("forward"))
}

fn failed(doing: &'static str) -> impl Fn(io::Error) -> StandbyError {
    move |error| StandbyError::System { doing, error }
}

#[derive(Debug)]
struct Proxy {
    ends: Vec<End>,
    ways: Vec<Way>,
    datagram: Vec<u8>,
}

impl Proxy {
    fn open(arguments: &ProxyArguments) -> io::Result<Self> {
        let mut proxy = Self {
            ends: vec![],
            ways: vec![],
            datagram: vec![0; DATAGRAM_LEN_MAX],
        };
        let (paths, _) = arguments.partner.as_chunks::<4>();
        for (path, [own0, node0, own1, node1]) in paths.iter().enumerate() {
            let (zero, one) = (
                proxy.end(*own0, Some(*node0))?,
                proxy.end(*own1, Some(*node1))?,
            );
            proxy.way(format!("0>1/{path}"), zero, one);
            proxy.way(format!("1>0/{path}"), one, zero);
        }
        let (fronts, _) = arguments.plant.as_chunks::<2>();
        for (node, [own, plant]) in fronts.iter().enumerate() {
            let front = proxy.end(*own, None)?;
            let back = proxy.end(SocketAddr::new(own.ip(), 0), Some(*plant))?;
            proxy.way(format!("{node}>plant"), front, back);
            proxy.way(format!("plant>{node}"), back, front);
        }
        Ok(proxy)
    }

    fn end(&mut self, own: SocketAddr, peer: Option<SocketAddr>) -> io::Result<usize> {
        let socket = UdpSocket::bind(own)?;
        socket.set_nonblocking(true)?;
        if let Some(peer) = peer {
            socket.connect(peer)?;
        }
        let heard = None;
        self.ends.push(End { socket, heard });
        Ok(self.ends.len() - 1)
    }

    fn way(&mut self, name: String, from: usize, to: usize) {
        let is_cut = false;
        self.ways.push(Way {
            name,
            from,
            to,
            is_cut,
        });
    }

    fn run(&mut self) -> io::Result<()> {
        let (stdin, mut stdout) = (io::stdin(), io::stdout());
        let mut orders = Vec::new();
        writeln!(stdout, "done {}", monotonic_ns())?;
        loop {
            if await_readable(stdin.as_fd(), &self.ends)? {
                let mut chunk = [0; 4096];
                let len = stdin.lock().read(&mut chunk)?;
                if len == 0 {
                    return Ok(());
                }
                orders.extend_from_slice(&chunk[..len]);
            }
            while let Some(end) = orders.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = orders.drain(..=end).collect();
                self.obey(&String::from_utf8_lossy(&line));
                writeln!(stdout, "done {}", monotonic_ns())?;
            }
            for way in 0..self.ways.len() {
                self.forward(way);
            }
        }
    }

    /// `cut WAY...`, `heal WAY...`.
    fn obey(&mut self, order: &str) {
        let mut words = order.split_whitespace();
        let cuts = words.next() == Some("cut");
        let named: Vec<&str> = words.collect();
        for way in &mut self.ways {
            if named.contains(&way.name.as_str()) {
                way.is_cut = cuts;
            }
        }
    }

    fn forward(&mut self, way: usize) {
        let Some(Way {
            from, to, is_cut, ..
        }) = self.ways.get(way)
        else {
            return;
        };
        let (from, to, is_cut) = (*from, *to, *is_cut);
        for _ in 0..BURST {
            // What the system reports of an earlier datagram is the nodes' business.
            let (len, sender) = match self.ends[from].socket.recv_from(&mut self.datagram) {
                Ok(got) => got,
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => continue,
                Err(_) => return,
            };
            self.ends[from].heard = Some(sender);
            if is_cut {
                continue;
            }
            let end = &self.ends[to];
            let datagram = &self.datagram[..len];
            let _ = match (end.socket.peer_addr(), end.heard) {
                (Err(_), Some(heard)) => end.socket.send_to(datagram, heard),
                _ => end.socket.send(datagram),
            };
        }
    }
}

/// Sleeps until there is something to forward, or to obey: then the answer is true.
fn await_readable(orders: BorrowedFd<'_>, ends: &[End]) -> io::Result<bool> {
    let mut polled = vec![PollFd::from_borrowed_fd(orders, PollFlags::IN)];
    polled.extend(
        ends.iter()
            .map(|end| PollFd::new(&end.socket, PollFlags::IN)),
    );
    match poll(&mut polled, None) {
        Ok(_) => Ok(!polled[0].revents().is_empty()),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}
