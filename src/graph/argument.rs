//! What a kernel node takes as an argument.

use bytemuck::Pod;

use super::launch::{Given, Launch};
use super::parameter::{LocalMemory, Parameter};
use super::sealed;
use crate::cl::buffer::{AsRegion, Buffer, BufferSlice};
use crate::cl::globals::GlobalSlice;
use crate::cl::image::{Image, ImageLayers};
use crate::cl::kernel::Number;
use crate::cl::memory::{Memory, MemorySlice};
use crate::cl::sampler::Sampler;
use crate::ir::Mode;

/// Memory as an argument of a kernel node: a [`Buffer`], a [`BufferSlice`], a [`Memory`], a [`MemorySlice`], a
/// [`GraphMemory`](crate::GraphMemory), a [`GlobalSlice`], an [`Image`] or its [layers](Image::layers), or a
/// [`Parameter`] of a buffer, of memory, or of an image.
///
/// It cannot be implemented elsewhere.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no memory that a kernel can take",
    note = "a buffer is given by `read`, `write` or `read_write`, by reference; a value is given by `arg`"
)]
pub trait BufferArg<T>: sealed::BufferArg<T> {
    #[doc(hidden)]
    fn give_buffer(&self, to: &mut LaunchRef<'_>);
}

/// A value as an argument of a kernel node: plain data, or a reference to a [`Sampler`] or to a [`Parameter`] of a
/// value, of bytes, or of local memory.
///
/// It cannot be implemented elsewhere.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no value that a kernel can take",
    note = "a buffer is given by `read`, `write` or `read_write`; values are plain data (`bytemuck::Pod`)"
)]
pub trait ValueArg: sealed::ValueArg {
    #[doc(hidden)]
    fn give_value(&self, to: &mut LaunchRef<'_>);
}

/// Hides what launches are made of.
#[derive(Debug)]
pub struct LaunchRef<'a> {
    pub(crate) launch: &'a mut Launch,
    /// How a buffer is used, where that is said.
    pub(crate) mode: Option<Mode>,
}

impl<'a> LaunchRef<'a> {
    pub(crate) fn new(launch: &'a mut Launch) -> Self {
        Self { launch, mode: None }
    }
}

impl<T> BufferArg<T> for Buffer<T> {
    fn give_buffer(&self, to: &mut LaunchRef<'_>) {
        to.launch.region(self.region(), to.mode);
    }
}

/// Stands for the pixels of an [`Image`] where an argument has elements.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Pixels;

impl BufferArg<Pixels> for Image {
    fn give_buffer(&self, to: &mut LaunchRef<'_>) {
        to.launch.region(self.region(), to.mode);
    }
}

impl BufferArg<Pixels> for ImageLayers {
    fn give_buffer(&self, to: &mut LaunchRef<'_>) {
        to.launch.region(self.region.clone(), to.mode);
    }
}

impl ValueArg for &Sampler {
    fn give_value(&self, to: &mut LaunchRef<'_>) {
        to.launch.args.push(Given::Sampler((*self).clone()));
    }
}

impl<T> BufferArg<T> for BufferSlice<T> {
    fn give_buffer(&self, to: &mut LaunchRef<'_>) {
        to.launch.region(self.region(), to.mode);
    }
}

impl<T, A> BufferArg<T> for GlobalSlice<T, A> {
    fn give_buffer(&self, to: &mut LaunchRef<'_>) {
        to.launch.region(self.region(), to.mode);
    }
}

impl<T> BufferArg<T> for Memory<T> {
    fn give_buffer(&self, to: &mut LaunchRef<'_>) {
        to.launch.region(self.region(), to.mode);
    }
}

impl<T> BufferArg<T> for MemorySlice<T> {
    fn give_buffer(&self, to: &mut LaunchRef<'_>) {
        to.launch.misplaced = to.launch.misplaced.take().or_else(|| self.misplaced());
        to.launch.region(self.region(), to.mode);
    }
}

impl<T> BufferArg<T> for Parameter<Memory<T>> {
    fn give_buffer(&self, to: &mut LaunchRef<'_>) {
        to.launch.memory_parameter(to.mode, self.cell());
    }
}

impl BufferArg<Pixels> for Parameter<Image> {
    fn give_buffer(&self, to: &mut LaunchRef<'_>) {
        to.launch.memory_parameter(to.mode, self.cell());
    }
}

impl<T> BufferArg<T> for Parameter<Buffer<T>> {
    fn give_buffer(&self, to: &mut LaunchRef<'_>) {
        to.launch.memory_parameter(to.mode, self.cell());
    }
}

#[diagnostic::do_not_recommend]
impl<T: Pod> ValueArg for T {
    fn give_value(&self, to: &mut LaunchRef<'_>) {
        to.launch.number(bytemuck::bytes_of(self), Number::of::<T>());
    }
}

impl<T: Pod> ValueArg for &Parameter<T> {
    fn give_value(&self, to: &mut LaunchRef<'_>) {
        to.launch.parameter(self.cell());
    }
}

impl ValueArg for &Parameter<[u8]> {
    fn give_value(&self, to: &mut LaunchRef<'_>) {
        to.launch.parameter(self.cell());
    }
}

impl ValueArg for &Parameter<Sampler> {
    fn give_value(&self, to: &mut LaunchRef<'_>) {
        to.launch.parameter(self.cell());
    }
}

impl ValueArg for &Parameter<LocalMemory> {
    fn give_value(&self, to: &mut LaunchRef<'_>) {
        to.launch.parameter(self.cell());
    }
}
