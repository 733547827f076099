//! Two graphs with a loop each: a breadth-first search, and page rank until it is at rest.

use clgraph::{Buffer, Executable, Finalize, Graph, HostRead, Loop, Program, Queue, Result};

use super::network::Network;

/// The kernels of this example.
pub(crate) const SOURCE: &str = include_str!("../../kernels-cl/roads.cl");

/// A graph with a loop, and what it finds.
pub(crate) struct Looped<T> {
    pub(crate) executable: Executable,
    repeat: Loop,
    result: HostRead<T>,
}

impl<T: clgraph::Element> Looped<T> {
    /// Submits the graph once. Returns what it has found, and how often the loop went round.
    pub(crate) fn run(&self, queue: &Queue) -> Result<(Vec<T>, u64)> {
        let run = self.executable.submit(queue)?;
        run.wait()?;
        Ok((run.get(&self.result)?.to_vec(), run.turns(&self.repeat)?))
    }
}

/// Distances from a crossing, in roads: a level in each turn, until no crossing is reached any more.
pub(crate) fn search(queue: &Queue, network: &Network, from: usize, options: Finalize) -> Result<Looped<u32>> {
    let program = Program::from_source(queue, SOURCE)?;
    let (spread, deeper) = (program.kernel("spread")?, program.kernel("deeper")?);
    let count = network.places.len();
    let (first, ends) = (Buffer::from_slice(queue, &network.first)?, Buffer::from_slice(queue, &network.ends)?);
    let distances = Buffer::<u32>::new(queue, count)?;
    let (level, goes_on) = (Buffer::<u32>::new(queue, 1)?, Buffer::<u32>::new(queue, 1)?);

    let turn = Graph::new(queue)?;
    turn.fill(&goes_on, 0).add()?;
    // SAFETY: a work-item for each crossing; ends are crossings, and `first` has one entry more than there are crossings.
    unsafe {
        let spread = turn.kernel(&spread).read(&first).read(&ends).read(&level);
        spread.read_write(&distances).read_write(&goes_on).range(count).add()?;
        turn.kernel(&deeper).read_write(&level).range(1).add()?;
    }
    let turn = turn.finalize(Finalize::new())?;

    let graph = Graph::new(queue)?;
    graph.fill(&distances, u32::MAX).add()?;
    graph.fill(&distances.slice(from..from + 1)?, 0).add()?;
    graph.fill(&level, 0).add()?;
    let repeat = graph.repeat_while(&goes_on, &turn).at_least_once().at_most(count as u64).label("by level").add()?;
    let result = graph.read(&distances).add()?;
    let executable = graph.finalize(options)?;
    Ok(Looped { executable, repeat, result })
}

/// How likely somebody is at a crossing who takes roads at random: a step in each turn, until nothing changes much.
pub(crate) fn rank(queue: &Queue, network: &Network, options: Finalize) -> Result<Looped<f32>> {
    let program = Program::from_source(queue, SOURCE)?;
    let (visit, settle) = (program.kernel("visit")?, program.kernel("settle")?);
    let count = network.places.len();
    let (first, ends) = (Buffer::from_slice(queue, &network.first)?, Buffer::from_slice(queue, &network.ends)?);
    let (ranks, next) = (Buffer::<f32>::new(queue, count)?, Buffer::<f32>::new(queue, count)?);
    let goes_on = Buffer::<u32>::new(queue, 1)?;

    let turn = Graph::new(queue)?;
    turn.fill(&goes_on, 0).add()?;
    // SAFETY: as above.
    unsafe {
        turn.kernel(&visit).read(&first).read(&ends).read(&ranks).write(&next).range(count).add()?;
        turn.kernel(&settle).read(&next).read_write(&ranks).read_write(&goes_on).range(count).add()?;
    }
    let turn = turn.finalize(Finalize::new())?;

    let graph = Graph::new(queue)?;
    graph.fill(&ranks, 1.0 / count as f32).add()?;
    let repeat = graph.repeat_while(&goes_on, &turn).at_least_once().at_most(10_000).label("until at rest").add()?;
    let result = graph.read(&ranks).add()?;
    let executable = graph.finalize(options)?;
    Ok(Looped { executable, repeat, result })
}
