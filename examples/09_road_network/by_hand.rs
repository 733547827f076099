//! The same by plain OpenCL calls: the host reads a number in each turn and decides.

use std::error::Error;
use std::ptr;

use opencl3::command_queue::CommandQueue;
use opencl3::context::Context;
use opencl3::kernel::Kernel;
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE, ClMem};
use opencl3::program::Program;
use opencl3::types::{CL_BLOCKING, cl_mem};

use super::graph::SOURCE;
use super::network::Network;

/// A loop by hand.
pub(crate) struct ByHand {
    queue: CommandQueue,
    crossings: usize,
    first: Buffer<u32>,
    ends: Buffer<u32>,
    distances: Buffer<u32>,
    ranks: Buffer<f32>,
    next: Buffer<f32>,
    level: Buffer<u32>,
    goes_on: Buffer<u32>,
    program: Program,
    /// How many turns there are, if somebody knows it: then the host reads no number. The bench sets it.
    pub(crate) known: Option<u64>,
}

impl ByHand {
    pub(crate) fn new(context: &Context, network: &Network) -> Result<Self, Box<dyn Error>> {
        let queue = CommandQueue::create_default_with_properties(context, 0, 0)?;
        let program = Program::create_and_build_from_source(context, SOURCE, "")
            .map_err(|log| format!("the program of the loop by hand does not build: {log}"))?;
        let crossings = network.places.len();
        let mut this = Self {
            queue,
            crossings,
            first: buffer(context, network.first.len())?,
            ends: buffer(context, network.ends.len())?,
            distances: buffer(context, crossings)?,
            ranks: buffer(context, crossings)?,
            next: buffer(context, crossings)?,
            level: buffer(context, 1)?,
            goes_on: buffer(context, 1)?,
            program,
            known: None,
        };
        // SAFETY: the buffers have these sizes, and the writes block.
        unsafe {
            this.queue.enqueue_write_buffer(&mut this.first, CL_BLOCKING, 0, &network.first, &[])?;
            this.queue.enqueue_write_buffer(&mut this.ends, CL_BLOCKING, 0, &network.ends, &[])?;
        }
        Ok(this)
    }

    /// As the graph's search.
    pub(crate) fn search(&mut self, from: usize) -> Result<(Vec<u32>, u64), Box<dyn Error>> {
        let arguments = [&self.first, &self.ends, &self.level, &self.distances, &self.goes_on].map(ClMem::get);
        let (spread, deeper) = (self.kernel("spread", &arguments)?, self.kernel("deeper", &[self.level.get()])?);
        let bytes = self.crossings * size_of::<u32>();
        // SAFETY: the ranges are inside the buffers.
        unsafe {
            self.queue.enqueue_fill_buffer(&mut self.distances, &[u32::MAX], 0, bytes, &[])?;
            self.queue.enqueue_fill_buffer(
                &mut self.distances,
                &[0],
                from * size_of::<u32>(),
                size_of::<u32>(),
                &[],
            )?;
            self.queue.enqueue_fill_buffer(&mut self.level, &[0], 0, size_of::<u32>(), &[])?;
        }
        let turns = self.turns(&[(&spread, self.crossings), (&deeper, 1)])?;
        Ok((self.read(&self.distances, self.crossings)?, turns))
    }

    /// As the graph's page rank.
    pub(crate) fn rank(&mut self) -> Result<(Vec<f32>, u64), Box<dyn Error>> {
        let visit = [self.first.get(), self.ends.get(), self.ranks.get(), self.next.get()];
        let settle = [self.next.get(), self.ranks.get(), self.goes_on.get()];
        let (visit, settle) = (self.kernel("visit", &visit)?, self.kernel("settle", &settle)?);
        let (start, bytes) = (1.0 / self.crossings as f32, self.crossings * size_of::<f32>());
        // SAFETY: the range is the buffer.
        unsafe { self.queue.enqueue_fill_buffer(&mut self.ranks, &[start], 0, bytes, &[])? };
        let turns = self.turns(&[(&visit, self.crossings), (&settle, self.crossings)])?;
        Ok((self.read(&self.ranks, self.crossings)?, turns))
    }

    /// Goes round until a turn leaves `goes_on` zero.
    fn turns(&mut self, kernels: &[(&Kernel, usize)]) -> Result<u64, Box<dyn Error>> {
        let mut turns = 0;
        loop {
            turns += 1;
            // SAFETY: the arguments are set, and no kernel leaves its buffers.
            unsafe {
                self.queue.enqueue_fill_buffer(&mut self.goes_on, &[0], 0, size_of::<u32>(), &[])?;
                for (kernel, size) in kernels {
                    self.queue.enqueue_nd_range_kernel(kernel.get(), 1, ptr::null(), size, ptr::null(), &[])?;
                }
            }
            let is_over = match self.known {
                Some(known) => turns == known,
                None => self.read(&self.goes_on, 1)?[0] == 0,
            };
            if is_over {
                return Ok(turns);
            }
        }
    }

    fn kernel(&self, name: &str, arguments: &[cl_mem]) -> Result<Kernel, Box<dyn Error>> {
        let kernel = Kernel::create(&self.program, name)?;
        for (index, argument) in (0..).zip(arguments) {
            // SAFETY: every argument of these kernels is a buffer.
            unsafe { kernel.set_arg(index, argument)? };
        }
        Ok(kernel)
    }

    /// Waits for all that is enqueued, and downloads a buffer.
    fn read<T: Clone + Default>(&self, buffer: &Buffer<T>, values: usize) -> Result<Vec<T>, Box<dyn Error>> {
        let mut result = vec![T::default(); values];
        // SAFETY: the buffer has that many values, and the read blocks.
        unsafe { self.queue.enqueue_read_buffer(buffer, CL_BLOCKING, 0, &mut result, &[])? };
        Ok(result)
    }
}

fn buffer<T>(context: &Context, values: usize) -> Result<Buffer<T>, Box<dyn Error>> {
    // SAFETY: no host memory is used.
    Ok(unsafe { Buffer::create(context, CL_MEM_READ_WRITE, values, ptr::null_mut())? })
}
