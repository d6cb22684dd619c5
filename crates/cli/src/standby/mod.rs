//! `bumpless standby`: a hot-standby pair and its fenced actuator, as processes.

mod args;
mod control;
mod controller;
mod demo;
mod error;
mod exec;
mod log;
mod node;
mod plant;
mod status;
mod ways;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use args::{NodeArguments, OrderArguments, PlantArguments, StatusArguments};
use error::StandbyError;

use crate::signals::INTERRUPTED;

pub use log::name as state_name;
pub use status::as_text as tag_text;

/// A hot-standby pair: the backup takes over within a few cycles.
#[derive(Debug, Args)]
pub struct StandbyArguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Plant(Box<PlantArguments>),
    Node(Box<NodeArguments>),
    /// Show where a node stands, from shared memory
    Status(StatusArguments),
    /// Hand the role to the qualified partner, without a lost cycle
    #[command(after_help = "Example: bumpless standby switch-over --state-dir /var/lib/node0")]
    SwitchOver(OrderArguments),
    /// Hand the role over and take it back, to see that it works
    #[command(after_help = "Example: bumpless standby test-switch --state-dir /var/lib/node0")]
    TestSwitch(OrderArguments),
    /// Hand the role over and go out of service
    #[command(after_help = "Example: bumpless standby leave --state-dir /var/lib/node0")]
    Leave(OrderArguments),
    /// Standby: go out of service; it follows nothing and takes nothing over
    #[command(
        after_help = "Example: bumpless standby enter-maintenance --state-dir /var/lib/node0"
    )]
    EnterMaintenance(OrderArguments),
    /// Go back into service, as if just started
    #[command(
        after_help = "Example: bumpless standby leave-maintenance --state-dir /var/lib/node0"
    )]
    LeaveMaintenance(OrderArguments),
    /// Primary: let no standby synchronise
    #[command(after_help = "Example: bumpless standby hold-sync --state-dir /var/lib/node0")]
    HoldSync(OrderArguments),
    /// Primary: let the standby synchronise again
    #[command(after_help = "Example: bumpless standby release-sync --state-dir /var/lib/node0")]
    ReleaseSync(OrderArguments),
    /// Take the role, whatever else is known
    #[command(after_help = "Example: bumpless standby promote --state-dir /var/lib/node0")]
    Promote(OrderArguments),
    /// Unlatch the alarms whose cause is gone
    #[command(after_help = "Example: bumpless standby clear-alarms --state-dir /var/lib/node0")]
    ClearAlarms(OrderArguments),
    Demo(demo::DemoArguments),
    #[command(hide = true)]
    Proxy(demo::proxy::ProxyArguments),
    #[command(hide = true)]
    Report(demo::ReportArguments),
}

/// Runs what the arguments name.
pub fn run(arguments: &StandbyArguments) -> ExitCode {
    let done = match &arguments.what {
        What::Plant(arguments) => plant::run(arguments),
        What::Node(arguments) => node::run(arguments),
        What::Status(arguments) => status::run(arguments),
        What::SwitchOver(arguments) => control::order(&arguments.state_dir, "switch-over"),
        What::TestSwitch(arguments) => control::order(&arguments.state_dir, "test-switch"),
        What::Leave(arguments) => control::order(&arguments.state_dir, "leave"),
        What::EnterMaintenance(arguments) => {
            control::order(&arguments.state_dir, "enter-maintenance")
        }
        What::LeaveMaintenance(arguments) => {
            control::order(&arguments.state_dir, "leave-maintenance")
        }
        What::HoldSync(arguments) => control::order(&arguments.state_dir, "hold-sync"),
        What::ReleaseSync(arguments) => control::order(&arguments.state_dir, "release-sync"),
        What::Promote(arguments) => control::order(&arguments.state_dir, "promote"),
        What::ClearAlarms(arguments) => control::order(&arguments.state_dir, "clear-alarms"),
        What::Demo(arguments) => demo::run(arguments),
        What::Proxy(arguments) => demo::proxy::play(arguments),
        What::Report(arguments) => demo::report(arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(StandbyError::Interrupted) => ExitCode::from(INTERRUPTED),
        Err(error) => {
            tell!("bumpless standby: {error}");
            ExitCode::FAILURE
        }
    }
}
