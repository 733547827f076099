//! The same training on the host.

use crate::digits::{POINTS, Samples};

pub const INPUTS: usize = POINTS;
pub const HIDDEN: usize = 32;
pub const DIGITS: usize = 10;

/// Samples of one mini-batch.
pub const BATCH: usize = 50;

/// The weights of both layers, with a row for the bias behind the others.
#[derive(Clone, PartialEq)]
pub struct Weights(pub [Vec<f32>; 2]);

impl Weights {
    /// Small numbers, always the same.
    pub fn start() -> Self {
        let mut state = 1_u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            ((state >> 8) as f32 / (1 << 24) as f32 - 0.5) * 0.4
        };
        let mut layer = |from: usize, to: usize| (0..(from + 1) * to).map(|_| next()).collect();
        Self([layer(INPUTS, HIDDEN), layer(HIDDEN, DIGITS)])
    }

    fn layer(&self, which: usize, input: &[f32], to: usize) -> Vec<f32> {
        let weights = &self.0[which];
        let unit = |k: usize| {
            let bias = weights[input.len() * to + k];
            input.iter().enumerate().fold(bias, |sum, (i, x)| sum + x * weights[i * to + k])
        };
        (0..to).map(unit).collect()
    }

    fn hidden(&self, image: &[f32]) -> Vec<f32> {
        self.layer(0, image, HIDDEN).into_iter().map(f32::tanh).collect()
    }

    /// How many of some samples are read right, as a fraction.
    pub fn accuracy(&self, samples: &Samples, which: std::ops::Range<usize>) -> f64 {
        let right = |at: &usize| {
            let digits = self.layer(1, &self.hidden(&samples.images[at * INPUTS..][..INPUTS]), DIGITS);
            let best = (0..DIGITS).max_by(|a, b| digits[*a].total_cmp(&digits[*b]));
            best == Some(samples.labels[*at] as usize)
        };
        let count = which.len();
        which.filter(right).count() as f64 / count as f64
    }

    /// One step: the gradient of one batch.
    pub fn step(&mut self, samples: &Samples, first: usize, rate: f32) {
        let mut hidden = Vec::new();
        let (mut errors, mut backs) = (Vec::new(), Vec::new());
        for at in first..first + BATCH {
            let units = self.hidden(&samples.images[at * INPUTS..][..INPUTS]);
            let mut error = self.layer(1, &units, DIGITS);
            let most = error.iter().copied().fold(f32::MIN, f32::max);
            error.iter_mut().for_each(|x| *x = (*x - most).exp());
            let all: f32 = error.iter().sum();
            error.iter_mut().for_each(|x| *x /= all);
            error[samples.labels[at] as usize] -= 1.0;
            let back = |(j, unit): (usize, &f32)| {
                let sum: f32 = (0..DIGITS).map(|k| error[k] * self.0[1][j * DIGITS + k]).sum();
                sum * (1.0 - unit * unit)
            };
            backs.push(units.iter().enumerate().map(back).collect::<Vec<_>>());
            hidden.push(units);
            errors.push(error);
        }
        let images: Vec<&[f32]> = (first..first + BATCH).map(|at| &samples.images[at * INPUTS..][..INPUTS]).collect();
        let hidden: Vec<&[f32]> = hidden.iter().map(Vec::as_slice).collect();
        learn(&mut self.0[1], &hidden, &errors, rate);
        learn(&mut self.0[0], &images, &backs, rate);
    }
}

fn learn(weights: &mut [f32], inputs: &[&[f32]], errors: &[Vec<f32>], rate: f32) {
    let (from, to) = (inputs[0].len(), errors[0].len());
    for (at, weight) in weights.iter_mut().enumerate() {
        let (i, k) = (at / to, at % to);
        let one = |(input, error): (&&[f32], &Vec<f32>)| if i < from { input[i] * error[k] } else { error[k] };
        let sum: f32 = inputs.iter().zip(errors).map(one).sum();
        *weight -= rate * sum / BATCH as f32;
    }
}
