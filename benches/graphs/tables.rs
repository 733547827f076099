//! Tables in Markdown of the last measurements: automatic executables, compared with what is written by hand.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;

use crate::Failure;
use crate::rows::Row;

/// Variants that a program writes by hand.
const BY_HAND: [&str; 5] = ["loop", "gated_loop", "command_buffer", "queues", "raw_mutable"];

/// By driver and by size.
type Cells<'a> = BTreeMap<&'a str, BTreeMap<usize, Cell<'a>>>;

/// The measurements of one size.
#[derive(Default)]
struct Cell<'a>(BTreeMap<&'a str, &'a Row>);

impl Cell<'_> {
    /// The time of an automatic executable relative to the loop, and to the best variant by hand.
    fn total(&self) -> Option<(f64, f64)> {
        let auto = self.0.get("auto")?.ratio_to_loop?;
        let by_hand = BY_HAND.iter().filter_map(|variant| self.0.get(variant)?.ratio_to_loop);
        Some((auto, auto / by_hand.min_by(f64::total_cmp)?))
    }

    /// The time until submit returns, relative to the loop's.
    fn host(&self) -> Option<f64> {
        Some(self.0.get("auto")?.submit_us? / self.0.get("loop")?.submit_us?)
    }
}

/// Writes the tables of all rows to a file.
pub fn write(rows: &[Row], file: &Path) -> Result<(), Failure> {
    let mut scenarios: BTreeMap<(&str, &str), Cells<'_>> = BTreeMap::new();
    for row in rows {
        let sizes = scenarios.entry((&*row.scenario, &*row.queue)).or_default().entry(&*row.driver).or_default();
        sizes.entry(row.n).or_default().0.insert(&*row.variant, row);
    }
    let mut text = String::from(
        "Automatic executables: time from submit to the end as a ratio to the loop by hand, and in brackets to the best variant by \
         hand. Below, where a host's time is known, the time until submit returns as a ratio to the loop's.\n",
    );
    for ((scenario, queue), drivers) in scenarios {
        let sizes: BTreeSet<usize> = drivers.values().flat_map(|sizes| sizes.keys().copied()).collect();
        let total = |cell: &Cell<'_>| cell.total().map(|(of_loop, of_best)| format!("{of_loop:.2} ({of_best:.2})"));
        let host = |cell: &Cell<'_>| cell.host().map(|host| format!("{host:.2}"));
        for (what, show) in [("", &total as &dyn Fn(&Cell<'_>) -> Option<String>), (", the host's time", &host)] {
            if !drivers.values().flat_map(BTreeMap::values).any(|cell| show(cell).is_some()) {
                continue;
            }
            write!(text, "\n## {scenario}, {queue} queue{what}\n\n| driver |")?;
            sizes.iter().try_for_each(|size| write!(text, " {size} |"))?;
            write!(text, "\n|---|{}\n", "---|".repeat(sizes.len()))?;
            for (driver, cells) in &drivers {
                write!(text, "| {driver} |")?;
                for size in &sizes {
                    let shown = cells.get(size).and_then(show);
                    write!(text, " {} |", shown.as_deref().unwrap_or("-"))?;
                }
                text.push('\n');
            }
        }
    }
    Ok(fs::write(file, text)?)
}
