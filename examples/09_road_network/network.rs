//! The road network: crossings, and the roads between them.

use std::error::Error;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Longitude and latitude.
pub(crate) const MINNEAPOLIS: [f64; 2] = [-93.265, 44.978];

/// Crossings and roads. The roads from crossing `v` lead to `ends[first[v]..first[v + 1]]`.
pub(crate) struct Network {
    /// By crossing: longitude and latitude, in degrees.
    pub(crate) places: Vec<[f64; 2]>,
    pub(crate) first: Vec<u32>,
    pub(crate) ends: Vec<u32>,
}

impl Network {
    /// Reads a file with a line `v,LONGITUDE,LATITUDE` for each crossing and a line `e,FROM,TO` for each road.
    pub(crate) fn load(path: &Path) -> Result<Self, Box<dyn Error>> {
        let mut text = String::new();
        let file = File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
        flate2::read::GzDecoder::new(file).read_to_string(&mut text)?;
        let (mut places, mut roads) = (Vec::new(), Vec::<(usize, usize)>::new());
        for (number, line) in text.lines().enumerate().skip(1) {
            let wrong = || format!("{}, line {}: `{line}` is no crossing and no road", path.display(), number + 1);
            let mut fields = line.split(',');
            match (fields.next(), fields.next(), fields.next()) {
                (Some("v"), Some(x), Some(y)) => places.push([x.parse()?, y.parse()?]),
                (Some("e"), Some(from), Some(to)) => roads.push((from.parse()?, to.parse()?)),
                _ => return Err(wrong().into()),
            }
            if roads.last().is_some_and(|(from, to)| from.max(to) >= &places.len()) {
                return Err(wrong().into());
            }
        }
        let mut neighbours = vec![Vec::new(); places.len()];
        for (from, to) in roads {
            neighbours[from].push(to as u32);
            neighbours[to].push(from as u32);
        }
        let (mut first, mut ends) = (vec![0], Vec::new());
        for of in neighbours {
            ends.extend(of);
            first.push(ends.len() as u32);
        }
        Ok(Self { places, first, ends })
    }

    /// The crossing that is nearest to a place.
    pub(crate) fn nearest(&self, place: [f64; 2]) -> usize {
        let far = |of: &[f64; 2]| (of[0] - place[0]).hypot(of[1] - place[1]);
        let order = |a: &usize, b: &usize| far(&self.places[*a]).total_cmp(&far(&self.places[*b]));
        (0..self.places.len()).min_by(order).unwrap_or(0)
    }
}
