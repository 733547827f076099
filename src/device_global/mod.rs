//! Device globals as programs declare them: named variables that live on devices.
//!
//! Input: a declaration by [`device_global!`](crate::device_global!). Output: the OpenCL C text that declares the
//! variable in a kernel's source. Nothing here calls OpenCL.
//!
//! | file | what is there |
//! |---|---|
//! | `mod.rs` | the public `DeviceGlobal`, its properties and the macro: read it first |
//! | `text.rs` | what the compiler is given: definitions for the macros of `kernels-cl/device_global.h` |
//!
//! The memory of a global is in `cl/memory/globals.rs`. How the kernels of a program reach it is in
//! `cl/memory/program_globals.rs`. What a launch declares of it is in `graph/nodes/launch.rs`. Rules: G1 to G17.

pub(crate) mod text;

use std::fmt;
use std::marker::PhantomData;
use std::sync::{Mutex, PoisonError};

use bytemuck::Pod;

/// A named variable that lives on devices. Each device of each context has one instance, which all programs that list
/// it share.
///
/// Declare it as a `static` with [`device_global!`](macro@crate::device_global). Its first value is its initial value,
/// or zero. It keeps each written value as long as any clgraph object exists in its context: a queue, a buffer, a
/// graph, or a [`Context`](crate::Context). Programs may come and go meanwhile.
///
/// - Kernels use it through a name in OpenCL C and macros that are the same on every device: see
///   [`ProgramBuilder::global`](crate::ProgramBuilder::global).
/// - The host uses it as memory of a device: see [`on`](Self::on). All copies, fills, reads and writes of queues and
///   graphs take this memory.
/// - In a graph, a kernel is ordered with all other uses of the device globals that its program lists, as for other
///   memory. [`KernelNode::global_read`](crate::KernelNode::global_read) and its siblings declare the use of one device
///   global exactly.
///
/// `T` is plain data ([`Pod`]): numbers, arrays and nested arrays of numbers, and `#[repr(C)]` structs that derive
/// `Pod`. A type with padding or pointers does not compile:
///
/// ```compile_fail,E0277
/// #[repr(C)]
/// #[derive(Clone, Copy)]
/// struct Padded { small: u8, large: u32 }
/// clgraph::device_global! { static PADDED: Padded = Padded { small: 1, large: 2 }; }
/// ```
///
/// ```compile_fail,E0277
/// clgraph::device_global! { static POINTER: &'static u32 = &1; }
/// ```
///
/// `A` is the property `host_access`, a type of [`host_access`]: copies that the property forbids do not compile. `S`
/// is [`scope::DeviceImage`] with the property `device_image_scope`, and [`scope::Context`] without it.
/// [`device_global!`](macro@crate::device_global) explains both properties.
///
/// ```
/// # fn main() -> clgraph::Result<()> {
/// use clgraph::{ProgramBuilder, Queue};
/// clgraph::device_global! {
///     /// How many work-items there were.
///     static COUNT: u32 = 100;
/// }
/// let queue = Queue::new(&clgraph::best_device()?)?;
/// let program = ProgramBuilder::new(&queue).global("count", &COUNT).source(
///     "CLG_DEVICE_GLOBAL(uint, count);
///      kernel void tick(CLG_ONLY_PARAMS) { atomic_inc(&CLG_GLOBAL(count)); }",
/// )?;
/// let tick = program.kernel("tick")?;
/// // SAFETY: it touches nothing but the global.
/// unsafe { clgraph::ExecuteKernel::new(&tick).set_global_work_size(11).enqueue_nd_range(&queue)? };
/// let mut count = [0];
/// queue.enqueue_read_buffer(&COUNT.on(&queue)?, 0, &mut count, &[])?;
/// assert_eq!(count, [111]);
/// # Ok(()) }
/// ```
#[doc(alias = "device_global")]
pub struct DeviceGlobal<T: 'static, A = host_access::ReadWrite, S = scope::Context> {
    name: &'static str,
    location: &'static str,
    initial: Option<&'static T>,
    init_mode: Option<InitMode>,
    implement_in_csr: Option<bool>,
    properties: PhantomData<fn() -> (A, S)>,
}

/// Declares device globals, each as a `static` [`DeviceGlobal`].
///
/// The full name of a device global is its module and its own name. So equal names in different modules are different
/// variables. Two device globals with one full name clash: for example in two functions of one module, or in two crates
/// of one name. The first use of the second one returns an error.
///
/// | property | meaning |
/// |---|---|
/// | `#[host_access(read)]` | The host only reads the variable; copies to it do not compile. With `write` the host only writes it, with `none` it does neither. `read_write` allows both, and is the default. |
/// | `#[device_image_scope]` | The variable belongs to one program. While that program lives, a second program on the device that lists the variable is an error. A program that is built again has a new variable with its initial value. |
/// | `#[init_mode(reprogram)]`, `#[init_mode(reset)]` | For FPGAs; clgraph ignores it. |
/// | `#[implement_in_csr]`, `#[implement_in_csr(false)]` | For FPGAs; clgraph ignores it. |
///
/// ```
/// use bytemuck::{Pod, Zeroable};
///
/// #[repr(C)]
/// #[derive(Clone, Copy, Pod, Zeroable)]
/// pub struct Counters { hits: u32, misses: u32 }
///
/// clgraph::device_global! {
///     /// Zero at first.
///     pub static COUNTERS: Counters;
///     static WEIGHTS: [[f32; 16]; 4] = [[0.25; 16]; 4];
///     #[host_access(read)]
///     static RESULT: u64 = 7;
///     #[device_image_scope]
///     #[init_mode(reset)]
///     #[implement_in_csr(false)]
///     static TABLE: [i32; 3] = [1, 2, 3];
/// }
/// assert!(RESULT.name().ends_with("::RESULT"));
/// ```
///
/// A device global can have the same initial value as another: `static B: u32 = A.initial();`. This does not compile if
/// the other belongs to one program:
///
/// ```compile_fail,E0599
/// clgraph::device_global! {
///     #[device_image_scope]
///     static OWN: u32 = 1;
///     static LIKE: u32 = OWN.initial();
/// }
/// ```
#[macro_export]
macro_rules! device_global {
    ($( $(#[$($attribute:tt)*])* $visible:vis static $name:ident : $type:ty $(= $initial:expr)? ; )+) => {
        $(
            $crate::__device_global! {
                [$([$($attribute)*])*] [] [ReadWrite] [Context] [None] [None]
                $visible $name: $type, [$($initial)?]
            }
        )+
    };
}

/// Separates the properties of one declaration from its other attributes.
#[doc(hidden)]
#[macro_export]
macro_rules! __device_global {
    ([[host_access(read)] $($rest:tt)*] $other:tt $access:tt $scope:tt $mode:tt $csr:tt $($item:tt)*) => {
        $crate::__device_global! { [$($rest)*] $other [Read] $scope $mode $csr $($item)* }
    };
    ([[host_access(write)] $($rest:tt)*] $other:tt $access:tt $scope:tt $mode:tt $csr:tt $($item:tt)*) => {
        $crate::__device_global! { [$($rest)*] $other [Write] $scope $mode $csr $($item)* }
    };
    ([[host_access(read_write)] $($rest:tt)*] $other:tt $access:tt $scope:tt $mode:tt $csr:tt $($item:tt)*) => {
        $crate::__device_global! { [$($rest)*] $other [ReadWrite] $scope $mode $csr $($item)* }
    };
    ([[host_access(none)] $($rest:tt)*] $other:tt $access:tt $scope:tt $mode:tt $csr:tt $($item:tt)*) => {
        $crate::__device_global! { [$($rest)*] $other [NoAccess] $scope $mode $csr $($item)* }
    };
    ([[host_access $($what:tt)*] $($rest:tt)*] $($all:tt)*) => {
        compile_error!("`host_access` is `read`, `write`, `read_write` or `none`, as in `#[host_access(read)]`");
    };
    ([[device_image_scope] $($rest:tt)*] $other:tt $access:tt $scope:tt $mode:tt $csr:tt $($item:tt)*) => {
        $crate::__device_global! { [$($rest)*] $other $access [DeviceImage] $mode $csr $($item)* }
    };
    ([[init_mode(reprogram)] $($rest:tt)*] $other:tt $access:tt $scope:tt $mode:tt $csr:tt $($item:tt)*) => {
        $crate::__device_global! { [$($rest)*] $other $access $scope [Some($crate::InitMode::Reprogram)] $csr $($item)* }
    };
    ([[init_mode(reset)] $($rest:tt)*] $other:tt $access:tt $scope:tt $mode:tt $csr:tt $($item:tt)*) => {
        $crate::__device_global! { [$($rest)*] $other $access $scope [Some($crate::InitMode::Reset)] $csr $($item)* }
    };
    ([[init_mode $($what:tt)*] $($rest:tt)*] $($all:tt)*) => {
        compile_error!("`init_mode` is `reprogram` or `reset`, as in `#[init_mode(reset)]`");
    };
    ([[implement_in_csr] $($rest:tt)*] $other:tt $access:tt $scope:tt $mode:tt $csr:tt $($item:tt)*) => {
        $crate::__device_global! { [$($rest)*] $other $access $scope $mode [Some(true)] $($item)* }
    };
    ([[implement_in_csr($yes:literal)] $($rest:tt)*] $other:tt $access:tt $scope:tt $mode:tt $csr:tt $($item:tt)*) => {
        $crate::__device_global! { [$($rest)*] $other $access $scope $mode [Some($yes)] $($item)* }
    };
    ([[$($attribute:tt)*] $($rest:tt)*] [$($other:tt)*] $($all:tt)*) => {
        $crate::__device_global! { [$($rest)*] [$($other)* #[$($attribute)*]] $($all)* }
    };
    ([] $other:tt $access:tt $scope:tt $mode:tt $csr:tt $visible:vis $name:ident: $type:ty, []) => {
        $crate::__device_global! { @ $other $access $scope $mode $csr $visible $name: $type, None }
    };
    ([] $other:tt $access:tt $scope:tt $mode:tt $csr:tt $visible:vis $name:ident: $type:ty, [$initial:expr]) => {
        $crate::__device_global! { @ $other $access $scope $mode $csr $visible $name: $type, Some({ static INITIAL: $type = $initial; &INITIAL }) }
    };
    (
        @ [$($other:tt)*] [$access:ident] [$scope:ident] [$($mode:tt)*] [$($csr:tt)*]
        $visible:vis $name:ident: $type:ty, $initial:expr
    ) => {
        $($other)*
        $visible static $name: $crate::DeviceGlobal<$type, $crate::host_access::$access, $crate::scope::$scope> =
            $crate::DeviceGlobal::__new(
                concat!(module_path!(), "::", stringify!($name)),
                concat!(file!(), ":", line!()),
                $initial,
                $($mode)*,
                $($csr)*,
            );
    };
}

/// The values of the property `host_access`, as types.
pub mod host_access {
    use super::HostAccess;

    pub(super) mod sealed {
        pub trait Sealed {}
    }

    /// A value of the property.
    pub trait Property: sealed::Sealed + 'static {
        /// The value as a [`HostAccess`].
        const VALUE: HostAccess;
    }

    /// The values with which the host may read a device global.
    #[diagnostic::on_unimplemented(
        message = "the host cannot read a device global with host_access `{Self}`",
        note = "declare it with `#[host_access(read)]`, or without the property"
    )]
    pub trait Readable: Property {}

    /// The values with which the host may write a device global.
    #[diagnostic::on_unimplemented(
        message = "the host cannot write a device global with host_access `{Self}`",
        note = "declare it with `#[host_access(write)]`, or without the property"
    )]
    pub trait Writable: Property {}

    macro_rules! property {
        ($( $(#[$doc:meta])* $name:ident: $value:ident $(, $can:ident)*; )*) => {
            $(
                $(#[$doc])*
                #[derive(Clone, Copy, Debug)]
                pub enum $name {}

                impl sealed::Sealed for $name {}

                impl Property for $name {
                    const VALUE: HostAccess = HostAccess::$value;
                }

                $( impl $can for $name {} )*
            )*
        };
    }

    property! {
        /// The host only reads the variable: `#[host_access(read)]`.
        Read: Read, Readable;
        /// The host only writes the variable: `#[host_access(write)]`.
        Write: Write, Writable;
        /// The host reads and writes the variable. This is the default.
        ReadWrite: ReadWrite, Readable, Writable;
        /// The host neither reads nor writes the variable: `#[host_access(none)]`.
        NoAccess: None;
    }
}

/// The values of the property `device_image_scope`, as types.
pub mod scope {
    pub(super) mod sealed {
        pub trait Sealed {}
    }

    /// What a device global belongs to: a context or one program.
    pub trait Property: sealed::Sealed + 'static {
        /// Whether the device global belongs to one program.
        const IS_DEVICE_IMAGE: bool;
    }

    /// Without `#[device_image_scope]`: all programs of a context share the device global.
    #[derive(Clone, Copy, Debug)]
    pub enum Context {}

    /// With `#[device_image_scope]`: the device global belongs to one program.
    #[derive(Clone, Copy, Debug)]
    pub enum DeviceImage {}

    impl sealed::Sealed for Context {}
    impl sealed::Sealed for DeviceImage {}

    impl Property for Context {
        const IS_DEVICE_IMAGE: bool = false;
    }

    impl Property for DeviceImage {
        const IS_DEVICE_IMAGE: bool = true;
    }
}

/// How the host uses a device global.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HostAccess {
    /// The host only reads it.
    Read,
    /// The host only writes it.
    Write,
    /// The host reads and writes it.
    ReadWrite,
    /// The host neither reads nor writes it.
    None,
}

/// How an FPGA initializes a device global. clgraph ignores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InitMode {
    /// The FPGA is programmed again.
    Reprogram,
    /// A reset signal.
    Reset,
}

/// A type whose innermost elements are known: the elements of an array are those of its element type, and any other
/// type has one element, itself.
///
/// The numbers of OpenCL C, and arrays of types that implement this trait, implement it. A struct needs one line:
///
/// ```
/// # use bytemuck::{Pod, Zeroable};
/// # #[repr(C)]
/// # #[derive(Clone, Copy, Pod, Zeroable)]
/// # struct Counters { hits: u32, misses: u32 }
/// impl clgraph::DeviceGlobalType for Counters { type Element = Self; }
/// ```
#[diagnostic::on_unimplemented(
    message = "the element type of `{Self}` is not declared",
    note = "for a struct write `impl clgraph::DeviceGlobalType for {Self} {{ type Element = Self; }}`, or use `on_whole`"
)]
pub trait DeviceGlobalType: Pod {
    /// The innermost element type.
    type Element: Pod + Send + Sync;
}

macro_rules! numbers {
    ($($type:ty)*) => {
        $(
            impl DeviceGlobalType for $type {
                type Element = Self;
            }
        )*
    };
}
numbers!(u8 i8 u16 i16 u32 i32 u64 i64 f32 f64);

impl<T: DeviceGlobalType, const N: usize> DeviceGlobalType for [T; N] {
    type Element = T::Element;
}

impl<T: Pod, A: host_access::Property, S: scope::Property> DeviceGlobal<T, A, S> {
    /// Called by [`device_global!`](macro@crate::device_global).
    #[doc(hidden)]
    pub const fn __new(
        name: &'static str,
        location: &'static str,
        initial: Option<&'static T>,
        init_mode: Option<InitMode>,
        implement_in_csr: Option<bool>,
    ) -> Self {
        const { assert!(size_of::<T>() > 0, "a device global has at least one byte") }
        Self { name, location, initial, init_mode, implement_in_csr, properties: PhantomData }
    }

    /// Returns the full name: the module and the name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the size in bytes.
    #[must_use]
    pub const fn size(&self) -> usize {
        size_of::<T>()
    }

    /// Returns the property `host_access`, which is [`HostAccess::ReadWrite`] if none is declared.
    #[must_use]
    pub const fn host_access(&self) -> HostAccess {
        A::VALUE
    }

    /// Returns whether the property `device_image_scope` is declared.
    #[must_use]
    pub const fn is_device_image_scope(&self) -> bool {
        S::IS_DEVICE_IMAGE
    }

    /// Returns the property `init_mode`, which clgraph ignores.
    #[must_use]
    pub const fn init_mode(&self) -> Option<InitMode> {
        self.init_mode
    }

    /// Returns the property `implement_in_csr`, which clgraph ignores.
    #[must_use]
    pub const fn implement_in_csr(&self) -> Option<bool> {
        self.implement_in_csr
    }

    /// Returns the declaration without its type.
    pub(crate) fn declared(&'static self) -> Declared {
        Declared {
            name: self.name,
            location: self.location,
            address: std::ptr::from_ref(self).addr(),
            type_name: std::any::type_name::<T>(),
            size: size_of::<T>(),
            initial: self.initial.map(bytemuck::bytes_of),
            is_image_scope: S::IS_DEVICE_IMAGE,
        }
    }
}

impl<T: Pod, A: host_access::Property> DeviceGlobal<T, A, scope::Context> {
    /// Returns the initial value, for another device global that starts with the same value.
    ///
    /// ```
    /// clgraph::device_global! {
    ///     static LIMIT: u32 = 9;
    ///     static REST: u32 = LIMIT.initial();
    /// }
    /// assert_eq!(REST.initial(), 9);
    /// ```
    #[must_use]
    pub const fn initial(&self) -> T {
        match self.initial {
            Some(value) => *value,
            None => bytemuck::zeroed(),
        }
    }
}

impl<T: 'static, A, S> fmt::Debug for DeviceGlobal<T, A, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceGlobal({}: {})", self.name, std::any::type_name::<T>())
    }
}

/// A device global that the program declares while it runs, as bytes: where the size is not known before, and for other
/// languages.
///
/// The declaration is never freed, as a `static` is not; clones are the same variable. Everything else is as for a
/// [`DeviceGlobal`] with `host_access(read_write)`.
///
/// ```
/// # fn main() -> clgraph::Result<()> {
/// use clgraph::{DynamicGlobal, ProgramBuilder, Queue};
/// let table = DynamicGlobal::new("filters::table", 3 * size_of::<u32>(), Some(bytemuck::cast_slice(&[7_u32, 8, 9])))?;
/// let queue = Queue::new(&clgraph::best_device()?)?;
/// let program = ProgramBuilder::new(&queue).global("table", &table).source(
///     "CLG_DEVICE_GLOBAL_ARRAY(uint, table, [3]);
///      kernel void bump(CLG_ONLY_PARAMS) { CLG_GLOBAL(table)[get_global_id(0)] += 10; }",
/// )?;
/// let bump = program.kernel("bump")?;
/// // SAFETY: a work-item touches its own element of the global.
/// unsafe { clgraph::ExecuteKernel::new(&bump).set_global_work_size(3).enqueue_nd_range(&queue)? };
/// let mut now = [0_u32; 3];
/// queue.enqueue_read_buffer(&table.on(&queue)?.cast()?, 0, &mut now, &[])?;
/// assert_eq!(now, [17, 18, 19]);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct DynamicGlobal(Declared);

/// What a declaration at run time keeps for ever.
struct KeptForEver {
    _name: &'static str,
    _initial: Option<&'static [u8]>,
    _itself: &'static u8,
}

/// All of it, so that tools that look for leaks find it.
static DECLARED: Mutex<Vec<KeptForEver>> = Mutex::new(Vec::new());

impl DynamicGlobal {
    /// Declares a device global whose size has been checked.
    pub(crate) fn declare(name: &str, size: usize, initial: Option<&[u8]>, is_image_scope: bool) -> Self {
        let name: &'static str = Box::leak(name.to_owned().into_boxed_str());
        let initial: Option<&'static [u8]> = initial.map(|initial| &*Box::leak(initial.to_vec().into_boxed_slice()));
        // What is never freed distinguishes the declaration from all others.
        let itself: &'static u8 = Box::leak(Box::new(0));
        let address = std::ptr::from_ref(itself).addr();
        let kept = KeptForEver { _name: name, _initial: initial, _itself: itself };
        DECLARED.lock().unwrap_or_else(PoisonError::into_inner).push(kept);
        let (location, type_name) = ("a declaration at run time", "bytes");
        Self(Declared { name, location, address, type_name, size, initial, is_image_scope })
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.0.name
    }

    /// Returns the size in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.0.size
    }
}

/// A device global: a reference to a [`DeviceGlobal`] or to a [`DynamicGlobal`]. It cannot be implemented outside this
/// crate.
pub trait AnyDeviceGlobal: sealed::AnyDeviceGlobal {}

mod sealed {
    pub trait AnyDeviceGlobal {
        #[doc(hidden)]
        fn declared(&self) -> super::Declaration;
    }
}

/// Hides the private type of declarations in public traits.
#[derive(Debug)]
pub struct Declaration(pub(crate) Declared);

impl<T: Pod, A: host_access::Property, S: scope::Property> AnyDeviceGlobal for &'static DeviceGlobal<T, A, S> {}

impl<T: Pod, A: host_access::Property, S: scope::Property> sealed::AnyDeviceGlobal for &'static DeviceGlobal<T, A, S> {
    fn declared(&self) -> Declaration {
        Declaration(DeviceGlobal::declared(self))
    }
}

impl AnyDeviceGlobal for &DynamicGlobal {}

impl sealed::AnyDeviceGlobal for &DynamicGlobal {
    fn declared(&self) -> Declaration {
        Declaration(self.0)
    }
}

/// Returns the declaration of a device global.
pub(crate) fn declaration(global: &impl AnyDeviceGlobal) -> Declared {
    global.declared().0
}

/// The declaration of a device global, without its type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Declared {
    pub(crate) name: &'static str,
    /// File and line.
    pub(crate) location: &'static str,
    /// The address of the `static`, which distinguishes two device globals of one name.
    address: usize,
    pub(crate) type_name: &'static str,
    /// Size in bytes.
    pub(crate) size: usize,
    /// The bytes of the initial value; zero bytes if `None`.
    pub(crate) initial: Option<&'static [u8]>,
    pub(crate) is_image_scope: bool,
}

impl Declared {
    /// Returns whether both are the same variable.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.address == other.address
    }
}
