//! Nodes that move bytes or pixels: copies of rectangles, fills, writes and reads; and what graphs and queues share of them.

use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::PyBool;
use rust::{HostRead, HostWrite, RawNode};

use crate::adding::options;
use crate::errors::{invalid, type_of, wrong_type};
use crate::graph::Graph;
use crate::memory::{self, Cache, is_image, memory, with_place};
use crate::node::{self, After, Node, Read, Write};
use crate::numpy::{self, Layout, numpy};
use crate::picture::{self, triple};
use crate::value::Value;

/// The pattern of a fill: a plain number becomes an element of the memory, if its type is known.
pub(crate) fn pattern(pattern: &Bound<'_, PyAny>, layout: Option<&Layout>) -> PyResult<Vec<u8>> {
    let py = pattern.py();
    if crate::value::is_plain_number(pattern) {
        let Some(layout) = layout else {
            let text = "the memory has no dtype, so the pattern is a numpy scalar, an array or bytes";
            return Err(wrong_type(format!("{text}, not {pattern}")));
        };
        let dtype = layout.dtype.bind(py);
        // As an argument of a kernel: numpy would cut the fraction off, and make any number a bool.
        let kind: String = dtype.getattr("kind")?.extract()?;
        let native = dtype.call_method1("newbyteorder", ("=",))?;
        match Value::of(&numpy(py)?.call_method1("zeros", ((), native))?)? {
            Some(Value::Bytes(_)) | None if kind == "b" && !pattern.is_exact_instance_of::<PyBool>() => {
                let text = format!("{pattern} is of type {}, and the memory of {dtype}", type_of(pattern));
                return Err(wrong_type(text));
            }
            Some(Value::Bytes(_)) | None => {}
            Some(number) => drop(number.like(pattern)?),
        }
        let element = numpy(py)?.call_method1("array", (pattern, dtype)).map_err(|error| {
            let is_too_large = error.is_instance_of::<PyOverflowError>(py);
            if is_too_large { invalid(format!("{pattern} is no {dtype}")) } else { error }
        })?;
        return numpy::bytes_of(&element, "a pattern");
    }
    if let Some(layout) = layout {
        layout.check(pattern, "the memory")?;
    }
    numpy::bytes_of(pattern, "a pattern")
}

/// The layout of an input: that of the memory, or else that of the data.
pub(crate) fn input_layout(memory: Option<Layout>, data: &Bound<'_, PyAny>) -> Option<Layout> {
    memory.or_else(|| data.getattr("dtype").is_ok().then(|| Layout::of_array(data).ok()).flatten())
}

/// The layout of a result: what is asked for, or else that of the memory.
pub(crate) fn result_layout(
    py: Python<'_>,
    memory: &memory::Typed,
    dtype: Option<&Bound<'_, PyAny>>,
    shape: Option<&Bound<'_, PyAny>>,
) -> PyResult<Layout> {
    match &memory.layout {
        Some(layout) if dtype.is_none() && shape.is_none() => Ok(layout.clone_ref(py)),
        Some(layout) => Layout::new(py, Some(dtype.unwrap_or(layout.dtype.bind(py))), shape, memory.place.size()),
        None => Layout::new(py, dtype, shape, memory.place.size()),
    }
}

/// The size of the elements of a copy of a rectangle.
pub(crate) fn element(src: &memory::Typed, dst: &memory::Typed) -> PyResult<usize> {
    match (&src.layout, &dst.layout) {
        (Some(src), Some(dst)) if src.item != dst.item => Err(wrong_type(format!(
            "the source has elements of {} bytes and the destination of {}: give both views of one dtype",
            src.item, dst.item
        ))),
        _ => Ok(src.item().max(dst.item())),
    }
}

/// What a node has besides its work.
pub(crate) struct With<'a> {
    label: Option<&'a str>,
    after: After,
    /// The node that gets this command in place of its own.
    replaces: Option<RawNode>,
}

impl<'a> With<'a> {
    pub(crate) fn read(
        label: Option<&'a str>,
        after: Option<&Bound<'_, PyAny>>,
        replaces: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        Ok(Self { label, after: node::after(after)?, replaces: replaces.map(node::raw).transpose()? })
    }
}

/// Adds a node, which uses the memory that `note` has, or gives its command to the node that it replaces.
macro_rules! add {
    ($graph:expr, $py:expr, $builder:expr, $with:expr, $note:expr, |$old:ident| $handle:expr) => {{
        let With { label, after, replaces } = $with;
        let builder = options!($builder, label, after);
        match replaces {
            None => {
                let node = $graph.add($py, || builder.add())?.to_raw();
                $graph.note($note);
                node
            }
            Some($old) => {
                $graph.add($py, || builder.replace($handle))?;
                $graph.replaced($py);
                $old
            }
        }
    }};
}

/// Adds a copy of all bytes.
pub(crate) fn copy(graph: &Graph, src: &Bound<'_, PyAny>, dst: &Bound<'_, PyAny>, with: With<'_>) -> PyResult<Node> {
    if is_image(src) || is_image(dst) {
        return rect(graph, src, dst, None, (None, None), (None, None), with);
    }
    let (py, scope) = (src.py(), graph.scope());
    let (src, dst) = (memory(src, scope, "the source")?, memory(dst, scope, "the destination")?);
    let copy = with_place!(&src.place, |src| with_place!(&dst.place, |dst| graph.graph.copy(src, dst)));
    let note = |cache: &mut Cache| [&src, &dst].into_iter().for_each(|memory| cache.note(&memory.place));
    Ok(Node::of(add!(graph, py, copy, with, note, |old| rust::Node::from_raw(old)), "copy"))
}

/// Adds a copy of a rectangle or a box of memory, or of pixels.
pub(crate) fn rect(
    graph: &Graph,
    src: &Bound<'_, PyAny>,
    dst: &Bound<'_, PyAny>,
    region: Option<&Bound<'_, PyAny>>,
    (src_origin, dst_origin): (Option<&Bound<'_, PyAny>>, Option<&Bound<'_, PyAny>>),
    (src_pitch, dst_pitch): (Option<&Bound<'_, PyAny>>, Option<&Bound<'_, PyAny>>),
    with: With<'_>,
) -> PyResult<Node> {
    let (py, scope) = (src.py(), graph.scope());
    let origins = (triple(src_origin, 0, "src_origin")?, triple(dst_origin, 0, "dst_origin")?);
    let region = triple(region, 1, "region")?;
    if is_image(src) || is_image(dst) {
        if src_pitch.is_some() || dst_pitch.is_some() {
            return Err(wrong_type("a copy of pixels has no pitch: an image has its own, and other pixels are packed"));
        }
        let mut copy = match (is_image(src), is_image(dst)) {
            (true, true) => graph.graph.copy_image(&scope.image(src)?, &scope.image(dst)?),
            (true, false) => {
                let memory = memory(dst, scope, "the destination")?.place;
                with_place!(&memory, |to| graph.graph.copy_image_to_buffer(&scope.image(src)?, to))
            }
            _ => {
                let memory = memory(src, scope, "the source")?.place;
                with_place!(&memory, |from| graph.graph.copy_buffer_to_image(from, &scope.image(dst)?))
            }
        };
        if let Some(region) = region {
            copy = copy.region(region);
        }
        if let Some(origin) = origins.0 {
            copy = copy.src_origin(origin);
        }
        if let Some(origin) = origins.1 {
            copy = copy.dst_origin(origin);
        }
        return Ok(Node::of(add!(graph, py, copy, with, |_| (), |old| rust::Node::from_raw(old)), "copy of pixels"));
    }
    let (src, dst) = (memory(src, scope, "the source")?, memory(dst, scope, "the destination")?);
    let item = element(&src, &dst)?;
    let bytes = |[x, y, z]: [usize; 3]| [x.saturating_mul(item), y, z];
    let pitch = |pitch, what| -> PyResult<(usize, usize)> {
        let [row, slice, _] = triple(pitch, 0, what)?.unwrap_or([0; 3]);
        Ok((row.saturating_mul(item), slice.saturating_mul(item)))
    };
    let (src_pitch, dst_pitch) = (pitch(src_pitch, "src_pitch")?, pitch(dst_pitch, "dst_pitch")?);
    let copy = with_place!(&src.place, |src| with_place!(&dst.place, |dst| graph.graph.copy_rect::<u8>(src, dst)));
    let mut copy = copy
        .src_origin(bytes(origins.0.unwrap_or([0; 3])))
        .dst_origin(bytes(origins.1.unwrap_or([0; 3])))
        .src_pitch(src_pitch.0, src_pitch.1)
        .dst_pitch(dst_pitch.0, dst_pitch.1);
    if let Some(region) = region {
        copy = copy.region(bytes(region));
    }
    let note = |cache: &mut Cache| [&src, &dst].into_iter().for_each(|memory| cache.note(&memory.place));
    Ok(Node::of(add!(graph, py, copy, with, note, |old| rust::Node::from_raw(old)), "copy of a rectangle"))
}

/// Adds a fill of memory or of an image.
pub(crate) fn fill(
    graph: &Graph,
    dst: &Bound<'_, PyAny>,
    pattern: &Bound<'_, PyAny>,
    (origin, region): (Option<&Bound<'_, PyAny>>, Option<&Bound<'_, PyAny>>),
    with: With<'_>,
) -> PyResult<Node> {
    let py = dst.py();
    if is_image(dst) {
        let image = graph.scope().image(dst)?;
        let (origin, region) = picture::area(&image, origin, region)?;
        let fill = graph.graph.fill_image(&image, picture::color(&image, pattern)?).area(origin, region);
        let note = |cache: &mut Cache| cache.note_image(&image);
        return Ok(Node::of(add!(graph, py, fill, with, note, |old| rust::Node::from_raw(old)), "fill of an image"));
    }
    only_images(origin, region)?;
    let memory = memory(dst, graph.scope(), "the destination")?;
    let pattern = self::pattern(pattern, memory.layout.as_ref())?;
    let fill = with_place!(&memory.place, |dst| graph.graph.fill_pattern(dst, &pattern));
    let note = |cache: &mut Cache| cache.note(&memory.place);
    Ok(Node::of(add!(graph, py, fill, with, note, |old| rust::Node::from_raw(old)), "fill"))
}

/// Adds a write to memory or to an image.
pub(crate) fn write(
    graph: &Graph,
    dst: &Bound<'_, PyAny>,
    data: &Bound<'_, PyAny>,
    copy: bool,
    (origin, region): (Option<&Bound<'_, PyAny>>, Option<&Bound<'_, PyAny>>),
    with: With<'_>,
) -> PyResult<Py<Write>> {
    let py = dst.py();
    if is_image(dst) {
        let image = graph.scope().image(dst)?;
        let (origin, region) = picture::area(&image, origin, region)?;
        let layout = Some(picture::input_layout(&image, region, data)?);
        let data = numpy::host_data(data, copy, "the data of a write")?;
        let write = graph.graph.write_image(&image, data).area(origin, region);
        let note = |cache: &mut Cache| cache.note_image(&image);
        return Write::make(py, add!(graph, py, write, with, note, |old| &HostWrite::<u8>::from_raw(old)), layout);
    }
    only_images(origin, region)?;
    let memory = memory(dst, graph.scope(), "the destination")?;
    if let Some(layout) = &memory.layout {
        layout.check(data, "the destination")?;
    }
    let layout = input_layout(memory.layout, data);
    let data = numpy::host_data(data, copy, "the data of a write")?;
    let write = with_place!(&memory.place, |dst| graph.graph.write(dst, data));
    let note = |cache: &mut Cache| cache.note(&memory.place);
    Write::make(py, add!(graph, py, write, with, note, |old| &HostWrite::<u8>::from_raw(old)), layout)
}

/// Adds a read of memory or of an image.
pub(crate) fn read(
    graph: &Graph,
    src: &Bound<'_, PyAny>,
    (dtype, shape): (Option<&Bound<'_, PyAny>>, Option<&Bound<'_, PyAny>>),
    (origin, region): (Option<&Bound<'_, PyAny>>, Option<&Bound<'_, PyAny>>),
    with: With<'_>,
) -> PyResult<Py<Read>> {
    let py = src.py();
    if is_image(src) {
        let image = graph.scope().image(src)?;
        let (origin, region) = picture::area(&image, origin, region)?;
        let layout = picture::layout(py, &image, region, dtype, shape)?;
        let read = graph.graph.read_image::<u8>(&image).area(origin, region);
        let note = |cache: &mut Cache| cache.note_image(&image);
        return Read::make(py, add!(graph, py, read, with, note, |old| &HostRead::<u8>::from_raw(old)), layout);
    }
    only_images(origin, region)?;
    let memory = memory(src, graph.scope(), "the source")?;
    let layout = result_layout(py, &memory, dtype, shape)?;
    let read = with_place!(&memory.place, |src| graph.graph.read::<u8>(src));
    let note = |cache: &mut Cache| cache.note(&memory.place);
    Read::make(py, add!(graph, py, read, with, note, |old| &HostRead::<u8>::from_raw(old)), layout)
}

/// Returns an error if a part of an image is named where there is none.
pub(crate) fn only_images(origin: Option<&Bound<'_, PyAny>>, region: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    if origin.is_some() || region.is_some() {
        return Err(wrong_type("`origin` and `region` name a part of an image; a part of memory is a slice of it"));
    }
    Ok(())
}
