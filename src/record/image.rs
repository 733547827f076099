//! The commands of queues on images, with the names and the order of arguments of `opencl3`. Recorded, they become nodes.

use std::marker::PhantomData;
use std::sync::Arc;

use super::detached::{Detached, commands};
use super::enqueue::{PendingRead, region, through};
use super::event::Event;
use super::execute::{Run, no_event, nothing};
use super::queue::Queue;
use crate::cl::buffer::{AsDestination, AsSource, Region};
use crate::cl::enqueue::{To, Waits};
use crate::cl::event::DriverEvent;
use crate::cl::host::{Element, HostData, Slot};
use crate::cl::image::Image;
use crate::cl::image_commands::{self, PixelsAt};
use crate::cl::map::MapMode;
use crate::cl::map_image::MappedImage;
use crate::cl::mem::Mem;
use crate::cl::watch;
#[allow(unused_imports)] // The documentation names it.
use crate::error::MemoryError;
use crate::error::{BuildCause, BuildError, RecordError, Result};
use crate::graph::image::{ImageFill, ImageRead, ImageWrite, check_image_write};
use crate::graph::image_copy::{ImageCopy, PixelSide};
use crate::graph::map::Map;
use crate::graph::request::Request;
use crate::graph::tape::Order;
use crate::images::{Area, Color};

impl Run for ImageCopy {
    fn memory(&self, each: &mut dyn FnMut(&Mem)) {
        for side in [&self.src, &self.dst] {
            match side {
                PixelSide::Image(image, _) => each(&image.region().mem),
                PixelSide::Buffer(buffer) => each(&buffer.mem),
            }
        }
    }

    fn run(&self, checked: &Self::Checked, to: &To<'_>) -> Result<Option<DriverEvent>> {
        if let Some((copy, checked)) = self.as_buffers().zip(checked.as_ref()) {
            return copy.run(checked, to);
        }
        if self.region.contains(&0) {
            return nothing(to);
        }
        let (src, dst) = self.sides();
        let images = [&src, &dst].map(|side| match side {
            PixelSide::Image(image, _) => image.region().mem,
            PixelSide::Buffer(buffer) => buffer.mem.clone(),
        });
        let at = |side: &PixelSide, mem| match side {
            PixelSide::Image(_, origin) => (mem, *origin, None),
            PixelSide::Buffer(buffer) => (mem, [0; 3], Some(buffer.offset)),
        };
        let [src_mem, dst_mem] = &images;
        let (from, into) = (at(&src, src_mem), at(&dst, dst_mem));
        Ok(image_commands::copy(to, pixels_at(&from), pixels_at(&into), &self.region)?)
    }
}

fn pixels_at<'a>((mem, origin, offset): &'a (&'a Mem, [usize; 3], Option<usize>)) -> PixelsAt<'a> {
    match offset {
        Some(offset) => PixelsAt::Buffer(mem, *offset),
        None => PixelsAt::Image(mem, origin),
    }
}

impl Run for ImageFill {
    fn memory(&self, each: &mut dyn FnMut(&Mem)) {
        each(&self.image.region().mem);
    }

    fn run(&self, (): &(), to: &To<'_>) -> Result<Option<DriverEvent>> {
        if self.area.is_empty() {
            return nothing(to);
        }
        Ok(image_commands::fill(to, &self.image.region().mem, &self.area, &self.color.bytes())?)
    }
}

impl Run for ImageWrite {
    fn memory(&self, each: &mut dyn FnMut(&Mem)) {
        each(&self.image.region().mem);
    }

    /// The data is kept until the command is complete, which takes an event.
    fn run(&self, (): &(), to: &To<'_>) -> Result<Option<DriverEvent>> {
        if self.area.is_empty() {
            return nothing(to);
        }
        let mem = self.image.region().mem;
        let event = image_commands::write(&To { event: true, ..*to }, &mem, &self.area, &self.data)?;
        match &event {
            Some(event) => watch::keep_until(event.clone(), self.data.clone()),
            None => watch::lose(no_event("clEnqueueWriteImage"), self.data.clone()),
        }
        Ok(event)
    }
}

/// As many bytes of a buffer, from an offset on, as the pixels have.
fn packed(whole: Region, offset: usize, image: &Image, pixels: [usize; 3]) -> Result<PixelSide> {
    let bytes = Area { origin: [0; 3], region: pixels }.len().and_then(|pixels| pixels.checked_mul(image.pixel_size()));
    let region = region("the buffer", whole, offset, bytes.unwrap_or(usize::MAX));
    Ok(PixelSide::Buffer(region.map_err(|cause| BuildError::new("copy of pixels", cause))?))
}

impl Queue {
    /// A write of borrowed memory: it blocks, or copies the memory where it is recorded.
    fn write_image<T: Element>(
        &self,
        want: bool,
        image: &Image,
        area: Area,
        data: &[T],
        waits: &[&Event],
    ) -> Result<Option<Event>> {
        if self.records(waits) {
            let data = HostData::from(data).into_bytes();
            if let Some(event) =
                self.record_if(&ImageWrite { image: image.clone(), area, data }, Order::Plain, waits)?
            {
                return Ok(Some(event));
            }
        }
        let bytes: &[u8] = bytemuck::cast_slice(data);
        let checked = check_image_write(&self.target(), image, &area, bytes.len());
        checked.map_err(|cause| BuildError::new("host write of an image", cause))?;
        self.wait_on_host(waits)?;
        let to = To { queue: self.driver(), waits: &Waits::NONE, event: want };
        if area.is_empty() {
            return Ok(nothing(&to)?.map(Event::from));
        }
        let event = image_commands::write_blocking(&To { event: true, ..to }, &image.region().mem, &area, bytes)?;
        through(event.as_ref())?;
        Ok(event.map(Event::from))
    }

    /// Reads a part of an image into borrowed memory, packed, and blocks until it is there.
    ///
    /// While the queue records, [`enqueue_read_image_owned`](Self::enqueue_read_image_owned) is the form to use.
    ///
    /// # Errors
    /// [`RecordError::NotRecordable`]; [`BuildCause::ImageArea`], [`BuildCause::SizeMismatch`],
    /// [`BuildCause::AccessForbidden`], [`BuildCause::OtherContext`], in a [`BuildError`]; and those of
    /// [`enqueue_copy_buffer`](Self::enqueue_copy_buffer) for the wait list.
    #[doc(alias = "clEnqueueReadImage")]
    pub fn enqueue_read_image<T: Element>(
        &self,
        image: &Image,
        origin: [usize; 3],
        region: [usize; 3],
        data: &mut [T],
        event_wait_list: &[&Event],
    ) -> Result<Event> {
        let wrong = |cause| BuildError::new("host read of an image", cause);
        let (area, bytes): (Area, &mut [u8]) = (Area { origin, region }, bytemuck::cast_slice_mut(data));
        let read = ImageRead { image: image.clone(), area, align: 1, element: 1 };
        read.check(&self.target()).map_err(wrong)?;
        if read.size() != bytes.len() {
            let (left_bytes, right_bytes) = (read.size() as u64, bytes.len() as u64);
            let cause = BuildCause::SizeMismatch { left: "the source", left_bytes, right: "the slice", right_bytes };
            return Err(wrong(cause).into());
        }
        if self.records(event_wait_list) {
            let instead = "it would block, and nothing runs: use `enqueue_read_image_owned`, whose result belongs to each \
                           submission";
            return Err(RecordError::NotRecordable { what: "a read into a borrowed slice", instead }.into());
        }
        self.wait_on_host(event_wait_list)?;
        let to = To { queue: self.driver(), waits: &Waits::NONE, event: true };
        let event = if area.is_empty() {
            nothing(&to)?
        } else {
            image_commands::read_blocking(&to, &image.region().mem, &area, bytes)?
        };
        through(event.as_ref())?;
        Ok(event.ok_or(no_event("clEnqueueReadImage"))?.into())
    }

    /// Maps a part of an image for the host. It waits for the list on the host, and blocks until what was enqueued before on an
    /// in-order queue is complete and the pixels are there.
    ///
    /// # Errors
    /// [`RecordError::NotRecordable`] while the queue records; [`MemoryError::Empty`], [`MemoryError::ElementAlign`];
    /// [`BuildCause::ImageArea`], [`BuildCause::OtherContext`], [`BuildCause::AccessForbidden`], and
    /// [`BuildCause::NotSupported`] for elements of which a row is no whole number, in a [`BuildError`]; and those of
    /// [`enqueue_copy_buffer`](Self::enqueue_copy_buffer) for the wait list.
    ///
    /// # Safety
    /// As for [`map`](Self::map): until it is unmapped nothing else writes to the part, and nothing else reads it if the host
    /// writes.
    #[doc(alias = "clEnqueueMapImage")]
    #[allow(unsafe_code)] // A declaration: the promise itself. Nothing unsafe is done here.
    pub unsafe fn map_image<T: Element>(
        &self,
        image: &Image,
        origin: [usize; 3],
        region: [usize; 3],
        mode: MapMode,
        event_wait_list: &[&Event],
    ) -> Result<MappedImage<T>> {
        let instead = "use `enqueue_map_image`, which gives it to a function in each submission";
        self.check_executing("mapping an image", instead)?;
        let area = Area { origin, region };
        Map::of_image::<T>(image, area, mode).check_alone(self.driver())?;
        self.wait_on_host(event_wait_list)?;
        self.wait_in_order()?;
        MappedImage::new(self.driver(), image, &area, mode)
    }

    /// Reads a part of an image into memory of its own, packed, and does not block. May be recorded.
    ///
    /// # Errors
    /// As [`enqueue_read_image`](Self::enqueue_read_image), and those of
    /// [`enqueue_read_buffer_owned`](Self::enqueue_read_buffer_owned) for elements and memory.
    pub fn enqueue_read_image_owned<T: Element>(
        &self,
        image: &Image,
        origin: [usize; 3],
        region: [usize; 3],
        event_wait_list: &[&Event],
    ) -> Result<PendingRead<T>> {
        let wrong = |cause| BuildError::new("host read of an image", cause);
        let area = Area { origin, region };
        let read = ImageRead { image: image.clone(), area, align: align_of::<T>(), element: size_of::<T>() };
        if let Some(event) = self.record_if(&read, Order::Plain, event_wait_list)? {
            return Ok(PendingRead { event, slot: None, element: PhantomData });
        }
        read.check(&self.target()).map_err(wrong)?;
        let waits = self.waits(event_wait_list)?;
        let bytes = read.size();
        let slot = Arc::new(Slot::new(bytes).ok_or_else(|| wrong(BuildCause::HostMemory { bytes }))?);
        let to = To { queue: self.driver(), waits: &waits, event: true };
        let event =
            if area.is_empty() { nothing(&to)? } else { image_commands::read(&to, &image.region().mem, &area, &slot)? };
        let Some(event) = event else {
            // Nobody can tell when the driver is done with the memory.
            std::mem::forget(slot);
            return Err(no_event("clEnqueueReadImage").into());
        };
        watch::keep_until(event.clone(), Arc::clone(&slot));
        Ok(PendingRead { event: event.into(), slot: Some(slot), element: PhantomData })
    }
}

commands! {
    /// Copies pixels between images of one format.
    ///
    /// # Errors
    /// Those of [`ImageCopyNode::add`](crate::ImageCopyNode::add), in a [`BuildError`], the same whether the queue executes or
    /// records; and those of [`enqueue_copy_buffer`](Self::enqueue_copy_buffer) for the wait list.
    #[doc(alias = "clEnqueueCopyImage")]
    fn enqueue_copy_image(
        src_image: &Image,
        dst_image: &Image,
        src_origin: [usize; 3],
        dst_origin: [usize; 3],
        region: [usize; 3],
    ) "clEnqueueCopyImage" => |queue, want, waits| {
        let (src, dst) = (PixelSide::Image(src_image.clone(), src_origin), PixelSide::Image(dst_image.clone(), dst_origin));
        queue.submit(&ImageCopy { src, dst, region }, waits, want)
    };

    /// Copies pixels of an image to a buffer, where they are packed, from byte `dst_offset` on.
    ///
    /// # Errors
    /// As [`enqueue_copy_image`](Self::enqueue_copy_image), and [`BuildCause::OutOfBounds`].
    #[doc(alias = "clEnqueueCopyImageToBuffer")]
    fn enqueue_copy_image_to_buffer<T>(
        src_image: &Image,
        dst_buffer: &impl AsDestination<T>,
        src_origin: [usize; 3],
        region: [usize; 3],
        dst_offset: usize,
    ) "clEnqueueCopyImageToBuffer" => |queue, want, waits| {
        packed(dst_buffer.region(), dst_offset, src_image, region).and_then(|dst| {
            let src = PixelSide::Image(src_image.clone(), src_origin);
            queue.submit(&ImageCopy { src, dst, region }, waits, want)
        })
    };

    /// Copies packed pixels of a buffer, from byte `src_offset` on, to an image.
    ///
    /// # Errors
    /// As [`enqueue_copy_image`](Self::enqueue_copy_image), and [`BuildCause::OutOfBounds`].
    #[doc(alias = "clEnqueueCopyBufferToImage")]
    fn enqueue_copy_buffer_to_image<T>(
        src_buffer: &impl AsSource<T>,
        dst_image: &Image,
        src_offset: usize,
        dst_origin: [usize; 3],
        region: [usize; 3],
    ) "clEnqueueCopyBufferToImage" => |queue, want, waits| {
        packed(src_buffer.region(), src_offset, dst_image, region).and_then(|src| {
            let dst = PixelSide::Image(dst_image.clone(), dst_origin);
            queue.submit(&ImageCopy { src, dst, region }, waits, want)
        })
    };

    /// Fills a part of an image with one colour.
    ///
    /// # Errors
    /// Those of [`ImageFillNode::add`](crate::ImageFillNode::add), in a [`BuildError`]; and those of
    /// [`enqueue_copy_buffer`](Self::enqueue_copy_buffer) for the wait list.
    #[doc(alias = "clEnqueueFillImage")]
    fn enqueue_fill_image(
        image: &Image,
        fill_color: impl Into<Color>,
        origin: [usize; 3],
        region: [usize; 3],
    ) "clEnqueueFillImage" => |queue, want, waits| {
        let fill = ImageFill { image: image.clone(), area: Area { origin, region }, color: fill_color.into() };
        queue.submit(&fill, waits, want)
    };

    /// Writes packed pixels of borrowed memory to a part of an image. On an executing queue it waits for the list on the host,
    /// and blocks until the data is there; recorded, the memory is copied.
    ///
    /// # Errors
    /// Those of [`ImageWriteNode::add`](crate::ImageWriteNode::add), in a [`BuildError`]; and those of
    /// [`enqueue_copy_buffer`](Self::enqueue_copy_buffer) for the wait list.
    #[doc(alias = "clEnqueueWriteImage")]
    fn enqueue_write_image<T: Element>(
        image: &Image,
        origin: [usize; 3],
        region: [usize; 3],
        data: &[T],
    ) "clEnqueueWriteImage" => |queue, want, waits| {
        queue.write_image(want, image, Area { origin, region }, data, waits)
    };

    /// Writes packed pixels that the queue takes over, and does not block.
    ///
    /// # Errors
    /// As [`enqueue_write_image`](Self::enqueue_write_image).
    fn enqueue_write_image_owned<T: Element>(
        image: &Image,
        origin: [usize; 3],
        region: [usize; 3],
        data: impl Into<HostData<T>>,
    ) "clEnqueueWriteImage" => |queue, want, waits| {
        let write = ImageWrite { image: image.clone(), area: Area { origin, region }, data: data.into().into_bytes() };
        queue.submit(&write, waits, want)
    };
}
