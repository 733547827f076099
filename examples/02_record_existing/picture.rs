//! Photographs in, heat maps out.

use std::error::Error;
use std::path::Path;

use image::{ImageReader, RgbImage};

pub struct Photo {
    pub width: usize,
    pub height: usize,
    rgb: RgbImage,
}

impl Photo {
    pub fn load(path: &Path) -> Result<Self, Box<dyn Error>> {
        let image = ImageReader::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let rgb = image.decode().map_err(|error| format!("{}: {error}", path.display()))?.into_rgb8();
        Ok(Self { width: rgb.width() as usize, height: rgb.height() as usize, rgb })
    }

    /// From 0 to 1, row by row.
    pub fn brightness(&self) -> Vec<f32> {
        let of = |pixel: &image::Rgb<u8>| pixel.0.iter().map(|value| f32::from(*value)).sum::<f32>() / (3.0 * 255.0);
        self.rgb.pixels().map(of).collect()
    }

    /// From 0.05 to 1, row by row.
    pub fn redness(&self) -> Vec<f32> {
        self.rgb.pixels().map(|pixel| 0.05 + 0.95 * f32::from(pixel.0[0]) / 255.0).collect()
    }
}

/// Writes values from 0 to 1 as a picture: black, red, yellow, white.
pub fn save(path: &Path, values: &[f32], width: usize) -> Result<(), Box<dyn Error>> {
    let bytes = values.iter().flat_map(|value| {
        let heat = value.clamp(0.0, 1.0) * 3.0;
        [heat, heat - 1.0, heat - 2.0].map(|part| (part.clamp(0.0, 1.0) * 255.0) as u8)
    });
    let height = values.len() / width.max(1);
    let image = RgbImage::from_raw(width as u32, height as u32, bytes.collect());
    let wrong = || format!("{}: {} values do not make rows of {width}", path.display(), values.len());
    Ok(image.ok_or_else(wrong)?.save(path)?)
}
