//! `cargo xtask bench`: does the pairs in turn and tells their ratios.
//!
//! Exit code 0 with the figures; 1 when a measurement failed, and with `--check` when a goal is missed.
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use bumpless_benches::across;
use bumpless_benches::alternate::measure;
use bumpless_benches::pairs;
use bumpless_benches::report::Report;

const HELP: &str = "\
cargo xtask bench [--json] [--check] [--ms N] [FILTER]
cargo xtask bench --plot [--ms N] [FILTER]

  --json     one line of JSON instead of the table; docs/performance.md names the fields
  --check    fails when a ratio misses its goal by more than its spread
  --ms N     milliseconds for each pair, and for each point of a drawing (1000)
  --plot     no ratios: measures how figures grow with the size of what they are about, and draws
             each of them beside its floor, log-log, as docs/figures/NAME.svg
  FILTER     only pairs whose name, or what they are beside, has this in it; `across` for what
             takes two processes; with --plot, only drawings whose name has this in it
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [option, name, times] = &arguments[..]
        && option == "--count"
    {
        return told(count(name, times));
    }
    if let [option, role, table] = &arguments[..]
        && option == "--role"
    {
        return told(across::role::play(role, Path::new(table)));
    }
    if let ["-h" | "--help"] = arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    told(Options::parse(&arguments).and_then(|options| run(&options)))
}

fn told(outcome: Result<()>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// What the command line asks for.
struct Options {
    json: bool,
    check: bool,
    plot: bool,
    time: Duration,
    filter: String,
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Self> {
        let mut options = Self {
            json: false,
            check: false,
            plot: false,
            time: Duration::from_millis(1_000),
            filter: String::new(),
        };
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--json" => options.json = true,
                "--check" => options.check = true,
                "--plot" => options.plot = true,
                "--ms" => {
                    let ms = words.next().context("--ms N")?;
                    options.time = Duration::from_millis(ms.parse().context("--ms N")?);
                }
                option if option.starts_with('-') => bail!("no option `{option}`\n\n{HELP}"),
                filter => filter.clone_into(&mut options.filter),
            }
        }
        Ok(options)
    }
}

/// For `cargo xtask instructions`.
fn count(name: &str, times: &str) -> Result<()> {
    bumpless_benches::count::repeat(name, times.parse().context("--count NAME N")?)
}

fn run(options: &Options) -> Result<()> {
    if options.plot {
        return plot(options);
    }
    let mut ratios = Vec::new();
    for pair in pairs::all() {
        if !pair.name.contains(&options.filter) && !pair.beside.contains(&options.filter) {
            continue;
        }
        eprintln!("{} beside {}", pair.name, pair.beside);
        let measured = measure(pair, options.time)
            .with_context(|| format!("{} beside {}", pair.name, pair.beside))?;
        ratios.push(measured);
    }
    let mut durations = Vec::new();
    for across in across::ALL {
        if across.name.contains(&options.filter) {
            eprintln!("{}", across.name);
            let found = across.measure(options.time);
            durations.extend(found.context(across.name)?);
        }
    }
    ensure!(
        !ratios.is_empty() || !durations.is_empty(),
        "nothing has `{}`",
        options.filter
    );
    let report = Report::new(ratios, durations);
    if options.json {
        println!("{}", report.json()?);
    } else {
        print!("{}", report.table());
        println!();
        for caveat in report.caveats {
            println!("- {caveat}");
        }
        println!("\n{}", report.closing_line());
    }
    ensure!(
        !options.check || report.missed() == 0,
        "{}",
        report.closing_line()
    );
    Ok(())
}

#[cfg(feature = "plot")]
fn plot(options: &Options) -> Result<()> {
    let folder = Path::new("docs/figures");
    let drawn = bumpless_benches::growth::plot(folder, options.time, &options.filter)?;
    println!("plotted: {}", drawn.join(", "));
    Ok(())
}

#[cfg(not(feature = "plot"))]
fn plot(_: &Options) -> Result<()> {
    bail!("built without the feature `plot`, as `cargo xtask bench --plot` builds it")
}
