//! The arguments of a kernel node.

use bytemuck::Pod;

use crate::cl::memory::globals::GlobalSlice;
use crate::cl::memory::region::AsRegion;
use crate::cl::memory::typed::{Memory, MemorySlice};
use crate::cl::objects::buffer::{Buffer, BufferSlice};
use crate::cl::objects::image::{Image, ImageLayers};
use crate::cl::objects::kernel_params::Number;
use crate::cl::objects::sampler::Sampler;
use crate::command::Arg;
use crate::graph::nodes::launch::Launch;
use crate::graph::parameters::{LocalMemory, Parameter};
use crate::graph::sealed;
use crate::ir::Mode;

/// Memory as an argument of a kernel node.
///
/// It is implemented for a [`Buffer`], a [`BufferSlice`], a [`Memory`], a [`MemorySlice`], a
/// [`GraphMemory`](crate::GraphMemory), a [`GlobalSlice`], an [`Image`] or its [layers](Image::layers), and a
/// [`Parameter`] of a buffer, of memory, or of an image. It cannot be implemented outside this crate.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not memory that can be a kernel argument",
    note = "give a reference to a buffer with `read`, `write` or `read_write`, and a value with `arg`"
)]
pub trait BufferArg<T>: sealed::BufferArg<T> {
    #[doc(hidden)]
    fn give_buffer(&self, to: &mut LaunchRef<'_>);
}

/// A value as an argument of a kernel node.
///
/// It is implemented for plain data, and for references to a [`Sampler`] or to a [`Parameter`] of a value, of bytes, or
/// of local memory. It cannot be implemented outside this crate.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a value that can be a kernel argument",
    note = "give a buffer with `read`, `write` or `read_write`; a value must be plain data (`bytemuck::Pod`)"
)]
pub trait ValueArg: sealed::ValueArg {
    #[doc(hidden)]
    fn give_value(&self, to: &mut LaunchRef<'_>);
}

/// Hides the private type of launches in public traits.
#[derive(Debug)]
pub struct LaunchRef<'a> {
    pub(crate) launch: &'a mut Launch,
    /// How the kernel uses a buffer, if the caller has declared the use.
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

/// Stands for the pixels of an [`Image`] where another argument has its element type.
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
        to.launch.args.push(Arg::Sampler((*self).clone()));
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
