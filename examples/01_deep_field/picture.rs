//! Reads the photograph, and draws the objects that were found into it.

use std::path::Path;

use image::{ImageFormat, RgbImage};

/// A colour image in memory.
#[derive(Clone, Debug)]
pub(crate) struct Picture {
    /// In pixels.
    pub(crate) width: usize,
    /// In pixels.
    pub(crate) height: usize,
    /// Red, green and blue of each pixel, row after row from the top.
    pub(crate) rgb: Vec<u8>,
}

/// The smallest rectangle around an object; all four sides belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Frame {
    left: usize,
    top: usize,
    right: usize,
    bottom: usize,
}

/// How many pixels lie between an object and the box around it.
const MARGIN: usize = 3;

/// The colours of the boxes: each is for areas from the given one up to the
/// next one, in pixels.
const COLOURS: [(u32, [u8; 3]); 4] =
    [(0, [64, 196, 255]), (40, [105, 240, 174]), (120, [255, 215, 64]), (400, [255, 110, 64])];

/// How much of a box's own colour is seen, in 256ths; the rest is the photograph.
const OPACITY: u32 = 200;

impl Picture {
    /// Reads a JPEG or PNG file.
    ///
    /// # Errors
    ///
    /// If the file cannot be read or is not such an image; the text names the file.
    pub(crate) fn load(path: &Path) -> Result<Self, String> {
        let image = image::open(path)
            .map_err(|error| format!("cannot read the picture {}: {error}", path.display()))?
            .into_rgb8();
        Ok(Self { width: image.width() as usize, height: image.height() as usize, rgb: image.into_raw() })
    }

    /// Writes a PNG file, whatever the name ends in.
    ///
    /// # Errors
    ///
    /// If the file cannot be written; the text names the file.
    pub(crate) fn save_png(&self, path: &Path) -> Result<(), String> {
        let problem = |why: String| format!("cannot write the picture {}: {why}", path.display());
        let side = |pixels: usize| u32::try_from(pixels).map_err(|_| problem(format!("{pixels} pixels are too many")));
        RgbImage::from_raw(side(self.width)?, side(self.height)?, self.rgb.clone())
            .ok_or_else(|| problem("it has too few bytes for its size".to_owned()))?
            .save_with_format(path, ImageFormat::Png)
            .map_err(|error| problem(error.to_string()))
    }

    /// Draws a thin box around every object with `min_area` pixels or more.
    /// The colour says how large the object is.
    ///
    /// `labels` and `areas` are as the kernels leave them, with one value for
    /// each pixel: its label (0 for the background), and the area of the object
    /// with label `n` at index `n - 1`.
    pub(crate) fn draw_boxes(&mut self, labels: &[u32], areas: &[u32], min_area: u32) {
        let mut frames: Vec<Option<Frame>> = vec![None; areas.len()];
        for (index, &label) in labels.iter().enumerate() {
            if label == 0 {
                continue;
            }
            let object = label as usize - 1;
            if areas[object] >= min_area {
                let (x, y) = (index % self.width, index / self.width);
                let frame = frames[object].get_or_insert(Frame { left: x, top: y, right: x, bottom: y });
                frame.left = frame.left.min(x);
                frame.right = frame.right.max(x);
                frame.bottom = y;
            }
        }
        for (frame, &area) in frames.into_iter().zip(areas) {
            if let Some(frame) = frame {
                self.draw_box(frame, colour(area));
            }
        }
    }

    /// Draws one box, [`MARGIN`] pixels outside of `frame` and one pixel wide.
    /// A side beyond the border of the image is drawn on the border.
    fn draw_box(&mut self, frame: Frame, colour: [u8; 3]) {
        let left = frame.left.saturating_sub(MARGIN);
        let top = frame.top.saturating_sub(MARGIN);
        let right = (frame.right + MARGIN).min(self.width - 1);
        let bottom = (frame.bottom + MARGIN).min(self.height - 1);
        for x in left..=right {
            self.blend(x, top, colour);
            self.blend(x, bottom, colour);
        }
        for y in top + 1..bottom {
            self.blend(left, y, colour);
            self.blend(right, y, colour);
        }
    }

    /// Mixes a colour into one pixel.
    fn blend(&mut self, x: usize, y: usize, colour: [u8; 3]) {
        let start = 3 * (y * self.width + x);
        for (byte, wanted) in self.rgb[start..start + 3].iter_mut().zip(colour) {
            let mixed = u32::from(wanted) * OPACITY + u32::from(*byte) * (256 - OPACITY);
            *byte = (mixed / 256) as u8;
        }
    }
}

/// The colour of the box around an object of the given area.
fn colour(area: u32) -> [u8; 3] {
    COLOURS.iter().rev().find(|(from, _)| area >= *from).map_or(COLOURS[0].1, |(_, colour)| *colour)
}
