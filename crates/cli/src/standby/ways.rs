//! The links of the three processes, by what the command line says of them.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use bumpless_standby::NodeId;
use bumpless_standby::link::{
    Authenticated, End, Key, Link, LinkCounts, MailboxLink, MailboxServer, UdpLink, UdpServer,
};

use super::error::StandbyError;

/// A frame with a part as long as the tool's nodes make it, and its mark, fits.
pub const MAILBOX_FRAME_LEN: usize = 2048;

/// What a mailbox's path begins with on the command line.
const MAILBOX: &str = "shm:";

/// Where somebody is reached: an address with a port, or a mailbox in shared memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// `127.0.0.1:7000`
    Udp(SocketAddr),
    /// `shm:/dev/shm/pair`
    Mailbox(PathBuf),
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix(MAILBOX) {
            Some("") => Err(format!("{text:?}: wanted a path after {MAILBOX}")),
            Some(path) => Ok(Self::Mailbox(path.into())),
            None => {
                let address = text.parse().map(Self::Udp);
                address.map_err(|_| format!("{text:?}: wanted ADDRESS:PORT or {MAILBOX}PATH"))
            }
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Udp(address) => address.fmt(f),
            Self::Mailbox(path) => write!(f, "{MAILBOX}{}", path.display()),
        }
    }
}

/// A link of either kind, with a key or without.
pub struct Way(Box<dyn Link>);

impl Way {
    fn new(link: impl Link + 'static, key: Option<&Key>, own: u8) -> Self {
        match key {
            None => Self(Box::new(link)),
            Some(key) => Self(Box::new(Authenticated::new(link, key.clone(), NodeId(own)))),
        }
    }
}

impl Link for Way {
    fn send(&mut self, frame: &[u8]) {
        self.0.send(frame);
    }

    fn receive(&mut self, frame: &mut Vec<u8>) -> Option<u8> {
        self.0.receive(frame)
    }

    fn counts(&self) -> LinkCounts {
        self.0.counts()
    }
}

/// The key of a pair, if it has one.
pub fn key(path: Option<&Path>) -> Result<Option<Key>, StandbyError> {
    Ok(path.map(Key::from_file).transpose()?)
}

/// From node `own` to its partner: over one path or two, or through one mailbox.
pub fn to_partner(
    own: u8,
    listen: &[SocketAddr],
    peer: &[Place],
    key: Option<&Key>,
) -> Result<Way, StandbyError> {
    let wrong = || StandbyError::Paths {
        listen: listen.len(),
        peer: peer.len(),
    };
    if let [Place::Mailbox(path)] = peer {
        let end = if own == 0 { End::A } else { End::B };
        if !listen.is_empty() {
            return Err(wrong());
        }
        let link = MailboxLink::create(path, end, MAILBOX_FRAME_LEN)?;
        return Ok(Way::new(link, key, own));
    }
    let addresses: Vec<SocketAddr> = peer
        .iter()
        .filter_map(|place| match place {
            Place::Udp(address) => Some(*address),
            Place::Mailbox(_) => None,
        })
        .collect();
    if listen.len() != peer.len() || addresses.len() != peer.len() || !(1..=2).contains(&peer.len())
    {
        return Err(wrong());
    }
    let paths: Vec<_> = listen.iter().copied().zip(addresses).collect();
    Ok(Way::new(UdpLink::connect(&paths)?, key, own))
}

/// From node `own` to the actuator: from any free port of the same family, or through a mailbox.
pub fn to_actuator(own: u8, actuator: &Place, key: Option<&Key>) -> Result<Way, StandbyError> {
    match actuator {
        Place::Mailbox(path) => {
            let link = MailboxLink::create(path, End::A, MAILBOX_FRAME_LEN)?;
            Ok(Way::new(link, key, own))
        }
        Place::Udp(actuator) => {
            let any: SocketAddr = if actuator.is_ipv4() {
                ([0, 0, 0, 0], 0).into()
            } else {
                ([0u16; 8], 0).into()
            };
            let link = UdpLink::connect(&[(any, *actuator)])?;
            Ok(Way::new(link, key, own))
        }
    }
}

/// The actuator's end: one port for everybody, or a mailbox for each node.
#[derive(Debug)]
pub enum PlantEnd {
    /// A port.
    Udp(UdpServer),
    /// Mailboxes.
    Mailboxes(MailboxServer),
}

/// Opens what the places say.
pub fn of_plant(listen: &[Place]) -> Result<PlantEnd, StandbyError> {
    match listen {
        [Place::Udp(address)] => Ok(PlantEnd::Udp(UdpServer::bind(*address)?)),
        [Place::Mailbox(one), Place::Mailbox(other)] => Ok(PlantEnd::Mailboxes(
            MailboxServer::create(&[one, other], MAILBOX_FRAME_LEN)?,
        )),
        _ => Err(StandbyError::PlantPlaces {
            found: listen.len(),
        }),
    }
}

/// A number for this life of a process: random, not 0.
pub fn incarnation() -> Result<u64, StandbyError> {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()).map_err(
        |errno| StandbyError::System {
            doing: "get a random number",
            error: errno.into(),
        },
    )?;
    Ok(u64::from_le_bytes(bytes).max(1))
}

/// Whole nanoseconds.
pub fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_an_address_or_a_mailbox() {
        for text in ["127.0.0.1:7000", "[::1]:7000", "shm:/dev/shm/pair"] {
            let place: Place = text.parse().expect("a place");
            assert_eq!(place.to_string(), text);
        }
        for wrong in ["", "7000", "localhost:7000", "shm:", "/dev/shm/pair"] {
            assert!(wrong.parse::<Place>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn addresses_and_mailboxes_are_not_mixed() {
        let here: SocketAddr = ([127, 0, 0, 1], 0).into();
        let mailbox = Place::Mailbox("/nowhere/pair".into());
        let refused = to_partner(0, &[here], std::slice::from_ref(&mailbox), None);
        assert!(matches!(
            refused,
            Err(StandbyError::Paths { listen: 1, peer: 1 })
        ));
        let refused = to_partner(0, &[here, here], &[Place::Udp(here), mailbox.clone()], None);
        assert!(matches!(refused, Err(StandbyError::Paths { .. })));
        assert!(matches!(
            of_plant(&[mailbox]),
            Err(StandbyError::PlantPlaces { found: 1 })
        ));
    }
}
