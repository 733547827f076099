//! What is looked for, and what is found.

/// The numbers that decide what counts as an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parameters {
    /// The background of a pixel is the mean of a square around it, with sides
    /// of `2 * radius + 1` pixels. At most 2047.
    pub(crate) radius: u32,
    /// In that mean, a brighter pixel counts as one of this brightness; so a
    /// bright galaxy hardly lifts the background around it. At most 255.
    pub(crate) ceiling: u32,
    /// A pixel belongs to an object if it is brighter than its background by
    /// more than this. At most 255.
    pub(crate) contrast: u32,
    /// An object is counted if it has this many pixels or more.
    pub(crate) min_area: u32,
}

impl Default for Parameters {
    /// What suits the photograph that comes with the example.
    fn default() -> Self {
        Self { radius: 32, ceiling: 40, contrast: 20, min_area: 12 }
    }
}

/// The objects in an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Objects {
    /// For each pixel, the label of the object that it belongs to: 1 + the
    /// smallest index among the object's pixels. 0 for the background.
    pub(crate) labels: Vec<u32>,
    /// At the index of each object's first pixel (its label - 1), the number
    /// of its pixels. 0 everywhere else.
    pub(crate) areas: Vec<u32>,
    /// How many objects have `min_area` pixels or more.
    pub(crate) count: u32,
}
