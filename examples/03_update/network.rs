//! The network on the device: a graph for one training step.

use clgraph::{Buffer, ExecuteKernel, Graph, Kernel, Node, Parameter, Program, Queue, Result};

use crate::digits::Samples;
use crate::host::{BATCH, DIGITS, HIDDEN, INPUTS, Weights};

const SOURCE: &str = include_str!("../../kernels-cl/digits.cl");

pub struct Network {
    kernels: [Kernel; 5],
    images: Buffer<f32>,
    labels: Buffer<u32>,
    weights: [Buffer<f32>; 2],
    hidden: Buffer<f32>,
    error: Buffer<f32>,
    back: Buffer<f32>,
}

/// What changes from step to step.
pub struct Step {
    /// The first sample of the batch.
    pub first: Parameter<u32>,
    /// How far the weights go.
    pub rate: Parameter<f32>,
    /// The nodes that use them.
    pub nodes: Vec<Node>,
}

impl Network {
    pub fn new(queue: &Queue, samples: &Samples) -> Result<Self> {
        let program = Program::from_source(queue, SOURCE)?;
        let names = ["hidden", "output", "back", "learn", "learn_eight"];
        let [hidden, output, back, learn, learn_eight] = names.map(|name| program.kernel(name));
        let start = Weights::start();
        Ok(Self {
            kernels: [hidden?, output?, back?, learn?, learn_eight?],
            images: Buffer::from_slice(queue, &samples.images)?,
            labels: Buffer::from_slice(queue, &samples.labels)?,
            weights: [Buffer::from_slice(queue, &start.0[0])?, Buffer::from_slice(queue, &start.0[1])?],
            hidden: Buffer::new(queue, BATCH * HIDDEN)?,
            error: Buffer::new(queue, BATCH * DIGITS)?,
            back: Buffer::new(queue, BATCH * HIDDEN)?,
        })
    }

    /// One training step as a graph whose batch and rate are parameters.
    pub fn build(&self, graph: &Graph, samples: usize) -> Result<Step> {
        let first = Parameter::within(0, 0..=(samples - BATCH) as u32)?;
        let rate = Parameter::within(0.0_f32, 0.0..=10.0)?;
        let [hidden, output, back, learn, learn_eight] = &self.kernels;
        let (images, labels, [w1, w2]) = (&self.images, &self.labels, &self.weights);
        let (h, e, b) = (&self.hidden, &self.error, &self.back);
        let [inputs, units, digits, batch] = [INPUTS, HIDDEN, DIGITS, BATCH].map(|size| size as u32);
        // SAFETY: these ranges are those of the buffers, a batch from any `first` within its bound lies in the samples, and
        // a rate is only multiplied by.
        let nodes = unsafe {
            vec![
                graph.kernel(hidden).read(images).read(w1).write(h).arg(&first).range([HIDDEN / 8, BATCH]).add()?,
                graph.kernel(output).read(h).read(w2).read(labels).write(e).arg(&first).range(BATCH).add()?,
                graph.kernel(back).read(e).read(w2).read(h).write(b).range([HIDDEN, BATCH]).add()?,
                graph
                    .kernel(learn)
                    .read(h)
                    .read(e)
                    .read_write(w2)
                    .arg(units)
                    .arg(digits)
                    .arg(0_u32)
                    .arg(batch)
                    .arg(&rate)
                    .range([DIGITS, HIDDEN + 1])
                    .add()?,
                graph
                    .kernel(learn_eight)
                    .read(images)
                    .read(b)
                    .read_write(w1)
                    .arg(inputs)
                    .arg(units)
                    .arg(&first)
                    .arg(batch)
                    .arg(&rate)
                    .range([HIDDEN / 8, INPUTS + 1])
                    .add()?,
            ]
        };
        Ok(Step { first, rate, nodes })
    }

    /// The same step as a program enqueues it: executed, or recorded.
    pub fn enqueue(&self, queue: &Queue, first: u32, rate: f32) -> Result<()> {
        let [hidden, output, back, learn, learn_eight] = &self.kernels;
        let (images, labels, [w1, w2]) = (&self.images, &self.labels, &self.weights);
        let (h, e, b) = (&self.hidden, &self.error, &self.back);
        let [inputs, units, digits, batch] = [INPUTS, HIDDEN, DIGITS, BATCH].map(|size| size as u32);
        let launch = |launch: &mut ExecuteKernel<'_>, range: &[usize]| {
            // SAFETY: as above; the caller gives batches that lie in the samples.
            unsafe { launch.set_global_work_sizes(range).enqueue_nd_range(queue) }
        };
        let mut of = ExecuteKernel::new(hidden);
        launch(of.set_arg_read(images).set_arg_read(w1).set_arg_write(h).set_arg(&first), &[HIDDEN / 8, BATCH])?;
        let mut of = ExecuteKernel::new(output);
        of.set_arg_read(h).set_arg_read(w2).set_arg_read(labels).set_arg_write(e).set_arg(&first);
        launch(&mut of, &[BATCH])?;
        let mut of = ExecuteKernel::new(back);
        of.set_arg_read(e).set_arg_read(w2).set_arg_read(h).set_arg_write(b);
        launch(&mut of, &[HIDDEN, BATCH])?;
        let mut of = ExecuteKernel::new(learn);
        of.set_arg_read(h).set_arg_read(e).set_arg(w2).set_arg(&units).set_arg(&digits).set_arg(&0_u32);
        launch(of.set_arg(&batch).set_arg(&rate), &[DIGITS, HIDDEN + 1])?;
        let mut of = ExecuteKernel::new(learn_eight);
        of.set_arg_read(images).set_arg_read(b).set_arg(w1).set_arg(&inputs).set_arg(&units).set_arg(&first);
        launch(of.set_arg(&batch).set_arg(&rate), &[HIDDEN / 8, INPUTS + 1])?;
        Ok(())
    }

    pub fn set_weights(&self, queue: &Queue, weights: &Weights) -> Result<()> {
        for (buffer, layer) in self.weights.iter().zip(&weights.0) {
            queue.enqueue_write_buffer(buffer, 0, layer, &[])?;
        }
        Ok(())
    }

    pub fn weights(&self, queue: &Queue) -> Result<Weights> {
        let mut weights = Weights::start();
        for (buffer, layer) in self.weights.iter().zip(&mut weights.0) {
            queue.enqueue_read_buffer(buffer, 0, layer, &[])?;
        }
        Ok(weights)
    }
}
