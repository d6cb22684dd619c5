//! What happened when, for people: one line for each change, in milliseconds from the fault.

use super::record::Record;

/// Lines told before the fault, and in all.
const LINES_BEFORE: usize = 15;
const LINES_MAX: usize = 60;

/// The table.
pub fn story(record: &Record) -> String {
    let Some(fault) = record.fault() else {
        return String::new();
    };
    let mut told: Vec<(u64, String, String)> = Vec::new();
    for deed in &record.deeds {
        let who = format!("node {}", deed.node);
        let what = match deed.what.as_str() {
            "end" => continue,
            what => format!("<<< {what}"),
        };
        told.push((deed.at_ns, who, what));
    }
    for said in &record.said {
        told.push((
            said.at_ns,
            format!("node {}", said.node),
            plain(&said.detail),
        ));
    }
    told.extend(plant(record));
    told.sort_by_key(|(at_ns, ..)| *at_ns);
    let before = told.partition_point(|(at_ns, ..)| *at_ns < fault.at_ns);
    told.drain(..before.saturating_sub(LINES_BEFORE));
    let mut text = format!("{:>12}  {:8}{}\n", "ms", "who", "what");
    let mut last: Option<(&String, &str)> = None;
    let mut repeated = 0;
    let mut lines = 0;
    for (at_ns, who, what) in &told {
        let kind = what.split(' ').next().unwrap_or_default();
        if last == Some((who, kind)) && kind == "OutputRefused" {
            repeated += 1;
            continue;
        }
        last = Some((who, kind));
        if repeated > 0 {
            text += &format!("{:22}... and {repeated} times more\n", "");
            repeated = 0;
        }
        lines += 1;
        if lines > LINES_MAX {
            text += &format!("{:22}... and more\n", "");
            break;
        }
        let since_ms = (*at_ns as f64 - fault.at_ns as f64) / 1e6;
        text += &format!("{since_ms:>+12.3}  {who:8}{what}\n");
    }
    text
}

/// Each change of the writer, and the first refusal of each kind.
fn plant(record: &Record) -> Vec<(u64, String, String)> {
    let mut told = Vec::new();
    let mut writer = None;
    let mut refusals: Vec<(u8, u64, &str)> = Vec::new();
    for offer in &record.offers {
        let (node, counter, cycle) = (offer.node, offer.counter, offer.cycle);
        let what = match &offer.refusal {
            None if writer == Some((node, counter)) => continue,
            None => {
                writer = Some((node, counter));
                format!(
                    "accepts node {node}: epoch {counter}, cycle {cycle}, value {}",
                    offer.value
                )
            }
            Some(refusal) => {
                if refusals.contains(&(node, counter, refusal.as_str())) {
                    continue;
                }
                refusals.push((node, counter, refusal));
                format!("refuses node {node}: epoch {counter}, cycle {cycle}: {refusal}")
            }
        };
        told.push((offer.at_ns, "plant".to_owned(), what));
    }
    told
}

/// An event without the names of its types.
fn plain(detail: &str) -> String {
    let mut text = detail.to_owned();
    for (found, wanted) in [
        ("Epoch { counter: ", ""),
        (", owner: NodeId(", " of node "),
        (") }", ""),
        (" { ", " "),
        (" }", ""),
    ] {
        text = text.replace(found, wanted);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_told_without_the_names_of_its_types() {
        let detail = "Promoted { epoch: Epoch { counter: 2, owner: NodeId(1) }, cause: Takeover }";
        assert_eq!(
            plain(detail),
            "Promoted epoch: 2 of node 1, cause: Takeover"
        );
        assert_eq!(plain("PartnerLost"), "PartnerLost");
    }
}
