//! What a graph consists of: the vocabulary's data, and the objects that its ids stand for.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use super::Flat;
use crate::cl::buffer::{Mem, Region};
use crate::cl::host::HostBytes;
use crate::cl::kernel::Kernel;
use crate::ir::{Access, Ir, KernelDecl, KernelId, Mode, RootId, View, ViewId};

/// A graph as data, and its objects, each kind in the order of its ids.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tables {
    pub(crate) ir: Ir,
    pub(crate) views: Vec<Mem>,
    pub(crate) kernels: Vec<Kernel>,
    pub(crate) data: Vec<HostBytes>,
    /// Bytes of each result.
    pub(crate) results: Vec<usize>,
    pub(crate) children: Vec<Child>,
}

/// An executable in a graph.
#[derive(Clone, Debug)]
pub(crate) struct Child {
    pub(crate) of: Arc<dyn CurrentValues>,
    /// Its own turns, and those of the executables in it.
    pub(crate) turns: Vec<Turns>,
}

/// An executable, as graphs know it: something that has values, which may change.
pub(crate) trait CurrentValues: Send + Sync {
    /// What it is made of now.
    fn flat(&self) -> Flat;
}

impl fmt::Debug for dyn CurrentValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an executable of {} nodes", self.flat().tables.ir.len())
    }
}

/// How the uses of an executable follow each other, across submissions and graphs. What it is made of is `exec`'s affair.
#[derive(Clone)]
pub(crate) struct Turns(pub(crate) Arc<dyn Any + Send + Sync>);

impl Turns {
    /// Tells turns apart while they live.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0).cast::<()>().addr()
    }
}

impl fmt::Debug for Turns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Turns({:#x})", self.address())
    }
}

/// Finds what is in the tables already.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// By C handle, which is unique while `views` keeps the object alive.
    view_of: HashMap<usize, ViewId>,
    root_of: HashMap<usize, RootId>,
    kernel_of: HashMap<KernelKey, KernelId>,
}

/// A program's C handle and the function's name.
type KernelKey = (usize, Arc<str>);

/// Tables to write to.
#[derive(Debug)]
pub(crate) struct Writer<'a> {
    pub(super) tables: &'a mut Tables,
    pub(super) index: &'a mut Index,
}

impl Deref for Writer<'_> {
    type Target = Tables;

    fn deref(&self) -> &Tables {
        self.tables
    }
}

impl DerefMut for Writer<'_> {
    fn deref_mut(&mut self) -> &mut Tables {
        self.tables
    }
}

impl Writer<'_> {
    /// The id of some memory, new or known.
    pub(super) fn view(&mut self, mem: &Mem) -> ViewId {
        let Self { tables, index } = self;
        if let Some(&view) = index.view_of.get(&mem.raw().addr()) {
            return view;
        }
        let roots = index.root_of.len() as u32;
        let root = *index.root_of.entry(mem.root()).or_insert(RootId(roots));
        let view = ViewId(tables.views.len() as u32);
        tables.ir.views.push(View {
            root,
            root_size: mem.root_size(),
            offset: mem.offset_in_root(),
            size: mem.size(),
            is_sub_buffer: mem.is_sub_buffer(),
        });
        tables.views.push(mem.clone());
        index.view_of.insert(mem.raw().addr(), view);
        view
    }

    /// The id of a region's memory, and the use of its bytes.
    pub(super) fn access(&mut self, region: &Region, mode: Mode) -> Access {
        let view = self.view(&region.mem);
        let start = region.mem.offset_in_root() + region.offset;
        Access { view, range: start..start + region.size, mode }
    }

    /// The id of a kernel function, new or known.
    pub(super) fn kernel(&mut self, kernel: &Kernel, built: bool) -> KernelId {
        let Self { tables, index } = self;
        let name: Arc<str> = kernel.shared_name();
        if let Some(&id) = index.kernel_of.get(&(kernel.program().raw().addr(), Arc::clone(&name))) {
            return id;
        }
        let id = KernelId(tables.kernels.len() as u32);
        tables.ir.kernels.push(KernelDecl { name: Arc::clone(&name), built, checked: kernel.has_arg_info() });
        index.kernel_of.insert((kernel.program().raw().addr(), name), id);
        tables.kernels.push(kernel.clone());
        id
    }
}
