//! Parameters: kernel arguments whose values change after their node was added.
//!
//! A program sets a [`Parameter`]; a node asks the parameter for its value when the node is used. So setting costs the
//! same however many nodes have the parameter, and a parameter belongs to no graph.
//!
//! | file | what is there |
//! |---|---|
//! | `mod.rs` | the public `Parameter`, bounds of numbers, raw bytes, local memory; the cell that holds the value |
//! | `objects.rs` | parameters that are OpenCL objects: buffers, memory of any kind, images, samplers |
//!
//! A new kind of parameter belongs here; where kernel nodes take it is `graph/nodes/argument.rs`. Invariants: safe
//! code sets only values within the bound that the promise of the kernel covers. Rules: P1 to P4, P8.

mod objects;

use std::any::TypeId;
use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeBounds;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytemuck::Pod;
use smallvec::SmallVec;

use crate::cl::completion::user_code::UserOwned;
use crate::cl::memory::region::Region;
use crate::cl::memory::untyped::Mem;
use crate::cl::objects::context::Context;
use crate::cl::objects::kernel_params::Number;
use crate::cl::objects::sampler::Sampler;
use crate::error::{MemoryError, ParameterError, Result};

/// A kernel argument whose value can change after its node was added. SYCL graphs call this a dynamic parameter.
///
/// Using a parameter as an argument binds the argument to it. One parameter may be bound to many arguments of many
/// nodes, in several graphs, and [`set`](Self::set) changes all of these nodes at once. An executable keeps the values
/// of the time when it was finalized. [`Executable::update`](crate::Executable::update) copies the new values to the
/// nodes that are named there: name all nodes that use the parameter, or use
/// [`Executable::update_from`](crate::Executable::update_from) with the same graph.
///
/// A parameter has a bound within which safe code may change it, because the safety promise for a kernel node has to
/// cover every value that the parameter can get. The bound is a range ([`within`](Self::within)), a condition
/// ([`checked`](Self::checked)), or every value ([`any`](Self::any)). A parameter without a bound ([`new`](Self::new))
/// is changed by [`set_unchecked`](Self::set_unchecked). The bound of a buffer ([`buffer`](Parameter::buffer)) is the
/// byte range that the first buffer declares; one of [`buffer_or_null`](Parameter::buffer_or_null) may also become a
/// null pointer.
///
/// Setting a parameter changes no edge: existing nodes keep their dependencies. The edges of a node that is added later
/// follow from the values that its own parameters have then. Such a node does not automatically wait for an older node
/// that a parameter has moved to other memory since. If two nodes use the same memory and no edge orders them,
/// finalizing and updating return an error: add the edge.
///
/// Cloning a parameter is cheap, and clones are the same parameter.
///
/// ```
/// # fn main() -> clgraph::Result<()> {
/// use clgraph::{Buffer, Finalize, Graph, Parameter, Program, Queue};
/// let queue = Queue::new(&clgraph::best_device()?)?;
/// let source = "kernel void scale(global float *a, float by) { a[get_global_id(0)] *= by; }";
/// let scale = Program::from_source(&queue, source)?.kernel("scale")?;
/// let numbers = Buffer::<f32>::new(&queue, 2)?;
///
/// let by = Parameter::any(2.0_f32);
/// let graph = Graph::new(&queue)?;
/// graph.write(&numbers, [1.0, 3.0]).add()?;
/// // SAFETY: a work-item touches its own element, whatever it is multiplied by.
/// let node = unsafe { graph.kernel(&scale).read_write(&numbers).arg(&by).range(2).add()? };
/// let result = graph.read(&numbers).add()?;
///
/// let executable = graph.finalize(Finalize::new().updatable())?;
/// for (factor, expected) in [(2.0, [2.0, 6.0]), (10.0, [10.0, 30.0])] {
///     by.set(factor)?;
///     executable.update(&node)?;
///     let run = executable.submit(&queue)?;
///     run.wait()?;
///     assert_eq!(*run.get(&result)?, expected);
/// }
/// # Ok(()) }
/// ```
#[doc(alias = "dynamic_parameter")]
pub struct Parameter<T: ?Sized> {
    cell: Arc<Cell>,
    kind: PhantomData<fn() -> Box<T>>,
}

/// Stands for a size of local memory in [`Parameter<LocalMemory>`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct LocalMemory;

/// A parameter without its type, as graphs store it.
pub(crate) struct Cell {
    held: Mutex<Value>,
    /// When the parameter was set, as a count over all parameters. It changes under the lock, and can be read without
    /// it.
    time: AtomicU64,
    bound: Bound,
    number: Number,
    /// The reason why kernels cannot take the memory that the parameter was made of.
    misplaced: Option<MemoryError>,
}

/// The bytes of a value. Most values are small enough to need no allocation.
pub(crate) type Bytes = SmallVec<[u8; 16]>;

/// The current value of a parameter.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Bytes(Bytes),
    Local(usize),
    Buffer(Mem),
    /// A null pointer in place of memory of this context.
    Null(Context),
    Sampler(Sampler),
}

impl Value {
    fn of(bytes: &[u8]) -> Self {
        Self::Bytes(Bytes::from_slice(bytes))
    }
}

/// The value of a parameter at one moment.
#[derive(Debug)]
pub(crate) struct ValueSnapshot {
    pub(crate) value: Value,
    /// The bytes of the parameter's buffer that kernels use.
    pub(crate) region: Option<Region>,
    /// When the parameter was set.
    pub(crate) time: u64,
}

/// Returns `None` for a value within the bound, and otherwise the value as an error shows it.
type Condition = Box<dyn Fn(&Value) -> Option<String> + Send + Sync>;

/// The values that safe code may set.
enum Bound {
    None,
    Any,
    /// The description for errors, and the condition.
    Condition(String, Condition),
    /// The bytes of a buffer that its kernels use, counted from its start.
    Bytes {
        range: std::ops::Range<usize>,
        /// Whether kernels may get a null pointer instead.
        or_null: bool,
    },
}

static CLOCK: AtomicU64 = AtomicU64::new(1);

impl Cell {
    fn new(value: Value, bound: Bound, number: Number) -> Arc<Self> {
        Arc::new(Self::of(value, bound, number))
    }

    fn of(value: Value, bound: Bound, number: Number) -> Self {
        let time = AtomicU64::new(CLOCK.fetch_add(1, Ordering::Relaxed));
        Self { held: Mutex::new(value), time, bound, number, misplaced: None }
    }

    #[inline]
    fn lock(&self) -> MutexGuard<'_, Value> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, value: Value) {
        let mut held = self.lock();
        let old = std::mem::replace(&mut *held, value);
        self.time.store(CLOCK.fetch_add(1, Ordering::Relaxed), Ordering::Release);
        drop(held);
        // Dropping the old value may release a buffer, which calls the driver. So it happens after the lock.
        drop(old);
    }

    /// Sets bytes without an allocation if there are as many as before.
    fn put_bytes(&self, bytes: &[u8]) {
        let mut held = self.lock();
        if let Value::Bytes(place) = &mut *held
            && place.len() == bytes.len()
        {
            place.copy_from_slice(bytes);
        }
        self.time.store(CLOCK.fetch_add(1, Ordering::Relaxed), Ordering::Release);
    }

    fn set(&self, value: Value) -> Result<(), ParameterError> {
        match &self.bound {
            Bound::None => return Err(ParameterError::Unbounded),
            Bound::Condition(bound, outside) => {
                if let Some(given) = outside(&value) {
                    return Err(ParameterError::OutOfBound { given, bound: bound.clone() });
                }
            }
            _ => {}
        }
        self.put(value);
        Ok(())
    }

    /// The reason why kernels cannot take the memory that the parameter was made of, if there is one.
    pub(crate) fn misplaced(&self) -> Option<&MemoryError> {
        self.misplaced.as_ref()
    }

    /// The number type of the value, if it is a number.
    pub(crate) fn number(&self) -> Number {
        self.number
    }

    /// When the parameter was set.
    #[inline]
    pub(crate) fn time(&self) -> u64 {
        self.time.load(Ordering::Acquire)
    }

    /// Calls `look` with the current value, and when it was set.
    pub(crate) fn now<R>(&self, look: impl FnOnce(&Value, u64) -> R) -> R {
        let held = self.lock();
        look(&held, self.time())
    }

    /// Returns the current value, and when it was set.
    pub(crate) fn snapshot(&self) -> ValueSnapshot {
        let held = self.lock();
        let region = match (&*held, &self.bound) {
            // The size of an image in bytes may differ from that of the image before it.
            (Value::Buffer(mem), Bound::Bytes { .. }) if mem.image().is_some() => {
                Some(Region { mem: mem.clone(), offset: 0, size: mem.size() })
            }
            (Value::Buffer(mem), Bound::Bytes { range, .. }) => {
                Some(Region { mem: mem.clone(), offset: range.start, size: range.len() })
            }
            _ => None,
        };
        ValueSnapshot { value: held.clone(), region, time: self.time() }
    }

    /// The bytes of the parameter's buffer that kernels use.
    pub(crate) fn range(&self) -> Option<std::ops::Range<usize>> {
        match &self.bound {
            Bound::Bytes { range, .. } => Some(range.clone()),
            Bound::None | Bound::Any | Bound::Condition(..) => None,
        }
    }

    /// The kind of the parameter, for error texts.
    pub(crate) fn what(&self) -> String {
        if let Some(info) =
            self.now(|value, _| if let Value::Buffer(mem) = value { mem.image().copied() } else { None })
        {
            return format!("an {} of format {}", info.shape, info.format);
        }
        if let Bound::Bytes { range, or_null } = &self.bound {
            return format!(
                "bytes {}..{} of a buffer{}",
                range.start,
                range.end,
                if *or_null { ", or null" } else { "" }
            );
        }
        self.now(|value, _| match value {
            Value::Bytes(bytes) => format!("a value of {} bytes", bytes.len()),
            Value::Local(_) => "a size of local memory".to_owned(),
            Value::Buffer(_) => "a buffer".to_owned(),
            Value::Null(_) => "a null buffer".to_owned(),
            Value::Sampler(_) => "a sampler".to_owned(),
        })
    }

    fn bytes(&self) -> Bytes {
        self.now(|value, _| match value {
            Value::Bytes(bytes) => bytes.clone(),
            Value::Local(_) | Value::Buffer(_) | Value::Null(_) | Value::Sampler(_) => Bytes::new(),
        })
    }
}

impl<T: Pod> Parameter<T> {
    /// Creates a parameter without a bound, which only [`set_unchecked`](Self::set_unchecked) changes.
    #[must_use]
    pub fn new(value: T) -> Self {
        Self::of_number(value, Bound::None)
    }

    /// Creates a parameter that may become any value of its type.
    #[must_use]
    pub fn any(value: T) -> Self {
        Self::of_number(value, Bound::Any)
    }

    /// Creates a parameter whose value stays within a range: `1..=9`, `..100`, `0.0..1.0`.
    ///
    /// # Errors
    /// [`ParameterError::OutOfBound`] when the first value is outside the range.
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::Parameter;
    /// let radius = Parameter::within(3, 1..=9)?;
    /// radius.set(5)?;
    /// assert!(radius.set(12).is_err());
    /// assert_eq!(radius.get(), 5);
    /// # Ok(()) }
    /// ```
    pub fn within(value: T, range: impl RangeBounds<T> + fmt::Debug + Send + Sync + 'static) -> Result<Self>
    where
        T: PartialOrd,
    {
        let bound = format!("{range:?}");
        Self::bound(value, bound, move |value| range.contains(value))
    }

    /// Creates a parameter for whose values a condition holds. `bound` describes the condition in errors, for example
    /// `a power of two`.
    ///
    /// # Errors
    /// [`ParameterError::OutOfBound`] when the condition does not hold for the first value.
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::Parameter;
    /// let lanes = Parameter::checked(64_u32, "a power of two", |lanes| lanes.is_power_of_two())?;
    /// assert!(lanes.set(100).unwrap_err().to_string().contains("a power of two"));
    /// # Ok(()) }
    /// ```
    pub fn checked(
        value: T,
        bound: impl Into<String>,
        condition: impl Fn(&T) -> bool + Send + Sync + 'static,
    ) -> Result<Self> {
        Self::bound(value, bound.into(), condition)
    }

    fn bound(value: T, bound: String, condition: impl Fn(&T) -> bool + Send + Sync + 'static) -> Result<Self> {
        if !condition(&value) {
            return Err(ParameterError::OutOfBound { given: format_value(&value), bound }.into());
        }
        let condition = UserOwned::new(condition);
        let outside = move |value: &Value| {
            let Value::Bytes(bytes) = value else { return Some("not a plain value".to_owned()) };
            let value = bytemuck::pod_read_unaligned(bytes);
            (!condition(&value)).then(|| format_value(&value))
        };
        Ok(Self::of_number(value, Bound::Condition(bound, Box::new(outside))))
    }

    fn of_number(value: T, bound: Bound) -> Self {
        let value = Value::of(bytemuck::bytes_of(&value));
        Self { cell: Cell::new(value, bound, Number::of::<T>()), kind: PhantomData }
    }

    /// Sets the value.
    ///
    /// # Errors
    /// [`ParameterError::OutOfBound`], [`ParameterError::Unbounded`]. After an error the value is unchanged.
    pub fn set(&self, value: T) -> Result<()> {
        let bytes = bytemuck::bytes_of(&value);
        match &self.cell.bound {
            Bound::Any => self.cell.put_bytes(bytes),
            _ => self.cell.set(Value::of(bytes))?,
        }
        Ok(())
    }

    /// Sets a value without checking the bound.
    ///
    /// # Safety
    /// The safety promises of all kernel nodes that use the parameter hold for this value too.
    #[allow(unsafe_code)] // A declaration: the promise itself. Nothing unsafe is done here.
    pub unsafe fn set_unchecked(&self, value: T) {
        self.cell.put_bytes(bytemuck::bytes_of(&value));
    }

    /// Returns the value that was set last.
    #[must_use]
    pub fn get(&self) -> T {
        bytemuck::pod_read_unaligned(&self.cell.bytes())
    }
}

impl Parameter<[u8]> {
    /// Creates a parameter of raw bytes without a bound, which only [`set_unchecked`](Self::set_unchecked) changes.
    #[must_use]
    pub fn bytes(value: &[u8]) -> Self {
        Self::of(Value::of(value), Bound::None)
    }

    /// Creates a parameter of raw bytes that may become any other bytes of the same number.
    #[must_use]
    pub fn any_bytes(value: &[u8]) -> Self {
        Self::of(Value::of(value), Bound::Any)
    }

    fn check_size(&self, value: &[u8]) -> Result<(), ParameterError> {
        let (size, given) = (self.cell.bytes().len(), value.len());
        if size == given { Ok(()) } else { Err(ParameterError::Size { size, given }) }
    }

    /// Sets the bytes.
    ///
    /// # Errors
    /// [`ParameterError::Size`], [`ParameterError::Unbounded`]. After an error the bytes are unchanged.
    pub fn set(&self, value: &[u8]) -> Result<()> {
        self.check_size(value)?;
        Ok(self.cell.set(Value::of(value))?)
    }

    /// Sets the bytes without checking the bound.
    ///
    /// # Errors
    /// [`ParameterError::Size`]. After an error the bytes are unchanged.
    ///
    /// # Safety
    /// The safety promises of all kernel nodes that use the parameter hold for these bytes too.
    #[allow(unsafe_code)] // As above.
    pub unsafe fn set_unchecked(&self, value: &[u8]) -> Result<()> {
        self.check_size(value)?;
        self.cell.put(Value::of(value));
        Ok(())
    }

    /// Returns the bytes that were set last.
    #[must_use]
    pub fn get(&self) -> Box<[u8]> {
        self.cell.bytes().into_boxed_slice()
    }
}

impl Parameter<LocalMemory> {
    /// Creates a parameter of bytes of local memory for each work-group, without a bound: only
    /// [`set_unchecked`](Self::set_unchecked) changes it.
    #[must_use]
    pub fn local(bytes: usize) -> Self {
        Self::of(Value::Local(bytes), Bound::None)
    }

    /// Creates a parameter of bytes of local memory for each work-group, within a range.
    ///
    /// # Errors
    /// [`ParameterError::OutOfBound`] when the first number is outside the range.
    pub fn local_within(
        bytes: usize,
        range: impl RangeBounds<usize> + fmt::Debug + Send + Sync + 'static,
    ) -> Result<Self> {
        let bound = format!("{range:?} bytes");
        if !range.contains(&bytes) {
            return Err(ParameterError::OutOfBound { given: format_value(&bytes), bound }.into());
        }
        let range = UserOwned::new(range);
        let outside = move |value: &Value| {
            let Value::Local(bytes) = value else { return Some("not a size of local memory".to_owned()) };
            (!range.contains(bytes)).then(|| format_value(bytes))
        };
        Ok(Self::of(Value::Local(bytes), Bound::Condition(bound, Box::new(outside))))
    }

    /// Sets the number of bytes. Finalize and update check that the device has so much local memory.
    ///
    /// # Errors
    /// [`ParameterError::OutOfBound`], [`ParameterError::Unbounded`]. After an error the number is unchanged.
    pub fn set(&self, bytes: usize) -> Result<()> {
        Ok(self.cell.set(Value::Local(bytes))?)
    }

    /// Sets the number of bytes without checking the bound.
    ///
    /// # Safety
    /// The safety promises of all kernel nodes that use the parameter hold for this much local memory too.
    #[allow(unsafe_code)] // As above.
    pub unsafe fn set_unchecked(&self, bytes: usize) {
        self.cell.put(Value::Local(bytes));
    }

    /// Returns the number of bytes that was set last.
    #[must_use]
    pub fn get(&self) -> usize {
        self.cell.now(|value, _| if let Value::Local(bytes) = value { *bytes } else { 0 })
    }
}

impl<T: ?Sized> Parameter<T> {
    fn of(value: Value, bound: Bound) -> Self {
        Self { cell: Cell::new(value, bound, Number::Any), kind: PhantomData }
    }

    pub(crate) fn cell(&self) -> &Arc<Cell> {
        &self.cell
    }
}

impl<T: ?Sized> Clone for Parameter<T> {
    fn clone(&self) -> Self {
        Self { cell: Arc::clone(&self.cell), kind: PhantomData }
    }
}

impl<T: ?Sized> PartialEq for Parameter<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.cell, &other.cell)
    }
}

impl<T: ?Sized> Eq for Parameter<T> {}

impl<T: ?Sized> fmt::Debug for Parameter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Parameter({:?})", self.cell)
    }
}

impl fmt::Debug for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.now(|value, _| write!(f, "{value:?}"))?;
        match &self.bound {
            Bound::None => f.write_str(", unbounded"),
            Bound::Any => f.write_str(", any"),
            Bound::Condition(bound, _) => write!(f, ", {bound}"),
            Bound::Bytes { range, or_null: false } => write!(f, ", bytes {range:?}"),
            Bound::Bytes { range, or_null: true } => write!(f, ", bytes {range:?} or null"),
        }
    }
}

/// Formats a value for an error text. A type of the program's own shows its bytes, because its own formatting would be
/// user code.
fn format_value<T: Pod>(value: &T) -> String {
    let bytes = bytemuck::bytes_of(value);
    macro_rules! numbers {
        ($($number:ty)*) => {
            $(if TypeId::of::<T>() == TypeId::of::<$number>() {
                return format!("{:?}", bytemuck::pod_read_unaligned::<$number>(bytes));
            })*
        };
    }
    numbers!(u8 u16 u32 u64 usize i8 i16 i32 i64 isize f32 f64);
    let start: String = bytes.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("0x{start}{}", if bytes.len() > 16 { "..." } else { "" })
}
