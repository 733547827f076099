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
        Self::of_memory(buffer)
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
}

impl<T> Parameter<Memory<T>> {
    /// Memory of any kind. Kernels use of it what is named here: all, or the part that a slice names; all memory that it
    /// becomes later is at least as long.
    #[must_use]
    pub fn memory(memory: &impl AsRegion<T>) -> Self {
        Self::of_memory(memory)
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
}

impl Parameter<Image> {
    /// An image. It becomes images of the same shape and format only.
    #[must_use]
    pub fn image(image: &Image) -> Self {
        let Region { mem, offset, size } = image.region();
        Self::of(Value::Buffer(mem), Bound::Bytes { range: offset..offset + size })
    }

    /// Sets the image.
    ///
    /// # Errors
    /// [`ParameterError::Image`], [`ParameterError::OtherContext`]: it stays as it was.
    pub fn set(&self, image: &Image) -> Result<()> {
        let known = self.cell.now(|value, _| match value {
            Value::Buffer(mem) => mem.image().map(|info| (info.shape, info.format)),
            Value::Bytes(_) | Value::Local(_) | Value::Sampler(_) => None,
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
    fn of_memory<E>(memory: &impl AsRegion<E>) -> Self {
        let Region { mem, offset, size } = memory.region();
        let mut cell = Cell::of(Value::Buffer(mem), Bound::Bytes { range: offset..offset + size }, Number::Any);
        cell.misplaced = memory.misplaced();
        Self { cell: Arc::new(cell), kind: PhantomData }
    }

    fn put_memory<E>(&self, memory: &impl AsRegion<E>) -> Result<()> {
        let Region { mem, offset, size } = memory.region();
        let needed = match &self.cell.bound {
            Bound::Bytes { range } => range.clone(),
            Bound::None | Bound::Any | Bound::Condition(..) => 0..0,
        };
        // As an argument it starts where `mem` starts.
        if offset > needed.start || memory.misplaced().is_some() {
            return Err(ParameterError::Offset { offset }.into());
        }
        if offset + size < needed.end {
            return Err(ParameterError::TooSmall { needed: needed.end as u64, given: (offset + size) as u64 }.into());
        }
        let same = self.cell.now(|value, _| matches!(value, Value::Buffer(now) if now.context() == mem.context()));
        if !same {
            return Err(ParameterError::OtherContext.into());
        }
        Ok(self.cell.set(Value::Buffer(mem))?)
    }
}
