//! The same program after it moved: other types, no blocking flags, and reads that own their memory. What it submits runs at
//! once, or is recorded if a graph records the queue; the code does not know.

use clgraph::{Buffer, ExecuteKernel, Kernel, PendingRead, Program, Queue, Result};

use super::{EVERY, RATE, SOURCE, STEPS};

pub struct Plate {
    queue: Queue,
    step: Kernel,
    fields: [Buffer<f32>; 2],
    conducts: Buffer<f32>,
    history: Buffer<f32>,
    width: usize,
    height: usize,
}

impl Plate {
    pub fn new(queue: &Queue, width: usize, height: usize) -> Result<Self> {
        let program = Program::from_source(queue, SOURCE)?;
        let step = program.kernel("heat_step")?;
        let buffer = |len| Buffer::new(queue, len);
        let cells = width * height;
        let fields = [buffer(cells)?, buffer(cells)?];
        let (conducts, history) = (buffer(cells)?, buffer(STEPS / EVERY * width)?);
        Ok(Self { queue: queue.clone(), step, fields, conducts, history, width, height })
    }

    /// Lets a plate be for a while: its temperatures then, and those of its middle row over time.
    pub fn simulate(&self, temperatures: &[f32], conducts: &[f32]) -> Result<(PendingRead<f32>, PendingRead<f32>)> {
        let (width, height) = (self.width as u32, self.height as u32);
        let row = self.width * size_of::<f32>();
        let middle = self.height / 2 * row;
        let size = STEPS / EVERY * row;
        self.queue.enqueue_write_buffer(&self.fields[0], 0, temperatures, &[])?;
        self.queue.enqueue_write_buffer(&self.conducts, 0, conducts, &[])?;
        self.queue.enqueue_fill_buffer(&self.history, &[0.0], 0, size, &[])?;
        for at in 0..STEPS {
            let (now, next) = (&self.fields[at % 2], &self.fields[(at + 1) % 2]);
            let mut step = ExecuteKernel::new(&self.step);
            step.set_arg(now)
                .set_arg(&self.conducts)
                .set_arg(next)
                .set_arg(&width)
                .set_arg(&height)
                .set_arg(&RATE)
                .set_global_work_sizes(&[self.width, self.height]);
            // SAFETY: a work-item writes its own cell and reads its neighbours, all of them in the plate.
            unsafe { step.enqueue_nd_range(&self.queue)? };
            if at % EVERY == 0 {
                self.queue.enqueue_copy_buffer(next, &self.history, middle, at / EVERY * row, row, &[])?;
            }
        }
        let field = self.queue.enqueue_read_buffer_owned(&self.fields[STEPS % 2], 0, self.width * self.height, &[])?;
        let history = self.queue.enqueue_read_buffer_owned(&self.history, 0, size / 4, &[])?;
        Ok((field, history))
    }
}
