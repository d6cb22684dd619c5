//! The operator's tool: `bumpless pool`, a crash-tolerant pool of worker processes over files,
//! `bumpless lead`, a command that one of many runs, `bumpless run`, any command as a member of a
//! table, `bumpless watch`, a ready-made watchdog, `bumpless standby`, a hot-standby pair,
//! `bumpless bench`, figures of this machine, and what an operator looks with: `list`, `rm`, `status`,
//! `top`, `events`, `export`, `doctor`.
#![forbid(unsafe_code)]
// They panic when nobody can read: `out` has what does not.
#![deny(clippy::print_stdout, clippy::print_stderr)]

// First: the others use its macro.
#[macro_use]
mod out;

mod backoff;
mod bench;
mod doctor;
mod events;
mod export;
mod kept;
mod lead;
mod list;
mod look;
mod own_table;
mod patient;
mod pool;
mod private_folder;
mod run;
mod shell;
mod signals;
mod standby;
mod status;
mod stop_signal;
mod top;
mod watch;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

/// Processes that survive each other's death.
#[derive(Debug, Parser)]
#[command(name = "bumpless", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Pool(Box<pool::PoolArguments>),
    #[command(hide = true)]
    PoolWorker(pool::WorkerArguments),
    Lead(lead::LeadArguments),
    #[command(hide = true)]
    LeadJob(lead::JobArguments),
    Run(run::RunArguments),
    #[command(hide = true)]
    RunJob(run::JobArguments),
    Watch(watch::WatchArguments),
    Bench(bench::BenchArguments),
    Standby(standby::StandbyArguments),
    Status(status::StatusArguments),
    List(list::ListArguments),
    Rm(list::RmArguments),
    Top(top::TopArguments),
    Events(events::EventsArguments),
    Export(export::ExportArguments),
    Doctor(doctor::DoctorArguments),
    Completions(shell::CompletionsArguments),
    Man(shell::ManArguments),
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Pool(arguments) => pool::run(*arguments),
        Command::PoolWorker(arguments) => pool::run_worker(&arguments),
        Command::Lead(arguments) => lead::run(&arguments),
        Command::LeadJob(arguments) => lead::run_job(&arguments),
        Command::Run(arguments) => run::run(&arguments),
        Command::RunJob(arguments) => run::run_job(&arguments),
        Command::Watch(arguments) => watch::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Standby(arguments) => standby::run(&arguments),
        Command::Status(arguments) => status::run(&arguments),
        Command::List(arguments) => list::list(&arguments),
        Command::Rm(arguments) => list::rm(&arguments),
        Command::Top(arguments) => top::run(&arguments),
        Command::Events(arguments) => events::run(&arguments),
        Command::Export(arguments) => export::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Completions(arguments) => shell::completions(&arguments, &Arguments::command()),
        Command::Man(arguments) => shell::man(&arguments, Arguments::command()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_of_every_command_has_an_example_of_it() {
        let mut tool = Arguments::command();
        // Builds the names of subcommands of subcommands.
        tool.build();
        let mut seen = Vec::new();
        expect_example(&tool, "bumpless", &mut seen);
        assert!(seen.len() > 20, "{seen:?}");
    }

    fn expect_example(command: &clap::Command, name: &str, seen: &mut Vec<String>) {
        let shown = command.get_subcommands().filter(|sub| !sub.is_hide_set());
        let subs: Vec<_> = shown.filter(|sub| sub.get_name() != "help").collect();
        for sub in &subs {
            expect_example(sub, &format!("{name} {}", sub.get_name()), seen);
        }
        if subs.is_empty() {
            let help = command.get_after_help().map(ToString::to_string);
            let help = help.unwrap_or_default();
            assert!(
                help.contains("Example") && help.contains(name),
                "{name}: {help}"
            );
            seen.push(name.to_owned());
        }
    }
}
