//! Parts of images: origins and regions, and colours.

use pyo3::prelude::*;
use rust::{ChannelType, Color, Image};

use crate::errors::{invalid, wrong_type};
use crate::numpy::{Layout, items, numpy};

/// Three numbers: columns, rows, slices. Fewer are filled up.
pub(crate) fn triple(object: Option<&Bound<'_, PyAny>>, fill: usize, what: &str) -> PyResult<Option<[usize; 3]>> {
    let Some(object) = object.filter(|object| !object.is_none()) else { return Ok(None) };
    let given: Vec<usize> = if let Ok(one) = object.extract::<usize>() {
        vec![one]
    } else {
        items(object, 64)
            .map_err(|_| wrong_type(format!("`{what}` is a tuple of one to three numbers, not {object}")))?
    };
    if given.is_empty() || given.len() > 3 {
        return Err(invalid(format!("`{what}` is a tuple of one to three numbers, not {object}")));
    }
    let mut all = [fill; 3];
    all[..given.len()].copy_from_slice(&given);
    Ok(Some(all))
}

/// A part of an image: all of it without an origin and a region.
pub(crate) fn area(
    image: &Image,
    origin: Option<&Bound<'_, PyAny>>,
    region: Option<&Bound<'_, PyAny>>,
) -> PyResult<([usize; 3], [usize; 3])> {
    let origin = triple(origin, 0, "origin")?.unwrap_or([0; 3]);
    let whole = image.shape().region();
    let rest = [0, 1, 2].map(|dim| whole[dim].saturating_sub(origin[dim]));
    Ok((origin, triple(region, 1, "region")?.unwrap_or(rest)))
}

/// The number of bytes of a part of an image.
pub(crate) fn bytes(image: &Image, region: [usize; 3]) -> usize {
    region.iter().fold(image.pixel_size(), |all, size| all.saturating_mul(*size))
}

/// The dtype of the channels of an image, if each channel is a number of its own.
fn channel<'py>(py: Python<'py>, image: &Image) -> PyResult<Option<Bound<'py, PyAny>>> {
    let name = match image.format().channel {
        ChannelType::SignedInt8 | ChannelType::SnormInt8 => "int8",
        ChannelType::UnsignedInt8 | ChannelType::UnormInt8 => "uint8",
        ChannelType::SignedInt16 | ChannelType::SnormInt16 => "int16",
        ChannelType::UnsignedInt16 | ChannelType::UnormInt16 => "uint16",
        ChannelType::SignedInt32 => "int32",
        ChannelType::UnsignedInt32 => "uint32",
        ChannelType::HalfFloat => "float16",
        ChannelType::Float => "float32",
        _ => return Ok(None),
    };
    numpy(py)?.getattr("dtype")?.call1((name,)).map(Some)
}

/// Returns the layout of data for a part of an image, or an error if the data has another dtype than the channels.
pub(crate) fn input_layout(image: &Image, region: [usize; 3], data: &Bound<'_, PyAny>) -> PyResult<Layout> {
    let layout = layout(data.py(), image, region, None, None)?;
    layout.check(data, &format!("an image of format {}", image.format()))?;
    Ok(layout)
}

/// The layout of a result: without a dtype, the channels of the image's pixels in the last dimension.
pub(crate) fn layout(
    py: Python<'_>,
    image: &Image,
    region: [usize; 3],
    dtype: Option<&Bound<'_, PyAny>>,
    shape: Option<&Bound<'_, PyAny>>,
) -> PyResult<Layout> {
    let size = bytes(image, region);
    if dtype.is_some() || shape.is_some() {
        return Layout::new(py, dtype, shape, size);
    }
    let Some(dtype) = channel(py, image)? else { return Layout::new(py, None, None, size) };
    let item: usize = dtype.getattr("itemsize")?.extract()?;
    let [width, height, depth] = region;
    let mut shape = match (height, depth) {
        (1, 1) => vec![width],
        (_, 1) => vec![height, width],
        _ => vec![depth, height, width],
    };
    if image.pixel_size() > item {
        shape.push(image.pixel_size() / item);
    }
    Ok(Layout { dtype: dtype.unbind(), shape, item })
}

/// A colour for an image: four numbers, of the kind that its format takes.
pub(crate) fn color(image: &Image, pattern: &Bound<'_, PyAny>) -> PyResult<Color> {
    let wrong = |_| {
        wrong_type(format!(
            "the colour of an image of format {} is four numbers of its kind, not {pattern}",
            image.format()
        ))
    };
    let is_float = !matches!(
        image.format().channel,
        ChannelType::SignedInt8
            | ChannelType::SignedInt16
            | ChannelType::SignedInt32
            | ChannelType::UnsignedInt8
            | ChannelType::UnsignedInt16
            | ChannelType::UnsignedInt32
    );
    // Plain numbers have no dtype. Integers of one would be taken for bytes, which 0 to 1 stand for here.
    if let Ok(dtype) = pattern.getattr("dtype")
        && is_float
        && dtype.getattr("kind")?.extract::<String>()? != "f"
    {
        return Err(wrong_type(format!(
            "the colour of an image of format {} is of floating-point numbers, and this one is of {dtype}: convert it by \
             `.astype`",
            image.format()
        )));
    }
    Ok(match image.format().channel {
        ChannelType::SignedInt8 | ChannelType::SignedInt16 | ChannelType::SignedInt32 => {
            Color::Int(pattern.extract().map_err(wrong)?)
        }
        ChannelType::UnsignedInt8 | ChannelType::UnsignedInt16 | ChannelType::UnsignedInt32 => {
            Color::Uint(pattern.extract().map_err(wrong)?)
        }
        _ => Color::Float(pattern.extract().map_err(wrong)?),
    })
}
