//! Buffers, sub-buffers, and ranges of them.

use std::any::Any;
use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeBounds;

use opencl_sys::{
    CL_BUFFER_CREATE_TYPE_REGION, CL_MEM_ASSOCIATED_MEMOBJECT, CL_MEM_CONTEXT, CL_MEM_COPY_HOST_PTR, CL_MEM_FLAGS,
    CL_MEM_OBJECT_BUFFER, CL_MEM_OFFSET, CL_MEM_READ_WRITE, CL_MEM_SIZE, CL_MEM_TYPE, CL_MEM_USE_HOST_PTR,
    CL_MEM_USES_SVM_POINTER, cl_buffer_region, cl_mem,
};

use crate::cl::check;
use crate::cl::completion::event_reaper;
use crate::cl::memory::host::Element;
use crate::cl::memory::region::{
    AsDestination, AsRegion, AsSource, Region, resolve, sealed, slice_type, whole_elements,
};
use crate::cl::memory::untyped::{Backing, Mem, MemInner, Parent};
use crate::cl::objects::context::{Context, InContext};
use crate::cl::objects::handle::{Handle, MemKind};
use crate::cl::query::info::{self, ask};
use crate::error::{MemoryError, Result, SetupError};
use crate::ffi::core::Core;

/// An OpenCL buffer or sub-buffer of `len` elements of type `T`. Clones are cheap and refer to the same memory.
///
/// Nodes keep their buffers alive, so a program may drop a buffer while graphs and executables still use it.
///
/// ```
/// # fn main() -> clgraph::Result<()> {
/// use clgraph::{Buffer, Queue};
/// let queue = Queue::new(&clgraph::best_device()?)?;
/// let buffer = Buffer::<f32>::new(&queue, 1024)?;
/// let first_half = buffer.slice(..512)?;
/// assert_eq!((buffer.len(), first_half.len()), (1024, 512));
/// # Ok(()) }
/// ```
pub struct Buffer<T> {
    mem: Mem,
    element: PhantomData<fn() -> T>,
}

impl<T> Buffer<T> {
    /// Makes a buffer of `len` elements that kernels can read and write. Its content is undefined.
    ///
    /// # Errors
    /// [`MemoryError::Empty`], [`MemoryError::TooLarge`], [`crate::DriverError`].
    #[doc(alias = "clCreateBuffer")]
    pub fn new(context: &impl InContext, len: usize) -> Result<Self>
    where
        T: Element,
    {
        Self::create(context, len, None)
    }

    /// Makes a buffer that contains a copy of `data`.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn from_slice(context: &impl InContext, data: &[T]) -> Result<Self>
    where
        T: Element,
    {
        Self::create(context, data.len(), Some(data))
    }

    fn create(context: &impl InContext, len: usize, data: Option<&[T]>) -> Result<Self>
    where
        T: Element,
    {
        let context = context.context();
        let size = len.checked_mul(size_of::<T>()).ok_or_else(|| too_large(usize::MAX as u64, context))?;
        if size == 0 {
            return Err(MemoryError::Empty { what: "a buffer" }.into());
        }
        if size > context.buffer_limits().1 {
            return Err(too_large(size as u64, context).into());
        }
        let core = Core::get()?;
        let (flags, host) = match data {
            Some(data) => (CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, data.as_ptr().cast_mut().cast()),
            None => (CL_MEM_READ_WRITE, std::ptr::null_mut()),
        };
        if context.must_free_late() {
            context.drop_unused();
        }
        let mut status = 0;
        // SAFETY: **live** for the context; with COPY_HOST_PTR the driver reads `size` bytes, which `data` has.
        let raw = unsafe { (core.clCreateBuffer)(context.raw(), flags, size, host, &raw mut status) };
        check("clCreateBuffer", status).map_err(MemoryError::from)?;
        // SAFETY: the call succeeded and gives its reference away.
        let handle = unsafe { Handle::from_owned("clCreateBuffer", raw) }?;
        Ok(Self::wrap(MemInner {
            root: handle.raw().addr(),
            root_size: size,
            backing: Backing::Buffer(handle),
            context: context.clone(),
            offset: 0,
            size,
            parent: None,
            image: None,
            flags,
        }))
    }

    /// Wraps an `opencl3` buffer of a context. The `opencl3` buffer may be dropped first.
    ///
    /// # Errors
    /// [`MemoryError::HostMemory`] if the buffer uses host memory or SVM, which clgraph could not keep alive;
    /// [`MemoryError::OtherContext`], [`MemoryError::NotABuffer`], [`MemoryError::ElementSize`];
    /// [`crate::DriverError`].
    pub fn from_opencl3(context: &impl InContext, buffer: &opencl3::memory::Buffer<T>) -> Result<Self>
    where
        T: Element,
    {
        use opencl3::memory::ClMem;
        // SAFETY: an `opencl3` buffer owns a reference.
        unsafe { Self::retain(context.context(), buffer.get(), None) }
    }

    /// Wraps and retains a raw buffer of a context.
    ///
    /// # Errors
    /// As [`Self::from_opencl3`]; [`SetupError::NullHandle`].
    ///
    /// # Safety
    /// `raw` is null or a live memory object.
    pub unsafe fn from_raw(context: &impl InContext, raw: cl_mem) -> Result<Self>
    where
        T: Element,
    {
        // SAFETY: the caller's promise.
        unsafe { Self::retain(context.context(), raw, None) }
    }

    /// Wraps and retains a raw buffer that uses host memory (`CL_MEM_USE_HOST_PTR`, or a buffer made of SVM), together
    /// with the owner of that memory.
    ///
    /// The owner is dropped when nothing uses the buffer any more: no handle to it anywhere, and no running command. It
    /// is dropped on a thread of clgraph.
    ///
    /// # Errors
    /// As [`Self::from_raw`], except for host memory.
    ///
    /// # Safety
    /// `raw` is null or a live memory object. The host memory lives as long as `owner`, and nothing else uses it while
    /// the device may use it.
    pub unsafe fn from_raw_with_owner(
        context: &impl InContext,
        raw: cl_mem,
        owner: impl Any + Send + Sync,
    ) -> Result<Self>
    where
        T: Element,
    {
        // SAFETY: the caller's promise.
        unsafe { Self::retain(context.context(), raw, Some(Box::new(owner))) }
    }

    /// # Safety
    /// `raw` is null or a live memory object. If there is an owner, it owns the host memory of the buffer.
    unsafe fn retain(context: &Context, raw: cl_mem, owner: Option<Box<dyn Any + Send + Sync>>) -> Result<Self>
    where
        T: Element,
    {
        const CALL: &str = "clGetMemObjectInfo";
        if raw.is_null() {
            return Err(SetupError::NullHandle { what: "cl_mem" }.into());
        }
        let core = Core::get()?;
        let number = |raw, name| info::value::<usize>(CALL, ask!(core, clGetMemObjectInfo, raw, name));
        let object_type = info::value::<u32>(CALL, ask!(core, clGetMemObjectInfo, raw, CL_MEM_TYPE))?;
        if object_type != CL_MEM_OBJECT_BUFFER {
            return Err(MemoryError::NotABuffer { object_type }.into());
        }
        if number(raw, CL_MEM_CONTEXT)? != context.raw().addr() {
            return Err(MemoryError::OtherContext.into());
        }
        let flags = info::value::<u64>(CALL, ask!(core, clGetMemObjectInfo, raw, CL_MEM_FLAGS))?;
        // OpenCL 2.0 introduced this query. It is only useful if the device has SVM.
        let has_svm = context.devices().iter().any(|device| device.caps().svm.coarse_grain_buffer);
        let svm = match has_svm {
            true => info::value::<u32>(CALL, ask!(core, clGetMemObjectInfo, raw, CL_MEM_USES_SVM_POINTER))?,
            false => 0,
        };
        if owner.is_none() && (svm != 0 || flags & CL_MEM_USE_HOST_PTR != 0) {
            let flag = if svm != 0 { "CL_MEM_USES_SVM_POINTER" } else { "CL_MEM_USE_HOST_PTR" };
            let instead = "wrap it with the unsafe `Buffer::from_raw_with_owner`, and give the owner of that memory";
            return Err(MemoryError::HostMemory { what: "buffer", flag, instead }.into());
        }
        let size = number(raw, CL_MEM_SIZE)?;
        whole_elements::<T>(size)?;
        let parent = number(raw, CL_MEM_ASSOCIATED_MEMOBJECT)?;
        let (root, root_size, offset) = if parent == 0 {
            (raw.addr(), size, 0)
        } else {
            let whole = number(std::ptr::with_exposed_provenance_mut(parent), CL_MEM_SIZE)?;
            (parent, whole, number(raw, CL_MEM_OFFSET)?)
        };
        // SAFETY: the caller's promise; a sub-buffer keeps its buffer alive.
        let handle: Handle<MemKind> = unsafe { Handle::from_borrowed(raw) }?;
        if let Some(owner) = owner {
            drop_with(&handle, owner)?;
        }
        let parent = std::ptr::with_exposed_provenance_mut::<c_void>(parent);
        // SAFETY: as above.
        let parent = if parent.is_null() { None } else { Some(unsafe { Handle::from_borrowed(parent) }?) };
        let parent = parent.map(|parent| Parent::new(parent, context));
        let context = context.clone();
        let backing = Backing::Buffer(handle);
        Ok(Self::wrap(MemInner { backing, context, root, root_size, offset, size, parent, image: None, flags }))
    }

    fn wrap(inner: MemInner) -> Self {
        Self { mem: Mem::new(inner), element: PhantomData }
    }

    /// Makes a buffer from memory that is known to be one.
    pub(in crate::cl) fn of(mem: Mem) -> Self {
        Self { mem, element: PhantomData }
    }

    fn handle(&self) -> Result<&Handle<MemKind>, MemoryError> {
        self.mem.handle()
    }

    /// Returns the same buffer for `opencl3`, with its own reference.
    ///
    /// # Errors
    /// [`crate::DriverError`] if the driver refuses to retain it.
    pub fn to_opencl3(&self) -> Result<opencl3::memory::Buffer<T>> {
        Ok(opencl3::memory::Buffer::new(self.handle()?.retained_raw()?))
    }

    /// Returns the C handle, which is valid while this object lives.
    #[must_use]
    pub fn raw(&self) -> cl_mem {
        self.handle().map_or(std::ptr::null_mut(), Handle::raw)
    }

    /// Returns the number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.mem.size() / size_of::<T>()
    }

    /// Returns whether there are no elements, which is never the case.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the size in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.mem.size()
    }

    /// Returns a range of elements, for copies, fills, reads and writes, or to declare which part a kernel uses.
    ///
    /// A kernel gets the whole buffer as its argument. The range is a promise about the elements that the kernel uses.
    ///
    /// # Errors
    /// [`MemoryError::OutOfBounds`].
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<BufferSlice<T>> {
        Ok(BufferSlice::of(self.region().part::<T>(&range)?))
    }

    /// Makes an OpenCL sub-buffer. A kernel that gets it as an argument sees only this range, from index 0.
    ///
    /// The range must start at a multiple of [`Caps::sub_buffer_align`](crate::Caps::sub_buffer_align) bytes. Nodes
    /// that use the same bytes through the buffer or through different sub-buffers are ordered if one of them writes.
    ///
    /// # Errors
    /// [`MemoryError::OutOfBounds`], [`MemoryError::Empty`], [`MemoryError::Misaligned`],
    /// [`MemoryError::SubBufferOfSubBuffer`], [`crate::DriverError`].
    #[doc(alias = "clCreateSubBuffer")]
    pub fn sub_buffer(&self, range: impl RangeBounds<usize>) -> Result<Self> {
        let (start, end) = resolve("elements", &range, self.len())?;
        if self.mem.is_sub_buffer() {
            return Err(MemoryError::SubBufferOfSubBuffer.into());
        }
        if start == end {
            return Err(MemoryError::Empty { what: "a sub-buffer" }.into());
        }
        let (offset, size) = (start * size_of::<T>(), (end - start) * size_of::<T>());
        if let Some(error) = misaligned(&self.mem, offset) {
            return Err(error.into());
        }
        Ok(Self::of(sub_buffer(&self.mem, offset, size)?))
    }

    /// Returns the same buffer with elements of another type.
    ///
    /// # Errors
    /// [`MemoryError::ElementSize`] if the size is no multiple of the size of `U`.
    pub fn cast<U: Element>(&self) -> Result<Buffer<U>> {
        whole_elements::<U>(self.size())?;
        Ok(Buffer { mem: self.mem.clone(), element: PhantomData })
    }
}

/// Returns the error that explains why no sub-buffer can start at a byte of a buffer, or `None` if one can.
pub(in crate::cl) fn misaligned(mem: &Mem, offset: usize) -> Option<MemoryError> {
    let offset = mem.offset_in_root() + offset;
    let (align, _) = mem.context().buffer_limits();
    (!offset.is_multiple_of(align)).then_some(MemoryError::Misaligned { offset, align })
}

/// Makes a sub-buffer of a part of a buffer or sub-buffer. The new sub-buffer is always one of the whole buffer,
/// because OpenCL has no sub-buffers of sub-buffers.
pub(in crate::cl) fn sub_buffer(mem: &Mem, offset: usize, size: usize) -> Result<Mem> {
    let inner = mem.inner();
    let whole = inner.parent.as_ref().map(|parent| &parent.buffer).map_or_else(|| mem.handle(), Ok)?;
    if inner.context.must_free_late() {
        inner.context.drop_unused();
    }
    let region = cl_buffer_region { origin: inner.offset + offset, size };
    let core = Core::get()?;
    let mut status = 0;
    // SAFETY: **live**; the region has the type that `CL_BUFFER_CREATE_TYPE_REGION` requires, and is inside the buffer.
    let raw = unsafe {
        (core.clCreateSubBuffer)(whole.raw(), 0, CL_BUFFER_CREATE_TYPE_REGION, &raw const region, &raw mut status)
    };
    check("clCreateSubBuffer", status).map_err(MemoryError::from)?;
    // SAFETY: the call succeeded and gives its reference away.
    let handle = unsafe { Handle::from_owned("clCreateSubBuffer", raw) }?;
    Ok(Mem::new(MemInner {
        backing: Backing::Buffer(handle),
        context: inner.context.clone(),
        root: inner.root,
        root_size: inner.root_size,
        offset: region.origin,
        size,
        parent: Some(Parent::new(whole.try_clone()?, &inner.context)),
        image: None,
        flags: inner.flags,
    }))
}

/// Drops the owner of a buffer's host memory after OpenCL has finished with the buffer: no handle, sub-buffer or
/// running command uses it any more.
fn drop_with(handle: &Handle<MemKind>, owner: Box<dyn Any + Send + Sync>) -> Result<()> {
    type Owner = Box<dyn Any + Send + Sync>;
    unsafe extern "system" fn gone(_: cl_mem, owner: *mut c_void) {
        // SAFETY: this is the box that is given away below; OpenCL calls back once.
        let owner = unsafe { Box::from_raw(owner.cast::<Owner>()) };
        // The `Drop` of the owner is code of the program, and may do anything. This may be a thread of the driver, or a
        // thread in the middle of a release.
        event_reaper::call(move || drop(owner));
    }
    let core = Core::get()?;
    let owner = Box::into_raw(Box::new(owner));
    // SAFETY: **live**; `gone` has the type of the headers and owns the box from now on.
    let status = unsafe { (core.clSetMemObjectDestructorCallback)(handle.raw(), Some(gone), owner.cast()) };
    check("clSetMemObjectDestructorCallback", status).map_err(|error| {
        // SAFETY: the driver refused, so nothing took the box.
        drop(unsafe { Box::from_raw(owner) });
        MemoryError::from(error).into()
    })
}

pub(crate) fn too_large(asked: u64, context: &Context) -> MemoryError {
    let smallest = context.devices().iter().min_by_key(|device| device.caps().max_allocation);
    let (limit, device) = smallest.map_or((0, ""), |device| (device.caps().max_allocation, device.name()));
    MemoryError::TooLarge { asked, limit, device: device.to_owned() }
}

impl<T> Clone for Buffer<T> {
    fn clone(&self) -> Self {
        Self { mem: self.mem.clone(), element: PhantomData }
    }
}

impl<T> PartialEq for Buffer<T> {
    /// Returns whether both are the same buffer.
    fn eq(&self, other: &Self) -> bool {
        self.raw() == other.raw()
    }
}

impl<T> Eq for Buffer<T> {}

impl<T> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} x {}, {:?})", self.len(), std::any::type_name::<T>(), self.mem)
    }
}

slice_type! {
    /// A range of elements of a buffer. See [`Buffer::slice`].
    BufferSlice<T>
}

impl<T> BufferSlice<T> {
    /// Returns a range of its elements. The range may be empty.
    ///
    /// # Errors
    /// [`MemoryError::OutOfBounds`].
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<Self> {
        Ok(Self::of(self.region.part::<T>(&range)?))
    }

    /// Returns the same bytes as elements of another type. They may start at any byte, because a kernel gets the whole
    /// buffer as its argument.
    ///
    /// # Errors
    /// [`MemoryError::ElementSize`] if the size is no multiple of the size of `U`.
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::{Buffer, Queue};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// let pixels = Buffer::<[u8; 4]>::new(&queue, 64)?;
    /// let row = pixels.slice(8..16)?.cast::<u8>()?;
    /// assert_eq!((row.len(), row.size()), (32, 32));
    /// # Ok(()) }
    /// ```
    pub fn cast<U: Element>(&self) -> Result<BufferSlice<U>> {
        whole_elements::<U>(self.size())?;
        Ok(BufferSlice::of(self.region.clone()))
    }
}

impl<T> AsSource<T> for Buffer<T> {}
impl<T> AsDestination<T> for Buffer<T> {}
impl<T> AsSource<T> for BufferSlice<T> {}
impl<T> AsDestination<T> for BufferSlice<T> {}

impl<T> sealed::Sealed<T> for Buffer<T> {}

impl<T> AsRegion<T> for Buffer<T> {
    fn region(&self) -> Region {
        Region { mem: self.mem.clone(), offset: 0, size: self.mem.size() }
    }
}

impl<T> AsRegion<T> for BufferSlice<T> {
    fn region(&self) -> Region {
        self.region.clone()
    }
}
