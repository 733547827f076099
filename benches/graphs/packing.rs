//! Memory that graphs own: how long placing takes, and how near the result is to the most bytes that live at once.

use std::ops::Range;

use clgraph::{Buffer, Executable, Finalize, Graph, MemoryReport, Queue};

use crate::Failure;
use crate::rounds::{Times, Variant, timed};

/// Bytes that are needed from one step to another.
type Life = (usize, Range<usize>);

/// A list of what is needed when.
pub struct Pattern {
    pub name: &'static str,
    lives: Vec<Life>,
}

/// The patterns of networks, and random ones, with at most so many allocations.
pub fn patterns(most: usize) -> impl Iterator<Item = Pattern> {
    let chain = (0..1_000).map(|at| (4_096 + at % 7 * 512, at..at + 2)).collect();
    let diamond = |at: usize| [(4_096, at..at + 3), (2_048, at + 1..at + 4), (8_192, at + 2..at + 4)];
    let diamonds = (0..300).flat_map(|at| diamond(at * 3)).collect();
    let all = [
        ("packing: a chain", chain),
        ("packing: diamonds", diamonds),
        ("packing: a residual network", residual()),
        ("packing: a transformer", transformer()),
        ("packing: random", random(1_000, 20)),
        ("packing: random and long", random(1_000, 300)),
        ("packing: random, 10 000", random(10_000, 50)),
    ];
    all.into_iter().map(|(name, lives)| Pattern { name, lives }).filter(move |pattern| pattern.len() <= most)
}

/// Stages of blocks, each of two convolutions and a sum with the block's input; a stage halves the side and doubles the
/// channels.
fn residual() -> Vec<Life> {
    let mut lives = Vec::new();
    let mut step = 0;
    for (stage, blocks) in [3, 4, 6, 3].into_iter().enumerate() {
        let bytes = 256 * (56 >> stage) * (56 >> stage) * (1 << stage);
        for _ in 0..blocks {
            lives.extend([(bytes, step..step + 2), (bytes, step + 1..step + 3)]);
            lives.extend([(4 * bytes, step + 2..step + 4), (4 * bytes, step + 3..step + 7)]);
            step += 4;
        }
    }
    lives
}

/// Layers of attention, whose size is the square of the tokens, and of a wide part.
fn transformer() -> Vec<Life> {
    let (tokens, width, heads) = (256, 384, 6);
    let plane = 4 * tokens * width;
    let layer = |step: usize| {
        let projections = (0..3).map(move |of| (plane, step + of..step + 5));
        let attention = [(4 * tokens * tokens * heads, step + 3..step + 5), (plane, step + 4..step + 6)];
        let wide = [(plane, step + 5..step + 9), (4 * plane, step + 6..step + 8), (plane, step + 7..step + 10)];
        projections.chain(attention).chain(wide)
    };
    (0..24).flat_map(|at| layer(at * 9)).collect()
}

/// One allocation a step, of up to 64 KiB, which lives up to so many steps.
fn random(count: usize, longest: usize) -> Vec<Life> {
    let mut random = fastrand::Rng::with_seed(1);
    (0..count).map(|at| (random.usize(1..=1 << 16), at..at + random.usize(1..=longest))).collect()
}

impl Pattern {
    pub fn len(&self) -> usize {
        self.lives.len()
    }

    /// A graph in which each step uses what it needs.
    fn build(&self, queue: &Queue) -> Result<Graph, Failure> {
        let graph = Graph::new(queue)?;
        let token = Buffer::<u8>::new(queue, 1)?;
        let steps = self.lives.iter().map(|(_, steps)| steps.end).max().unwrap_or(0);
        let (mut born, mut dies) = (vec![Vec::new(); steps], vec![Vec::new(); steps]);
        for (at, (_, steps)) in self.lives.iter().enumerate() {
            born[steps.start].push(at);
            dies[steps.end - 1].push(at);
        }
        let mut made = vec![None; self.lives.len()];
        for step in 0..steps {
            for &at in &born[step] {
                let memory = graph.alloc::<u8>(self.lives[at].0).add()?;
                graph.copy(&token, &memory.slice(..1)?).add()?;
                made[at] = Some(memory);
            }
            for memory in dies[step].iter().filter_map(|at| made[*at].take()) {
                // A use by the last step, which is after all that begin there.
                graph.copy(&memory.slice(..1)?, &token).add()?;
                graph.free(&memory).add()?;
            }
        }
        Ok(graph)
    }

    /// Finalizing without sharing memory, which is the `loop`, and with sharing.
    pub fn variants(&self, queue: &Queue) -> Result<Vec<Variant<'static>>, Failure> {
        let graph = self.build(queue)?;
        let (apart, packed) = (Finalize::new().separate_memory(), Finalize::new());
        let make = |variant: &'static str, options: Finalize| {
            let graph = graph.clone();
            let run = move || {
                let (executable, finalize): (Executable, _) = timed(|| Ok(graph.finalize(options.clone())?))?;
                drop(executable);
                Ok(Times { finalize: Some(finalize), total: finalize, ..Times::default() })
            };
            Variant { name: variant, run: Box::new(run) as Box<_> }
        };
        let variants = vec![make("loop", apart.clone()), make("loop_again", apart), make("packed", packed.clone())];
        let executable = graph.finalize(packed)?;
        let memory = &executable.report().memory;
        println!(
            "\n{}: {} bytes, {:.3} of the most that live at once, {:.3} of all",
            self.name,
            memory.bytes,
            memory.bytes as f64 / peak(memory) as f64,
            memory.bytes as f64 / memory.bytes_apart as f64
        );
        Ok(variants)
    }
}

/// Returns the most bytes that live at once, in the order that was chosen.
fn peak(memory: &MemoryReport) -> usize {
    let mut changes: Vec<(usize, isize)> = Vec::new();
    for one in &memory.allocations {
        changes.push((one.first, one.bytes as isize));
        changes.push((one.last.map_or(usize::MAX, |last| last + 1), -(one.bytes as isize)));
    }
    changes.sort_unstable();
    let live = changes.iter().scan(0, |live, (_, change)| {
        *live += change;
        Some(*live)
    });
    live.max().unwrap_or(0) as usize
}
