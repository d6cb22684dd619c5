//! A length of time, in as many words as a person reads at a glance.

/// About how long so many nanoseconds are: three digits at most, and a unit.
pub fn span(ns: u64) -> String {
    const UNITS: [(u64, &str); 4] = [
        (60_000_000_000, "min"),
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
        (1_000, "us"),
    ];
    let unit = UNITS.into_iter().find(|(length, _)| ns >= *length);
    let Some((length, unit)) = unit else {
        return format!("{ns} ns");
    };
    let (whole, tenths) = (ns / length, ns % length * 10 / length);
    if whole < 10 && tenths > 0 {
        format!("{whole}.{tenths} {unit}")
    } else {
        format!("{whole} {unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_has_the_largest_unit_that_fits() {
        let spans = [
            0,
            999,
            1_000,
            1_500_000,
            70_000_000,
            2_000_000_000,
            u64::MAX,
        ];
        let texts = spans.map(span);
        let wanted = [
            "0 ns",
            "999 ns",
            "1 us",
            "1.5 ms",
            "70 ms",
            "2 s",
            "307445734 min",
        ];
        assert_eq!(texts, wanted);
    }
}
