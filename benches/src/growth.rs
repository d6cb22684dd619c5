//! How figures grow with the size of the table, as log-log plots.
//!
//! Contract: every point is the middle one of the times of [`measure`], at each size beside its floor, in
//! one run; lines connect what was measured and nothing else.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use plotters::prelude::{
    BLACK, BLUE, ChartBuilder, Circle, IntoDrawingArea, IntoLogRange, LineSeries, RED, SVGBackend,
    WHITE,
};

use crate::alternate::measure;
use crate::pair::Pair;
use crate::pairs::{growing_registers, growing_scans};

/// A curve and its floor, over the size.
struct Curve {
    points: Vec<(f64, f64)>,
    floor: Vec<(f64, f64)>,
}

/// Measures and draws everything into `folder`.
///
/// # Errors
/// A measurement that failed, or a file that cannot be written.
pub fn plot(folder: &Path, time: Duration) -> Result<()> {
    std::fs::create_dir_all(folder).context("the folder of the figures")?;
    let scans = curve(&growing_scans(), time)?;
    draw(
        &folder.join("scan.svg"),
        "one scan, all alive (blue); the loads alone (red)",
        &scans,
    )?;
    let registers = curve(&growing_registers(), time)?;
    draw(
        &folder.join("register.svg"),
        "register + unregister, last free slot (blue); of 64 free (red)",
        &registers,
    )
}

fn curve(pairs: &[(usize, Pair)], time: Duration) -> Result<Curve> {
    let (mut points, mut floor) = (Vec::new(), Vec::new());
    for (size, pair) in pairs {
        let measured = measure(pair, time).with_context(|| format!("{} at {size}", pair.name))?;
        points.push((*size as f64, measured.a_ns));
        floor.push((*size as f64, measured.b_ns));
    }
    Ok(Curve { points, floor })
}

fn draw(path: &Path, title: &str, curve: &Curve) -> Result<()> {
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
        .build_cartesian_2d((32.0..131_072.0).log_scale(), (low..high).log_scale())?;
    chart
        .configure_mesh()
        .x_desc("slots")
        .y_desc("nanoseconds")
        .x_label_formatter(&|slots| format!("{slots:.0}"))
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
