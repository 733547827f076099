//! The scene, and what a camera makes of its frames.

use image::RgbImage;

/// Red, green, blue and nothing.
pub type Pixel = [u8; 4];
/// The brightness that pictures are to have in the mean, and how fast exposure follows.
const WANTED: f32 = 110.0;
const SPEED: f32 = 0.3;

pub const WIDTH: usize = 240;
pub const HEIGHT: usize = 180;

/// A part of the photograph, from left to right and down and up again, for a time from 0 to 1.
pub fn frame(scene: &RgbImage, time: f32) -> Vec<Pixel> {
    let room = (scene.width() as usize - WIDTH, scene.height() as usize - HEIGHT);
    let left = (room.0 as f32 * time) as usize;
    let top = (room.1 as f32 * (1.0 - (time * 2.0 - 1.0).abs())) as usize;
    let pixel = |x: usize, y: usize| {
        let [r, g, b] = scene.get_pixel((left + x) as u32, (top + y) as u32).0;
        [r, g, b, 255]
    };
    (0..HEIGHT).flat_map(|y| (0..WIDTH).map(move |x| (x, y))).map(|(x, y)| pixel(x, y)).collect()
}

/// What the exposure is, and what it is to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exposure {
    pub gain: f32,
    pub brightness: f32,
    pub clipped: u32,
}

impl Exposure {
    pub const START: Self = Self { gain: 1.0, brightness: 0.0, clipped: 0 };

    /// After a look at a picture, row by row: the sum of its brightness, and how many pixels are clipped.
    pub fn next(self, rows: &[[u32; 2]]) -> Self {
        let (sum, clipped) = rows.iter().fold((0, 0), |(sum, clipped), row| (sum + row[0], clipped + row[1]));
        let brightness = sum as f32 / (WIDTH * HEIGHT) as f32;
        let step = 1.0 + SPEED * (WANTED / brightness.max(1.0) - 1.0).clamp(-0.8, 2.0);
        Self { gain: (self.gain * step).clamp(0.25, 6.0), brightness, clipped }
    }
}

/// What the kernels compute.
pub fn on_the_cpu(frame: &[Pixel], gain: f32) -> (Vec<Pixel>, Vec<[u32; 2]>) {
    let expose = |value: u8| (f32::from(value) * gain + 0.5).min(255.0) as u8;
    let picture: Vec<Pixel> = frame.iter().map(|pixel| pixel.map(expose)).collect();
    let measure = |row: &[Pixel]| {
        row.iter().fold([0, 0], |[sum, clipped], pixel| {
            let [r, g, b, _] = pixel.map(u32::from);
            [sum + ((77 * r + 151 * g + 28 * b) >> 8), clipped + u32::from(r == 255 || g == 255 || b == 255)]
        })
    };
    let rows = picture.chunks(WIDTH).map(measure).collect();
    (picture, rows)
}
