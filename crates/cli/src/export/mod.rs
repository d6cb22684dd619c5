//! `bumpless export`: what the other commands show, for Prometheus.
//!
//! ```text
//!   GET /metrics ─▶ look at every table, tag and black box ─▶ text
//! ```
//! Contract: looks, and changes nothing. Every answer is computed when it is asked for; between two nothing
//! is done. Only counts of events are kept, since a black box forgets.

mod scrape;
mod text;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use tiny_http::{Header, Method, Request, Response, Server};

use crate::signals::{INTERRUPTED, Signals};
use scrape::Exporter;

/// How soon a signal ends it.
const POLL: Duration = Duration::from_millis(100);

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
            eprintln!(
                "bumpless export: cannot listen at {listen}: {error}; name another address with --listen"
            );
            ExitCode::FAILURE
        }
    }
}

fn serve(arguments: &ExportArguments) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let signals = Signals::install()?;
    let server = Server::http(arguments.listen)?;
    eprintln!("listening on http://{}/metrics", server.server_addr());
    let mut exporter = Exporter::new(arguments.paths.clone());
    while !signals.asked() {
        if let Some(request) = server.recv_timeout(POLL)? {
            answer(&mut exporter, request);
        }
    }
    Ok(())
}

fn answer(exporter: &mut Exporter, request: Request) {
    let path = request.url().split('?').next().unwrap_or_default();
    let (status, body) = match (request.method(), path) {
        (Method::Get | Method::Head, "/metrics") => (200, exporter.scrape()),
        (Method::Get | Method::Head, _) => (404, "found nothing here: /metrics\n".to_owned()),
        _ => (405, "GET /metrics\n".to_owned()),
    };
    let mut response = Response::from_string(body).with_status_code(status);
    if let Ok(header) = Header::from_bytes("Content-Type", CONTENT_TYPE) {
        response.add_header(header);
    }
    // Whoever asked has gone.
    let _ = request.respond(response);
}
