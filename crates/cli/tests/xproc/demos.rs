//! The demo, as a user runs it.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::pair::{BUMPLESS, assert_taken_over};
use crate::scene::Scene;

/// 170.
pub fn demo_shows_every_fault_and_a_sound_pair(scene: &Scene) {
    for link in ["shm", "udp2"] {
        let mut command = Command::new(BUMPLESS);
        command.args(["standby", "demo", "--fault", "all", "--link", link]);
        command.args(["--period", "10ms", "--seconds", "0.8", "--json"]);
        let output = command
            .stdin(Stdio::null())
            .output()
            .expect("the demo runs");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{link}: {output:?}");
        let lines: Vec<Value> = text
            .lines()
            .filter(|line| line.starts_with('{'))
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect();
        let faults: Vec<&str> = lines
            .iter()
            .filter_map(|line| line["fault"].as_str())
            .collect();
        assert_eq!(faults, ["kill", "stop", "cut", "cut-one", "restart", "all"]);
        for figures in &lines {
            assert_eq!(figures["link"], link);
            assert_eq!(figures["stale_accepted"], 0, "{figures}");
            assert_eq!(figures["false_takeovers"], 0, "{figures}");
            assert_eq!(figures["bump"], figures["lateness_steps"], "{figures}");
            // Over two paths one of them may die unnoticed by the plant.
            if link == "udp2" && figures["fault"] == "cut-one" {
                assert_eq!(figures["takeover_us"], Value::Null, "{figures}");
            } else {
                assert_taken_over(figures);
            }
        }
        assert!(text.contains("| "), "a plot: {text}");
        let all = lines.last().expect("the last line");
        scene.note(&format!("{link}: at most {} us", all["takeover_us"]));
    }
}
