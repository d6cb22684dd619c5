//! Tables and tags as text, at most 80 columns wide but for paths, names and labels.

use crate::look::{
    BarrierView, ElectionView, SlotView, TableView, TagView, WatchdogView, path_line, span,
};
use crate::out::plain;

/// Slots of a table that are shown unless all are asked for: more are more than a person reads.
const ROWS_MAX: usize = 256;

/// Everything, with an empty line between two.
pub fn all(tables: &[TableView], tags: &[TagView], shows_all: bool) -> String {
    if tables.is_empty() && tags.is_empty() {
        return "no tables, and no tags\n".to_owned();
    }
    let tables = tables.iter().map(|view| table(view, shows_all));
    let tags = tags.iter().map(|tag| {
        let path = path_line(&tag.path);
        format!("{path}\n{}", crate::standby::tag_text(tag))
    });
    tables.chain(tags).collect::<Vec<_>>().join("\n")
}

fn table(view: &TableView, shows_all: bool) -> String {
    let totals = &view.totals;
    let mut text = format!("{}\n", path_line(&view.path));
    if view.is_superseded {
        text += "  SUPERSEDED: another file has taken its place\n";
    }
    let period = view.period_ns.map_or(String::new(), |period_ns| {
        format!(", one every {}", span(period_ns))
    });
    let (epoch, grace) = (view.epoch, view.grace_epochs);
    text += &format!("  epoch     {epoch}{period}; grace {grace} epochs\n");
    text += &format!("  watchdog  {}\n", watchdogs(view));
    text += &format!(
        "  slots     {} of {}: {} silent, {} dead, {} fenced, {} quarantined\n",
        totals.live, view.capacity, totals.silent, totals.dead, totals.fenced, totals.quarantined
    );
    text += &format!(
        "  units     {} in flight, {} to be handed back\n",
        totals.units_in_flight, totals.units_to_hand_back
    );
    text += &format!(
        "  so far    {} registrations, {} deaths, {} of them not acknowledged\n",
        totals.registrations, totals.deaths, totals.deaths_unacknowledged
    );
    text += &format!("  created   {}, boot {}\n", view.creation_id, view.boot_id);
    for election in &view.elections {
        text += &format!("  election  {}\n", election_text(election));
    }
    for barrier in &view.barriers {
        text += &format!("  barrier   {}\n", barrier_text(barrier));
    }
    let slots = view
        .slots
        .iter()
        .filter(|slot| shows_all || slot.is_of_interest());
    let mut slots: Vec<&SlotView> = slots.collect();
    let unseen = if shows_all {
        0
    } else {
        slots.len().saturating_sub(ROWS_MAX)
    };
    if unseen > 0 {
        // What wants attention comes first.
        slots.sort_by_key(|slot| slot.verdict);
        slots.truncate(ROWS_MAX);
        slots.sort_by_key(|slot| slot.slot);
    }
    if !slots.is_empty() {
        text += "  SLOT     PID VERDICT       LAG EPOCHS      GRACE UNITS ROLE        PROOF       LABEL\n";
    }
    for slot in slots {
        text += &row(slot);
    }
    if unseen > 0 {
        text += &format!("  and {unseen} more, which --all shows\n");
    }
    text
}

fn row(slot: &SlotView) -> String {
    let lag = match slot.lag_ns {
        Some(lag_ns) if slot.lag_epochs > 0 => {
            format!("{} ({})", slot.lag_epochs, span(lag_ns))
        }
        _ => slot.lag_epochs.to_string(),
    };
    let deaths = match slot.deaths_unacknowledged {
        0 => String::new(),
        deaths => format!(" [deaths not acknowledged: {deaths}]"),
    };
    let row = format!(
        " {:5} {:7} {:13} {lag:15} {:5} {:5} {:11} {:11} {}{deaths}",
        slot.slot,
        slot.pid,
        slot.verdict.word(),
        slot.grace_epochs,
        slot.units_in_flight,
        slot.role,
        slot.death_proof,
        plain(&slot.label),
    );
    format!("{}\n", row.trim_end())
}

fn watchdogs(view: &TableView) -> String {
    let primary = match &view.primary {
        None => "none: nobody ticks, and lags stand still".to_owned(),
        Some(primary) => {
            let term = primary.term.unwrap_or(0);
            let life = if primary.is_alive {
                ""
            } else {
                ", is gone or late"
            };
            format!("{}, term {term}{life}", place(primary))
        }
    };
    if view.standbys.is_empty() {
        return format!("{primary}; no standby");
    }
    format!(
        "{primary}; standby: {}",
        some_of(view.standbys.iter().map(place))
    )
}

fn place(watchdog: &WatchdogView) -> String {
    match (watchdog.slot, watchdog.pid) {
        (Some(slot), Some(pid)) => format!("slot {slot} (pid {pid})"),
        (Some(slot), None) => format!("slot {slot}"),
        (None, _) => "one without a slot".to_owned(),
    }
}

fn election_text(election: &ElectionView) -> String {
    let leader = match &election.leader {
        Some(leader) => format!("led by slot {} (pid {})", leader.slot, leader.pid),
        None => "nobody leads".to_owned(),
    };
    let (name, term) = (plain(&election.name), election.term);
    format!(
        "{name}: term {term}, {leader}, {} candidates",
        election.candidates.len()
    )
}

fn barrier_text(barrier: &BarrierView) -> String {
    let (name, epoch) = (plain(&barrier.name), barrier.epoch);
    let waits = match barrier.awaited.as_slice() {
        [] => "waits for nobody".to_owned(),
        awaited => format!(
            "waits for slots {}",
            some_of(awaited.iter().map(u32::to_string))
        ),
    };
    format!(
        "{name}: epoch {epoch}, {} arrived, {waits}",
        barrier.arrived.len()
    )
}

/// The first few of a list.
fn some_of(mut all: impl Iterator<Item = String>) -> String {
    const SHOWN_MAX: usize = 4;
    let mut shown: Vec<String> = all.by_ref().take(SHOWN_MAX).collect();
    let more = all.count();
    if more > 0 {
        shown.push(format!("{more} more"));
    }
    shown.join(", ")
}

#[cfg(test)]
mod tests {
    use bumpless_heartbeat::HeartbeatTable;

    use super::*;

    #[test]
    fn of_a_crowd_those_who_want_attention_are_shown_and_how_many_the_others_are() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table");
        let made = HeartbeatTable::create(&path, 2 * ROWS_MAX).unwrap();
        let handles: Vec<_> = (0..2 * ROWS_MAX)
            .map(|_| made.register(std::process::id()).unwrap())
            .collect();
        // The last one is given back with work.
        let last = *handles.last().unwrap();
        made.mark_in_flight(last, 3_u8).unwrap();
        made.unregister(last).unwrap();
        let view = TableView::at(&path).unwrap();
        let (some, every) = (table(&view, false), table(&view, true));
        let rows = |text: &str| {
            text.lines()
                .filter(|line| line.contains(" worker "))
                .count()
        };
        assert_eq!((rows(&some), rows(&every)), (ROWS_MAX, 2 * ROWS_MAX));
        assert!(
            some.contains("released") && every.contains("released"),
            "{some}"
        );
        assert!(
            some.ends_with("  and 256 more, which --all shows\n"),
            "{some}"
        );
        assert!(!every.contains("more"), "{every}");
    }
}
