//! The commands of a queue on images, with the names and the order of arguments of `opencl3`. While the queue records,
//! they become nodes.

use std::marker::PhantomData;

use super::detached::{Detached, commands};
use super::enqueue::{region, through};
use super::event::Event;
use super::execute::no_event;
use super::pending_read::PendingRead;
use super::queue::{List, Queue};
use crate::cl::commands::enqueue;
use crate::cl::commands::enqueue::{To, Waits};
use crate::cl::commands::image_commands;
use crate::cl::memory::host::{Element, HostData};
use crate::cl::memory::map::MapMode;
use crate::cl::memory::map_image::MappedImage;
use crate::cl::memory::region::{AsDestination, AsSource, Region};
use crate::cl::objects::image::Image;
#[allow(unused_imports)] // The documentation names it.
use crate::error::MemoryError;
use crate::error::{BuildCause, BuildError, RecordError, Result};
use crate::graph::nodes::image::{ImageFill, ImageRead, ImageWrite, check_image_write};
use crate::graph::nodes::image_copy::{ImageCopy, PixelSide};
use crate::graph::nodes::map::Map;
use crate::graph::nodes::request::Request;
use crate::graph::recorder::Order;
use crate::images::{Area, Color};

/// The bytes of a buffer from an offset on, as many as the packed pixels have.
fn packed(whole: Region, offset: usize, image: &Image, pixels: [usize; 3]) -> Result<PixelSide> {
    let bytes = Area { origin: [0; 3], region: pixels }.len().and_then(|pixels| pixels.checked_mul(image.pixel_size()));
    let region = region("the buffer", whole, offset, bytes.unwrap_or(usize::MAX));
    Ok(PixelSide::Buffer(region.map_err(|cause| BuildError::new("copy of pixels", cause))?))
}

impl Queue {
    /// A write of borrowed data. An executing queue blocks; a recording queue copies the data.
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
        let waiting = self.wait_on_host(waits)?;
        let to = To { queue: self.driver(), waits: &Waits::NONE, event: want };
        if area.is_empty() {
            return Ok(enqueue::nothing(&to)?.map(Event::from));
        }
        if self.blocks_too_long() {
            drop(waiting);
            let write = ImageWrite { image: image.clone(), area, data: HostData::from(data).into_bytes() };
            let event = self.submit(&write, &[], true)?;
            event.iter().try_for_each(Event::wait)?;
            return Ok(event);
        }
        let event = image_commands::write_blocking(&To { event: true, ..to }, &image.region().mem, &area, bytes)?;
        through(event.as_ref())?;
        Ok(event.map(Event::from))
    }

    /// Reads a part of an image, packed, into borrowed memory, and blocks until the pixels are there.
    ///
    /// While the queue records, use [`enqueue_read_image_owned`](Self::enqueue_read_image_owned).
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
            let instead = "it would wait for a result, but a recording runs nothing; use `enqueue_read_image_owned`, \
                           whose result each submission returns";
            return Err(RecordError::NotRecordable { what: "a read into a borrowed slice", instead }.into());
        }
        let waiting = self.wait_on_host(event_wait_list)?;
        if self.blocks_too_long() {
            drop(waiting);
            return self.read_owned::<u8>(read, List::Now(Waits::NONE))?.wait_into(bytes);
        }
        let to = To { queue: self.driver(), waits: &Waits::NONE, event: true };
        let event = if area.is_empty() {
            enqueue::nothing(&to)?
        } else {
            image_commands::read_blocking(&to, &image.region().mem, &area, bytes)?
        };
        through(event.as_ref())?;
        Ok(event.ok_or(no_event("clEnqueueReadImage"))?.into())
    }

    /// Maps a part of an image for the host.
    ///
    /// It waits for the wait list on the host. On an in-order queue it also blocks until all commands enqueued before
    /// are complete.
    ///
    /// # Errors
    /// [`RecordError::NotRecordable`] while the queue records; [`MemoryError::Empty`], [`MemoryError::ElementAlign`];
    /// [`BuildCause::ImageArea`], [`BuildCause::OtherContext`], [`BuildCause::AccessForbidden`], and
    /// [`BuildCause::NotSupported`] when a row is not a whole number of elements, in a [`BuildError`]; and those of
    /// [`enqueue_copy_buffer`](Self::enqueue_copy_buffer) for the wait list.
    ///
    /// # Safety
    /// As for [`map`](Self::map): until the part is unmapped, nothing else writes to it, and, if the host writes,
    /// nothing else reads it.
    #[doc(alias = "clEnqueueMapImage")]
    #[allow(unsafe_code)] // A declaration: the promise itself. Nothing unsafe is done here.
    pub unsafe fn map_image<T: Element, M: MapMode>(
        &self,
        image: &Image,
        origin: [usize; 3],
        region: [usize; 3],
        mode: M,
        event_wait_list: &[&Event],
    ) -> Result<MappedImage<T, M>> {
        let instead = "use `enqueue_map_image`, which gives the mapped pixels to a function in each submission";
        self.check_executing("mapping an image", instead)?;
        let area = Area { origin, region };
        Map::of_image::<T>(image, area, mode.access()).check_alone(self.driver())?;
        let _waiting = self.wait_on_host(event_wait_list)?;
        self.wait_in_order()?;
        MappedImage::new(self.driver(), image, &area, mode)
    }

    /// Reads a part of an image, packed, into memory of its own, and does not block. The read may be recorded.
    ///
    /// # Errors
    /// As [`enqueue_read_image`](Self::enqueue_read_image); and those of
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
        self.read_owned(read, self.list(event_wait_list, false)?)
    }
}

commands! {
    /// Copies pixels between images of the same format.
    ///
    /// # Errors
    /// Those of [`ImageCopyNode::add`](crate::ImageCopyNode::add), in a [`BuildError`], the same whether the queue
    /// executes or records; and those of [`enqueue_copy_buffer`](Self::enqueue_copy_buffer) for the wait list.
    #[doc(alias = "clEnqueueCopyImage")]
    fn enqueue_copy_image(
        src_image: &Image,
        dst_image: &Image,
        src_origin: [usize; 3],
        dst_origin: [usize; 3],
        region: [usize; 3],
    ) "clEnqueueCopyImage" => |queue, want, waits| {
        let src = PixelSide::Image(src_image.clone(), src_origin);
        let dst = PixelSide::Image(dst_image.clone(), dst_origin);
        queue.submit(&ImageCopy { src, dst, region }, waits, want)
    };

    /// Copies pixels of an image to a buffer, packed, from byte `dst_offset` on.
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

    /// Writes packed pixels of borrowed memory to a part of an image.
    ///
    /// An executing queue waits for the wait list on the host, and blocks until the data is in the image. A recording
    /// queue copies the data.
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

    /// Writes packed pixels that the queue takes ownership of, and does not block.
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
