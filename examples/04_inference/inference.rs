//! The network as a graph: what lies between two layers belongs to the graph.

use clgraph::{Buffer, Graph, GraphMemory, HostRead, Program, Queue, Result};

use crate::network::{Kind, Layer};

const SOURCE: &str = include_str!("../../kernels-cl/network.cl");

/// Reads `count` pictures at once. Each allocation is freed behind the last layer that reads it.
pub fn build(queue: &Queue, layers: &[Layer], pictures: &[f32]) -> Result<(Graph, HostRead<f32>)> {
    let program = Program::from_source(queue, SOURCE)?;
    let [conv, add, pool, dense] = ["conv", "add", "pool", "dense"].map(|name| program.kernel(name));
    let (conv, add, pool, dense) = (conv?, add?, pool?, dense?);
    let count = pictures.len() / layers[0].from.len();
    let graph = Graph::new(queue)?;
    let input = graph.alloc::<f32>(pictures.len()).add()?;
    graph.write(&input, pictures).add()?;

    // The last layer that reads each value.
    let mut last_use: Vec<usize> = (0..=layers.len()).collect();
    for (at, layer) in layers.iter().enumerate() {
        if let Kind::Add(other) = layer.kind {
            last_use[other] = at;
        }
    }
    let mut values: Vec<GraphMemory<f32>> = vec![input];
    for (at, layer) in layers.iter().enumerate() {
        let (from, to) = (&values[at], graph.alloc::<f32>(count * layer.to.len()).add()?);
        let range = [count, layer.to.len()];
        let [channels, inputs, from_side, to_side] =
            [layer.from.channels, layer.from.len(), layer.from.side, layer.to.side].map(|size| size as u32);
        let weights = || Buffer::from_slice(queue, &layer.weights);
        // SAFETY: the values hold `count` times what the layers say, and a work-item writes its own number of them.
        unsafe {
            match layer.kind {
                Kind::Conv => {
                    let node = graph.kernel(&conv).read(from).read(&weights()?).write(&to);
                    node.arg(channels).arg(from_side).range(range).add()?
                }
                Kind::Add(other) => graph.kernel(&add).read(from).read(&values[other]).write(&to).range(range).add()?,
                Kind::Pool => graph.kernel(&pool).read(from).write(&to).arg(to_side).range(range).add()?,
                Kind::Dense => {
                    let node = graph.kernel(&dense).read(from).read(&weights()?).write(&to);
                    node.arg(inputs).range(range).add()?
                }
            }
        };
        values.push(to);
        for (value, _) in values.iter().zip(&last_use).filter(|(_, last)| **last == at) {
            graph.free(value).add()?;
        }
    }
    let said = &values[layers.len()];
    let result = graph.read(said).add()?;
    graph.free(said).add()?;
    Ok((graph, result))
}
