//! Who is reached where in a run, as arguments of its processes.
//!
//! ```text
//!   node 0 ◀──────────▶ node 1          node 0 ◀─▶ proxy ◀─▶ node 1
//!      ▲                 ▲                 ▲       ▲   ▲        ▲
//!      └────▶ plant ◀────┘                 └───────┘   └────────┘
//!                                                  ▼
//!                                                plant
//! ```
//!
//! The ports are the same in every run: the loopback address is the run's own, made of the id of the
//! process that runs it. Mailboxes lie in the run's folder.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use clap::ValueEnum;

use crate::standby::ways::Place;

/// What connects the processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LinkKind {
    /// Mailboxes in shared memory
    Shm,
    /// Datagrams over loopback
    Udp,
    /// The same, over two paths between the nodes
    Udp2,
}

/// The places of one run.
#[derive(Debug, Clone)]
pub struct Plan {
    link: LinkKind,
    ip: IpAddr,
    folder: PathBuf,
    has_proxy: bool,
}

impl Plan {
    /// Of a run in this folder.
    pub fn new(link: LinkKind, folder: &Path, has_proxy: bool) -> Self {
        let [_, high, middle, low] = std::process::id().to_be_bytes();
        Self {
            link,
            ip: IpAddr::V4(Ipv4Addr::new(127, high | 0x80, middle, low)),
            folder: folder.to_owned(),
            has_proxy,
        }
    }

    /// Ways between the nodes.
    pub fn paths(&self) -> u16 {
        match self.link {
            LinkKind::Shm | LinkKind::Udp => 1,
            LinkKind::Udp2 => 2,
        }
    }

    /// Whether something is to be cut.
    pub fn has_proxy(&self) -> bool {
        self.has_proxy
    }

    /// For `plant`.
    pub fn plant_arguments(&self) -> Vec<String> {
        let places = match self.link {
            LinkKind::Shm => [0, 1].map(|node| self.plant(node)).to_vec(),
            _ => vec![self.plant(0)],
        };
        vec!["--listen".to_owned(), joined(&places)]
    }

    /// For `node`.
    pub fn node_arguments(&self, node: u8) -> Vec<String> {
        let (listen, peer) = match (self.link, self.has_proxy) {
            (LinkKind::Shm, false) => (vec![], vec![self.mailbox("nodes")]),
            (LinkKind::Shm, true) => (vec![], self.before(node)),
            (_, false) => (self.node(node), self.node(1 - node)),
            (_, true) => (self.node(node), self.before(node)),
        };
        let actuator = match self.has_proxy {
            false => self.plant(node),
            true => self.before_plant(node),
        };
        let mut arguments = vec!["--peer".to_owned(), joined(&peer)];
        if !listen.is_empty() {
            arguments.extend(["--listen".to_owned(), joined(&listen)]);
        }
        arguments.extend(["--actuator".to_owned(), actuator.to_string()]);
        arguments
    }

    /// For `proxy`.
    pub fn proxy_arguments(&self) -> Vec<String> {
        let mut arguments = Vec::new();
        let mut add = |name: &str, places: &[Place]| {
            arguments.extend([name.to_owned(), joined(places)]);
        };
        let ends = [0, 1].map(|node| (self.before(node), self.node(node)));
        let [(own0, node0), (own1, node1)] = ends;
        for path in 0..usize::from(self.paths()) {
            let ends = [&own0, &node0, &own1, &node1].map(|places| places.get(path).cloned());
            let places: Vec<Place> = ends.into_iter().flatten().collect();
            add("--partner", &places);
        }
        for node in [0, 1] {
            add("--plant", &[self.before_plant(node), self.plant(node)]);
        }
        arguments
    }

    /// What node `node` asks without a proxy, or the proxy for it.
    fn plant(&self, node: u8) -> Place {
        match self.link {
            LinkKind::Shm => self.mailbox(&format!("plant{node}")),
            _ => self.at(7000),
        }
    }

    /// Where a node itself listens; nothing with mailboxes.
    fn node(&self, node: u8) -> Vec<Place> {
        match self.link {
            LinkKind::Shm => vec![],
            _ => self.on_paths(7010 + 10 * u16::from(node)),
        }
    }

    /// The proxy's ends towards a node: what it takes for its partner.
    fn before(&self, node: u8) -> Vec<Place> {
        match self.link {
            LinkKind::Shm => vec![self.mailbox(&format!("node{node}"))],
            _ => self.on_paths(7110 + 10 * u16::from(node)),
        }
    }

    /// What the node takes for the plant.
    fn before_plant(&self, node: u8) -> Place {
        match self.link {
            LinkKind::Shm => self.mailbox(&format!("front{node}")),
            _ => self.at(7100 + u16::from(node)),
        }
    }

    fn on_paths(&self, first: u16) -> Vec<Place> {
        (first..first + self.paths())
            .map(|port| self.at(port))
            .collect()
    }

    fn at(&self, port: u16) -> Place {
        Place::Udp(SocketAddr::new(self.ip, port))
    }

    fn mailbox(&self, name: &str) -> Place {
        Place::Mailbox(self.folder.join(format!("{name}.mbox")))
    }
}

fn joined(places: &[Place]) -> String {
    let texts: Vec<String> = places.iter().map(Place::to_string).collect();
    texts.join(",")
}
