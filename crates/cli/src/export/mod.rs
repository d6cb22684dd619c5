//! `bumpless export`: what the other commands show, for Prometheus.
//!
//! ```text
//!   GET /metrics ─▶ look at every table, tag and black box ─▶ text
//!                   └─ one look for all who ask before it begins
//! ```
//! Contract: looks, and changes nothing. Every answer is of a look that began after it was asked for; between
//! two nothing is done. Only counts of events are kept, since a black box forgets.

mod http;
mod scrape;
mod shared;
mod text;

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use crate::signals::{INTERRUPTED, Signals};
use http::{Answer, Limits};
use scrape::Exporter;
use shared::Shared;

/// How soon a signal ends it.
const POLL: Duration = Duration::from_millis(100);

/// A scrape of thousands of tables fits.
const LIMITS: Limits = Limits {
    threads: 32,
    time: Duration::from_secs(5),
};

/// The text format that every version of Prometheus reads.
const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Serve tables, standby tags and black boxes to Prometheus.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  bumpless export
  bumpless export --listen 127.0.0.1:9464 /dev/shm/bumpless-1000/lead.table /var/lib/node0/tag
  curl -s http://127.0.0.1:9464/metrics

Nothing is protected: who can reach the address can read. Counts of events begin with what the black box
still has when it is first seen. Exit status: 1 when it cannot listen; 130 ended by SIGINT or SIGTERM.")]
pub struct ExportArguments {
    /// Tables, tags and black boxes [default: those in the folder of this user, also later ones]
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,

    /// Where to listen; port 0 takes a free one, which is printed
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9464")]
    pub listen: SocketAddr,
}

/// The subcommand.
pub fn run(arguments: &ExportArguments) -> ExitCode {
    match serve(arguments) {
        Ok(()) => ExitCode::from(INTERRUPTED),
        Err(error) => {
            let listen = arguments.listen;
            tell!(
                "bumpless export: cannot listen at {listen}: {error}; name another address with --listen"
            );
            ExitCode::FAILURE
        }
    }
}

fn serve(arguments: &ExportArguments) -> std::io::Result<()> {
    let signals = Signals::install()?;
    let listener = TcpListener::bind(arguments.listen)?;
    let address = listener.local_addr()?;
    let mut exporter = Exporter::new(arguments.paths.clone());
    let scrapes = Shared::new(move || exporter.scrape())?;
    http::serve(listener, CONTENT_TYPE, LIMITS, move |method, path| {
        answer(&scrapes, method, path)
    });
    tell!("listening on http://{address}/metrics");
    while !signals.asked() {
        std::thread::sleep(POLL);
    }
    Ok(())
}

fn answer(scrapes: &Shared, method: &str, path: &str) -> Answer {
    let (status, body) = match (method, path) {
        ("GET" | "HEAD", "/metrics") => match scrapes.ask() {
            Some(text) => ("200 OK", text),
            None => ("500 Internal Server Error", "cannot look any more\n".into()),
        },
        ("GET" | "HEAD", _) => ("404 Not Found", "found nothing here: /metrics\n".into()),
        _ => ("405 Method Not Allowed", "GET /metrics\n".into()),
    };
    Answer { status, body }
}
