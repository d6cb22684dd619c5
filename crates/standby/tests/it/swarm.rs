//! Many worlds, each with its own kinds and rates of faults, drawn from its seed.
//!
//! After its faulty cycles a world is healed, and the pair must become one within [`HEALED_CYCLES`].
//! `cargo xtask sim --seed N` replays one.

use bumpless_standby::node::State;
use bumpless_standby::{Command, Mode};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::sim::disk::{Central, Kind};
use crate::sim::loops::{Plant, Ramp, Tank};
use crate::sim::wire::Wire;
use crate::sim::{A, B, Clock, PERIOD_NS, Setup, World};

/// From the end of all faults to one primary and one qualified standby; unit: cycles.
const HEALED_CYCLES: u64 = 40;
/// Faulty cycles of one world, and worlds: a million cycles in all.
const CYCLES: u64 = 5_000;
const SEEDS: u64 = 200;

/// Chances, of each message or each cycle.
#[derive(Debug, Clone, Copy)]
struct Rates {
    crash: f64,
    start: f64,
    pause: f64,
    resume: f64,
    cut: f64,
    heal: f64,
    clog: f64,
    disk_error: f64,
    disk_loss: f64,
    actuator_restart: f64,
    actuator_loss: f64,
    order: f64,
}

/// A rate that is often 0, else anything up to `most`.
fn rate(rng: &mut Pcg64Mcg, most: f64) -> f64 {
    if rng.random_bool(0.4) {
        0.0
    } else {
        rng.random_range(0.0..most)
    }
}

impl Rates {
    fn draw(rng: &mut Pcg64Mcg) -> Self {
        Self {
            crash: rate(rng, 0.01),
            start: rng.random_range(0.01..0.1),
            pause: rate(rng, 0.005),
            resume: rng.random_range(0.02..0.5),
            cut: rate(rng, 0.03),
            heal: rng.random_range(0.01..0.1),
            clog: rate(rng, 0.02),
            disk_error: rate(rng, 0.1),
            disk_loss: rate(rng, 0.3),
            actuator_restart: rate(rng, 0.002),
            actuator_loss: rate(rng, 0.5),
            order: rate(rng, 0.01),
        }
    }
}

fn setup(seed: u64, rng: &mut Pcg64Mcg) -> Setup {
    let mut setup = Setup::new(seed);
    setup.authority = match rng.random_range(0..10) {
        0 => Kind::Central(Central::default()),
        1..=5 => Kind::LocalFile,
        _ => Kind::Witness,
    };
    setup.latency_ns = 0;
    setup.phase_ns = [(); 2].map(|()| rng.random_range(0..PERIOD_NS));
    let is_drifting = rng.random_bool(0.3);
    setup.clocks = [(); 2].map(|()| Clock {
        offset_ns: rng.random_range(-3_600_000_000_000..3_600_000_000_000),
        fast_ppm: if is_drifting {
            rng.random_range(-500..500)
        } else {
            0
        },
    });
    let paths = rng.random_range(1..=2);
    let miss_limit = rng.random_range(3..=5);
    let lease_cycles = rng.random_range(2..miss_limit);
    let full_every = *[1, 4, 16].get(rng.random_range(0..3)).unwrap_or(&1);
    let has_budget = rng.random_bool(0.3);
    let mode = match rng.random_range(0..10) {
        0 => Mode::Warm,
        1 => Mode::Cold,
        _ => Mode::Hot,
    };
    setup.with(|config| {
        config.paths = paths;
        config.miss_limit = miss_limit;
        config.lease_cycles = lease_cycles;
        config.full_every = full_every;
        config.mode = mode;
        if !has_budget {
            config.flap_budget = None;
        }
    })
}

/// What the swarm saw in one world.
#[derive(Debug, Default, Clone, Copy)]
struct Seen {
    cycles: u64,
    takeovers: u64,
    accepted: u64,
    stale_accepted: u64,
    crashes: u64,
    healed_in: u64,
}

struct Swarm<P: Plant> {
    world: World<P>,
    rng: Pcg64Mcg,
    rates: Rates,
    latency_ns: u64,
    /// Both nodes run every cycle and the loop in each: no takeover may ever leave the ideal.
    is_exact: bool,
    seen: Seen,
}

impl<P: Plant> Swarm<P> {
    fn new(plant: P, setup: Setup, mut rng: Pcg64Mcg) -> Self {
        let is_hot = setup.configs[A].mode == Mode::Hot;
        let has_drift = setup.clocks.iter().any(|clock| clock.fast_ppm != 0);
        let mut world = World::new(plant, setup);
        if rng.random_bool(0.5) {
            world.commission();
        }
        let latency_ns = rng.random_range(0..=2 * PERIOD_NS);
        let actuator_latency_ns = rng.random_range(0..PERIOD_NS / 2);
        let (jitter_ns, repeat) = (rate(&mut rng, 2e7) as u64, rate(&mut rng, 0.5));
        let loss = rate(&mut rng, 0.3);
        world.links.each_sync(|link| {
            link.latency_ns = latency_ns;
            (link.jitter_ns, link.repeat, link.loss) = (jitter_ns, repeat, loss);
        });
        let loss = rate(&mut rng, 0.1);
        for node in [A, B] {
            world.links.each_actuator(node, |link| {
                link.latency_ns = actuator_latency_ns;
                (link.jitter_ns, link.repeat, link.loss) = (jitter_ns / 4, repeat, loss);
            });
        }
        if rng.random_bool(0.3) {
            world.wire = Some(Wire::with_errors(rate(&mut rng, 0.1), rate(&mut rng, 0.02)));
        }
        let rates = Rates::draw(&mut rng);
        Self {
            world,
            rng,
            rates,
            latency_ns,
            is_exact: is_hot && !has_drift && rates.pause == 0.0,
            seen: Seen::default(),
        }
    }

    fn chance(&mut self, rate: f64) -> bool {
        rate > 0.0 && self.rng.random_bool(rate)
    }

    fn run(mut self, cycles: u64) -> Result<Seen, String> {
        for cycle in 0..cycles {
            self.disturb_nodes();
            self.disturb_links();
            self.disturb_actuator();
            self.run_to(cycle + 1)?;
        }
        self.heal();
        while !self.world.is_pair() {
            if self.seen.healed_in == HEALED_CYCLES {
                let states = [self.world.state(A), self.world.state(B)];
                let (rates, actuator) = (self.rates, self.world.actuator.is_claimed());
                return Err(format!(
                    "no pair {HEALED_CYCLES} cycles after the last fault: {states:?}, actuator \
                     claimed: {actuator}; {rates:?}"
                ));
            }
            self.seen.healed_in += 1;
            self.run_to(cycles + self.seen.healed_in)?;
        }
        let ledger = &self.world.ledger;
        Ok(Seen {
            cycles: self.world.now(),
            takeovers: ledger.takeovers,
            accepted: ledger.accepted_count,
            stale_accepted: ledger.stale_accepted,
            ..self.seen
        })
    }

    fn run_to(&mut self, cycle: u64) -> Result<(), String> {
        self.world.try_run_to(cycle)?;
        let ledger = &self.world.ledger;
        if self.is_exact && ledger.bump_max > 0.0 {
            return Err(format!(
                "cycle {cycle}: a bump of {} input steps: {:?}\n{}",
                ledger.bump_max,
                ledger.accepted.back(),
                ledger.tail()
            ));
        }
        Ok(())
    }

    fn disturb_nodes(&mut self) {
        for node in [A, B] {
            if self.world.seats[node].node.is_none() {
                if self.chance(self.rates.start) {
                    self.world.start(node);
                }
                continue;
            }
            if self.world.seats[node].is_paused {
                if self.chance(self.rates.resume) {
                    self.world.resume(node);
                }
            } else if self.chance(self.rates.pause) {
                self.world.pause(node);
            }
            // Who confirms a level for an actuator without memory must not forget it meanwhile.
            if self.world.actuator.is_claimed() && self.chance(self.rates.crash) {
                self.world.crash(node);
                self.seen.crashes += 1;
                let is_other_up = self.world.seats[1 - node].node.is_some();
                if is_other_up && self.chance(self.rates.disk_loss) {
                    self.world.seats[node].disk.erase();
                }
            }
            let fails = self.chance(self.rates.disk_error);
            self.world.seats[node]
                .disk
                .fail(fails.then_some("No space left on device"));
            if self.world.seats[node].node.is_some() && self.chance(self.rates.order) {
                let order = [
                    Command::SwitchOver,
                    Command::Leave,
                    Command::EnterMaintenance,
                    Command::LeaveMaintenance,
                ][self.rng.random_range(0..4)];
                // What cannot be done now is refused, which is fine.
                let _ = self.world.command(node, order);
            }
        }
    }

    fn disturb_links(&mut self) {
        let until_ns =
            (self.world.seq(self.world.now()) + self.rng.random_range(1..10)) * PERIOD_NS;
        let Self {
            world, rng, rates, ..
        } = self;
        let links = &mut world.links;
        let all = links.sync.iter_mut().flatten();
        for link in all.chain(&mut links.requests).chain(&mut links.replies) {
            if link.is_cut {
                link.is_cut = !rng.random_bool(rates.heal);
            } else if rates.cut > 0.0 {
                link.is_cut = rng.random_bool(rates.cut / 4.0);
            }
            if rates.clog > 0.0 && rng.random_bool(rates.clog / 4.0) {
                link.clogged_until_ns = until_ns;
            }
        }
        // Both paths at once: a partition.
        if rates.cut > 0.0 && rng.random_bool(rates.cut / 4.0) {
            links.each_sync(|link| link.is_cut = true);
        }
    }

    fn disturb_actuator(&mut self) {
        let fails = self.chance(self.rates.disk_error / 10.0);
        self.world
            .actuator_disk
            .fail(fails.then_some("Input/output error"));
        if fails || !self.chance(self.rates.actuator_restart) {
            return;
        }
        if self.knows_level() && self.chance(self.rates.actuator_loss) {
            self.world.actuator_disk.erase();
        }
        self.world.restart_actuator();
    }

    /// Some running node knows the actuator's level: memory that is lost can be told again.
    fn knows_level(&self) -> bool {
        let level = self.world.actuator.level();
        let seats = &self.world.seats;
        seats.iter().all(|seat| seat.node.is_some())
            && seats
                .iter()
                .flat_map(|seat| &seat.node)
                .any(|node| node.status().epoch >= level)
    }

    fn heal(&mut self) {
        self.world.wire = None;
        self.world.actuator_disk.fail(None);
        let latency_ns = self.latency_ns;
        let links = &mut self.world.links;
        links.each_sync(|link| {
            *link = crate::sim::net::Link::with_latency(latency_ns);
        });
        for node in [A, B] {
            self.world.links.each_actuator(node, |link| {
                *link = crate::sim::net::Link::with_latency(link.latency_ns);
            });
            self.world.seats[node].disk.fail(None);
            self.world.resume(node);
            if self.world.seats[node].node.is_none() {
                self.world.start(node);
            }
            if self.world.state(node) == Some(State::Maintenance) {
                let left = self.world.command(node, Command::LeaveMaintenance);
                assert_eq!(left, Ok(()));
            }
        }
    }
}

/// One world from its seed.
fn run_seed(seed: u64, cycles: u64) -> Result<Seen, String> {
    let mut rng = Pcg64Mcg::seed_from_u64(seed ^ 0x5_7a4d);
    let setup = setup(seed, &mut rng);
    match rng.random_range(0..10) {
        0..=4 => Swarm::new(Ramp::new(), setup, rng).run(cycles),
        5 | 6 => Swarm::new(Ramp::of_len(4096, false), setup, rng).run(cycles),
        7 => Swarm::new(Ramp::of_len(4096, true), setup, rng).run(cycles),
        _ => Swarm::new(Tank::default(), setup, rng).run(cycles),
    }
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name}={text} is no number")),
    )
}

#[test]
fn every_seed_keeps_the_rules_and_becomes_a_pair_after_the_last_fault() {
    let cycles = number("BUMPLESS_SIM_CYCLES").unwrap_or(CYCLES);
    let seeds = match number("BUMPLESS_SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("BUMPLESS_SIM_SEEDS").unwrap_or(SEEDS),
    };
    let mut all = Seen::default();
    let mut failed = Vec::new();
    for seed in seeds.clone() {
        match run_seed(seed, cycles) {
            Ok(seen) => {
                all.cycles += seen.cycles;
                all.takeovers += seen.takeovers;
                all.accepted += seen.accepted;
                all.stale_accepted += seen.stale_accepted;
                all.crashes += seen.crashes;
                all.healed_in = all.healed_in.max(seen.healed_in);
            }
            Err(why) => {
                println!("seed {seed}: {why}\n  cargo xtask sim --seed {seed} --cycles {cycles}");
                failed.push(seed);
            }
        }
    }
    println!(
        "sim: {} seeds, {} cycles, {} crashes, {} takeovers, {} outputs accepted, {} of them stale, a \
         pair at most {} cycles after the last fault, {} failed",
        seeds.count(),
        all.cycles,
        all.crashes,
        all.takeovers,
        all.accepted,
        all.stale_accepted,
        all.healed_in,
        failed.len()
    );
    assert!(failed.is_empty(), "failing seeds: {failed:?}");
    assert_eq!(all.stale_accepted, 0);
}

/// Seeds that found a mistake, kept: two starts in one cycle (81, 90, 186), a blank start beside a takeover
/// (857), a state of before the node's life (1593).
#[test]
fn seeds_that_once_found_a_mistake_keep_the_rules() {
    for seed in [
        61, 81, 90, 123, 131, 135, 174, 186, 857, 1278, 1527, 1593, 1639,
    ] {
        if let Err(why) = run_seed(seed, CYCLES) {
            panic!("seed {seed}: {why}");
        }
    }
}
