//! The output across the takeover, in characters: one column a cycle, one writer a digit.

use super::record::{Offer, Record};

const ROWS: usize = 12;
/// Cycles before the fault.
const BEFORE: u64 = 12;
/// Columns at most.
const COLUMNS: u64 = 64;
/// Columns after the first output of the new primary.
const AFTER: u64 = 16;

/// `0` and `1`: accepted, of that node; `x`: refused; `-`: the plant holds its last output.
pub fn plot(record: &Record) -> String {
    let Some(fault) = record.fault() else {
        return String::new();
    };
    let period_ns = record.settings.period_ns.max(1);
    let fault_cycle = fault.at_ns / period_ns;
    let first = fault_cycle.saturating_sub(BEFORE);
    let takeover = record.takeover_after(fault).map(|(_, first)| first.cycle);
    let last = (takeover.unwrap_or(fault_cycle) + AFTER).min(first + COLUMNS - 1);
    let shown: Vec<&Offer> = record
        .offers
        .iter()
        .filter(|offer| (first..=last).contains(&offer.cycle))
        .collect();
    let values = || shown.iter().map(|offer| offer.value);
    let (low, high) = (
        values().fold(f64::INFINITY, f64::min),
        values().fold(f64::NEG_INFINITY, f64::max),
    );
    if shown.is_empty() || !low.is_finite() || !high.is_finite() {
        return String::new();
    }
    let row_of = |value: f64| {
        let share = (value - low) / (high - low).max(f64::MIN_POSITIVE);
        ((1.0 - share) * (ROWS - 1) as f64).round() as usize
    };
    let columns = (last - first + 1) as usize;
    let mut rows = vec![vec![' '; columns]; ROWS];
    let mut put = |value: f64, column: usize, letter: char| {
        let place = rows
            .get_mut(row_of(value))
            .and_then(|row| row.get_mut(column));
        if let Some(place) = place {
            *place = letter;
        }
    };
    let mut held = None;
    for (column, cycle) in (first..=last).enumerate() {
        let mut accepted = None;
        for offer in shown.iter().filter(|offer| offer.cycle == cycle) {
            match offer.refusal {
                Some(_) => put(offer.value, column, 'x'),
                None => accepted = Some(offer),
            }
        }
        held = accepted.map(|offer| offer.value).or(held);
        if let Some(value) = held {
            let letter = accepted.map_or('-', |offer| char::from(b'0' + offer.node % 10));
            put(value, column, letter);
        }
    }
    let mut text = String::new();
    for (row, letters) in rows.iter().enumerate() {
        let label = match row {
            0 => format!("{high:>10.1}"),
            row if row == ROWS - 1 => format!("{low:>10.1}"),
            _ => " ".repeat(10),
        };
        let letters: String = letters.iter().collect();
        text += &format!("{label} |{}\n", letters.trim_end());
    }
    let offset = (fault_cycle - first) as usize;
    text += &format!(
        "{:10} +{}\n{:12}{}^ {}\n",
        "",
        "-".repeat(columns),
        "",
        " ".repeat(offset),
        fault.what
    );
    text + "           one column a cycle; 0, 1: accepted, of that node; -: held; x: refused\n"
}
