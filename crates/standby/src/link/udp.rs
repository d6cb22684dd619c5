//! Datagrams: a link over one or two paths, and the end that answers whoever asks.
//!
//! Contract: a link's sockets are connected, so the kernel drops what comes from any other address and
//! port before it takes room in the queue. A storm of junk from elsewhere therefore displaces no
//! heartbeat and costs the process nothing; one with the partner's own address as its forged source
//! fills the queue like the partner itself, and only the network can keep that away.
//!
//! A server's socket is open to everybody. The kernel drops there what does not begin with the mark of a
//! frame, before it takes room in the queue; where it cannot filter, such junk costs the caller a call for
//! each. What has the mark and is no frame is known only when it is decoded, by the caller, which bounds
//! the frames that it takes in one cycle. Frames beyond that wait in the queue, and when that is full the
//! kernel drops the newest. So a storm of forged frames can keep requests out, which is silence to the
//! nodes, and never makes a cycle longer than its bound.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};

use socket2::{Domain, Protocol, SockFilter, Socket, Type};

use super::{FRAME_LEN_MAX, Link, LinkCounts, LinkError, Server};
use crate::frame::MAGIC;

/// Wanted for what waits between two cycles: a state of 64 KiB in parts of 1200 bytes takes 55
/// datagrams, for which the kernel accounts about 128 KiB. The system's `rmem_max` limits it further.
const QUEUE_LEN: usize = 1 << 20;

/// The system reports an error once, and the next attempt does what was asked.
const TRIES: usize = 2;

/// More datagrams than any queue holds of what came before a socket was connected.
const EARLY_MAX: usize = 1 << 16;

/// One end of a link over UDP. Each path is a pair of an own address, best on an interface of its own,
/// and the partner's.
///
/// ```
/// use bumpless_standby::link::{Link, UdpLink};
///
/// let (a, b) = ("127.4.7.1:4711".parse()?, "127.4.7.2:4711".parse()?);
/// let mut node = UdpLink::connect(&[(a, b)])?;
/// let mut partner = UdpLink::connect(&[(b, a)])?; // in another process
/// node.send(b"frame");
/// let mut frame = Vec::new();
/// assert_eq!(partner.receive(&mut frame), Some(0));
/// assert_eq!(frame, b"frame");
/// assert_eq!(partner.receive(&mut frame), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct UdpLink {
    paths: Vec<UdpSocket>,
    /// Where the next `receive` looks first, so that a path which always has something does not keep
    /// the other one from being heard.
    first: usize,
    inbox: Inbox,
    counts: LinkCounts,
}

impl UdpLink {
    /// The most paths of a link.
    pub const PATHS_MAX: usize = 2;

    /// Binds and connects a socket for each path, given as own address and the partner's. The partner
    /// need not be there.
    ///
    /// # Errors
    /// [`LinkError::Paths`]; [`LinkError::Socket`] when an own address is taken or not this machine's,
    /// or the partner's cannot be reached from it at all.
    pub fn connect(paths: &[(SocketAddr, SocketAddr)]) -> Result<Self, LinkError> {
        if !(1..=Self::PATHS_MAX).contains(&paths.len()) {
            return Err(LinkError::Paths {
                found: paths.len(),
                limit: Self::PATHS_MAX,
            });
        }
        let mut inbox = Inbox::new();
        let mut connected = Vec::with_capacity(paths.len());
        for (own, partner) in paths {
            let socket = bind(*own, Admit::All)?;
            socket
                .connect(partner)
                .map_err(LinkError::socket("connect a socket to", *partner))?;
            inbox.discard_early(&socket);
            connected.push(socket);
        }
        Ok(Self {
            paths: connected,
            first: 0,
            inbox,
            counts: LinkCounts::default(),
        })
    }
}

impl Link for UdpLink {
    /// Cost: a system call for each path.
    fn send(&mut self, frame: &[u8]) {
        for socket in &self.paths {
            self.counts.note_send(frame, || socket.send(frame));
        }
    }

    /// Cost: a system call for each path that has nothing or reports an error, and one for the datagram.
    fn receive(&mut self, frame: &mut Vec<u8>) -> Option<u8> {
        let count = self.paths.len();
        for index in (self.first..count).chain(0..self.first) {
            let socket = &self.paths[index];
            let took = self
                .inbox
                .take(frame, &mut self.counts, |into| Ok((socket.recv(into)?, ())));
            if took.is_some() {
                self.first = (index + 1) % count;
                return u8::try_from(index).ok();
            }
        }
        None
    }

    fn counts(&self) -> LinkCounts {
        self.counts
    }
}

/// The actuator's end over UDP. Only frames come in: what begins with `BLSB`.
///
/// ```
/// use bumpless_standby::link::{Link, Server, UdpLink, UdpServer};
///
/// let (at, node) = ("127.4.7.3:4711".parse()?, "127.4.7.4:4711".parse()?);
/// let mut server = UdpServer::bind(at)?;
/// let mut link = UdpLink::connect(&[(node, at)])?;
/// link.send(b"BLSB...");
/// let mut frame = Vec::new();
/// let peer = server.receive(&mut frame).ok_or("nothing came")?;
/// server.send(peer, b"reply");
/// assert_eq!(link.receive(&mut frame), Some(0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct UdpServer {
    socket: UdpSocket,
    inbox: Inbox,
    counts: LinkCounts,
}

impl UdpServer {
    /// Binds the address; port 0 lets the system choose one, see [`address`](Self::address).
    ///
    /// # Errors
    /// [`LinkError::Socket`].
    pub fn bind(own: SocketAddr) -> Result<Self, LinkError> {
        Ok(Self {
            socket: bind(own, Admit::Frames)?,
            inbox: Inbox::new(),
            counts: LinkCounts::default(),
        })
    }

    /// Where it is reached.
    ///
    /// # Errors
    /// The system does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }
}

impl Server for UdpServer {
    type Peer = SocketAddr;

    /// Cost: a system call.
    fn receive(&mut self, frame: &mut Vec<u8>) -> Option<SocketAddr> {
        let socket = &self.socket;
        self.inbox
            .take(frame, &mut self.counts, |into| socket.recv_from(into))
    }

    /// Cost: a system call.
    fn send(&mut self, to: SocketAddr, frame: &[u8]) {
        let socket = &self.socket;
        self.counts.note_send(frame, || socket.send_to(frame, to));
    }

    fn counts(&self) -> LinkCounts {
        self.counts
    }
}

impl LinkCounts {
    /// Sends by `send`, twice if the first attempt fails: the kernel reports what became of an earlier
    /// datagram ("nobody listens") by failing the next call, which then sends nothing.
    fn note_send(&mut self, frame: &[u8], send: impl Fn() -> io::Result<usize>) {
        if !(1..=FRAME_LEN_MAX).contains(&frame.len()) {
            self.unsent += 1;
            return;
        }
        for _ in 0..TRIES {
            match send() {
                Ok(_) => {
                    self.sent += 1;
                    return;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => self.errors += 1,
            }
        }
        self.unsent += 1;
    }
}

/// Where a datagram lies until its length is known.
#[derive(Debug)]
struct Inbox {
    /// One byte more than a frame has: a datagram that fills it is too long.
    bytes: Box<[u8]>,
}

impl Inbox {
    fn new() -> Self {
        Self {
            bytes: vec![0; FRAME_LEN_MAX + 1].into(),
        }
    }

    /// The next datagram, into `frame` if it can be one, and where it came from.
    fn take<P>(
        &mut self,
        frame: &mut Vec<u8>,
        counts: &mut LinkCounts,
        receive: impl Fn(&mut [u8]) -> io::Result<(usize, P)>,
    ) -> Option<P> {
        frame.clear();
        for _ in 0..TRIES {
            match receive(&mut self.bytes) {
                Ok((len, from)) => {
                    match len {
                        0 => counts.empty += 1,
                        1..=FRAME_LEN_MAX => {
                            frame.extend_from_slice(&self.bytes[..len]);
                            counts.received += 1;
                        }
                        _ => counts.oversized += 1,
                    }
                    return Some(from);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
                Err(_) => counts.errors += 1,
            }
        }
        None
    }

    /// Drops what anybody sent before the socket was connected, and the partner with it: its next
    /// heartbeat is a cycle away.
    fn discard_early(&mut self, socket: &UdpSocket) {
        for _ in 0..EARLY_MAX {
            let took = socket.recv(&mut self.bytes);
            if took.is_err_and(|error| error.kind() == ErrorKind::WouldBlock) {
                return;
            }
        }
    }
}

/// What the kernel lets into the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Admit {
    All,
    /// What begins with the mark of a frame.
    Frames,
}

/// As the kernel's filter language has it.
fn frames_only() -> [SockFilter; 4] {
    const LOAD_WORD: u16 = 0x20;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    const UDP_HEADER_LEN: u32 = 8;
    [
        SockFilter::new(LOAD_WORD, 0, 0, UDP_HEADER_LEN),
        SockFilter::new(JUMP_IF_EQUAL, 0, 1, u32::from_be_bytes(MAGIC)),
        SockFilter::new(RETURN, 0, 0, u32::MAX), // all of it
        SockFilter::new(RETURN, 0, 0, 0),        // nothing
    ]
}

/// A socket that never blocks, with room for a few cycles.
fn bind(own: SocketAddr, admit: Admit) -> Result<UdpSocket, LinkError> {
    let error = |what| LinkError::socket(what, own);
    let domain = Domain::for_address(own);
    let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))
        .map_err(error("make a socket for"))?;
    socket
        .set_nonblocking(true)
        .map_err(error("make non-blocking the socket of"))?;
    socket
        .set_recv_buffer_size(QUEUE_LEN)
        .map_err(error("give a queue to the socket of"))?;
    if admit == Admit::Frames {
        // Where there are no filters, junk is dropped when it is decoded.
        let _ = socket.attach_filter(&frames_only());
    }
    socket
        .bind(&own.into())
        .map_err(error("bind a socket to"))?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_before_a_socket_was_connected_is_dropped() {
        let own = bind(([127, 0, 0, 1], 0).into(), Admit::All).unwrap();
        let anybody = UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..3 {
            anybody.send_to(b"junk", own.local_addr().unwrap()).unwrap();
        }
        own.connect(anybody.local_addr().unwrap()).unwrap();
        Inbox::new().discard_early(&own);
        let left = own.recv(&mut [0; 8]).unwrap_err();
        assert_eq!(left.kind(), ErrorKind::WouldBlock);
    }
}
