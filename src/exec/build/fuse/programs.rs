//! Which programs the launches of a graph are of, and whose texts can be one: so launches of several programs are in one chain.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::cl::objects::program::Program;
use crate::ir::NodeId;

/// The most programs whose texts are one.
const MOST_PROGRAMS: usize = 32;

/// The most bytes of texts that are one: a compiler reads all of it for each fused kernel.
const MOST_BYTES: usize = 256 << 10;

/// The programs of the launches of a graph.
pub(super) struct Programs<'a> {
    /// Whether texts may be one.
    joins: bool,
    all: Vec<&'a Program>,
    /// By program: launches of programs with one number may be in one chain.
    groups: Vec<usize>,
    /// By address.
    known: FxHashMap<usize, usize>,
    /// By text and options.
    numbers: BTreeMap<(&'a str, &'a str), usize>,
    /// By dialect: the group that takes more programs, how many it has, and their bytes.
    open: BTreeMap<&'a str, (usize, usize, usize)>,
    /// By launch.
    of: FxHashMap<NodeId, usize>,
}

impl<'a> Programs<'a> {
    pub(super) fn new(joins: bool) -> Self {
        let (all, groups, known, of) = (Vec::new(), Vec::new(), FxHashMap::default(), FxHashMap::default());
        Self { joins, all, groups, known, numbers: BTreeMap::new(), open: BTreeMap::new(), of }
    }

    /// Remembers the program of a launch, and returns its number.
    pub(super) fn add(&mut self, node: NodeId, program: &'a Program) -> usize {
        let number = self.number(program);
        self.of.insert(node, number);
        number
    }

    fn number(&mut self, program: &'a Program) -> usize {
        if let Some(number) = self.known.get(&program.address()) {
            return *number;
        }
        let parts = program.parts().unwrap_or_default();
        let number = self.numbers.get(&parts).copied().unwrap_or_else(|| self.add_program(program, parts));
        self.known.insert(program.address(), number);
        number
    }

    fn add_program(&mut self, program: &'a Program, parts: (&'a str, &'a str)) -> usize {
        let number = self.all.len();
        self.numbers.insert(parts, number);
        self.all.push(program);
        let group = self.group_of(program, parts.0.len()).unwrap_or(number);
        self.groups.push(group);
        number
    }

    /// Returns the group that takes a program that is new.
    fn group_of(&mut self, program: &'a Program, bytes: usize) -> Option<usize> {
        let dialect = program.dialect().filter(|_| self.joins)?;
        let new = (self.all.len() - 1, 0, 0);
        let open = self.open.entry(dialect).or_insert(new);
        if open.1 >= MOST_PROGRAMS || open.2 + bytes > MOST_BYTES {
            *open = new;
        }
        let (group, count, all) = *open;
        *open = (group, count + 1, all + bytes);
        Some(group)
    }

    /// Returns the number of the programs with which the one with this number may be in one chain.
    pub(super) fn group(&self, number: usize) -> usize {
        self.groups[number]
    }

    /// Returns the number of a launch's program.
    pub(super) fn of(&self, node: NodeId) -> Option<usize> {
        self.of.get(&node).copied()
    }

    pub(super) fn program(&self, number: usize) -> &'a Program {
        self.all[number]
    }

    pub(super) fn is_plain(&self, number: usize, type_text: &str) -> bool {
        self.all[number].is_plain(type_text)
    }

    /// Returns the programs of launches, by number.
    pub(super) fn of_all(&self, nodes: impl Iterator<Item = NodeId>) -> Vec<usize> {
        let mut numbers: Vec<usize> = nodes.filter_map(|node| self.of(node)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }
}
