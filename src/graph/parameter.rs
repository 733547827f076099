//! Parameters: kernel arguments whose values change after their node was added. Those that are OpenCL objects: [`objects`].

mod objects;

use std::any::TypeId;
use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeBounds;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytemuck::Pod;
use smallvec::SmallVec;

use crate::cl::buffer::Region;
use crate::cl::context::Context;
use crate::cl::kernel::Number;
use crate::cl::mem::Mem;
use crate::cl::sampler::Sampler;
use crate::cl::user_code::Given;
use crate::error::{MemoryError, ParameterError, Result};

/// A kernel argument that can be changed after its node was added, known from SYCL graphs as a dynamic parameter.
///
/// It is registered with a node by using it as an argument there; one parameter may serve many arguments of many nodes, in
/// several graphs. [`set`](Self::set) changes all of these nodes at once. An executable has the values of when it was
/// finalized, until [`Executable::update`](crate::Executable::update) brings the new ones, to the nodes that are named
/// there: name all that use the parameter, or take [`Executable::update_from`](crate::Executable::update_from) with the
/// same graph.
///
/// A parameter carries the bound within which safe code may change it, because the promise that is made when a kernel node
/// is added has to cover every value that it can get: a range ([`within`](Self::within)), a condition
/// ([`checked`](Self::checked)), or every value ([`any`](Self::any)). One without a bound ([`new`](Self::new)) is changed
/// by [`set_unchecked`](Self::set_unchecked). Buffers ([`buffer`](Parameter::buffer)) are bound by the bytes that the first
/// one declares; those of [`buffer_or_null`](Parameter::buffer_or_null) may also become a null pointer.
///
/// Setting a parameter changes no edge: nodes that are there keep waiting for whom they wait. A node that is added later
/// waits by the values that its own parameters have then; for a node that a parameter has moved to other memory since it
/// was added it does not wait by itself. When two nodes come to use the same memory and no edges order them, finalizing and
/// updating say so: add the edge.
///
/// Cheap to clone: clones are the same parameter.
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

/// A parameter without its type, as graphs keep it.
pub(crate) struct Cell {
    held: Mutex<Value>,
    /// When it was set, counted over all parameters. It changes under the lock, and can be looked at without.
    time: AtomicU64,
    bound: Bound,
    number: Number,
    /// Why kernels cannot take what it was made of.
    misplaced: Option<MemoryError>,
}

/// A value, most of which are small: without an allocation of its own then.
pub(crate) type Bytes = SmallVec<[u8; 16]>;

/// What a parameter stands for now.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Bytes(Bytes),
    Local(usize),
    Buffer(Mem),
    /// A null pointer where memory of a context may be.
    Null(Context),
    Sampler(Sampler),
}

impl Value {
    fn of(bytes: &[u8]) -> Self {
        Self::Bytes(Bytes::from_slice(bytes))
    }
}

/// A parameter at one moment.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) value: Value,
    /// The bytes of its buffer that kernels use.
    pub(crate) region: Option<Region>,
    /// When it was set.
    pub(crate) time: u64,
}

/// What is outside, as an error shows it; `None` for a value that is inside.
type Condition = Box<dyn Fn(&Value) -> Option<String> + Send + Sync>;

/// What safe code may set.
enum Bound {
    None,
    Any,
    /// What it says in an error, and what it asks.
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

    fn lock(&self) -> MutexGuard<'_, Value> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, value: Value) {
        let mut held = self.lock();
        let old = std::mem::replace(&mut *held, value);
        self.time.store(CLOCK.fetch_add(1, Ordering::Relaxed), Ordering::Release);
        drop(held);
        // A buffer may go here, which is a call to the driver.
        drop(old);
    }

    /// Sets bytes, as many as there were, without an allocation.
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

    /// Why kernels cannot take what it was made of, if they cannot.
    pub(crate) fn misplaced(&self) -> Option<&MemoryError> {
        self.misplaced.as_ref()
    }

    /// What number it is, if it is one.
    pub(crate) fn number(&self) -> Number {
        self.number
    }

    /// When it was set.
    pub(crate) fn time(&self) -> u64 {
        self.time.load(Ordering::Acquire)
    }

    /// What it is now, and since when.
    pub(crate) fn now<R>(&self, look: impl FnOnce(&Value, u64) -> R) -> R {
        let held = self.lock();
        look(&held, self.time())
    }

    /// What it is now, and since when.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let held = self.lock();
        let region = match (&*held, &self.bound) {
            // Its bytes may be further apart than those of the one before.
            (Value::Buffer(mem), Bound::Bytes { .. }) if mem.image().is_some() => {
                Some(Region { mem: mem.clone(), offset: 0, size: mem.size() })
            }
            (Value::Buffer(mem), Bound::Bytes { range, .. }) => {
                Some(Region { mem: mem.clone(), offset: range.start, size: range.len() })
            }
            _ => None,
        };
        Snapshot { value: held.clone(), region, time: self.time() }
    }

    /// The bytes of its buffer that kernels use.
    pub(crate) fn range(&self) -> Option<std::ops::Range<usize>> {
        match &self.bound {
            Bound::Bytes { range, .. } => Some(range.clone()),
            Bound::None | Bound::Any | Bound::Condition(..) => None,
        }
    }

    /// What it is, for error texts.
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
    /// A value without a bound, which only [`set_unchecked`](Self::set_unchecked) changes.
    #[must_use]
    pub fn new(value: T) -> Self {
        Self::of_number(value, Bound::None)
    }

    /// A value that may become any other of its type.
    #[must_use]
    pub fn any(value: T) -> Self {
        Self::of_number(value, Bound::Any)
    }

    /// A value that stays within a range: `1..=9`, `..100`, `0.0..1.0`.
    ///
    /// # Errors
    /// [`ParameterError::OutOfBound`] when the first value lies outside.
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

    /// A value for which a condition holds; `bound` is what an error calls it, such as `a power of two`.
    ///
    /// # Errors
    /// [`ParameterError::OutOfBound`] when it does not hold for the first value.
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
            return Err(ParameterError::OutOfBound { given: shown(&value), bound }.into());
        }
        let condition = Given::new(condition);
        let outside = move |value: &Value| {
            let Value::Bytes(bytes) = value else { return Some("what is no plain value".to_owned()) };
            let value = bytemuck::pod_read_unaligned(bytes);
            (!condition(&value)).then(|| shown(&value))
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
    /// [`ParameterError::OutOfBound`], [`ParameterError::Unbounded`]: the value stays as it was.
    pub fn set(&self, value: T) -> Result<()> {
        let bytes = bytemuck::bytes_of(&value);
        match &self.cell.bound {
            Bound::Any => self.cell.put_bytes(bytes),
            _ => self.cell.set(Value::of(bytes))?,
        }
        Ok(())
    }

    /// Sets a value without looking at the bound.
    ///
    /// # Safety
    /// The promises of all kernel nodes that use the parameter hold for this value too.
    #[allow(unsafe_code)] // A declaration: the promise itself. Nothing unsafe is done here.
    pub unsafe fn set_unchecked(&self, value: T) {
        self.cell.put_bytes(bytemuck::bytes_of(&value));
    }

    /// The value that was set last.
    #[must_use]
    pub fn get(&self) -> T {
        bytemuck::pod_read_unaligned(&self.cell.bytes())
    }
}

impl Parameter<[u8]> {
    /// Raw bytes without a bound, which only [`set_unchecked`](Self::set_unchecked) changes.
    #[must_use]
    pub fn bytes(value: &[u8]) -> Self {
        Self::of(Value::of(value), Bound::None)
    }

    /// Raw bytes that may become any others, as many.
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
    /// [`ParameterError::Size`], [`ParameterError::Unbounded`]: they stay as they were.
    pub fn set(&self, value: &[u8]) -> Result<()> {
        self.check_size(value)?;
        Ok(self.cell.set(Value::of(value))?)
    }

    /// Sets the bytes without a bound.
    ///
    /// # Errors
    /// [`ParameterError::Size`]: they stay as they were.
    ///
    /// # Safety
    /// The promises of all kernel nodes that use the parameter hold for these bytes too.
    #[allow(unsafe_code)] // As above.
    pub unsafe fn set_unchecked(&self, value: &[u8]) -> Result<()> {
        self.check_size(value)?;
        self.cell.put(Value::of(value));
        Ok(())
    }

    /// The bytes that were set last.
    #[must_use]
    pub fn get(&self) -> Box<[u8]> {
        self.cell.bytes().into_boxed_slice()
    }
}

impl Parameter<LocalMemory> {
    /// Bytes of local memory a work-group, without a bound: only [`set_unchecked`](Self::set_unchecked) changes them.
    #[must_use]
    pub fn local(bytes: usize) -> Self {
        Self::of(Value::Local(bytes), Bound::None)
    }

    /// Bytes of local memory a work-group, within a range.
    ///
    /// # Errors
    /// [`ParameterError::OutOfBound`] when the first number lies outside.
    pub fn local_within(
        bytes: usize,
        range: impl RangeBounds<usize> + fmt::Debug + Send + Sync + 'static,
    ) -> Result<Self> {
        let bound = format!("{range:?} bytes");
        if !range.contains(&bytes) {
            return Err(ParameterError::OutOfBound { given: shown(&bytes), bound }.into());
        }
        let range = Given::new(range);
        let outside = move |value: &Value| {
            let Value::Local(bytes) = value else { return Some("what is no local memory".to_owned()) };
            (!range.contains(bytes)).then(|| shown(bytes))
        };
        Ok(Self::of(Value::Local(bytes), Bound::Condition(bound, Box::new(outside))))
    }

    /// Sets the bytes. What the device has is asked when the value is used: at finalize and at update.
    ///
    /// # Errors
    /// [`ParameterError::OutOfBound`], [`ParameterError::Unbounded`]: they stay as they were.
    pub fn set(&self, bytes: usize) -> Result<()> {
        Ok(self.cell.set(Value::Local(bytes))?)
    }

    /// Sets the bytes without looking at the bound.
    ///
    /// # Safety
    /// The promises of all kernel nodes that use the parameter hold for so much local memory too.
    #[allow(unsafe_code)] // As above.
    pub unsafe fn set_unchecked(&self, bytes: usize) {
        self.cell.put(Value::Local(bytes));
    }

    /// The bytes that were set last.
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
    /// The same parameter.
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

/// A value for an error text: types of the program's own are not asked to say what they are, and show their bytes.
fn shown<T: Pod>(value: &T) -> String {
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
