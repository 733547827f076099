//! Samplers, which define how kernels read images between pixels and outside of the image.

use std::fmt;
use std::sync::Arc;

use opencl_sys::cl_sampler;

use crate::cl::check;
use crate::cl::objects::context::{Context, InContext, OnDevice};
use crate::cl::objects::handle::{Handle, SamplerKind};
use crate::cl::query::info::{self, ask};
use crate::error::{DriverError, MemoryError, Result};
use crate::ffi::core::Core;
use crate::images::{Addressing, Filter};

const CL_SAMPLER_CONTEXT: u32 = 0x1151;
const CL_SAMPLER_ADDRESSING_MODE: u32 = 0x1153;

/// A sampler: how a kernel reads an image. Clones are cheap and refer to the same sampler.
///
/// ```
/// # fn main() -> clgraph::Result<()> {
/// use clgraph::{Addressing, Filter, Queue, Sampler};
/// let queue = Queue::new(&clgraph::best_device()?)?;
/// if queue.device().caps().images.is_some() {
///     let sampler = Sampler::new(&queue, true, Addressing::Repeat, Filter::Linear)?;
/// }
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Sampler(Arc<Inner>);

struct Inner {
    handle: Handle<SamplerKind>,
    context: Context,
}

impl Sampler {
    /// Makes a sampler. If `normalized` is true, coordinates go from 0 to 1. If it is false, coordinates are in pixels,
    /// and [`Addressing::Repeat`] and [`Addressing::MirroredRepeat`] are refused.
    ///
    /// # Errors
    /// [`MemoryError::NoImages`]; [`MemoryError::Sampler`] for repetition without normalized coordinates;
    /// [`crate::DriverError`].
    #[doc(alias = "clCreateSampler")]
    #[doc(alias = "clCreateSamplerWithProperties")]
    pub fn new(on: &impl OnDevice, normalized: bool, addressing: Addressing, filter: Filter) -> Result<Self> {
        if on.device().caps().images.is_none() {
            return Err(MemoryError::NoImages { device: on.device().name().to_owned() }.into());
        }
        if !normalized && matches!(addressing, Addressing::Repeat | Addressing::MirroredRepeat) {
            return Err(MemoryError::Sampler.into());
        }
        let core = Core::get()?;
        let mut status = 0;
        // SAFETY: **live**; the numbers are those of the headers. Every device with images has this function.
        let raw = unsafe {
            (core.clCreateSampler)(
                on.context().raw(),
                u32::from(normalized),
                addressing.number(),
                filter.number(),
                &raw mut status,
            )
        };
        check("clCreateSampler", status).map_err(MemoryError::from)?;
        // SAFETY: the call succeeded and gives its reference away.
        let handle = unsafe { Handle::from_owned("clCreateSampler", raw) }?;
        Ok(Self(Arc::new(Inner { handle, context: on.context().clone() })))
    }

    /// Wraps an `opencl3` sampler of a context. The `opencl3` sampler may be dropped first.
    ///
    /// # Errors
    /// [`MemoryError::OtherContext`]; [`crate::DriverError`].
    pub fn from_opencl3(context: &impl InContext, sampler: &opencl3::memory::Sampler) -> Result<Self> {
        // SAFETY: an `opencl3` sampler owns a reference.
        unsafe { Self::from_raw(context, sampler.get()) }
    }

    /// Wraps and retains a raw sampler of a context.
    ///
    /// # Errors
    /// As [`from_opencl3`](Self::from_opencl3); [`SetupError::NullHandle`](crate::SetupError::NullHandle).
    ///
    /// # Safety
    /// `raw` is null or a live sampler.
    pub unsafe fn from_raw(context: &impl InContext, raw: cl_sampler) -> Result<Self> {
        // SAFETY: the caller's promise.
        let handle: Handle<SamplerKind> = unsafe { Handle::from_borrowed(raw) }?;
        let core = Core::get()?;
        let of: Result<usize, DriverError> =
            info::value("clGetSamplerInfo", ask!(core, clGetSamplerInfo, raw, CL_SAMPLER_CONTEXT));
        let context = context.context();
        if of? != context.raw().addr() {
            return Err(MemoryError::OtherContext.into());
        }
        Ok(Self(Arc::new(Inner { handle, context: context.clone() })))
    }

    /// Returns the same sampler for `opencl3`, with its own reference.
    ///
    /// # Errors
    /// [`crate::DriverError`] if the driver refuses to retain it.
    pub fn to_opencl3(&self) -> Result<opencl3::memory::Sampler> {
        Ok(opencl3::memory::Sampler::new(self.0.handle.retained_raw()?))
    }

    /// Returns whether the result is defined for coordinates outside of an image.
    pub(crate) fn defines_outside(&self) -> Result<bool, DriverError> {
        let Ok(core) = Core::get() else { return Ok(false) };
        let addressing = ask!(core, clGetSamplerInfo, self.raw(), CL_SAMPLER_ADDRESSING_MODE);
        Ok(info::value::<u32>("clGetSamplerInfo", addressing)? != Addressing::None.number())
    }

    /// Returns the C handle, which is valid while this object lives.
    #[must_use]
    pub fn raw(&self) -> cl_sampler {
        self.0.handle.raw()
    }
}

impl InContext for Sampler {
    fn context(&self) -> &Context {
        &self.0.context
    }
}

impl PartialEq for Sampler {
    /// Returns whether both are the same sampler.
    fn eq(&self, other: &Self) -> bool {
        self.raw() == other.raw()
    }
}

impl Eq for Sampler {}

impl std::hash::Hash for Sampler {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.raw().hash(state);
    }
}

impl fmt::Debug for Sampler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sampler({:p})", self.raw())
    }
}
