//! Layers: a package depends only on packages of lower layers, never on one of its own.

use super::{Finding, Tree};

/// The table of `docs/architecture.md`.
const LAYERS: [(&str, u8); 11] = [
    ("bumpless-substrate", 0),
    ("bumpless-heartbeat", 1),
    ("bumpless-failover", 2),
    ("bumpless-election", 2),
    ("bumpless-barrier", 2),
    ("bumpless-standby", 3),
    ("bumpless-sidecar", 4),
    ("bumpless", 5),
    ("bumpless-benches", 5),
    ("standby-model", 5),
    ("xtask", 5),
];

/// Dependencies of every kind point down.
pub fn upward_only(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in &tree.packages {
        let manifest = package.manifest_path.strip_prefix(&tree.root);
        let manifest = manifest
            .unwrap_or(&package.manifest_path)
            .to_string_lossy()
            .into_owned();
        let Some(layer) = layer(&package.name) else {
            let what = format!("`{}` is in no layer: add it to the table", package.name);
            findings.push(Finding::new(&manifest, 1, what));
            continue;
        };
        for dependency in package.dependencies.iter().filter(|d| d.path.is_some()) {
            let lower = self::layer(&dependency.name);
            if lower.is_none_or(|lower| lower >= layer) {
                let kind = dependency.kind.as_deref().unwrap_or("normal");
                let lower = lower.map_or("none".to_owned(), |lower| lower.to_string());
                let what = format!(
                    "`{}` (layer {layer}) has a {kind} dependency on `{}` (layer {lower})",
                    package.name, dependency.name
                );
                findings.push(Finding::new(&manifest, 1, what));
            }
        }
    }
    findings
}

fn layer(package: &str) -> Option<u8> {
    LAYERS
        .iter()
        .find(|(name, _)| *name == package)
        .map(|(_, layer)| *layer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::fixture;
    use crate::workspace::{Dependency, Package};

    fn package(name: &str, dependencies: &[(&str, Option<&str>)]) -> Package {
        let dependency = |(name, kind): &(&str, Option<&str>)| Dependency {
            name: (*name).to_owned(),
            kind: kind.map(str::to_owned),
            path: Some("there".into()),
        };
        Package {
            name: name.to_owned(),
            manifest_path: format!("{name}/Cargo.toml").into(),
            dependencies: dependencies.iter().map(dependency).collect(),
            targets: vec![],
        }
    }

    #[test]
    fn a_dependency_upward_or_sideways_or_from_no_layer_is_found() {
        let mut tree = fixture::tree(&[]);
        tree.packages = vec![
            package("bumpless-failover", &[("bumpless-heartbeat", None)]),
            package("bumpless-heartbeat", &[("bumpless-failover", Some("dev"))]),
            package("bumpless-election", &[("bumpless-barrier", None)]),
            package("bumpless-extra", &[]),
        ];
        let found: Vec<_> = upward_only(&tree).into_iter().map(|f| f.what).collect();
        assert_eq!(
            found,
            [
                "`bumpless-heartbeat` (layer 1) has a dev dependency on `bumpless-failover` (layer 2)",
                "`bumpless-election` (layer 2) has a normal dependency on `bumpless-barrier` (layer 2)",
                "`bumpless-extra` is in no layer: add it to the table",
            ]
        );
    }
}
