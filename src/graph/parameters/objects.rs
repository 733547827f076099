//! Parameters of OpenCL objects: buffers, memory of any kind, images, samplers.

use std::marker::PhantomData;
use std::sync::Arc;

use super::{Bound, Cell, Parameter, Value};
use crate::cl::memory::region::{AsRegion, Region};
use crate::cl::memory::typed::Memory;
use crate::cl::objects::buffer::Buffer;
use crate::cl::objects::context::InContext;
use crate::cl::objects::image::Image;
use crate::cl::objects::kernel_params::Number;
use crate::cl::objects::sampler::Sampler;
use crate::error::{ParameterError, Result};

impl<T> Parameter<Buffer<T>> {
    /// Creates a parameter of a buffer or sub-buffer, which the parameter keeps alive.
    ///
    /// Kernels use the bytes that are named here: the whole buffer, or the part that a slice names. Every buffer that
    /// is set later has to hold these bytes, in the same place. Finalize and update check that the access flags of the
    /// buffer allow the use by kernels.
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

    /// Creates a parameter of a buffer that may also become a null pointer, by [`set_null`](Self::set_null), until a
    /// buffer is set again.
    ///
    /// The promise of [`KernelNode::add`](crate::KernelNode::add) covers the null pointer too. Otherwise as
    /// [`buffer`](Self::buffer).
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::{Buffer, Finalize, Graph, Parameter, Program, Queue};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// let source = "kernel void scale(global float *a, global const float *by) {
    ///                   if (by) a[get_global_id(0)] *= by[get_global_id(0)];
    ///               }";
    /// let scale = Program::from_source(&queue, source)?.kernel("scale")?;
    /// let numbers = Buffer::from_slice(&queue, &[1.0_f32, 2.0])?;
    /// let weights = Buffer::from_slice(&queue, &[3.0, 5.0])?;
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

    /// Sets the buffer: a [`Buffer`], or a part of one ([`BufferSlice`](crate::BufferSlice)), which has to hold the
    /// bytes that kernels use.
    ///
    /// Kernels still get the whole buffer, as for arguments of a node.
    ///
    /// # Errors
    /// [`ParameterError::TooSmall`], [`ParameterError::OtherContext`]; [`ParameterError::Offset`] for a part that
    /// starts after the first byte that kernels use. After an error the parameter is unchanged.
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

    /// Makes the parameter a null pointer.
    ///
    /// # Errors
    /// [`ParameterError::NeverNull`] for a parameter that was not created by [`buffer_or_null`](Self::buffer_or_null).
    pub fn set_null(&self) -> Result<()> {
        self.put_null()
    }
}

impl<T> Parameter<Memory<T>> {
    /// Creates a parameter of memory of any kind.
    ///
    /// Kernels use the bytes that are named here: the whole memory, or the part that a slice names. All memory that is
    /// set later is at least as long.
    #[must_use]
    pub fn memory(memory: &impl AsRegion<T>) -> Self {
        Self::of_memory(memory, false)
    }

    /// Creates a parameter of memory that may also become a null pointer, by [`set_null`](Self::set_null).
    ///
    /// The promise of the kernel covers the null pointer too, as for [buffers](Parameter::buffer_or_null). Otherwise as
    /// [`memory`](Self::memory).
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

    /// Sets the memory: a [`Memory`], or a [`MemorySlice`](crate::MemorySlice), which as an argument is a pointer to
    /// its first element.
    ///
    /// # Errors
    /// [`ParameterError::TooSmall`], [`ParameterError::OtherContext`]; [`ParameterError::Offset`] for a range of a
    /// buffer that starts where the device cannot address it, or after the first byte that kernels use. After an error
    /// the parameter is unchanged.
    pub fn set(&self, memory: &impl AsRegion<T>) -> Result<()> {
        self.put_memory(memory)
    }

    /// Makes the parameter a null pointer.
    ///
    /// # Errors
    /// [`ParameterError::NeverNull`] for a parameter that was not created by [`memory_or_null`](Self::memory_or_null).
    pub fn set_null(&self) -> Result<()> {
        self.put_null()
    }
}

impl Parameter<Image> {
    /// Creates a parameter of an image. It can become images of the same shape and format only.
    #[must_use]
    pub fn image(image: &Image) -> Self {
        let Region { mem, offset, size } = image.region();
        Self::of(Value::Buffer(mem), Bound::Bytes { range: offset..offset + size, or_null: false })
    }

    /// Sets the image.
    ///
    /// # Errors
    /// [`ParameterError::Image`], [`ParameterError::OtherContext`]. After an error the parameter is unchanged.
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
    /// Creates a parameter of a sampler. It can become samplers of the same context only.
    ///
    /// Some samplers leave coordinates outside of the image undefined ([`Addressing::None`](crate::Addressing::None)).
    /// The parameter can become such a sampler only if its first sampler is one.
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
    /// [`DriverError`](crate::DriverError) when the driver refuses to describe the sampler.
    pub fn sampler(sampler: &Sampler) -> Result<Self> {
        let value = Value::Sampler(sampler.clone());
        if !sampler.defines_outside()? {
            return Ok(Self::of(value, Bound::Any));
        }
        let outside = |value: &Value| {
            let Value::Sampler(sampler) = value else { return Some("not a sampler".to_owned()) };
            match sampler.defines_outside() {
                Ok(true) => None,
                Ok(false) => Some("a sampler with `Addressing::None`".to_owned()),
                Err(error) => Some(format!("a sampler that the driver does not describe ({error})")),
            }
        };
        let bound = "any sampler without `Addressing::None`, for which coordinates outside of the image are \
                     undefined"
            .to_owned();
        Ok(Self::of(value, Bound::Condition(bound, Box::new(outside))))
    }

    /// Sets the sampler.
    ///
    /// # Errors
    /// [`ParameterError::OutOfBound`], [`ParameterError::OtherContext`]. After an error the parameter is unchanged.
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
        // If there is no context, the value is a null pointer already.
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
