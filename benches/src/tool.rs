//! The tool, which measures deaths and runs the pool.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Built with this program: beside it, or, for a test or a benchmark of cargo's, in the folder above.
///
/// # Errors
/// It is not built.
pub fn tool() -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    near(&program).with_context(|| {
        format!(
            "no `bumpless` beside {}: build it in the same profile, `cargo build --release -p bumpless`",
            program.display()
        )
    })
}

fn near(program: &Path) -> Option<PathBuf> {
    let folders = program.ancestors().skip(1).take(2);
    folders
        .map(|folder| folder.join("bumpless"))
        .find(|tool| tool.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tool_is_found_beside_a_program_and_above_a_benchmark() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("release/bumpless-benches");
        assert_eq!(near(&program), None);
        let deps = folder.path().join("release/deps");
        std::fs::create_dir_all(&deps).unwrap();
        let tool = folder.path().join("release/bumpless");
        std::fs::write(&tool, "").unwrap();
        assert_eq!(near(&program), Some(tool.clone()));
        assert_eq!(near(&deps.join("pairs-0123")), Some(tool));
    }
}
