//! The pairs under criterion: single figures with criterion's statistics. The ratios that count are those
//! of `cargo xtask bench`, which takes A and B in turn.

use std::time::Duration;

use anyhow::Result;
use bumpless_benches::pair::{Batch, Stage};
use bumpless_benches::pairs;
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, criterion_group, criterion_main};

/// A criterion group as a stage.
struct Group<'c> {
    group: BenchmarkGroup<'c, WallTime>,
    name: &'static str,
    beside: &'static str,
}

impl Stage for Group<'_> {
    fn compare(&mut self, a: &mut Batch, b: &mut Batch) -> Result<()> {
        self.alone(self.name, a);
        self.alone(self.beside, b);
        Ok(())
    }
}

impl Group<'_> {
    fn alone(&mut self, name: &str, batch: &mut Batch) {
        self.group.bench_function(name, |bencher| {
            bencher.iter_custom(|times| {
                let ns = batch(times).expect("what the batch claims holds");
                Duration::from_nanos(ns.max(1.0) as u64)
            });
        });
    }
}

fn all_pairs(criterion: &mut Criterion) {
    for pair in pairs::all() {
        let mut group = Group {
            group: criterion.benchmark_group(format!("{} beside {}", pair.name, pair.beside)),
            name: pair.name,
            beside: pair.beside,
        };
        (pair.run)(&mut group).expect("the pair's world");
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_secs(1))
        .sample_size(20);
    targets = all_pairs
}
criterion_main!(benches);
