//! The slots of a table, a line each: as many as there is room for.

use std::collections::VecDeque;

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::widgets::{Row, Table};

use super::model::{Column, Model};
use crate::look::{SlotView, VerdictWord, span};

/// From nothing missed to all that may be.
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Draws them, and their header line.
pub fn draw(frame: &mut Frame<'_>, area: Rect, model: &mut Model, uses_colour: bool) {
    let rows = model.rows();
    // Below the header line.
    let visible = usize::from(area.height.saturating_sub(1));
    let first_row = model.first_row.min(rows.len().saturating_sub(visible));
    let head = [
        Column::Slot.name(),
        Column::Pid.name(),
        "  VERDICT",
        Column::Lag.name(),
        "GRACE",
        Column::Units.name(),
        Column::Deaths.name(),
        Column::Label.name(),
        "LAGS",
    ];
    let head = head.map(|name| {
        let is_chosen = name.trim_start() == model.sorted_by.name();
        let mark = match (is_chosen, model.is_reversed) {
            (false, _) => "",
            (true, false) => "▼",
            (true, true) => "▲",
        };
        format!("{name}{mark}")
    });
    let widths = [
        Constraint::Length(6),
        Constraint::Length(8),
        Constraint::Length(15),
        Constraint::Length(13),
        Constraint::Length(6),
        Constraint::Length(6),
        Constraint::Length(7),
        Constraint::Fill(2),
        Constraint::Fill(1),
    ];
    let lags = &model.lags;
    let shown = rows.iter().skip(first_row).take(visible);
    let body = shown.map(|slot| {
        let history = lags.get(&(slot.slot, slot.generation));
        row(slot, history).style(style(slot.verdict, uses_colour))
    });
    let header = Row::new(head).style(Style::new().add_modifier(Modifier::REVERSED));
    let table = Table::new(body, widths).header(header).column_spacing(0);
    frame.render_widget(table, area);
    model.first_row = first_row;
}

fn row(slot: &SlotView, history: Option<&VecDeque<u64>>) -> Row<'static> {
    let lag = match slot.lag_ns {
        Some(lag_ns) if slot.lag_epochs > 0 => format!("{} ({})", slot.lag_epochs, span(lag_ns)),
        _ => slot.lag_epochs.to_string(),
    };
    let sparks = history.map_or(String::new(), |lags| sparkline(lags, slot.grace_epochs));
    Row::new([
        format!("{:4}", slot.slot),
        format!("{:7}", slot.pid),
        format!("{} {}", sign(slot.verdict), slot.verdict.word()),
        lag,
        format!("{:5}", slot.grace_epochs),
        format!("{:5}", slot.units_in_flight),
        format!("{:6}", slot.deaths),
        slot.label.clone(),
        sparks,
    ])
}

/// The newest first, so that it is seen however little room there is.
fn sparkline(lags: &VecDeque<u64>, grace_epochs: u64) -> String {
    let top = LEVELS.len() as u64 - 1;
    let level = |lag: &u64| {
        lag.saturating_mul(top)
            .div_ceil(grace_epochs.max(1))
            .min(top)
    };
    lags.iter()
        .rev()
        .map(|lag| LEVELS[level(lag) as usize])
        .collect()
}

fn sign(verdict: VerdictWord) -> char {
    match verdict {
        VerdictWord::Alive => ' ',
        VerdictWord::Died => 'x',
        VerdictWord::Silent => '~',
        VerdictWord::Released => '<',
        VerdictWord::InTransition => '>',
        VerdictWord::Quarantined => '?',
        VerdictWord::Fenced => '|',
        VerdictWord::Free => '.',
    }
}

fn style(verdict: VerdictWord, uses_colour: bool) -> Style {
    if !uses_colour {
        return Style::new();
    }
    match verdict {
        VerdictWord::Alive => Style::new(),
        VerdictWord::Died => Style::new().fg(Color::Red),
        VerdictWord::Quarantined => Style::new().fg(Color::Red).add_modifier(Modifier::BOLD),
        VerdictWord::Silent | VerdictWord::Released => Style::new().fg(Color::Yellow),
        VerdictWord::Fenced => Style::new().fg(Color::Magenta),
        VerdictWord::InTransition => Style::new().fg(Color::Cyan),
        VerdictWord::Free => Style::new().fg(Color::DarkGray),
    }
}
