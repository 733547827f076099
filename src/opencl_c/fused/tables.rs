//! Where a fused kernel has the arguments of its launches: in parameters, in tables of its own, or in memory that is a parameter.
//!
//! A table has what differs from turn to turn. One work-item has it in private memory, and a work-group in local memory, where its first
//! work-item fills it. Values that would be too many parameters are in memory that nothing writes, and their tables are read there.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::ops::Range;

use super::rolled::{InMemory, Table};
use super::unit::{Types, of_values};
use super::{Form, FusedArg, FusedKernel, FusedParam};

/// How the parameters of a fused kernel are written.
pub(super) struct Names {
    memory: InMemory,
    /// By parameter: the type of its values, if it is in memory.
    types: Vec<String>,
}

impl Names {
    pub(super) fn of(kernel: &FusedKernel, types: &Types<'_>) -> Self {
        let first = kernel.first_tabled();
        let type_of = |(at, param): (usize, &FusedParam)| match param {
            FusedParam::Value(of, _) if at >= first => of_values(&types.name(of)),
            FusedParam::Size => "uint".to_owned(),
            FusedParam::Value(..) | FusedParam::Memory | FusedParam::Local => String::new(),
        };
        Self { memory: InMemory::of(kernel), types: kernel.params.iter().enumerate().map(type_of).collect() }
    }

    pub(super) fn arg(&self, arg: &FusedArg) -> String {
        match arg {
            FusedArg::Param(at) => match self.memory.place(*at) {
                Some(place) => in_table(&self.types[*at], &place.to_string()),
                None => format!("clgraph_fuse_a{at}"),
            },
            FusedArg::Number(number) => number.to_string(),
        }
    }

    /// If the entries of a table are in memory: returns the one for a turn and so many more.
    pub(super) fn in_turn(&self, table: &Table, ahead: usize) -> Option<String> {
        let (first, step) = table.in_memory(&self.memory)?;
        let FusedArg::Param(param) = table.entries.first()? else { return None };
        let first = first + ahead * step;
        Some(in_table(&self.types[*param], &format!("{first} + clgraph_fuse_turn * {step}")))
    }
}

/// Returns a value in the table.
fn in_table(of: &str, at: &str) -> String {
    format!("*(global const {of} *)(clgraph_fuse_table + {at})")
}

/// Declares what differs from turn to turn.
pub(super) fn declare_tables(
    all: &mut String,
    (tables, types): (&[Table], &Types<'_>),
    names: &Names,
    form: Form,
    are_filled: bool,
) {
    let place = if form == Form::OneGroup { "local " } else { "" };
    for (number, table) in tables.iter().enumerate() {
        if table.in_memory(&names.memory).is_some() {
            continue;
        }
        let begin = match &table.kind {
            FusedParam::Memory => format!("global void *{place}"),
            // None is made of these.
            FusedParam::Local => format!("local void *{place}"),
            // It is written after it is declared.
            FusedParam::Value(of, _) => format!("{place}{} ", of_values(&types.name(of))),
            FusedParam::Size => format!("{place}uint "),
        };
        let entries: Vec<String> = table.entries.iter().filter(|_| are_filled).map(|arg| names.arg(arg)).collect();
        let values = if are_filled { format!(" = {{{}}}", entries.join(", ")) } else { String::new() };
        let _ = writeln!(all, "    {begin}clgraph_fuse_t{number}[{}]{values};", table.entries.len());
    }
}

/// Fills some of the tables: those of the lane that runs.
pub(super) fn fill_tables(all: &mut String, tables: &[Table], which: Range<usize>, names: &Names, form: Form) {
    let is_filled = |number: &usize| tables[*number].in_memory(&names.memory).is_none();
    let which: Vec<usize> = which.filter(is_filled).collect();
    if which.is_empty() {
        return;
    }
    let (begin, end) = match form {
        Form::OneItem => ("", ""),
        Form::OneGroup => ("    if (get_local_id(0) == 0) {\n", "    }\n    barrier(CLK_LOCAL_MEM_FENCE);\n"),
    };
    all.push_str(begin);
    for number in which {
        for (at, entry) in tables[number].entries.iter().enumerate() {
            let _ = writeln!(all, "        clgraph_fuse_t{number}[{at}] = {};", names.arg(entry));
        }
    }
    all.push_str(end);
}

/// Writes that values in tables have the sizes of their types, or the compiler refuses: no driver is asked, as it is of arguments.
pub(super) fn write_sizes(all: &mut String, kernels: &[FusedKernel], types: &Types<'_>) {
    let sized = |param: &FusedParam| match param {
        FusedParam::Value(of, bytes) => Some((of_values(&types.name(of)), *bytes)),
        FusedParam::Memory | FusedParam::Local | FusedParam::Size => None,
    };
    let tabled = kernels.iter().flat_map(|kernel| &kernel.params[kernel.first_tabled()..]);
    let sizes: BTreeSet<(String, usize)> = tabled.filter_map(sized).collect();
    for (number, (of, bytes)) in sizes.into_iter().enumerate() {
        let _ = writeln!(all, "typedef char clgraph_fuse_size{number}[sizeof({of}) == {bytes} ? 1 : -1];");
    }
}
