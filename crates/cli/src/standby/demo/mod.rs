//! `bumpless standby demo`: a pair and its plant as real processes, with a fault that is injected for
//! real, and what came of it.
//!
//! ```text
//!   stage ── starts ──▶ plant, node 0, node 1, proxy ── write ──▶ a folder
//!     │ signals, orders to the proxy                              │ record
//!     ▼                                                           ▼
//!   the fault, and its end                        figures, story, plot
//! ```
//!
//! The nodes know nothing of the demo: what it reports comes from their logs and the plant's alone.

mod figures;
mod judgement;
mod plan;
mod plot;
pub mod proxy;
mod record;
mod stage;
mod story;

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use rustix::process::Signal;

use super::args::cycle;
use super::error::StandbyError;
use super::ways::ns;
use crate::pool::args::duration;
use crate::signals::Signals;
use figures::Figures;
use plan::LinkKind;
use record::{Record, Settings};
use stage::Stage;

/// A start may take so long, and so many cycles.
const START_LIMIT: Duration = Duration::from_secs(20);
const START_CYCLES: u32 = 200;
/// Until one node drives again; a pair that never comes to this is told as it is.
const END_LIMIT: Duration = Duration::from_secs(10);
/// Each quarter of a run has at least so many cycles.
const QUARTER_CYCLES: u32 = 25;
/// The least time before the end; unit: ms. The end is judged by its last tenth of a second.
const QUARTER_MS_MIN: u64 = 200;

/// A pair and its plant in real processes, a real fault, and what came of it.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Example: bumpless standby demo --fault kill

kill      the primary is killed
stop      it is stopped (SIGSTOP), and goes on later
cut       it is cut off from its partner and the plant, and comes back later
cut-one   of two paths one is cut; of one, the direction from the primary to the standby
restart   it is killed and started again at once

Exit code 0: no stale output was accepted, and one primary drives at the end.")]
pub struct DemoArguments {
    /// The control cycle
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = cycle)]
    period: Duration,

    /// Silent cycles after which the standby takes over
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(2..=1_000))]
    miss: u32,

    /// What connects the processes
    #[arg(long, value_name = "LINK", default_value = "shm")]
    link: LinkKind,

    /// What happens to the primary
    #[arg(long, value_name = "FAULT", default_value = "kill")]
    fault: Fault,

    /// How long each fault's run takes, from the moment when the standby is qualified
    #[arg(long, value_name = "N", default_value_t = 2.0, value_parser = seconds)]
    seconds: f64,

    /// Close with a line of JSON
    #[arg(long)]
    json: bool,
}

/// A folder that a run left: for runs that others made.
#[derive(Debug, Clone, Args)]
pub struct ReportArguments {
    /// The folder
    folder: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Fault {
    Kill,
    Stop,
    Cut,
    CutOne,
    Restart,
    All,
}

/// Runs each fault in processes of its own.
pub fn run(arguments: &DemoArguments) -> Result<(), StandbyError> {
    let signals = Signals::install().map_err(|error| StandbyError::System {
        doing: "catch SIGTERM",
        error,
    })?;
    let all = [
        Fault::Kill,
        Fault::Stop,
        Fault::Cut,
        Fault::CutOne,
        Fault::Restart,
    ];
    let faults = match &arguments.fault {
        Fault::All => &all[..],
        one => std::slice::from_ref(one),
    };
    let mut all_figures = Vec::new();
    for fault in faults {
        let mut stage = arguments.stage(*fault, &signals)?;
        arguments.play(*fault, &mut stage)?;
        let record = Record::read(stage.folder())?;
        let figures = Figures::of(&record);
        tell(&record, &figures);
        if arguments.json {
            say(&json(&figures));
        }
        all_figures.push(figures);
    }
    if arguments.json && all_figures.len() > 1 {
        say(&json(&Figures::worst(&all_figures)));
    }
    match all_figures.iter().find(|figures| !figures.is_sound()) {
        None => Ok(()),
        Some(figures) => Err(figures.unsound()),
    }
}

/// Tells what a folder shows.
pub fn report(arguments: &ReportArguments) -> Result<(), StandbyError> {
    let record = Record::read(&arguments.folder)?;
    let figures = Figures::of(&record);
    tell(&record, &figures);
    say(&json(&figures));
    Ok(())
}

fn tell(record: &Record, figures: &Figures) {
    say(&story::story(record));
    say(&plot::plot(record));
    say(&figures.table());
}

/// Standard output may be closed: the exit code still tells.
fn say(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

fn json(figures: &Figures) -> String {
    serde_json::to_string(figures).unwrap_or_default()
}

impl DemoArguments {
    fn stage(&self, fault: Fault, signals: &Signals) -> Result<Stage, StandbyError> {
        let settings = Settings {
            fault: name(&fault),
            link: name(&self.link),
            period_ns: ns(self.period),
            miss: self.miss,
        };
        let has_proxy = matches!(fault, Fault::Cut | Fault::CutOne);
        Stage::set(settings, self.link, has_proxy, signals.clone())
    }

    /// A quarter of the time before the fault, two under it, one after it.
    fn play(&self, fault: Fault, stage: &mut Stage) -> Result<(), StandbyError> {
        let least = (self.period * QUARTER_CYCLES).max(Duration::from_millis(QUARTER_MS_MIN));
        let quarter = Duration::from_secs_f64(self.seconds / 4.0).max(least);
        stage.await_redundancy(START_LIMIT + self.period * START_CYCLES)?;
        stage.await_time(quarter)?;
        // Whoever it is now: a busy machine may have changed it.
        let primary = stage.await_redundancy(START_LIMIT)?;
        let ways = ways_of(fault, primary, stage.paths());
        match fault {
            Fault::Kill | Fault::All => stage.signal("kill", primary, Signal::KILL)?,
            Fault::Restart => {
                stage.signal("kill", primary, Signal::KILL)?;
                stage.start_node(primary)?;
                stage.note(bumpless_substrate::clock::monotonic_ns(), "start", primary)?;
            }
            Fault::Stop => stage.signal("stop", primary, Signal::STOP)?,
            // The standby still hears the primary over the other path.
            Fault::CutOne if stage.paths() > 1 => {
                stage.order_proxy("cut-one", primary, "cut", &ways)?;
            }
            Fault::Cut | Fault::CutOne => stage.order_proxy("cut", primary, "cut", &ways)?,
        }
        stage.await_time(2 * quarter)?;
        match fault {
            Fault::Stop => stage.signal("continue", primary, Signal::CONT)?,
            Fault::Cut | Fault::CutOne => stage.order_proxy("heal", primary, "heal", &ways)?,
            Fault::Kill | Fault::Restart | Fault::All => {}
        }
        stage.await_time(quarter)?;
        // A busy machine may be about to change it.
        let end_ns = stage.await_one_primary(END_LIMIT)?;
        stage.end(end_ns)
    }
}

/// What is cut around the primary.
fn ways_of(fault: Fault, primary: u8, paths: u16) -> Vec<String> {
    let standby = 1 - primary;
    let both = |path: u16| {
        [
            format!("{primary}>{standby}/{path}"),
            format!("{standby}>{primary}/{path}"),
        ]
    };
    match fault {
        Fault::CutOne if paths > 1 => both(0).to_vec(),
        Fault::CutOne => vec![format!("{primary}>{standby}/0")],
        _ => (0..paths)
            .flat_map(both)
            .chain([format!("{primary}>plant"), format!("plant>{primary}")])
            .collect(),
    }
}

/// As on the command line.
fn name(value: &impl ValueEnum) -> String {
    let value = value.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}

fn seconds(text: &str) -> Result<f64, String> {
    let plain = text.strip_suffix('s').unwrap_or(text);
    let time = duration(plain).map_err(|_| format!("{text:?}: wanted seconds"))?;
    let fits = time <= Duration::from_secs(86_400);
    fits.then_some(time.as_secs_f64())
        .ok_or_else(|| format!("{text:?}: wanted at most a day"))
}
