//! `bumpless standby node`: one node of a pair, in its loop.

use bumpless_standby::authority::{Authority, LocalFile, Witness};
use bumpless_standby::checkpoint::Controller;
use bumpless_standby::config::{Config, Preempt, SwitchTest};
use bumpless_standby::drive::{Background, Beat, NodeDriver, Numbering, Pace, WatchdogDevice};
use bumpless_standby::persist::FileStore;
use bumpless_standby::tag::{Lateness, TagWriter};
use bumpless_standby::{Node, NodeId};
use bumpless_substrate::region::Access;

use super::args::{BuiltIn, GrantedBy, NodeArguments};
use super::control::Orders;
use super::controller::{Integrator, Pid, Reading};
use super::error::StandbyError;
use super::exec::Exec;
use super::log::{Events, Log};
use super::status::TAG;
use super::ways;
use crate::signals::Signals;

/// Names the built-in controllers' program; with `--exec`, the word list is hashed on top.
const PROGRAM: u64 = 1;

/// A starting node awaits the plant's word of the cycle's number for so long.
const LISTEN_CYCLES: u32 = 5;

/// Runs until a signal asks for the end.
pub fn run(arguments: &NodeArguments) -> Result<(), StandbyError> {
    let signals = Signals::install().map_err(|error| StandbyError::System {
        doing: "catch SIGTERM",
        error,
    })?;
    match (&arguments.exec, arguments.controller) {
        (Some(words), _) => {
            let controller = Exec::start(&words.0, signals.clone())?;
            run_with(arguments, &signals, controller)
        }
        (None, BuiltIn::Integrator) => run_with(arguments, &signals, Integrator::new()),
        (None, BuiltIn::Pid) => run_with(arguments, &signals, Pid::new()),
    }
}

fn run_with<C>(
    arguments: &NodeArguments,
    signals: &Signals,
    controller: C,
) -> Result<(), StandbyError>
where
    C: Controller<Input = Reading, Output = f64>,
{
    let incarnation = ways::incarnation()?;
    let node = Node::new(config(arguments), incarnation, controller)?;
    let key = ways::key(arguments.pair.key.as_deref())?;
    let (own, key) = (arguments.id, key.as_ref());
    let partner = ways::to_partner(own, &arguments.listen, &arguments.peer, key)?;
    let actuator = ways::to_actuator(own, &arguments.actuator, key)?;
    // The tag first: who has it has the folder, and may replace what a dead node left in it.
    let mut tag = TagWriter::create(arguments.state_dir.join(TAG), Access::ReadForOthers)?;
    let orders = Orders::open(&arguments.state_dir)?;
    let mut watchdog = match &arguments.watchdog {
        Some(path) => Some(WatchdogDevice::open(path)?),
        None => None,
    };
    let mut events = Events::new(own, std::io::stdout());
    let mut log = Log::create(arguments.log.as_deref())?;
    let authority: Box<dyn Authority> = match arguments.authority {
        GrantedBy::Actuator => Box::new(Witness::new(incarnation)),
        GrantedBy::File => {
            let store = FileStore::new(arguments.state_dir.join("epoch"));
            let background =
                Background::spawn(LocalFile::new(store)).map_err(|error| StandbyError::System {
                    doing: "start a thread",
                    error,
                })?;
            Box::new(background)
        }
    };
    let mut driver = NodeDriver::new(node, partner, actuator, authority);
    arguments.realtime.apply("node");

    let period_ns = ways::ns(arguments.pair.period);
    // The two nodes tick half a cycle apart: what one says is half a cycle old when the other ticks.
    let mut pace = Pace::new(period_ns, u64::from(arguments.id) * period_ns / 2);
    let mut numbering = Numbering::default();
    for _ in 0..LISTEN_CYCLES {
        driver.ask_plant();
        pace.await_next();
        driver.hear();
        if let Some(cycle) = driver.plant_cycle() {
            numbering.hear(pace.clock_cycle(), cycle);
            break;
        }
    }
    numbering.settle();
    while !signals.asked() {
        let beat = pace.await_next();
        driver.hear();
        numbering.hear(pace.clock_cycle(), driver.plant_cycle().unwrap_or(0));
        let cycle = numbering.of(beat.cycle);
        let beat = Beat { cycle, ..beat };
        let measured = driver
            .sample_before(beat.cycle)
            .map_or(0.0, |sample| sample.value);
        let reading = Reading {
            cycle: beat.cycle,
            measured,
        };
        let done = driver.cycle(beat.now_ns, beat.cycle, &reading);
        if let Some(device) = &mut watchdog {
            device.feed()?;
        }
        for event in &done.events {
            events.tell(&beat, event);
        }
        log.cycle(&beat, &done, driver.node().state());
        let lateness = Lateness {
            p99_ns: pace.lateness().quantile_ns(0.99),
            max_ns: pace.lateness().max_ns(),
        };
        tag.write(&driver.node().status(), Some(lateness), beat.now_ns);
        orders.obey(|command| {
            let taken = driver.node_mut().command(command);
            taken.map_err(|error| error.to_string())
        });
    }
    Ok(())
}

fn config(arguments: &NodeArguments) -> Config {
    let (node, partner) = (NodeId(arguments.id), NodeId(1 - arguments.id));
    let period_ns = ways::ns(arguments.pair.period);
    let mut config = Config::new(arguments.pair.cluster, node, partner, period_ns);
    config.miss_limit = arguments.miss;
    config.lease_cycles = arguments.miss.saturating_sub(1).max(1);
    config.history_cycles = config.history_cycles.max(arguments.miss.saturating_add(2));
    config.path_silent_max = config.path_silent_max.max(arguments.miss);
    config.paths = arguments.peer.len().min(2) as u8;
    config.preferred = arguments.preferred;
    config.preempt = arguments.preempt_after.map(|delay| Preempt {
        delay_ns: ways::ns(delay),
    });
    config.switch_test = Some(SwitchTest {
        every_ns: arguments.test_every.map_or(u64::MAX, ways::ns),
        dwell_cycles: arguments.test_dwell,
    });
    config.program = match &arguments.exec {
        None => PROGRAM,
        Some(words) => PROGRAM << 32 | u64::from(crc32c::crc32c(words.0.join("\0").as_bytes())),
    };
    config
}
