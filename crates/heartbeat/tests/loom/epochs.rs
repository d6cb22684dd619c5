//! The table's clock: each tick is one, and nobody's tick is taken for another's.

use std::sync::Arc;

use bumpless_heartbeat::epoch::EpochWord;
use bumpless_substrate::layout::Shared;
use loom::thread;

use crate::seeing::check_seeing;

#[test]
fn two_tickers_never_make_the_same_epoch() {
    check_seeing("epoch, 2 tickers", 3, &["both", "one"], |outcomes| {
        let clock = Arc::new(EpochWord::zeroed());
        let tick = |clock: &EpochWord| clock.tick(clock.now()).ok().map(|now| now.epoch());
        let child = {
            let clock = Arc::clone(&clock);
            thread::spawn(move || [tick(&clock), tick(&clock)])
        };
        let main = [tick(&clock), tick(&clock)];
        let child = child.join().unwrap();
        let mut made: Vec<u64> = main.into_iter().chain(child).flatten().collect();
        made.sort_unstable();
        let ticks = made.len() as u64;
        assert!(
            made.iter().copied().eq(1..=ticks),
            "an epoch twice, or left out: {made:?}"
        );
        assert_eq!(clock.now().epoch(), ticks);
        outcomes.saw(if ticks == 4 { "both" } else { "one" });
    });
}

#[test]
fn a_tick_never_takes_superseded_back() {
    check_seeing("epoch, superseded", 3, &["before", "after"], |outcomes| {
        let clock = Arc::new(EpochWord::zeroed());
        let watchdog = {
            let clock = Arc::clone(&clock);
            thread::spawn(move || clock.tick(clock.now()))
        };
        clock.supersede();
        let ticked = watchdog.join().unwrap();
        let now = clock.now();
        assert!(now.is_superseded(), "taken back by a tick");
        assert_eq!(now.epoch(), u64::from(ticked.is_ok()));
        let after = ticked.is_err_and(|found| found.is_superseded());
        outcomes.saw(if after { "before" } else { "after" });
    });
}
