//! `bumpless bench`: figures of this machine, measured with real processes.
//!
//! Contract: every process that a measurement starts is this program again, in a hidden role, and dies
//! with the measurement. Exit code 0 with the figures, 1 with what went wrong, 130 after a signal.

mod args;
mod barrier;
mod children;
mod death;
mod detector;
mod error;
mod figures;
mod lead;
mod observe;
mod roles;
mod tick;

use std::process::ExitCode;

use bumpless_substrate::region::default_folder;
use clap::{Args, Subcommand};

use args::{BarrierArguments, DeathArguments, PeerArguments, RoleArguments};
use error::BenchError;

use crate::out::print;
use crate::private_folder::PrivateFolder;
use crate::signals::INTERRUPTED;

/// Measures this machine with real processes.
#[derive(Debug, Args)]
pub struct BenchArguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Death(DeathArguments),
    Barrier(BarrierArguments),
    #[command(hide = true)]
    BarrierPeer(PeerArguments),
    Tick(tick::TickArguments),
    Lead(lead::LeadArguments),
    Observe(observe::ObserveArguments),
    #[command(hide = true)]
    Leader(lead::LeaderArguments),
    #[command(hide = true)]
    Role(RoleArguments),
}

/// Runs what the arguments name.
pub fn run(arguments: &BenchArguments) -> ExitCode {
    let done = match &arguments.what {
        What::Death(arguments) => death::run(arguments),
        What::Barrier(arguments) => barrier::run(arguments),
        What::BarrierPeer(arguments) => barrier::play_peer(arguments),
        What::Tick(arguments) => tick::run(arguments),
        What::Observe(arguments) => observe::run(arguments),
        What::Lead(arguments) => lead::run(arguments),
        What::Leader(arguments) => lead::play_leader(arguments),
        What::Role(arguments) => roles::play(arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(BenchError::Interrupted) => ExitCode::from(INTERRUPTED),
        Err(error) => {
            tell!("bumpless bench: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A folder of this measurement's own, beside the tables of this user.
fn private_folder() -> Result<PrivateFolder, BenchError> {
    Ok(PrivateFolder::make_in(&default_folder()?, "bench-")?)
}

/// Figures, or a word for who started this process.
fn show(text: &str) -> Result<(), BenchError> {
    print(text).map_err(BenchError::file("write to", "standard output"))
}
