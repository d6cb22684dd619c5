//! How the checks call cargo.

use std::path::Path;
use std::process::Command;

/// `cargo` with these arguments, in this folder.
///
/// The variables that `cargo run` set for this program itself are taken out: build scripts that watch
/// them would otherwise run again each time.
pub fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(folder).args(arguments);
    for (name, _) in std::env::vars_os() {
        let name_text = name.to_string_lossy();
        if name_text.starts_with("CARGO_PKG_") || name_text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(name);
        }
    }
    command
}

/// Whether a line of standard error announces the next part of the work: a compilation, a test binary.
pub fn announces_progress(line: &str) -> bool {
    let verb = line.split_whitespace().next().unwrap_or_default();
    line.starts_with(' ')
        && matches!(
            verb,
            "Compiling" | "Checking" | "Documenting" | "Finished" | "Running" | "Doc-tests"
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_cargos_own_status_lines_announce_progress() {
        assert!(announces_progress(
            "     Running tests/it/main.rs (target/debug/deps/it-1)"
        ));
        assert!(announces_progress("   Doc-tests bumpless_substrate"));
        assert!(!announces_progress("Running in circles"));
        assert!(!announces_progress("    warning: unused"));
    }
}
