//! The tool's process that stands between those of a pair, and cuts ways when it is told.

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Stdio};

use crate::pair::{Process, tool};

/// What stands between the processes.
#[derive(Debug)]
pub struct Proxy {
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
    _process: Process,
}

impl Proxy {
    pub fn start(arguments: &[String]) -> Self {
        let mut command = tool(&[], "proxy");
        command.args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = Process::start(&mut command);
        let answers = process.take_stdout();
        let mut proxy = Self {
            orders: process.take_stdin(),
            answers: BufReader::new(answers),
            _process: process,
        };
        proxy.answer();
        proxy
    }

    pub fn order(&mut self, order: &str) -> u64 {
        writeln!(self.orders, "{order}").expect("told");
        self.answer()
    }

    fn answer(&mut self) -> u64 {
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("an answer");
        let at_ns = line.trim_end().strip_prefix("done ");
        let at_ns = at_ns.and_then(|word| word.parse().ok());
        at_ns.unwrap_or_else(|| panic!("the proxy said {line:?}"))
    }
}
