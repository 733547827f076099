//! Parameters that are OpenCL objects: buffers, memory of any kind, images, samplers.

use std::marker::PhantomData;
use std::sync::Arc;

use super::{Bound, Cell, Parameter, Value};
use crate::cl::buffer::{AsRegion, Buffer, Region};
use crate::cl::context::InContext;
use crate::cl::image::Image;
use crate::cl::kernel::Number;
use crate::cl::memory::Memory;
use crate::cl::sampler::Sampler;
use crate::error::{ParameterError, Result};

impl<T> Parameter<Buffer<T>> {
    /// A buffer or sub-buffer, which the parameter keeps alive. Kernels use of it what is named here: all, or the part
    /// that a slice names; every buffer that it becomes later has to hold these bytes, in the same place. Whether
    /// kernels may use it so (its access flags) is looked at when it is used: at finalize and at update.
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::{Buffer, Parameter, Queue};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// let input = Parameter::buffer(&Buffer::<f32>::new(&queue, 64)?);
    /// input.set(&Buffer::new(&queue, 128)?)?; // longer is fine
    /// assert!(input.set(&Buffer::new(&queue, 8)?).is_err()); // kernels use the first 64 elements
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn buffer(buffer: &impl AsRegion<T>) -> Self {
        Self::of_memory(buffer, false)
    }

    /// As [`buffer`](Self::buffer), and kernels may also get a null pointer instead of it: from [`set_null`](Self::set_null)
    /// on until a buffer is set again. The promise of [`KernelNode::add`](crate::KernelNode::add) covers that too.
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::{Buffer, Finalize, Graph, Parameter, Program, Queue};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// let source = "kernel void scale(global float *a, global const float *by) {
    ///                   if (by) a[get_global_id(0)] *= by[get_global_id(0)];
    ///               }";
    /// let scale = Program::from_source(&queue, source)?.kernel("scale")?;
    /// let (numbers, weights) = (Buffer::from_slice(&queue, &[1.0_f32, 2.0])?, Buffer::from_slice(&queue, &[3.0, 5.0])?);
    /// let by = Parameter::buffer_or_null(&weights);
    /// let graph = Graph::new(&queue)?;
    /// // SAFETY: a work-item touches its own elements, and looks whether there are weights.
    /// let node = unsafe { graph.kernel(&scale).read_write(&numbers).read(&by).range(2).add()? };
    /// let result = graph.read(&numbers).add()?;
    /// let executable = graph.finalize(Finalize::new().updatable())?;
    ///
    /// by.set_null()?;
    /// executable.update(&node)?;
    /// let run = executable.submit(&queue)?;
    /// run.wait()?;
    /// assert_eq!(*run.get(&result)?, [1.0, 2.0]);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn buffer_or_null(buffer: &impl AsRegion<T>) -> Self {
        Self::of_memory(buffer, true)
    }

    /// Sets the buffer: a [`Buffer`], or a part of one, [`BufferSlice`](crate::BufferSlice), which has to hold the bytes that
    /// kernels use. As at a node, kernels get the whole buffer that it is a part of.
    ///
    /// # Errors
    /// [`ParameterError::TooSmall`], [`ParameterError::OtherContext`]; [`ParameterError::Offset`] for a part that starts behind
    /// the first byte that kernels use: it stays as it was.
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::{Buffer, Parameter, Queue};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// let (a, b) = (Buffer::<f32>::new(&queue, 64)?, Buffer::<f32>::new(&queue, 64)?);
    /// let half = Parameter::<Buffer<f32>>::buffer(&a.slice(32..)?);
    /// half.set(&b.slice(32..)?)?; // kernels use elements 32 to 63 of `b`
    /// assert!(half.set(&b.slice(..32)?).is_err());
    /// # Ok(()) }
    /// ```
    pub fn set(&self, buffer: &impl AsRegion<T>) -> Result<()> {
        self.put_memory(buffer)
    }

    /// Makes it a null pointer.
    ///
    /// # Errors
    /// [`ParameterError::NeverNull`] for one that was not made by [`buffer_or_null`](Self::buffer_or_null).
    pub fn set_null(&self) -> Result<()> {
        self.put_null()
    }
}

impl<T> Parameter<Memory<T>> {
    /// Memory of any kind. Kernels use of it what is named here: all, or the part that a slice names; all memory that it
    /// becomes later is at least as long.
    #[must_use]
    pub fn memory(memory: &impl AsRegion<T>) -> Self {
        Self::of_memory(memory, false)
    }

    /// As [`memory`](Self::memory), and kernels may also get a null pointer, from [`set_null`](Self::set_null) on. As for
    /// [buffers](Parameter::buffer_or_null), the promise of the kernel covers that too.
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::{Memory, Parameter, Queue};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// let memory = Memory::<u32>::new(&queue, 16)?;
    /// let mask = Parameter::memory_or_null(&memory);
    /// mask.set_null()?;
    /// mask.set(&memory)?;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn memory_or_null(memory: &impl AsRegion<T>) -> Self {
        Self::of_memory(memory, true)
    }

    /// Sets the memory: a [`Memory`], or a [`MemorySlice`](crate::MemorySlice), which as an argument is a pointer to its first
    /// element.
    ///
    /// # Errors
    /// [`ParameterError::TooSmall`], [`ParameterError::OtherContext`]; [`ParameterError::Offset`] for a range of a buffer that
    /// starts where the device can address none, or behind the first byte that kernels use: it stays as it was.
    pub fn set(&self, memory: &impl AsRegion<T>) -> Result<()> {
        self.put_memory(memory)
    }

    /// Makes it a null pointer.
    ///
    /// # Errors
    /// [`ParameterError::NeverNull`] for one that was not made by [`memory_or_null`](Self::memory_or_null).
    pub fn set_null(&self) -> Result<()> {
        self.put_null()
    }
}

impl Parameter<Image> {
    /// An image. It becomes images of the same shape and format only.
    #[must_use]
    pub fn image(image: &Image) -> Self {
        let Region { mem, offset, size } = image.region();
        Self::of(Value::Buffer(mem), Bound::Bytes { range: offset..offset + size, or_null: false })
    }

    /// Sets the image.
    ///
    /// # Errors
    /// [`ParameterError::Image`], [`ParameterError::OtherContext`]: it stays as it was.
    pub fn set(&self, image: &Image) -> Result<()> {
        let known = self.cell.now(|value, _| match value {
            Value::Buffer(mem) => mem.image().map(|info| (info.shape, info.format)),
            Value::Bytes(_) | Value::Local(_) | Value::Null(_) | Value::Sampler(_) => None,
        });
        let given = (image.shape(), image.format());
        if let Some((shape, format)) = known.filter(|known| *known != given) {
            let (expected, given) =
                (format!("{shape} of format {format}"), format!("{} of format {}", given.0, given.1));
            return Err(ParameterError::Image { expected, given }.into());
        }
        let mem = image.region().mem;
        let same = self.cell.now(|value, _| matches!(value, Value::Buffer(now) if now.context() == mem.context()));
        if !same {
            return Err(ParameterError::OtherContext.into());
        }
        Ok(self.cell.set(Value::Buffer(mem))?)
    }
}

impl Parameter<Sampler> {
    /// A sampler. It becomes samplers of the same context, and of those that leave coordinates outside of the image undefined
    /// ([`Addressing::None`](crate::Addressing::None)) only if it is one itself.
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::{Addressing, Filter, Parameter, Queue, Sampler};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// # if queue.device().caps().images.is_none() { return Ok(()) }
    /// let by = Parameter::sampler(&Sampler::new(&queue, true, Addressing::Repeat, Filter::Nearest)?)?;
    /// by.set(&Sampler::new(&queue, true, Addressing::Repeat, Filter::Linear)?)?;
    /// assert!(by.set(&Sampler::new(&queue, true, Addressing::None, Filter::Linear)?).is_err());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`DriverError`](crate::DriverError) when the driver refuses to tell of it.
    pub fn sampler(sampler: &Sampler) -> Result<Self> {
        let value = Value::Sampler(sampler.clone());
        if !sampler.defines_outside()? {
            return Ok(Self::of(value, Bound::Any));
        }
        let outside = |value: &Value| {
            let Value::Sampler(sampler) = value else { return Some("what is no sampler".to_owned()) };
            match sampler.defines_outside() {
                Ok(true) => None,
                Ok(false) => Some("a sampler with `Addressing::None`".to_owned()),
                Err(error) => Some(format!("a sampler of which the driver tells nothing ({error})")),
            }
        };
        let bound = "samplers for which coordinates outside of the image are defined".to_owned();
        Ok(Self::of(value, Bound::Condition(bound, Box::new(outside))))
    }

    /// Sets the sampler.
    ///
    /// # Errors
    /// [`ParameterError::OutOfBound`], [`ParameterError::OtherContext`]: it stays as it was.
    pub fn set(&self, sampler: &Sampler) -> Result<()> {
        let context = sampler.context();
        let same = self.cell.now(|value, _| matches!(value, Value::Sampler(now) if now.context() == context));
        if !same {
            return Err(ParameterError::OtherContext.into());
        }
        Ok(self.cell.set(Value::Sampler(sampler.clone()))?)
    }
}

impl<T: ?Sized> Parameter<T> {
    fn of_memory<E>(memory: &impl AsRegion<E>, or_null: bool) -> Self {
        let Region { mem, offset, size } = memory.region();
        let bound = Bound::Bytes { range: offset..offset + size, or_null };
        let mut cell = Cell::of(Value::Buffer(mem), bound, Number::Any);
        cell.misplaced = memory.misplaced();
        Self { cell: Arc::new(cell), kind: PhantomData }
    }

    fn put_null(&self) -> Result<()> {
        if !matches!(self.cell.bound, Bound::Bytes { or_null: true, .. }) {
            return Err(ParameterError::NeverNull.into());
        }
        let context = self.cell.now(|value, _| match value {
            Value::Buffer(mem) => Some(mem.context().clone()),
            Value::Null(_) | Value::Bytes(_) | Value::Local(_) | Value::Sampler(_) => None,
        });
        // The value that is there already is fine.
        context.map_or(Ok(()), |context| Ok(self.cell.set(Value::Null(context))?))
    }

    fn put_memory<E>(&self, memory: &impl AsRegion<E>) -> Result<()> {
        let Region { mem, offset, size } = memory.region();
        let needed = match &self.cell.bound {
            Bound::Bytes { range, .. } => range.clone(),
            Bound::None | Bound::Any | Bound::Condition(..) => 0..0,
        };
        // As an argument it starts where `mem` starts.
        if offset > needed.start || memory.misplaced().is_some() {
            return Err(ParameterError::Offset { offset }.into());
        }
        if offset + size < needed.end {
            return Err(ParameterError::TooSmall { needed: needed.end as u64, given: (offset + size) as u64 }.into());
        }
        let same = self.cell.now(|value, _| match value {
            Value::Buffer(now) => now.context() == mem.context(),
            Value::Null(context) => context == mem.context(),
            Value::Bytes(_) | Value::Local(_) | Value::Sampler(_) => false,
        });
        if !same {
            return Err(ParameterError::OtherContext.into());
        }
        Ok(self.cell.set(Value::Buffer(mem))?)
    }
}
