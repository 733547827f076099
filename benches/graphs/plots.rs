//! Plots of the last measurements: for each scenario with several sizes a picture, with a panel for each driver, which
//! shows the time per node against the number of nodes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use plotters::coord::Shift;
use plotters::coord::ranged1d::ValueFormatter;
use plotters::coord::types::RangedCoordi32;
use plotters::prelude::*;

use crate::Failure;
use crate::rows::{Point, Row};

/// The size of a panel.
const SIZE: (u32, u32) = (380, 300);
const COLUMNS: usize = 3;
const TITLE: u32 = 36;
const LEGEND: u32 = 36;
/// Variants that are shown if they were measured: their style, and their names.
const SHOWN: [(&str, RGBColor, u32, &str); 12] = [
    ("loop", RGBColor(120, 120, 120), 2, "loop by hand"),
    ("gated_loop", RGBColor(86, 180, 233), 2, "gated loop by hand"),
    ("command_buffer", RGBColor(204, 121, 167), 2, "one command buffer by hand"),
    ("queues", RGBColor(0, 114, 178), 2, "several queues by hand"),
    ("raw_mutable", RGBColor(204, 121, 167), 2, "mutable dispatch by hand"),
    ("fused_by_hand", RGBColor(0, 114, 178), 2, "one fused kernel by hand"),
    ("cuda_stream", RGBColor(170, 200, 120), 2, "CUDA stream"),
    ("cuda_graph", RGBColor(0, 158, 115), 2, "CUDA Graph"),
    ("native", RGBColor(240, 200, 60), 2, "clgraph, command buffers"),
    ("unfused", RGBColor(230, 159, 0), 2, "clgraph, not fused"),
    ("replay", RGBColor(230, 159, 0), 2, "clgraph, replay"),
    ("auto", RGBColor(213, 60, 0), 4, "clgraph, automatic"),
];

/// Draws the rows into a folder; returns the files.
pub fn draw(rows: &[Row], folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut scenarios: BTreeMap<&str, BTreeMap<&str, Vec<Point<'_>>>> = BTreeMap::new();
    for point in rows.iter().filter_map(Row::point) {
        scenarios.entry(point.scenario).or_default().entry(point.driver).or_default().push(point);
    }
    fs::create_dir_all(folder)?;
    let mut files = Vec::new();
    for (scenario, drivers) in scenarios {
        let mut sizes: Vec<usize> = drivers.values().flatten().map(|point| point.n).collect();
        sizes.sort_unstable();
        sizes.dedup();
        if sizes.len() < 3 {
            continue;
        }
        let words = scenario.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        let file = folder.join(format!("{}.svg", words.collect::<Vec<_>>().join("-")));
        picture(scenario, &drivers, &sizes, &file).map_err(|error| format!("{}: {error}", file.display()))?;
        files.push(file);
    }
    Ok(files)
}

fn picture(
    scenario: &str,
    drivers: &BTreeMap<&str, Vec<Point<'_>>>,
    sizes: &[usize],
    file: &Path,
) -> Result<(), Failure> {
    let (columns, rows) = (drivers.len().min(COLUMNS), drivers.len().div_ceil(COLUMNS));
    // Room for the legend, whose names are long.
    let width = (SIZE.0 * columns as u32).max(2 * SIZE.0);
    let height = SIZE.1 * rows as u32;
    let known = |points: &[Point<'_>], variant: &str| points.iter().any(|point| point.variant == variant);
    let shown: Vec<_> = SHOWN.iter().filter(|shown| drivers.values().any(|points| known(points, shown.0))).collect();
    let lines = shown.len().div_ceil(4) as u32;
    let root = SVGBackend::new(file, (width, TITLE + height + LEGEND * lines)).into_drawing_area();
    root.fill(&WHITE).map_err(failure)?;
    let (title, below) = root.split_vertically(TITLE);
    let (panels, legend) = below.split_vertically(height);
    let style = ("sans-serif", 18).into_text_style(&title);
    let text = format!("{scenario}: time of a node, from submit to the end, against the number of nodes");
    title.draw_text(&text, &style, (12, 10)).map_err(failure)?;
    for (area, (driver, points)) in panels.split_evenly((rows, columns)).iter().zip(drivers) {
        panel(area, driver, points, sizes)?;
    }
    let style = ("sans-serif", 13).into_text_style(&legend);
    for (at, (_, colour, line, name)) in shown.into_iter().enumerate() {
        let (x, y) = ((at % 4) as i32 * (width / 4) as i32 + 16, (at / 4) as i32 * LEGEND as i32 + 14);
        let sample = PathElement::new(vec![(x, y), (x + 22, y)], colour.stroke_width(*line));
        legend.draw(&sample).map_err(failure)?;
        legend.draw_text(name, &style, (x + 30, y - 6)).map_err(failure)?;
    }
    root.present().map_err(failure)
}

fn panel(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    driver: &str,
    points: &[Point<'_>],
    sizes: &[usize],
) -> Result<(), Failure> {
    let shown = points.iter().filter(|point| SHOWN.iter().any(|shown| shown.0 == point.variant));
    let (least, most) = shown.fold((f64::INFINITY, f64::MIN_POSITIVE), |(least, most), point| {
        (least.min(point.us_a_node), most.max(point.us_a_node))
    });
    let mut chart = ChartBuilder::on(area);
    chart.caption(driver, ("sans-serif", 15)).margin(8).x_label_area_size(24).y_label_area_size(60);
    // Sizes at equal distances, because each is usually a multiple of the one before.
    let x = 0..sizes.len() as i32 - 1;
    if most > least * 8.0 {
        // From a power of ten to a power of ten, because only these have labels.
        let decades = 10_f64.powf(least.log10().floor())..10_f64.powf(most.log10().ceil());
        lines(chart.build_cartesian_2d(x, decades.log_scale()).map_err(failure)?, points, sizes)
    } else {
        lines(chart.build_cartesian_2d(x, 0.0..most * 1.1).map_err(failure)?, points, sizes)
    }
}

fn lines<Y: Ranged<ValueType = f64> + ValueFormatter<f64>>(
    mut chart: ChartContext<'_, SVGBackend<'_>, Cartesian2d<RangedCoordi32, Y>>,
    points: &[Point<'_>],
    sizes: &[usize],
) -> Result<(), Failure> {
    chart
        .configure_mesh()
        .y_label_formatter(&|us| match *us {
            us if us < 1.0 && us > 0.0 => format!("{us:.2} us"),
            us => format!("{us:.0} us"),
        })
        .x_label_formatter(&|at| {
            usize::try_from(*at).ok().and_then(|at| sizes.get(at)).map_or_else(String::new, usize::to_string)
        })
        .x_labels(sizes.len())
        .y_labels(6)
        .light_line_style(WHITE)
        .draw()
        .map_err(failure)?;
    for (variant, colour, width, _) in SHOWN {
        let of = points.iter().filter(|point| point.variant == variant);
        let place = |point: &Point<'_>| Some((sizes.binary_search(&point.n).ok()? as i32, point.us_a_node));
        let mut line: Vec<(i32, f64)> = of.filter_map(place).collect();
        line.sort_by_key(|(at, _)| *at);
        let dots = line.iter().map(|at| Circle::new(*at, width, colour.filled()));
        chart.draw_series(dots).map_err(failure)?;
        chart.draw_series(LineSeries::new(line, colour.stroke_width(width))).map_err(failure)?;
    }
    Ok(())
}

/// Errors of drawing borrow the canvas.
fn failure(error: impl std::fmt::Display) -> Failure {
    error.to_string().into()
}
