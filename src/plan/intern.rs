//! Which launches can share a kernel object.
//!
//! Arguments are state of a `cl_kernel`, so launches share one only if their kernels and argument values are equal. A launch
//! with an argument that a parameter gives has its own: an update sets the argument there, and reaches no other launch.

use std::hash::{Hash, Hasher};

use rustc_hash::FxHashMap;

use super::{ObjectId, ObjectSpec, Options, same_args};
use crate::command::{Arg, Command};
use crate::ir::{Ir, KernelId, NodeId, Span};

/// Returns the kernel objects, and the object of each node that launches a kernel.
pub(super) fn intern(ir: &Ir, order: &[NodeId], options: &Options<'_>) -> (Vec<ObjectSpec>, Vec<Option<ObjectId>>) {
    let mut known: FxHashMap<Key<'_>, ObjectId> = FxHashMap::default();
    let mut objects = Vec::new();
    let mut object_of = vec![None; ir.len()];
    for &node in order {
        let op = ir.command(node);
        if let Command::Kernel { kernel, args, .. } = op
            && (options.updatable || !op.is_noop())
        {
            let (kernel, args) = (*kernel, *args);
            let mut new = || {
                objects.push(ObjectSpec { kernel, args, first: node });
                ObjectId(objects.len() as u32 - 1)
            };
            let object = if has_parameter(options.parameters, args) {
                new()
            } else {
                *known.entry(Key { ir, kernel, args }).or_insert_with(new)
            };
            object_of[node.index()] = Some(object);
        }
    }
    (objects, object_of)
}

/// Whether a parameter gives one of the arguments.
fn has_parameter(parameters: &[u32], args: Span) -> bool {
    let (start, end) = args.ends();
    parameters.get(parameters.partition_point(|arg| *arg < start)).is_some_and(|arg| *arg < end)
}

/// Keys are equal if kernels and argument values are.
struct Key<'a> {
    ir: &'a Ir,
    kernel: KernelId,
    args: Span,
}

impl PartialEq for Key<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.kernel == other.kernel && same_args(self.ir, self.args, other.args)
    }
}

impl Eq for Key<'_> {}

impl Hash for Key<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.kernel.hash(state);
        for arg in self.ir.args(self.args) {
            match arg {
                Arg::Memory(view) | Arg::Indirect(view) | Arg::Global(view) | Arg::Unused(view) => view.hash(state),
                Arg::Null(_) => state.write_u8(0),
                Arg::Sampler(sampler) => sampler.hash(state),
                Arg::Local(size) => state.write_usize(*size),
                Arg::Value(span) => state.write(self.ir.bytes(*span)),
            }
        }
    }
}
