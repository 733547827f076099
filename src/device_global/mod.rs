//! Device globals as programs declare them: named variables that live on devices. Plain data; what they come to on a device is
//! in `cl/globals.rs`.

pub(crate) mod text;

use std::fmt;
use std::marker::PhantomData;

use bytemuck::Pod;

/// A variable that lives on devices: one instance for each device of each context, which all programs share that list it.
///
/// It is declared as a `static`, by [`device_global!`](macro@crate::device_global). It is zero, or has its initial value, before its first use,
/// and keeps what is written to it, whichever programs come and go, as long as anything of
/// clgraph's lives in its context: a queue, a buffer, a graph, a [`Context`](crate::Context).
///
/// - Kernels reach it by a name in OpenCL C that [`ProgramBuilder::global`](crate::ProgramBuilder::global) gives it, with macros
///   that are the same on every device: see there.
/// - The host reaches it as memory of a device, [`on`](Self::on), which every copy, fill, read and write takes, of queues
///   and of graphs.
/// - In graphs, kernels of a program are ordered with all that uses the globals that it lists, as with any memory:
///   [`KernelNode::global_read`](crate::KernelNode::global_read) and its like say it more exactly.
///
/// `T` is plain data ([`Pod`]): numbers, arrays and nested arrays of them, `#[repr(C)]` structs that derive `Pod`. So a type with
/// padding or pointers does not compile:
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
/// `A` is the property `host_access`, a type of [`host_access`]: copies that it forbids do not compile. `S` is
/// [`scope::DeviceImage`] with the property `device_image_scope`, and [`scope::Context`] without. See
/// [`device_global!`](macro@crate::device_global) for what these mean.
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
/// Its name is that of the module and its own, so equal names in different modules are different variables. Two in one module
/// (in two functions, say, or in two crates of one name) clash, which is an error where the second is used.
///
/// | property | what it means |
/// |---|---|
/// | `#[host_access(read)]` | the host only reads it: copies to it do not compile. `write`: it only writes it. `none`: neither. `read_write`: both, as without the property |
/// | `#[device_image_scope]` | it belongs to one program: a second one on the device that lists it is an error while the first lives, a program that is built again has a new one with its initial value, and dropping the program makes place |
/// | `#[init_mode(reprogram)]`, `#[init_mode(reset)]` | for FPGAs; without effect here |
/// | `#[implement_in_csr]`, `#[implement_in_csr(false)]` | for FPGAs; without effect here |
///
/// A global may start as another does, unless that belongs to one program: `static B: u32 = A.initial();`.
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

/// Sorts the properties of one declaration from its other attributes.
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

/// The property `host_access`, as types.
pub mod host_access {
    use super::HostAccess;

    pub(super) mod sealed {
        pub trait Sealed {}
    }

    /// A value of the property.
    pub trait Property: sealed::Sealed + 'static {
        /// It as a value.
        const VALUE: HostAccess;
    }

    /// Those with which the host may copy from a global.
    #[diagnostic::on_unimplemented(
        message = "the host may not read a device global with host_access `{Self}`",
        note = "declare it with `#[host_access(read)]`, or without the property"
    )]
    pub trait Readable: Property {}

    /// Those with which the host may copy to a global.
    #[diagnostic::on_unimplemented(
        message = "the host may not write a device global with host_access `{Self}`",
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
        /// The host copies from it only: `#[host_access(read)]`.
        Read: Read, Readable;
        /// The host copies to it only: `#[host_access(write)]`.
        Write: Write, Writable;
        /// The host copies from it and to it, as without the property.
        ReadWrite: ReadWrite, Readable, Writable;
        /// The host does neither: `#[host_access(none)]`.
        NoAccess: None;
    }
}

/// The property `device_image_scope`, as types.
pub mod scope {
    pub(super) mod sealed {
        pub trait Sealed {}
    }

    /// Where a global lives.
    pub trait Property: sealed::Sealed + 'static {
        /// Whether it is in one program.
        const IS_DEVICE_IMAGE: bool;
    }

    /// Without `#[device_image_scope]`: all programs of a context share it.
    #[derive(Clone, Copy, Debug)]
    pub enum Context {}

    /// With `#[device_image_scope]`: it is in one program.
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

/// What the host does with a device global.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HostAccess {
    /// It reads it.
    Read,
    /// It writes it.
    Write,
    /// It reads and writes it.
    ReadWrite,
    /// Neither.
    None,
}

/// How an FPGA initializes a device global. Without effect here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InitMode {
    /// By programming it again.
    Reprogram,
    /// By a signal.
    Reset,
}

/// What a type consists of: an array of the elements of what it is an array of, and anything else of one of itself.
///
/// It is there for the numbers that OpenCL C has, and arrays of all that have it. A struct needs one line:
///
/// ```
/// # use bytemuck::{Pod, Zeroable};
/// # #[repr(C)]
/// # #[derive(Clone, Copy, Pod, Zeroable)]
/// # struct Counters { hits: u32, misses: u32 }
/// impl clgraph::Elements for Counters { type Element = Self; }
/// ```
#[diagnostic::on_unimplemented(
    message = "nobody says what elements `{Self}` consists of",
    note = "for a struct write `impl clgraph::Elements for {Self} {{ type Element = Self; }}`, or use `on_whole`"
)]
pub trait Elements: Pod {
    /// The innermost type.
    type Element: Pod + Send + Sync;
}

macro_rules! numbers {
    ($($type:ty)*) => {
        $(
            impl Elements for $type {
                type Element = Self;
            }
        )*
    };
}
numbers!(u8 i8 u16 i16 u32 i32 u64 i64 f32 f64);

impl<T: Elements, const N: usize> Elements for [T; N] {
    type Element = T::Element;
}

impl<T: Pod, A: host_access::Property, S: scope::Property> DeviceGlobal<T, A, S> {
    /// What [`device_global!`](macro@crate::device_global) calls.
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

    /// Its module and name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Its size in bytes.
    #[must_use]
    pub const fn size(&self) -> usize {
        size_of::<T>()
    }

    /// The property `host_access`: [`HostAccess::ReadWrite`] where none is declared.
    #[must_use]
    pub const fn host_access(&self) -> HostAccess {
        A::VALUE
    }

    /// The property `device_image_scope`.
    #[must_use]
    pub const fn is_device_image_scope(&self) -> bool {
        S::IS_DEVICE_IMAGE
    }

    /// The property `init_mode`. It has no effect here.
    #[must_use]
    pub const fn init_mode(&self) -> Option<InitMode> {
        self.init_mode
    }

    /// The property `implement_in_csr`. It has no effect here.
    #[must_use]
    pub const fn implement_in_csr(&self) -> Option<bool> {
        self.implement_in_csr
    }

    /// It without its type.
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
    /// Its initial value, for another that starts in the same way.
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

/// A device global without its type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Declared {
    pub(crate) name: &'static str,
    /// File and line.
    pub(crate) location: &'static str,
    /// Of the `static`: tells two of one name apart.
    address: usize,
    pub(crate) type_name: &'static str,
    /// Bytes.
    pub(crate) size: usize,
    /// Zero if none.
    pub(crate) initial: Option<&'static [u8]>,
    pub(crate) is_image_scope: bool,
}

impl Declared {
    /// Whether it is the same variable.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.address == other.address
    }
}
