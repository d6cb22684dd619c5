//! The text format of Prometheus: families of samples, each with its help and type.

use std::collections::BTreeMap;
use std::fmt::Write;

use bumpless_sidecar::metric_names::{Metric, MetricKind};

/// Samples by family.
#[derive(Debug, Default)]
pub struct Families(BTreeMap<&'static str, (Metric, String)>);

impl Families {
    /// Adds a sample. `labels` are names and values, the place it comes from first.
    pub fn add(&mut self, metric: Metric, labels: &[(&str, &str)], value: impl Into<u64>) {
        let (_, samples) = self
            .0
            .entry(metric.name)
            .or_insert_with(|| (metric, String::new()));
        let labels: Vec<String> = labels
            .iter()
            .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)))
            .collect();
        // Writing to a string does not fail.
        let _ = writeln!(
            samples,
            "{}{{{}}} {}",
            metric.name,
            labels.join(","),
            value.into()
        );
    }

    /// All of it.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (name, (metric, samples)) in &self.0 {
            let kind = match metric.kind {
                MetricKind::Counter => "counter",
                MetricKind::Gauge => "gauge",
            };
            text += &format!(
                "# HELP {name} {}\n# TYPE {name} {kind}\n{samples}",
                metric.help
            );
        }
        text
    }
}

fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use bumpless_sidecar::metric_names::{DEATHS, SLOTS};
    use prometheus_parse::{Scrape, Value};

    use super::*;

    #[test]
    fn a_parser_reads_what_was_added_with_any_label() {
        let odd = "a \"quoted\\ path\"\nof two lines";
        let mut families = Families::default();
        families.add(DEATHS, &[("table", odd), ("verdict", "died")], 7_u64);
        families.add(SLOTS, &[("table", "t"), ("state", "live")], 3_u64);
        families.add(DEATHS, &[("table", odd), ("verdict", "silent")], 2_u64);
        let text = families.text();
        let lines = text.lines().map(|line| Ok(line.to_owned()));
        let read = Scrape::parse(lines.collect::<Vec<_>>().into_iter()).unwrap();
        assert_eq!(read.samples.len(), 3);
        let silent = read
            .samples
            .iter()
            .find(|sample| sample.labels.get("verdict") == Some("silent"))
            .unwrap();
        assert_eq!(silent.metric, DEATHS.name);
        assert_eq!(silent.value, Value::Counter(2.0));
    }
}
