//! One picture of the model, for any size of terminal from 80 x 24 on; a smaller one shows its beginning.

use std::collections::VecDeque;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Paragraph, Wrap};

use super::model::{Model, View};
use super::rows;
use crate::look::{TableView, path_line, span};

/// Draws it all.
pub fn draw(frame: &mut Frame<'_>, model: &mut Model) {
    let uses_colour = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    draw_with(frame, model, uses_colour);
}

fn draw_with(frame: &mut Frame<'_>, model: &mut Model, uses_colour: bool) {
    let height = frame.area().height;
    let events_height = if model.events.is_some() {
        (height / 4).clamp(4, 12)
    } else {
        0
    };
    if let Ok(View::Tag(_)) = &model.view {
        return draw_tag(frame, model);
    }
    let parts = Layout::vertical([
        Constraint::Length(4),
        Constraint::Min(3),
        Constraint::Length(events_height),
        Constraint::Length(1),
    ]);
    let [head, slots, events, foot] = parts.areas(frame.area());
    let header = Paragraph::new(header(model));
    if model.view.is_err() {
        // Why there is nothing to see has all the room.
        let all = head.union(slots);
        frame.render_widget(header.wrap(Wrap { trim: false }), all);
    } else {
        frame.render_widget(header, head);
        rows::draw(frame, slots, model, uses_colour);
    }
    if let Some(lines) = &model.events {
        draw_events(frame, events, lines);
    }
    frame.render_widget(Paragraph::new(keys(model)), foot);
}

/// Where a standby node stands, in the words of `status`.
fn draw_tag(frame: &mut Frame<'_>, model: &mut Model) {
    let parts = Layout::vertical([Constraint::Min(1), Constraint::Length(1)]);
    let [body, foot] = parts.areas(frame.area());
    let lines = header(model);
    let visible = usize::from(body.height);
    model.first_row = model.first_row.min(lines.len().saturating_sub(visible));
    let shown: Vec<Line<'_>> = lines.into_iter().skip(model.first_row).collect();
    frame.render_widget(Paragraph::new(shown), body);
    frame.render_widget(Paragraph::new(keys(model)), foot);
}

fn header(model: &Model) -> Vec<Line<'static>> {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let path = model.paths.get(model.chosen);
    let path = path.map_or(String::new(), |path| path_line(path));
    let title = Line::from(vec![Span::styled("bumpless top ", bold), path.into()]);
    match &model.view {
        Ok(View::Table(view)) => vec![title, ticking(view), slots(view), so_far(view)],
        Ok(View::Tag(tag)) => {
            let text = crate::standby::tag_text(tag);
            let lines = text.lines().map(|line| Line::from(line.to_owned()));
            std::iter::once(title).chain(lines).collect()
        }
        Err(error) => vec![title, Line::from(error.clone())],
    }
}

fn ticking(view: &TableView) -> Line<'static> {
    let period = view.period_ns.map_or(String::new(), |period_ns| {
        format!(", one every {}", span(period_ns))
    });
    let watchdog = match &view.primary {
        None => "no watchdog: lags stand still".to_owned(),
        Some(primary) => {
            let pid = primary.pid.map_or("?".to_owned(), |pid| pid.to_string());
            let life = if primary.is_alive {
                ""
            } else {
                " GONE OR LATE"
            };
            format!("watchdog pid {pid}{life} +{}", view.standbys.len())
        }
    };
    let (epoch, grace) = (view.epoch, view.grace_epochs);
    format!("epoch {epoch}{period}, grace {grace}; {watchdog}").into()
}

fn slots(view: &TableView) -> Line<'static> {
    let totals = &view.totals;
    format!(
        "slots {} of {}: {} silent, {} dead, {} fenced, {} quarantined",
        totals.live, view.capacity, totals.silent, totals.dead, totals.fenced, totals.quarantined
    )
    .into()
}

fn so_far(view: &TableView) -> Line<'static> {
    let totals = &view.totals;
    format!(
        "units {} in flight, {} to hand back; {} registered, {} died ({} unacknowledged)",
        totals.units_in_flight,
        totals.units_to_hand_back,
        totals.registrations,
        totals.deaths,
        totals.deaths_unacknowledged
    )
    .into()
}

fn draw_events(frame: &mut Frame<'_>, area: Rect, events: &VecDeque<String>) {
    let visible = usize::from(area.height.saturating_sub(1));
    let first = events.len().saturating_sub(visible);
    let lines: Vec<Line<'_>> = events
        .range(first..)
        .map(|text| text.as_str().into())
        .collect();
    let block = Block::new().borders(Borders::TOP).title("events");
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

fn keys(model: &Model) -> Line<'static> {
    let place = format!("{}/{}", model.chosen + 1, model.paths.len().max(1));
    let all = if model.shows_all { "fewer" } else { "all" };
    let sorted_by = model.sorted_by.name();
    format!("q quit  s sort ({sorted_by})  r reverse  j/k scroll  a {all}  Tab next {place}").into()
}

#[cfg(test)]
mod tests {
    use bumpless_failover::FailoverWatchdog;
    use bumpless_heartbeat::{HeartbeatTable, Label, Profile};
    use bumpless_sidecar::{BlackBox, Event, EventKind};
    use bumpless_standby::tag::TagWriter;
    use bumpless_substrate::clock::monotonic_ns;
    use bumpless_substrate::region::Access;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::super::keyboard::Key;
    use super::*;

    /// A table with a late and a prompt owner, and a black box.
    struct Scene {
        folder: tempfile::TempDir,
        _table: HeartbeatTable,
        model: Model,
    }

    impl Scene {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("t");
            let table = HeartbeatTable::create(&path, 64).unwrap();
            let profile = |label| Profile {
                label: Label::new(label).unwrap(),
                ..Profile::default()
            };
            let pid = std::process::id();
            let late = table.register_as(pid, profile("late one")).unwrap();
            table.mark_in_flight(late, 1_u8).unwrap();
            let prompt = table.register_as(pid, profile("a prompt one")).unwrap();
            {
                let watchdog = FailoverWatchdog::with_grace(&table, 3);
                for _ in 0..9 {
                    table.beat(prompt).unwrap();
                    let _ = watchdog.scan();
                }
            }
            let beside = folder.path().join("t.events");
            let black_box = BlackBox::create(beside, 16, Access::Private).unwrap();
            let silent = Event::new(EventKind::Silent, 1_000_000_000);
            black_box.record(Event { slot: 0, ..silent });
            let mut model = Model::new(vec![path]);
            model.look();
            Self {
                folder,
                _table: table,
                model,
            }
        }

        fn press(&mut self, letter: char) -> bool {
            self.model.key(Key::Letter(letter))
        }

        fn lines(&mut self, width: u16, height: u16) -> Vec<String> {
            let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
            let drawn = terminal.draw(|frame| draw_with(frame, &mut self.model, true));
            let buffer = drawn.unwrap().buffer.clone();
            let row = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect();
            (0..height).map(row).collect()
        }
    }

    fn place(lines: &[String], text: &str) -> usize {
        let found = lines.iter().position(|line| line.contains(text));
        found.unwrap_or_else(|| panic!("no {text:?} in\n{}", lines.join("\n")))
    }

    #[test]
    fn verdicts_events_and_keys_are_seen_at_each_size() {
        let mut scene = Scene::new();
        for (width, height) in [(80, 24), (200, 50)] {
            let lines = scene.lines(width, height);
            assert_eq!(lines.len(), usize::from(height));
            let late = &lines[place(&lines, "late one")];
            assert!(late.contains("~ silent") && late.contains("9 ("), "{late}");
            assert!(late.contains('█'), "{late}");
            assert!(place(&lines, "1.000000000 silent slot=0") > place(&lines, "a prompt one"));
            assert!(lines[usize::from(height) - 1].starts_with("q quit"));
            place(&lines, "1 silent, 0 dead, 1 fenced, 0 quarantined");
            place(
                &lines,
                "1 to hand back; 3 registered, 0 died (0 unacknowledged)",
            );
        }
    }

    #[test]
    fn a_terminal_of_any_size_is_no_reason_to_panic() {
        let mut scene = Scene::new();
        for (width, height) in [(1, 1), (3, 2), (10, 5), (80, 6), (500, 3)] {
            assert_eq!(scene.lines(width, height).len(), usize::from(height));
        }
    }

    #[test]
    fn keys_sort_reverse_and_end() {
        let mut scene = Scene::new();
        let order = |scene: &mut Scene| {
            let lines = scene.lines(80, 24);
            place(&lines, "late one") < place(&lines, "a prompt one")
        };
        assert!(order(&mut scene));
        scene.press('r');
        assert!(!order(&mut scene));
        scene.press('r');
        // Pid, verdict, lag: what wants attention comes first.
        for _ in 0..3 {
            assert!(!scene.press('s'));
            assert!(order(&mut scene));
        }
        for _ in 0..3 {
            scene.press('s');
        }
        assert!(!order(&mut scene), "by label");
        place(&scene.lines(80, 24), "LABEL▼");
        for _ in 0..100 {
            scene.press('j');
        }
        place(&scene.lines(80, 24), "late one");
        assert!(scene.press('q'));
    }

    #[test]
    fn where_a_standby_node_stands_is_shown_as_status_shows_it() {
        let mut scene = Scene::new();
        let tag = scene.folder.path().join("tag");
        let mut writer = TagWriter::create(&tag, Access::Private).unwrap();
        writer.write(&crate::look::sample_status(), None, monotonic_ns());
        scene.model = Model::new(vec![scene.folder.path().join("t"), tag]);
        scene.model.look();
        place(&scene.lines(80, 24), "Tab next 1/2");
        assert!(!scene.model.key(Key::Tab));
        let lines = scene.lines(80, 24);
        place(&lines, "disqualified: ProgramMismatch");
        place(&lines, "Tab next 2/2");
        scene.press('j');
        // It fits, so there is nothing to scroll.
        place(&scene.lines(80, 24), "bumpless top");
        scene.press('j');
        let lines = scene.lines(80, 3);
        assert!(!lines[0].contains("bumpless top"), "{lines:?}");
    }

    #[test]
    fn why_a_table_is_not_shown_is_told_to_its_end_and_is_no_end() {
        let path = format!("/nonexistent/{}/table", "x".repeat(90));
        let mut model = Model::new(vec![path.into()]);
        model.look();
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        let drawn = terminal.draw(|frame| draw_with(frame, &mut model, false));
        let buffer = drawn.unwrap().buffer.clone();
        let shown: String = (1..24)
            .flat_map(|y| (0..80).map(move |x| (x, y)))
            .map(|at| buffer[at].symbol())
            .collect();
        assert!(shown.contains("/nonexistent"), "{shown}");
        assert!(shown.contains("No such file"), "{shown}");
    }
}
