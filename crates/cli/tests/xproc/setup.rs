//! What the processes of a standby pair are told, and who is reached where.

use std::path::PathBuf;

/// How the processes of a run are started.
#[derive(Debug, Clone, Default)]
pub struct Setup {
    /// What the plant is told beside the usual.
    pub plant: Vec<String>,
    /// What each node is told beside the usual.
    pub nodes: [Vec<String>; 2],
    /// What both nodes and the plant are told.
    pub all: Vec<String>,
    /// What each node finds in its environment.
    pub environment: [Vec<(String, PathBuf)>; 2],
    /// What starts plant, node 0 and node 1, if not this program itself.
    pub wrappers: [Vec<String>; 3],
    /// What the proxy is told, if there is one.
    pub proxy: Vec<String>,
}

impl Setup {
    /// Over loopback, with addresses of a run's own, over one path or two; with a proxy between all.
    pub fn loopback(run: u8, paths: u16, has_proxy: bool) -> Self {
        let [_, high, middle, low] = std::process::id().to_be_bytes();
        // 127.64/10 for the scenarios; each run of a scenario has its own ports.
        let ip = format!("127.{}.{middle}.{low}", high & 0x3f | 0x40);
        let base = 7000 + 100 * u16::from(run);
        let at = |port: u16| format!("{ip}:{}", base + port);
        let on_paths = |first: u16| (first..first + paths).map(at).collect::<Vec<_>>();
        let own = [on_paths(10), on_paths(20)];
        let before = [on_paths(30), on_paths(40)];
        let node = |node: usize| {
            let (peer, actuator) = match has_proxy {
                true => (before[node].join(","), at(50 + node as u16)),
                false => (own[1 - node].join(","), at(0)),
            };
            let listen = own[node].join(",");
            words(&[
                "--listen",
                &listen,
                "--peer",
                &peer,
                "--actuator",
                &actuator,
            ])
        };
        let mut proxy = vec![];
        for path in 0..usize::from(paths) {
            let ends = [&before[0], &own[0], &before[1], &own[1]].map(|ends| ends[path].clone());
            proxy.extend(words(&["--partner", &ends.join(",")]));
        }
        for node in 0..2 {
            proxy.extend(words(&["--plant", &format!("{},{}", at(50 + node), at(0))]));
        }
        Self {
            plant: words(&["--listen", &at(0)]),
            nodes: [node(0), node(1)],
            proxy: if has_proxy { proxy } else { vec![] },
            ..Self::default()
        }
    }
}

pub fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
