//! A folder with files, the binary, and looking at processes.

use std::ffi::OsStr;
use std::fs;
use std::io::{PipeReader, PipeWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::io::ioctl_fionbio;

/// How long anything here may take.
const DEADLINE: Duration = Duration::from_secs(60);

/// A folder of its own for one test: `tree/` to be walked, and whatever else the test makes.
pub struct Rig {
    folder: tempfile::TempDir,
}

/// What a finished pool said.
pub struct Said {
    /// The exit code; none after a signal.
    pub code: Option<i32>,
    /// The manifest, if it went there.
    pub stdout: Vec<u8>,
    /// Messages and summary.
    pub stderr: String,
}

impl Rig {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("tree")).unwrap();
        Self { folder }
    }

    /// With `files` files of `bytes` bytes each, no two the same, a hundred to a folder.
    pub fn with_files(files: usize, bytes: usize) -> Self {
        let rig = Self::new();
        for file in 0..files {
            let mut content = format!("file {file}\n").into_bytes();
            content.resize(bytes, b'.');
            rig.file(
                format!("tree/{:03}/{:02}", file / 100, file % 100),
                &content,
            );
        }
        rig
    }

    pub fn at(&self, name: impl AsRef<Path>) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn file(&self, name: impl AsRef<Path>, content: &[u8]) -> PathBuf {
        let path = self.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// A pool with its table in this folder, which is also where it runs.
    pub fn pool<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let arguments: Vec<_> = arguments
            .into_iter()
            .map(|argument| argument.as_ref().to_owned())
            .collect();
        // Where nobody is stopped, nobody is to be taken for silent because the machine lets it wait.
        let may_be_silent = arguments
            .iter()
            .any(|argument| argument == "--grace" || argument == "--chaos");
        let patient: &[&str] = if may_be_silent {
            &[]
        } else {
            &["--grace", "6000"]
        };
        let mut command = Command::new(env!("CARGO_BIN_EXE_bumpless"));
        command
            .current_dir(self.folder.path())
            .args(["pool", "--table", "table"])
            .args(patient)
            .args(arguments);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs a pool to its end.
    pub fn run<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Said {
        Said::of(self.pool(arguments).output().unwrap())
    }

    /// The arguments are words without spaces.
    pub fn run_words(&self, arguments: &str) -> Said {
        self.run(arguments.split_whitespace())
    }

    /// What `sha256sum -c --quiet` complains of in a manifest; empty when nothing.
    pub fn complaints(&self, manifest: &str) -> String {
        let mut check = Command::new("sha256sum");
        check
            .current_dir(self.folder.path())
            .args(["-c", "--quiet", manifest]);
        let output = check.output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        assert_eq!(output.status.success(), text.is_empty(), "{text}");
        text
    }

    /// The names in the folder itself, sorted.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

impl Said {
    pub fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: output.stdout,
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// A count of the summary, which is the last line of standard error.
    pub fn count(&self, field: &str) -> u64 {
        let line = self.stderr.lines().last().unwrap_or_default();
        let json: serde_json::Value = serde_json::from_str(line)
            .unwrap_or_else(|error| panic!("{error} in {:?}", self.stderr));
        json[field]
            .as_u64()
            .unwrap_or_else(|| panic!("no {field} in {line}"))
    }
}

/// A pool that runs; killed when the test ends before it does.
pub struct Running(Option<Child>);

impl Running {
    pub fn start(mut command: Command) -> Self {
        Self(Some(command.spawn().unwrap()))
    }

    pub fn pid(&self) -> u32 {
        self.0.as_ref().unwrap().id()
    }

    /// Its worker processes.
    pub fn workers(&self) -> Vec<u32> {
        let all = processes();
        all.iter()
            .filter(|process| process.parent == self.pid())
            .map(|process| process.pid)
            .collect()
    }

    /// Its standard input, which was piped.
    pub fn input(&mut self) -> std::process::ChildStdin {
        self.0
            .as_mut()
            .and_then(|child| child.stdin.take())
            .unwrap()
    }

    pub fn end(mut self) -> Said {
        Said::of(self.0.take().unwrap().wait_with_output().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A process that is not dead.
pub struct Process {
    pub pid: u32,
    pub parent: u32,
    pub state: char,
}

/// All of them.
pub fn processes() -> Vec<Process> {
    let entries = fs::read_dir("/proc").unwrap();
    let pids = entries.filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    pids.filter_map(process).collect()
}

/// One of them.
pub fn process(pid: u32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?.chars().next()?;
    let parent = fields.next()?.parse().ok()?;
    (state != 'Z').then_some(Process { pid, parent, state })
}

pub fn send(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

/// A pipe into which nothing more fits until somebody reads.
pub fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    ioctl_fionbio(&writer, true).unwrap();
    for bytes in [&[b'x'; 4096][..], b"x"] {
        while writer.write(bytes).is_ok() {}
    }
    ioctl_fionbio(&writer, false).unwrap();
    (reader, writer)
}

/// Waits until it is so.
#[track_caller]
pub fn await_that(what: &str, mut is_so: impl FnMut() -> bool) {
    await_of(&mut (), what, |()| is_so(), |()| String::new());
}

/// The same of somebody of whom there is something to be told if it does not become so.
#[track_caller]
pub fn await_of<T>(
    subject: &mut T,
    what: &str,
    mut is_so: impl FnMut(&mut T) -> bool,
    told: impl FnOnce(&mut T) -> String,
) {
    let start = Instant::now();
    while !is_so(subject) {
        if start.elapsed() > DEADLINE {
            panic!("not within {DEADLINE:?}: {what}{}", told(subject));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// What the kernel tells of a process: its state, threads and signals.
pub fn status_of(pid: u32) -> Vec<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let is_told = |line: &&str| {
        let name = line.split(':').next().unwrap_or_default();
        ["State", "Threads"].contains(&name) || name.contains("Pnd") || name.starts_with("Sig")
    };
    status.lines().filter(is_told).map(str::to_owned).collect()
}
