//! What happened, line by line: events as JSON on standard output, cycles and outputs as plain columns
//! in a file. Each line is one write, so a killed process leaves every whole line behind.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::path::Path;

use bumpless_standby::drive::{Applied, Beat, Cycle};
use bumpless_standby::event::Event;
use bumpless_standby::node::State;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::error::StandbyError;

/// A file of lines, or none.
#[derive(Debug)]
pub struct Log(Option<File>);

impl Log {
    /// Creates the file, if one is wanted.
    pub fn create(path: Option<&Path>) -> Result<Self, StandbyError> {
        let Some(path) = path else {
            return Ok(Self(None));
        };
        let file = File::create(path).map_err(|error| StandbyError::File {
            doing: "create",
            path: path.to_path_buf(),
            error,
        })?;
        Ok(Self(Some(file)))
    }

    /// A node's cycle: `CYCLE BEGIN_NS LATE_NS SPENT_NS STATE OUTPUT`; `-` without an output.
    pub fn cycle(&mut self, beat: &Beat, done: &Cycle<f64>, state: State) {
        if let Some(file) = &mut self.0 {
            let output = done
                .output
                .map_or("-".to_owned(), |value| value.to_string());
            let Beat {
                cycle,
                now_ns,
                late_ns,
                ..
            } = beat;
            let spent_ns = done.spent_ns;
            let line = format!(
                "{cycle} {now_ns} {late_ns} {spent_ns} {} {output}\n",
                name(state)
            );
            let _ = file.write_all(line.as_bytes());
        }
    }

    /// An output at the plant: `NOW_NS NODE COUNTER CYCLE VALUE REFUSAL`; `-` when it was applied.
    pub fn applied(&mut self, now_ns: u64, applied: &Applied<f64>) {
        if let Some(file) = &mut self.0 {
            let refusal = applied
                .refusal
                .map_or("-".to_owned(), |refusal| format!("{refusal:?}"));
            let line = format!(
                "{now_ns} {} {} {} {} {refusal}\n",
                applied.node,
                applied.epoch.counter(),
                applied.seq,
                applied.value
            );
            let _ = file.write_all(line.as_bytes());
        }
    }
}

/// One word for a state.
pub fn name(state: State) -> &'static str {
    match state {
        State::Init => "init",
        State::Syncing => "syncing",
        State::Qualified => "qualified",
        State::Primary => "primary",
        State::Solo => "solo",
        State::Disqualified(_) => "disqualified",
        State::Maintenance => "maintenance",
    }
}

/// A node's events, as lines of JSON. Whoever reads them cannot hold the loop up: while there is no room,
/// events are left out, and their number is told when there is.
#[derive(Debug)]
pub struct Events<W> {
    node: u8,
    out: W,
    left_out: u64,
}

impl<W: Write + AsFd> Events<W> {
    /// To standard output, or to a pipe, of which a line takes less than it promises to take at once.
    pub fn new(node: u8, out: W) -> Self {
        Self {
            node,
            out,
            left_out: 0,
        }
    }

    /// One line, and perhaps one before it.
    pub fn tell(&mut self, beat: &Beat, event: &Event) {
        if self.left_out > 0 && self.has_room() {
            let text = format!("LeftOut {{ events: {} }}", self.left_out);
            self.left_out = 0;
            self.write(beat, &text);
        }
        if self.left_out == 0 && self.has_room() {
            self.write(beat, &format!("{event:?}"));
        } else {
            self.left_out += 1;
        }
    }

    fn has_room(&self) -> bool {
        let mut ways = [PollFd::new(&self.out, PollFlags::OUT)];
        poll(&mut ways, Some(&Timespec::default())) == Ok(1)
    }

    fn write(&mut self, beat: &Beat, text: &str) {
        let word = text
            .split(|letter: char| !letter.is_alphanumeric())
            .next()
            .unwrap_or_default();
        let line = serde_json::json!({
            "node": self.node,
            "cycle": beat.cycle,
            "at_ns": beat.now_ns,
            "event": word,
            "detail": text,
        });
        // It may be closed: the loop goes on.
        let _ = self.out.write_all(format!("{line}\n").as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, PipeReader};

    use super::*;

    const BEAT: Beat = Beat {
        cycle: 7,
        now_ns: 70,
        late_ns: 0,
        skipped: 0,
    };

    fn next_line(reader: &mut BufReader<PipeReader>) -> String {
        let mut line = String::new();
        reader.read_line(&mut line).expect("a line");
        line
    }

    #[test]
    fn a_reader_that_does_not_read_holds_nothing_up_and_is_told_what_it_missed() {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        let mut events = Events::new(1, writer);
        let many = 10_000;
        for _ in 0..many {
            events.tell(&BEAT, &Event::PartnerLost);
        }
        let missed = events.left_out;
        assert!((1..many).contains(&missed), "{missed}");
        let mut reader = BufReader::new(reader);
        for _ in missed..many {
            assert!(next_line(&mut reader).contains("\"event\":\"PartnerLost\""));
        }
        events.tell(&BEAT, &Event::RedundancyLost);
        let told = format!("LeftOut {{ events: {missed} }}");
        assert!(next_line(&mut reader).contains(&told));
        assert!(next_line(&mut reader).contains("RedundancyLost"));
    }
}
