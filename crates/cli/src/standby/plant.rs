//! `bumpless standby plant`: a fenced actuator before a simulated plant.

use std::fs::{File, TryLockError};
use std::path::Path;

use bumpless_standby::drive::{Numbering, Pace, PlantDriver};
use bumpless_standby::link::auth::ACTUATOR;
use bumpless_standby::link::{Authenticated, Server};
use bumpless_standby::persist::FileStore;
use bumpless_standby::{Actuator, ActuatorConfig, Epoch, NodeId};
use bumpless_substrate::clock::monotonic_ns;

use super::args::PlantArguments;
use super::error::StandbyError;
use super::log::Log;
use super::ways::{self, PlantEnd};
use crate::out::print;
use crate::signals::Signals;

/// Requests are answered so many times in a control cycle.
const LOOKS_PER_CYCLE: u64 = 8;
/// A first-order plant: so much of the way to its input in one cycle.
const PLANT_GAIN: f64 = 0.1;

/// Runs until a signal asks for the end, then prints what was counted.
pub fn run(arguments: &PlantArguments) -> Result<(), StandbyError> {
    let key = ways::key(arguments.pair.key.as_deref())?;
    match (ways::of_plant(&arguments.listen)?, key) {
        (PlantEnd::Udp(server), None) => run_on(arguments, server),
        (PlantEnd::Mailboxes(server), None) => run_on(arguments, server),
        (PlantEnd::Udp(server), Some(key)) => {
            run_on(arguments, Authenticated::new(server, key, ACTUATOR))
        }
        (PlantEnd::Mailboxes(server), Some(key)) => {
            run_on(arguments, Authenticated::new(server, key, ACTUATOR))
        }
    }
}

fn run_on(arguments: &PlantArguments, server: impl Server) -> Result<(), StandbyError> {
    let signals = Signals::install().map_err(|error| StandbyError::System {
        doing: "catch SIGTERM",
        error,
    })?;
    let config = ActuatorConfig {
        cluster: arguments.pair.cluster,
        nodes: [NodeId(0), NodeId(1)],
        epoch_jump_max: 1024,
    };
    let _lock = lock(&arguments.state_dir)?;
    let mut store = FileStore::new(arguments.state_dir.join("level"));
    let incarnation = ways::incarnation()?;
    let mut actuator = Actuator::<f64>::start(config, incarnation, monotonic_ns(), &mut store)?;
    if arguments.commission {
        actuator.commission(Epoch::NONE, &mut store)?;
    }
    let mut log = Log::create(arguments.log.as_deref())?;
    let mut driver = PlantDriver::new(actuator, server, store, arguments.pair.cluster);

    arguments.realtime.apply("plant");

    let period_ns = ways::ns(arguments.pair.period);
    let mut pace = Pace::new((period_ns / LOOKS_PER_CYCLE).max(1), 0);
    let mut numbering = Numbering::default();
    let (mut measured, mut last_cycle) = (0.0, 0);
    while !signals.asked() {
        let beat = pace.await_next();
        driver.answer(beat.now_ns, |applied| log.applied(beat.now_ns, &applied));
        let own_now = monotonic_ns() / period_ns;
        numbering.hear(own_now, driver.nodes_cycle());
        let cycle = beat.now_ns / period_ns;
        if cycle > last_cycle {
            last_cycle = cycle;
            if let Some(held) = driver.actuator().held() {
                measured += PLANT_GAIN * (held.value - measured);
            }
            driver.tell(numbering.of(cycle), measured);
        }
    }
    let counts = driver.actuator().counts();
    let line = serde_json::json!({
        "accepted": counts.accepted,
        "refused": counts.refused,
        "stale": counts.stale,
        "foreign": counts.foreign,
        "not_durable": counts.not_durable,
        "undecodable": driver.undecodable(),
        "level": driver.actuator().level().counter(),
        "measured": measured,
    });
    print(&format!("{line}\n"))
        .map_err(StandbyError::file("write to", Path::new("standard output")))
}

/// Two plants that remember in one folder would each put the other's level back.
fn lock(state_dir: &Path) -> Result<File, StandbyError> {
    let folder = File::open(state_dir).map_err(StandbyError::file("open", state_dir))?;
    match folder.try_lock() {
        Ok(()) => Ok(folder),
        Err(TryLockError::WouldBlock) => Err(StandbyError::FolderHeld {
            path: state_dir.to_owned(),
        }),
        Err(TryLockError::Error(error)) => Err(StandbyError::file("lock", state_dir)(error)),
    }
}
