//! The hidden role that stands between the processes and can keep them apart.
//!
//! Contract: it forwards every frame as it is, each *way* (one direction of one path) for itself; one line
//! of orders on standard input, one answer on standard output, `done AT_NS`. A way that is cut swallows
//! what comes. It ends with its input. Between two mailboxes it looks [`LOOKS_PER_SECOND`] times, as
//! nothing wakes it.
//!
//! ```text
//!   0>1/P, 1>0/P        from node to node over path P
//!   0>plant, plant>0    between a node and the plant; likewise 1
//! ```

use std::io::{self, Write};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use bumpless_standby::link::{End, Link, MailboxLink};
use bumpless_substrate::clock::monotonic_ns;
use clap::Args;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::standby::error::StandbyError;
use crate::standby::ways::{MAILBOX_FRAME_LEN, Place};

/// Frames of one way that are forwarded before the others' turn.
const BURST: u32 = 64;
/// No datagram is longer.
const DATAGRAM_LEN_MAX: usize = 65_536;
/// Into mailboxes.
const LOOKS_PER_SECOND: i64 = 10_000;

/// Where the proxy stands.
#[derive(Debug, Clone, Args)]
pub struct ProxyArguments {
    /// For each path: own end towards node 0, node 0, own end towards node 1, node 1; or the two mailboxes
    /// of node 0 and node 1
    #[arg(long, value_delimiter = ',')]
    partner: Vec<Place>,

    /// For each node: own end towards the node, and the plant
    #[arg(long, value_delimiter = ',')]
    plant: Vec<Place>,
}

/// One end of a way, and whom it talks to.
#[derive(Debug)]
enum Port {
    /// To one address.
    Connected(UdpSocket),
    /// To whoever spoke last: a node whose port is not known before.
    Open(UdpSocket, Option<SocketAddr>),
    Mailbox(Box<MailboxLink>),
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
    let mut proxy = Proxy::open(arguments)?;
    proxy.run().map_err(|error| StandbyError::System {
        doing: "forward",
        error,
    })
}

#[derive(Debug)]
struct Proxy {
    ports: Vec<Port>,
    ways: Vec<Way>,
    frame: Vec<u8>,
}

impl Proxy {
    fn open(arguments: &ProxyArguments) -> Result<Self, StandbyError> {
        let mut proxy = Self {
            ports: vec![],
            ways: vec![],
            frame: Vec::new(),
        };
        match &arguments.partner[..] {
            [Place::Mailbox(node0), Place::Mailbox(node1)] => {
                let (zero, one) = (Port::mailbox(node0, End::B)?, Port::mailbox(node1, End::A)?);
                proxy.join(["0>1/0", "1>0/0"], zero, one);
            }
            places => {
                let (paths, _) = places.as_chunks::<4>();
                for (path, [own0, node0, own1, node1]) in paths.iter().enumerate() {
                    let (zero, one) = (Port::udp(own0, node0)?, Port::udp(own1, node1)?);
                    let names = (format!("0>1/{path}"), format!("1>0/{path}"));
                    proxy.join([&names.0, &names.1], zero, one);
                }
            }
        }
        let (fronts, _) = arguments.plant.as_chunks::<2>();
        for (node, [own, plant]) in fronts.iter().enumerate() {
            let (front, back) = match (own, plant) {
                (Place::Mailbox(own), Place::Mailbox(plant)) => {
                    (Port::mailbox(own, End::B)?, Port::mailbox(plant, End::A)?)
                }
                (own, plant) => Port::udp_before(own, plant)?,
            };
            let names = (format!("{node}>plant"), format!("plant>{node}"));
            proxy.join([&names.0, &names.1], front, back);
        }
        Ok(proxy)
    }

    /// Two ways between two ends.
    fn join(&mut self, [there, back]: [&str; 2], one: Port, other: Port) {
        let from = self.ports.len();
        self.ports.extend([one, other]);
        for (name, from, to) in [(there, from, from + 1), (back, from + 1, from)] {
            self.ways.push(Way {
                name: name.to_owned(),
                from,
                to,
                is_cut: false,
            });
        }
    }

    fn run(&mut self) -> io::Result<()> {
        let (stdin, mut stdout) = (io::stdin(), io::stdout());
        let mut orders = Vec::new();
        writeln!(stdout, "done {}", monotonic_ns())?;
        loop {
            if await_readable(stdin.as_fd(), &self.ports)? {
                let mut chunk = [0; 4096];
                let len = rustix::io::read(&stdin, &mut chunk)?;
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
            for way in &self.ways {
                forward(way, &mut self.ports, &mut self.frame);
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
}

fn forward(way: &Way, ports: &mut [Port], frame: &mut Vec<u8>) {
    for _ in 0..BURST {
        let Some(true) = ports.get_mut(way.from).map(|port| port.receive(frame)) else {
            return;
        };
        if let Some(to) = ports.get_mut(way.to)
            && !way.is_cut
            && !frame.is_empty()
        {
            to.send(frame);
        }
    }
}

impl Port {
    fn mailbox(path: &Path, end: End) -> Result<Self, StandbyError> {
        let link = MailboxLink::create(path, end, MAILBOX_FRAME_LEN)?;
        Ok(Self::Mailbox(Box::new(link)))
    }

    fn udp(own: &Place, peer: &Place) -> Result<Self, StandbyError> {
        let socket = bind(address(own)?)?;
        let connected = socket.connect(address(peer)?);
        connected.map_err(|error| StandbyError::System {
            doing: "connect a socket of the proxy",
            error,
        })?;
        Ok(Self::Connected(socket))
    }

    fn udp_before(own: &Place, plant: &Place) -> Result<(Self, Self), StandbyError> {
        let own = address(own)?;
        let back = Place::Udp(SocketAddr::new(own.ip(), 0));
        Ok((Self::Open(bind(own)?, None), Self::udp(&back, plant)?))
    }

    fn socket(&self) -> Option<&UdpSocket> {
        match self {
            Self::Connected(socket) | Self::Open(socket, _) => Some(socket),
            Self::Mailbox(_) => None,
        }
    }

    /// Whether something was there. The frame is empty when it was dropped.
    fn receive(&mut self, frame: &mut Vec<u8>) -> bool {
        let (socket, heard) = match self {
            Self::Mailbox(link) => return link.receive(frame).is_some(),
            Self::Connected(socket) => (socket, None),
            Self::Open(socket, heard) => (socket, Some(heard)),
        };
        frame.resize(DATAGRAM_LEN_MAX, 0);
        match socket.recv_from(frame) {
            Ok((len, sender)) => {
                frame.truncate(len);
                if let Some(heard) = heard {
                    *heard = Some(sender);
                }
                true
            }
            // What the system reports of an earlier datagram is the nodes' business.
            Err(error) => {
                frame.clear();
                error.kind() == io::ErrorKind::ConnectionRefused
            }
        }
    }

    /// What cannot be sent is lost, as on any network.
    fn send(&mut self, frame: &[u8]) {
        match self {
            Self::Mailbox(link) => link.send(frame),
            Self::Connected(socket) => drop(socket.send(frame)),
            Self::Open(socket, Some(heard)) => drop(socket.send_to(frame, *heard)),
            Self::Open(_, None) => {}
        }
    }
}

fn address(place: &Place) -> Result<SocketAddr, StandbyError> {
    match place {
        Place::Udp(address) => Ok(*address),
        Place::Mailbox(_) => Err(StandbyError::Paths { listen: 1, peer: 1 }),
    }
}

fn bind(own: SocketAddr) -> Result<UdpSocket, StandbyError> {
    let socket = UdpSocket::bind(own).and_then(|socket| {
        socket.set_nonblocking(true)?;
        Ok(socket)
    });
    socket.map_err(|error| StandbyError::System {
        doing: "open a socket of the proxy",
        error,
    })
}

/// Sleeps until there may be something to forward, or is something to obey: then the answer is true.
fn await_readable(orders: BorrowedFd<'_>, ports: &[Port]) -> io::Result<bool> {
    let mut polled = vec![PollFd::from_borrowed_fd(orders, PollFlags::IN)];
    let sockets = ports.iter().filter_map(Port::socket);
    polled.extend(sockets.map(|socket| PollFd::new(socket, PollFlags::IN)));
    let look = Timespec {
        tv_sec: 0,
        tv_nsec: 1_000_000_000 / LOOKS_PER_SECOND,
    };
    let has_mailboxes = ports.iter().any(|port| port.socket().is_none());
    match poll(&mut polled, has_mailboxes.then_some(&look)) {
        Ok(_) => Ok(!polled[0].revents().is_empty()),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}
