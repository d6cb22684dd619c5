//! How figures grow with the size of what they are about, as log-log plots.
//!
//! Contract: every point is the middle one of the times of [`middle_ns`], at each size beside its floor, in
//! one run; lines connect what was measured and nothing else.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use plotters::prelude::{
    BLACK, BLUE, ChartBuilder, Circle, IntoDrawingArea, IntoLogRange, LineSeries, RED, SVGBackend,
    WHITE,
};

use crate::alternate::middle_ns;
use crate::pairs::{GROWING, Growing};

/// A curve and its floor, over the size.
struct Curve {
    points: Vec<(f64, f64)>,
    floor: Vec<(f64, f64)>,
}

/// Measures everything whose name has `filter` in it, and draws it into `folder`; the names of the drawings.
///
/// # Errors
/// No such drawing, a measurement that failed, or a file that cannot be written.
pub fn plot(folder: &Path, time: Duration, filter: &str) -> Result<Vec<String>> {
    std::fs::create_dir_all(folder).context("the folder of the figures")?;
    let mut drawn = Vec::new();
    let wanted = GROWING
        .iter()
        .filter(|growing| growing.name.contains(filter));
    for growing in wanted {
        let file = format!("{}.svg", growing.name);
        draw(&folder.join(&file), growing, &curve(growing, time)?)?;
        drawn.push(file);
    }
    ensure!(!drawn.is_empty(), "no drawing has `{filter}`");
    Ok(drawn)
}

fn curve(growing: &Growing, time: Duration) -> Result<Curve> {
    let (mut points, mut floor) = (Vec::new(), Vec::new());
    for size in growing.sizes {
        eprintln!("{} at {size}", growing.what);
        let [a_ns, b_ns] = middle_ns(time, &mut |stage| (growing.run)(stage, *size))
            .with_context(|| format!("{} at {size}", growing.what))?;
        points.push((*size as f64, a_ns));
        floor.push((*size as f64, b_ns));
    }
    Ok(Curve { points, floor })
}

fn draw(path: &Path, growing: &Growing, curve: &Curve) -> Result<()> {
    let title = format!("{} (blue); {} (red)", growing.what, growing.beside);
    let (first, last) = (curve.points.first(), curve.points.last());
    let (Some((least, _)), Some((most, _))) = (first, last) else {
        return Ok(());
    };
    let all = || curve.points.iter().chain(&curve.floor);
    let low = all().map(|(_, ns)| *ns).fold(f64::MAX, f64::min) / 2.0;
    let high = all().map(|(_, ns)| *ns).fold(1.0, f64::max) * 2.0;
    let area = SVGBackend::new(path, (640, 420)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(title, ("sans-serif", 16))
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(72)
        .build_cartesian_2d(
            (least / 2.0..most * 2.0).log_scale(),
            (low..high).log_scale(),
        )?;
    chart
        .configure_mesh()
        .x_desc(growing.unit)
        .y_desc("nanoseconds")
        .x_label_formatter(&|size| format!("{size:.0}"))
        .y_label_formatter(&|ns| format!("{ns:.0}"))
        .axis_style(BLACK)
        .draw()?;
    for (points, color) in [(&curve.points, &BLUE), (&curve.floor, &RED)] {
        chart.draw_series(LineSeries::new(points.iter().copied(), color))?;
        chart.draw_series(points.iter().map(|point| Circle::new(*point, 3, color)))?;
    }
    area.present()?;
    Ok(())
}
