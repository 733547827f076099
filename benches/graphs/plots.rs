//! Plots of what was measured last: a picture of each scenario with several sizes, time of a node against their number.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use plotters::prelude::*;

use crate::Failure;
use crate::results::{Point, Row};

const SIZE: (u32, u32) = (900, 520);
/// Variants that are shown, if they are there, and how wide their lines are.
const SHOWN: [(&str, u32); 6] =
    [("loop", 1), ("gated_loop", 1), ("command_buffer", 1), ("queues", 1), ("replay", 2), ("auto", 4)];

/// Draws the rows into a folder; gives the files.
pub fn draw(rows: &[Row], folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut scenarios: BTreeMap<&str, Vec<Point<'_>>> = BTreeMap::new();
    for point in rows.iter().filter_map(Row::point) {
        scenarios.entry(point.scenario).or_default().push(point);
    }
    fs::create_dir_all(folder)?;
    let mut files = Vec::new();
    for (scenario, points) in scenarios {
        let mut sizes: Vec<usize> = points.iter().map(|point| point.n).collect();
        sizes.sort_unstable();
        sizes.dedup();
        if sizes.len() < 3 {
            continue;
        }
        let file = folder.join(format!("{}.svg", scenario.replace(' ', "-")));
        picture(scenario, &points, &file)?;
        files.push(file);
    }
    Ok(files)
}

fn picture(scenario: &str, points: &[Point<'_>], file: &Path) -> Result<(), Failure> {
    let fail = |error: &dyn std::fmt::Display| -> Failure { format!("{}: {error}", file.display()).into() };
    let root = SVGBackend::new(file, SIZE).into_drawing_area();
    root.fill(&WHITE).map_err(|error| fail(&error))?;
    let bounds = |of: fn(&Point<'_>) -> f64| {
        let all = points.iter().map(of);
        all.fold((f64::INFINITY, 0.0_f64), |(least, most), value| (least.min(value), most.max(value)))
    };
    let (x, y) = (bounds(|point| point.n as f64), bounds(|point| point.us_a_node));
    let mut chart = ChartBuilder::on(&root)
        .caption(format!("{scenario}: time of a node"), ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(64)
        .right_y_label_area_size(190)
        .build_cartesian_2d((x.0 * 0.8..x.1 * 1.25).log_scale(), (y.0 * 0.8..y.1 * 1.25).log_scale())
        .map_err(|error| fail(&error))?;
    chart
        .configure_mesh()
        .x_desc("nodes")
        .y_desc("us a node, from submit to the end")
        .x_label_formatter(&|n| format!("{n:.0}"))
        .y_label_formatter(&|us| format!("{us:.2}"))
        .light_line_style(WHITE)
        .draw()
        .map_err(|error| fail(&error))?;
    let mut drivers: Vec<&str> = points.iter().map(|point| point.driver).collect();
    drivers.sort_unstable();
    drivers.dedup();
    for (number, driver) in drivers.into_iter().enumerate() {
        let colour = Palette99::pick(number);
        for (variant, width) in SHOWN {
            let mut line: Vec<(f64, f64)> = points
                .iter()
                .filter(|point| (point.driver, point.variant) == (driver, variant))
                .map(|point| (point.n as f64, point.us_a_node))
                .collect();
            if line.is_empty() {
                continue;
            }
            line.sort_by(|one, other| one.0.total_cmp(&other.0));
            // What is by hand is pale.
            let by_hand = !["replay", "auto"].contains(&variant);
            let style = colour.mix(if by_hand { 0.45 } else { 1.0 }).stroke_width(width);
            let drawn = chart.draw_series(LineSeries::new(line, style)).map_err(|error| fail(&error))?;
            drawn
                .label(format!("{driver} {variant}"))
                .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 18, y)], style));
        }
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::Coordinate(SIZE.0 as i32 - 260, 30))
        .label_font(("sans-serif", 12))
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.3))
        .draw()
        .map_err(|error| fail(&error))?;
    root.present().map_err(|error| fail(&error))
}
