//! The substrate against the real system: files, mappings, locks, processes and their deaths.

mod atomics;
mod attach;
mod create;
mod fuzz;
mod guard;
mod killed;
// Of slot locks, which the portable tier has not.
#[cfg(not(bumpless_portable))]
mod locks;
mod other_users;
mod peer;
#[cfg(bumpless_portable)]
mod portable;
mod proof;
mod replace;
mod scene;
mod unusual;
mod views;
