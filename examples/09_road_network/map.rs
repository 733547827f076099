//! The network as a map: roads in a colour for each of their ends.

use std::error::Error;
use std::path::Path;

use super::network::Network;

/// The size of a map in pixels; the scale follows from the height.
const HEIGHT: u32 = 900;
const MARGIN: f64 = 24.0;
const PAPER: [f64; 3] = [16.0, 18.0, 24.0];

/// Colours from the least to the greatest value, as viridis has them.
const COLOURS: [[f64; 3]; 6] = [
    [253.0, 231.0, 37.0],
    [122.0, 209.0, 81.0],
    [34.0, 168.0, 132.0],
    [42.0, 120.0, 142.0],
    [65.0, 68.0, 135.0],
    [88.0, 24.0, 110.0],
];

/// Each road once, by its ends.
pub(crate) fn roads(network: &Network) -> impl Iterator<Item = (usize, usize)> + '_ {
    (0..network.places.len()).flat_map(|from| {
        let ends = &network.ends[network.first[from] as usize..network.first[from + 1] as usize];
        ends.iter().map(move |to| (from, *to as usize)).filter(|(from, to)| from < to)
    })
}

/// Draws maps side by side: by crossing, a value from 0 to 1.
pub(crate) fn draw(path: &Path, network: &Network, maps: &[&[f64]]) -> Result<(), Box<dyn Error>> {
    let of = |axis: usize| network.places.iter().map(move |place| place[axis]);
    let least = [0, 1].map(|axis| of(axis).fold(f64::INFINITY, f64::min));
    let most = [0, 1].map(|axis| of(axis).fold(f64::NEG_INFINITY, f64::max));
    // A degree of longitude is shorter than one of latitude.
    let narrow = ((least[1] + most[1]) / 2.0).to_radians().cos();
    let scale = (f64::from(HEIGHT) - 2.0 * MARGIN) / (most[1] - least[1]);
    let width = ((most[0] - least[0]) * narrow * scale + 2.0 * MARGIN).ceil() as u32;
    let mut picture = Picture::new(width * maps.len() as u32, HEIGHT);
    for (at, values) in maps.iter().enumerate() {
        let place = |crossing: usize| {
            let [x, y] = network.places[crossing];
            let left = f64::from(width) * at as f64 + MARGIN;
            [left + (x - least[0]) * narrow * scale, MARGIN + (most[1] - y) * scale]
        };
        // Roads with great values come last, on top.
        let mut roads: Vec<(usize, usize)> = roads(network).collect();
        let value = |road: &(usize, usize)| values[road.0].max(values[road.1]);
        roads.sort_by(|a, b| value(a).total_cmp(&value(b)));
        for (from, to) in roads {
            picture.line(place(from), place(to), [values[from], values[to]]);
        }
    }
    picture.save(path)
}

struct Picture {
    width: u32,
    height: u32,
    pixels: Vec<[f64; 3]>,
}

impl Picture {
    fn new(width: u32, height: u32) -> Self {
        Self { width, height, pixels: vec![PAPER; (width * height) as usize] }
    }

    /// Draws a line whose colour goes from one value to another.
    fn line(&mut self, from: [f64; 2], to: [f64; 2], values: [f64; 2]) {
        let length = (to[0] - from[0]).hypot(to[1] - from[1]);
        let steps = (length * 2.0).ceil().max(1.0) as usize;
        for step in 0..=steps {
            let part = step as f64 / steps as f64;
            let at = [0, 1].map(|axis| from[axis] + (to[axis] - from[axis]) * part);
            self.dot(at, colour(values[0] + (values[1] - values[0]) * part));
        }
    }

    /// Draws a soft dot.
    fn dot(&mut self, [x, y]: [f64; 2], colour: [f64; 3]) {
        const RADIUS: f64 = 1.3;
        for v in (y - 2.0).floor() as i64..=(y + 2.0).ceil() as i64 {
            for u in (x - 2.0).floor() as i64..=(x + 2.0).ceil() as i64 {
                let is_inside = (0..i64::from(self.width)).contains(&u) && (0..i64::from(self.height)).contains(&v);
                let cover = (RADIUS + 0.5 - (u as f64 - x).hypot(v as f64 - y)).clamp(0.0, 1.0);
                if is_inside && cover > 0.0 {
                    let pixel = &mut self.pixels[(v * i64::from(self.width) + u) as usize];
                    pixel.iter_mut().zip(colour).for_each(|(old, new)| *old += (new - *old) * cover);
                }
            }
        }
    }

    fn save(&self, path: &Path) -> Result<(), Box<dyn Error>> {
        let bytes: Vec<u8> = self.pixels.iter().flatten().map(|value| value.round() as u8).collect();
        Ok(image::save_buffer(path, &bytes, self.width, self.height, image::ColorType::Rgb8)?)
    }
}

/// Returns the colour of a value from 0 to 1.
fn colour(value: f64) -> [f64; 3] {
    let at = value.clamp(0.0, 1.0) * (COLOURS.len() - 1) as f64;
    let below = (at as usize).min(COLOURS.len() - 2);
    let part = at - below as f64;
    [0, 1, 2].map(|channel| COLOURS[below][channel] + (COLOURS[below + 1][channel] - COLOURS[below][channel]) * part)
}
