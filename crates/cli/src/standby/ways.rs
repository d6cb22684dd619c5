//! The links of the three processes, by address.

use std::net::SocketAddr;
use std::time::Duration;

use bumpless_standby::link::{UdpLink, UdpServer};

use super::error::StandbyError;

/// To the partner: one path or two.
pub fn to_partner(listen: &[SocketAddr], peer: &[SocketAddr]) -> Result<UdpLink, StandbyError> {
    if listen.len() != peer.len() || !(1..=2).contains(&listen.len()) {
        return Err(StandbyError::Paths {
            listen: listen.len(),
            peer: peer.len(),
        });
    }
    let paths: Vec<_> = listen.iter().copied().zip(peer.iter().copied()).collect();
    Ok(UdpLink::connect(&paths)?)
}

/// To the actuator, from any free port of the same family.
pub fn to_actuator(actuator: SocketAddr) -> Result<UdpLink, StandbyError> {
    let any: SocketAddr = if actuator.is_ipv4() {
        ([0, 0, 0, 0], 0).into()
    } else {
        ([0u16; 8], 0).into()
    };
    Ok(UdpLink::connect(&[(any, actuator)])?)
}

/// The actuator's end.
pub fn of_plant(listen: SocketAddr) -> Result<UdpServer, StandbyError> {
    Ok(UdpServer::bind(listen)?)
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
