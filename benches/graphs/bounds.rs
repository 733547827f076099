//! Bounds: how fast clgraph has to be, on PoCL and for the scenario `submit`.

use serde::Serialize;

use crate::rounds::Measured;

/// What a row is compared with, and the result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// The row that this row is compared with.
    of: &'static str,
    /// The median of per-round ratios to it.
    ratio: f64,
    /// The largest ratio that is allowed. The distance of `loop_again` from 1 is included.
    at_most: f64,
    /// The distance of `loop_again` from 1. If it is too large, the measurement says nothing: see [`MOST_NOISE`].
    noise: f64,
    pub good: bool,
}

/// With more noise a bound would mean nothing.
const MOST_NOISE: f64 = 0.1;

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { of, ratio, at_most, noise, good } = self;
        let word = match good {
            true => "good",
            false if *noise > MOST_NOISE => "too noisy to tell",
            false => "too slow",
        };
        write!(f, "{word}: {ratio:.3} of {of}, at most {at_most:.3}")
    }
}

/// Returns whether there are bounds for a scenario on a driver.
pub fn apply(driver: &str, scenario: &str) -> bool {
    driver.starts_with("pocl") && scenario == "submit"
}

/// Up to so many commands, one command buffer, as a program would record it by hand, is hard to beat; its time grows
/// with the square of the number of commands.
const ONE_BUFFER: usize = 100;

/// Returns the verdict on one variant among all, if there is a bound for it.
///
/// - `replay`: at most 1.05 of the loop.
/// - `native`: at most 1.05 of one command buffer, up to 100 commands; with more commands it has to be faster.
/// - `auto`: at most 1.05 of the best other variant.
pub fn verdict(one: &Measured, n: usize, all: &[Measured]) -> Option<Verdict> {
    let find = |variant: &str| all.iter().find(|one| one.variant == variant);
    let plain = find("loop")?;
    let noise = (find("loop_again")?.ratio_to(plain)? - 1.0).abs();
    let (of, bound) = match one.variant {
        "replay" => (plain, 1.05),
        "native" => (find("command_buffer")?, if n <= ONE_BUFFER { 1.05 } else { 1.0 }),
        "auto" => {
            let others = all.iter().filter(|one| !["auto", "loop_again"].contains(&one.variant));
            let ratios = others.filter_map(|one| Some((one.ratio_to(plain)?, one)));
            (ratios.min_by(|one, other| one.0.total_cmp(&other.0))?.1, 1.05)
        }
        _ => return None,
    };
    let (ratio, at_most) = (one.ratio_to(of)?, bound + noise);
    Some(Verdict { of: of.variant, ratio, at_most, noise, good: ratio <= at_most && noise <= MOST_NOISE })
}
