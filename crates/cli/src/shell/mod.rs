//! `bumpless completions` and `bumpless man`: what a shell and a manual want to know, made from the same
//! declarations as `--help`.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Command};
use clap_complete::Shell;

use crate::out::out;

/// As a shell knows it.
const NAME: &str = "bumpless";

/// Print the completions of a shell.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  bumpless completions bash > ~/.local/share/bash-completion/completions/bumpless
  bumpless completions zsh > ~/.zfunc/_bumpless
  bumpless completions fish > ~/.config/fish/completions/bumpless.fish")]
pub struct CompletionsArguments {
    /// Whose
    pub shell: Shell,
}

/// Print the manual page, or write one for each command.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  bumpless man | man -l -
  bumpless man --dir ~/.local/share/man/man1")]
pub struct ManArguments {
    /// A folder that exists, for one page per command
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// The subcommand `completions`.
pub fn completions(arguments: &CompletionsArguments, tool: &Command) -> ExitCode {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut shown(tool), NAME, &mut text);
    // Completions are text.
    let is_written = out("completions", &String::from_utf8_lossy(&text));
    ExitCode::from(u8::from(!is_written))
}

/// The tool without the commands that it only calls itself: the library completes these as well.
fn shown(tool: &Command) -> Command {
    let commands = tool
        .get_subcommands()
        .filter(|command| !command.is_hide_set());
    let shown = Command::new(NAME)
        .version(env!("CARGO_PKG_VERSION"))
        .about(tool.get_about().cloned().unwrap_or_default());
    shown.subcommands(commands.cloned())
}

/// The subcommand `man`.
pub fn man(arguments: &ManArguments, tool: Command) -> ExitCode {
    let (doing, written) = match &arguments.dir {
        Some(folder) => (
            folder.display().to_string(),
            clap_mangen::generate_to(tool, folder),
        ),
        None => {
            let mut page = Vec::new();
            let rendered = clap_mangen::Man::new(tool).render(&mut page);
            let written = rendered.and_then(|()| std::io::stdout().write_all(&page));
            ("standard output".to_owned(), written)
        }
    };
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            tell!("bumpless man: cannot write the pages to {doing}: {error}");
            ExitCode::FAILURE
        }
    }
}
