//! Traits that prevent implementations of the public traits outside this crate. Each public trait has one of these as a
//! supertrait, with the same implementations.

use bytemuck::Pod;

use super::event::Event;
use super::queue::Queue;
use crate::cl::memory::globals::GlobalSlice;
use crate::cl::memory::typed::{Memory, MemorySlice};
use crate::cl::objects::buffer::{Buffer, BufferSlice};
use crate::cl::objects::image::{Image, ImageLayers};
use crate::cl::objects::sampler::Sampler;
use crate::graph::{GraphMemory, LocalMemory, Parameter, sealed};

pub trait Queues {}
impl Queues for Queue {}
impl<Q: Queues + ?Sized> Queues for &Q {}
impl<Q: Queues> Queues for [Q] {}
impl<Q: Queues, const LEN: usize> Queues for [Q; LEN] {}
impl<Q: Queues> Queues for Vec<Q> {}

pub trait KernelArg {}
#[diagnostic::do_not_recommend]
impl<T: Pod> KernelArg for T {}
impl<T> KernelArg for Buffer<T> {}
impl<T> KernelArg for BufferSlice<T> {}
impl<T> KernelArg for Memory<T> {}
impl<T> KernelArg for MemorySlice<T> {}
impl<T> KernelArg for GraphMemory<T> {}
impl<T, A> KernelArg for GlobalSlice<T, A> {}
impl KernelArg for Image {}
impl KernelArg for ImageLayers {}
impl KernelArg for Sampler {}
impl<T> KernelArg for Parameter<Memory<T>> {}
impl<T> KernelArg for Parameter<Buffer<T>> {}
impl KernelArg for Parameter<Image> {}
impl<T: Pod> KernelArg for Parameter<T> {}
impl KernelArg for Parameter<[u8]> {}
impl KernelArg for Parameter<Sampler> {}
impl KernelArg for Parameter<LocalMemory> {}

impl sealed::Nodes for Event {}
