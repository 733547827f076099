//! The same on the host, to check the device by.

use image::RgbImage;

/// Red, green, blue and nothing.
pub type Pixel = [u8; 4];

/// A picture, and what was counted on the way to it.
pub struct Equalized {
    pub histogram: Vec<u32>,
    pub curve: Vec<u8>,
    pub pixels: Vec<Pixel>,
}

pub fn on_the_cpu(pixels: &[Pixel]) -> Equalized {
    let mut histogram = vec![0_u32; 256];
    for [r, g, b, _] in pixels.iter().map(|pixel| pixel.map(u32::from)) {
        histogram[((77 * r + 151 * g + 28 * b) >> 8) as usize] += 1;
    }
    let mut sum = 0;
    let curve: Vec<u8> = histogram
        .iter()
        .map(|count| {
            sum += u64::from(*count);
            (sum * 255 / pixels.len() as u64) as u8
        })
        .collect();
    let apply = |pixel: &Pixel| [curve[pixel[0] as usize], curve[pixel[1] as usize], curve[pixel[2] as usize], 255];
    Equalized { pixels: pixels.iter().map(apply).collect(), histogram, curve }
}

pub fn check(expected: &Equalized, found: &Equalized) -> Result<(), String> {
    if expected.histogram != found.histogram {
        return Err("the histogram is not that of the CPU".to_owned());
    }
    if expected.curve != found.curve {
        return Err("the curve is not that of the CPU".to_owned());
    }
    if expected.pixels != found.pixels {
        return Err("the picture is not that of the CPU".to_owned());
    }
    println!("           the histogram, the curve and the picture are those of the CPU");
    Ok(())
}

pub fn to_picture((width, height): (u32, u32), pixels: &[Pixel]) -> RgbImage {
    RgbImage::from_fn(width, height, |x, y| {
        let [r, g, b, _] = pixels[(y * width + x) as usize];
        image::Rgb([r, g, b])
    })
}
