//! The handwritten digits of `digits.csv.gz`.

use std::error::Error;
use std::io::Read as _;
use std::path::Path;

/// Points of a picture.
pub const POINTS: usize = 64;

/// Pictures of 8 x 8 points between 0 and 1, and the digit that each shows.
pub struct Samples {
    pub images: Vec<f32>,
    pub labels: Vec<u32>,
}

impl Samples {
    /// Reads them all: 64 numbers from 0 to 16 and a digit in each line.
    pub fn load(path: &Path) -> Result<Self, Box<dyn Error>> {
        let mut text = String::new();
        let file = std::fs::File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let read = flate2::read::GzDecoder::new(file).read_to_string(&mut text);
        read.map_err(|error| format!("{}: {error}", path.display()))?;
        let mut samples = Self { images: Vec::new(), labels: Vec::new() };
        for (number, line) in text.lines().enumerate() {
            let place = || format!("{}, line {}", path.display(), number + 1);
            let values: Result<Vec<f32>, _> = line.split(',').map(str::parse).collect();
            let values = values.map_err(|error| format!("{}: {error}", place()))?;
            let [image @ .., label] = values.as_slice() else { return Err(format!("{} is empty", place()).into()) };
            if image.len() != POINTS {
                return Err(format!("{}: {} points, and a picture has {POINTS}", place(), image.len()).into());
            }
            samples.images.extend(image.iter().map(|value| value / 16.0));
            samples.labels.push(*label as u32);
        }
        Ok(samples)
    }
}
