//! The same work as the kernels in `kernels-cl/deep_field.cl`, on the CPU.
//!
//! It is here to check the kernels: all of it is integer arithmetic, so the
//! two must agree in every value. Where it can, it goes another way than the
//! kernels do: the median sorts its nine values, the box mean uses running
//! sums, and the objects are found by a flood fill rather than by iteration.
//!
//! An image is `width * height` values, row after row from the top; pixel
//! (x, y) is value `y * width + x`, which is called its index.

use crate::objects::{Objects, Parameters};

/// Finds the bright objects in a colour image.
///
/// `rgb` holds three bytes (red, green, blue) for each pixel.
///
/// # Panics
///
/// If `rgb` is not `3 * width * height` bytes long.
pub(crate) fn find_objects(rgb: &[u8], width: usize, height: usize, parameters: &Parameters) -> Objects {
    assert_eq!(rgb.len(), 3 * width * height, "three bytes for each pixel");
    let light = luminance(rgb);
    let smooth = median3x3(&light, width, height);
    let background = box_mean(&smooth, width, height, parameters.radius, parameters.ceiling);
    let bright = threshold(&smooth, &background, parameters.contrast);
    let (labels, areas) = label(&bright, width, height);
    let count = areas.iter().filter(|area| **area >= parameters.min_area.max(1)).count() as u32;
    Objects { labels, areas, count }
}

/// How bright each pixel looks, with the weights of ITU-R BT.601 in 256ths,
/// rounded to the nearest integer.
pub(crate) fn luminance(rgb: &[u8]) -> Vec<u8> {
    let weighted = |pixel: &[u8]| 77 * u32::from(pixel[0]) + 150 * u32::from(pixel[1]) + 29 * u32::from(pixel[2]);
    // The weights add up to 256, so the result fits in a byte.
    rgb.chunks_exact(3).map(|pixel| ((weighted(pixel) + 128) / 256) as u8).collect()
}

/// Each pixel becomes the median of the 3 x 3 square around it. Beyond its
/// border, the image goes on with its border pixels.
pub(crate) fn median3x3(light: &[u8], width: usize, height: usize) -> Vec<u8> {
    let mut smooth = Vec::with_capacity(light.len());
    for y in 0..height {
        let rows = [y.saturating_sub(1), y, (y + 1).min(height - 1)];
        for x in 0..width {
            let columns = [x.saturating_sub(1), x, (x + 1).min(width - 1)];
            let mut square = [0; 9];
            for (place, value) in square.iter_mut().enumerate() {
                *value = light[rows[place / 3] * width + columns[place % 3]];
            }
            square.sort_unstable();
            smooth.push(square[4]);
        }
    }
    smooth
}

/// The mean of the square with sides of `2 * radius + 1` around each pixel,
/// rounded to the nearest integer; values above `ceiling` count as `ceiling`.
/// Beyond its border, the image goes on with its border pixels.
pub(crate) fn box_mean(smooth: &[u8], width: usize, height: usize, radius: u32, ceiling: u32) -> Vec<u8> {
    let radius = radius as usize;
    let side = 2 * radius as u64 + 1;
    let values = side * side;

    let mut row_sums = vec![0; width * height];
    for y in 0..height {
        let row: Vec<u64> =
            smooth[y * width..(y + 1) * width].iter().map(|&value| u64::from(value).min(u64::from(ceiling))).collect();
        row_sums[y * width..(y + 1) * width].copy_from_slice(&window_sums(&row, radius));
    }

    let mut background = vec![0; width * height];
    for x in 0..width {
        let column: Vec<u64> = (0..height).map(|y| row_sums[y * width + x]).collect();
        for (y, sum) in window_sums(&column, radius).into_iter().enumerate() {
            // A mean of bytes fits in a byte.
            background[y * width + x] = ((sum + values / 2) / values) as u8;
        }
    }
    background
}

/// For each place in a line of values, the sum of the values at most `radius`
/// away. Beyond its ends, the line goes on with its first and last value.
fn window_sums(line: &[u64], radius: usize) -> Vec<u64> {
    let (Some(&first), Some(&last)) = (line.first(), line.last()) else {
        return Vec::new();
    };
    // before[i] is the sum of the i values before place i.
    let mut before = vec![0];
    for (place, value) in line.iter().enumerate() {
        before.push(before[place] + value);
    }
    (0..line.len())
        .map(|place| {
            let start = place.saturating_sub(radius);
            let end = (place + radius + 1).min(line.len());
            let missing_left = radius.saturating_sub(place) as u64;
            let missing_right = (place + radius + 1).saturating_sub(line.len()) as u64;
            before[end] - before[start] + missing_left * first + missing_right * last
        })
        .collect()
}

/// Which pixels are brighter than their background by more than `contrast`.
pub(crate) fn threshold(smooth: &[u8], background: &[u8], contrast: u32) -> Vec<bool> {
    smooth
        .iter()
        .zip(background)
        .map(|(&value, &background)| u32::from(value) > u32::from(background) + contrast)
        .collect()
}

/// Labels the connected bright pixels (each pixel has eight neighbours) and
/// measures their areas; returns both as [`Objects`] describes them.
///
/// The pixels are looked at in the order of their index. A bright one without
/// a label is the first of a new object; a flood fill labels the rest of it.
/// As in the kernels, there are fewer than 2^32 - 1 pixels.
pub(crate) fn label(bright: &[bool], width: usize, height: usize) -> (Vec<u32>, Vec<u32>) {
    let mut labels = vec![0; bright.len()];
    let mut areas = vec![0; bright.len()];
    let mut to_visit = Vec::new();
    for first in 0..bright.len() {
        if !bright[first] || labels[first] != 0 {
            continue;
        }
        let label = first as u32 + 1;
        labels[first] = label;
        to_visit.push(first);
        while let Some(pixel) = to_visit.pop() {
            areas[first] += 1;
            let (x, y) = (pixel % width, pixel / width);
            for v in y.saturating_sub(1)..=(y + 1).min(height - 1) {
                for u in x.saturating_sub(1)..=(x + 1).min(width - 1) {
                    let neighbour = v * width + u;
                    if bright[neighbour] && labels[neighbour] == 0 {
                        labels[neighbour] = label;
                        to_visit.push(neighbour);
                    }
                }
            }
        }
    }
    (labels, areas)
}
