//! The public interface.

mod actuator;
mod actuator_random;
mod authority;
mod cycles;
mod device;
mod frame;
mod frame_random;
mod golden;
mod link_auth;
mod link_mailbox;
mod link_scene;
mod link_udp;
mod peer;
mod plain;
mod plant;
mod regressions;
mod scenarios;
mod sim;
mod store;
mod swarm;
mod tag;
mod transfer;
mod transfer_random;
