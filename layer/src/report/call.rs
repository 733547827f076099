//! Calls that enqueue, as data.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// What a call enqueues, as far as it matters for capturing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    Kernel,
    Copy,
    Fill,
    Write,
    Read,
    Map,
    Unmap,
    Native,
    /// Markers, barriers, waits for events.
    Order,
    /// Memory moves to a device.
    Migrate,
    /// Objects of another interface are taken or given back.
    Share,
    /// Memory is freed.
    Free,
}

/// How many kinds there are.
pub(crate) const KINDS: usize = 12;

impl Kind {
    pub(crate) const ALL: [Self; KINDS] = [
        Self::Kernel,
        Self::Copy,
        Self::Fill,
        Self::Write,
        Self::Read,
        Self::Map,
        Self::Unmap,
        Self::Native,
        Self::Order,
        Self::Migrate,
        Self::Share,
        Self::Free,
    ];

    /// Returns one and several of it.
    pub(crate) fn words(self) -> [&'static str; 2] {
        match self {
            Self::Kernel => ["kernel", "kernels"],
            Self::Copy => ["copy", "copies"],
            Self::Fill => ["fill", "fills"],
            Self::Write => ["write", "writes"],
            Self::Read => ["read", "reads"],
            Self::Map => ["map", "maps"],
            Self::Unmap => ["unmap", "unmaps"],
            Self::Native => ["native kernel", "native kernels"],
            Self::Order => ["marker or barrier", "markers or barriers"],
            Self::Migrate => ["migration", "migrations"],
            Self::Share => ["change of owner", "changes of owner"],
            Self::Free => ["free", "frees"],
        }
    }
}

/// What of a call may differ from one run to the next, though the run is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum What {
    /// A value of a kernel, by its index.
    Argument(u16),
    /// Memory that a kernel is given, by the index of the argument.
    Buffer(u16),
    /// Memory of another command.
    Memory,
    /// Which bytes or pixels of it.
    Bytes,
    /// The address of the program's memory.
    Host,
    /// The work-items of a kernel.
    Range,
    /// The pattern of a fill.
    Pattern,
}

impl What {
    /// A number of its own.
    pub(crate) fn number(self) -> u64 {
        match self {
            Self::Memory => 0,
            Self::Bytes => 1,
            Self::Host => 2,
            Self::Range => 3,
            Self::Pattern => 4,
            Self::Argument(index) => 8 + 2 * u64::from(index),
            Self::Buffer(index) => 9 + 2 * u64::from(index),
        }
    }
}

/// One such thing of a call that has been made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) what: What,
    pub(crate) hash: u32,
    /// It was not the same in all runs.
    pub(crate) changed: bool,
}

/// A call of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) function: &'static str,
    pub(crate) kind: Kind,
    /// The number of the kernel's name.
    pub(crate) name: Option<u32>,
    /// Equal for calls that are the same but for their parts.
    pub(crate) identity: u64,
    /// How many parts it has.
    pub(crate) parts: u32,
    /// Events of the program that it waits for, and events of other queues.
    pub(crate) user_waits: u32,
    pub(crate) foreign_waits: u32,
}

/// Adds a value to a hash.
pub(crate) fn mix(hash: u64, value: u64) -> u64 {
    let mixed = (hash.rotate_left(5) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 29)
}

/// Adds bytes to a hash.
pub(crate) fn mix_bytes(hash: u64, bytes: &[u8]) -> u64 {
    let mut hash = mix(hash, bytes.len() as u64);
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        hash = mix(hash, u64::from_le_bytes(word));
    }
    hash
}

/// A map of handles and of hashes. The program chooses no keys that could collide on purpose, so a fast hash will do.
pub(crate) type Map<K, V> = HashMap<K, V, BuildHasherDefault<Fast>>;

#[derive(Debug, Default)]
pub(crate) struct Fast(u64);

impl Hasher for Fast {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = mix_bytes(self.0, bytes);
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = mix(self.0, value);
    }

    fn write_usize(&mut self, value: usize) {
        self.0 = mix(self.0, value as u64);
    }
}
