//! Traits that prevent implementations of the public traits outside this crate. Each public trait has one of these as a
//! supertrait, with the same implementations.

use std::error::Error as StdError;

use bytemuck::Pod;

use crate::cl::memory::globals::GlobalSlice;
use crate::cl::memory::region::AsRegion;
use crate::cl::memory::typed::{Memory, MemorySlice};
use crate::cl::objects::buffer::{Buffer, BufferSlice};
use crate::cl::objects::image::{Image, ImageLayers};
use crate::cl::objects::sampler::Sampler;
use crate::graph::nodes::argument::Pixels;
use crate::graph::nodes::external_event::{EventSignal, EventWait};
use crate::graph::nodes::memory::GraphMemory;
use crate::graph::nodes::transfer::{HostRead, HostWrite};
use crate::graph::parameters::{LocalMemory, Parameter};
use crate::handles::Node;

pub trait Nodes {}
impl Nodes for Node {}
impl<T> Nodes for HostWrite<T> {}
impl<T> Nodes for HostRead<T> {}
impl Nodes for EventWait {}
impl Nodes for EventSignal {}
impl<N: Nodes + ?Sized> Nodes for &N {}
impl<N: Nodes> Nodes for [N] {}
impl<N: Nodes, const LEN: usize> Nodes for [N; LEN] {}
impl<N: Nodes> Nodes for Vec<N> {}

pub trait BufferArg<T> {}
impl<T> BufferArg<T> for Buffer<T> {}
impl<T> BufferArg<T> for BufferSlice<T> {}
impl<T> BufferArg<T> for Memory<T> {}
impl<T> BufferArg<T> for MemorySlice<T> {}
impl<T> BufferArg<T> for GraphMemory<T> {}
impl<T, A> BufferArg<T> for GlobalSlice<T, A> {}
impl<T> BufferArg<T> for Parameter<Memory<T>> {}
impl<T> BufferArg<T> for Parameter<Buffer<T>> {}
impl BufferArg<Pixels> for Image {}
impl BufferArg<Pixels> for ImageLayers {}
impl BufferArg<Pixels> for Parameter<Image> {}

pub trait ValueArg {}
#[diagnostic::do_not_recommend]
impl<T: Pod> ValueArg for T {}
impl ValueArg for &Sampler {}
impl<T: Pod> ValueArg for &Parameter<T> {}
impl ValueArg for &Parameter<[u8]> {}
impl ValueArg for &Parameter<Sampler> {}
impl ValueArg for &Parameter<LocalMemory> {}

pub trait UsedMemory<T> {}
impl<T, M: AsRegion<T>> UsedMemory<T> for M {}
impl UsedMemory<()> for Image {}
impl UsedMemory<()> for ImageLayers {}

pub trait TaskOutcome {}
impl TaskOutcome for () {}
impl<E: Into<Box<dyn StdError + Send + Sync>>> TaskOutcome for Result<(), E> {}

pub trait EventHandle {}
impl EventHandle for EventWait {}
impl EventHandle for EventSignal {}
