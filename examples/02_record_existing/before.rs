//! The program as it was: `opencl3`, and nothing of clgraph.

use opencl3::command_queue::CommandQueue;
use opencl3::context::Context;
use opencl3::device::Device;
use opencl3::error_codes::ClError;
use opencl3::kernel::{ExecuteKernel, Kernel};
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE};
use opencl3::program::Program;
use opencl3::types::{CL_BLOCKING, cl_uint};

use super::{EVERY, RATE, SOURCE, STEPS};

pub struct Plate {
    queue: CommandQueue,
    step: Kernel,
    fields: [Buffer<f32>; 2],
    conducts: Buffer<f32>,
    history: Buffer<f32>,
    width: usize,
    height: usize,
    _context: Context,
}

impl Plate {
    pub fn new(device: &Device, width: usize, height: usize) -> Result<Self, ClError> {
        let context = Context::from_device(device)?;
        #[allow(deprecated)] // What every version of OpenCL has.
        let queue = CommandQueue::create_default(&context, 0)?;
        let program = Program::create_and_build_from_source(&context, SOURCE, "").map_err(|log| {
            eprintln!("{log}");
            ClError(opencl3::error_codes::CL_BUILD_PROGRAM_FAILURE)
        })?;
        let step = Kernel::create(&program, "heat_step")?;
        // SAFETY: no host pointers.
        let buffer = |len| unsafe { Buffer::create(&context, CL_MEM_READ_WRITE, len, std::ptr::null_mut()) };
        let cells = width * height;
        let fields = [buffer(cells)?, buffer(cells)?];
        let (conducts, history) = (buffer(cells)?, buffer(STEPS / EVERY * width)?);
        Ok(Self { queue, step, fields, conducts, history, width, height, _context: context })
    }

    /// Lets a plate be for a while: its temperatures then, and those of its middle row over time.
    pub fn simulate(&mut self, temperatures: &[f32], conducts: &[f32]) -> Result<(Vec<f32>, Vec<f32>), ClError> {
        let (width, height) = (self.width as cl_uint, self.height as cl_uint);
        let row = self.width * size_of::<f32>();
        let middle = self.height / 2 * row;
        let size = STEPS / EVERY * row;
        // SAFETY: everything is in bounds, and what is borrowed is not used before the call returns.
        unsafe {
            self.queue.enqueue_write_buffer(&mut self.fields[0], CL_BLOCKING, 0, temperatures, &[])?;
            self.queue.enqueue_write_buffer(&mut self.conducts, CL_BLOCKING, 0, conducts, &[])?;
            self.queue.enqueue_fill_buffer(&mut self.history, &[0.0], 0, size, &[])?;
            for at in 0..STEPS {
                let (now, next) = (&self.fields[at % 2], &self.fields[(at + 1) % 2]);
                ExecuteKernel::new(&self.step)
                    .set_arg(now)
                    .set_arg(&self.conducts)
                    .set_arg(next)
                    .set_arg(&width)
                    .set_arg(&height)
                    .set_arg(&RATE)
                    .set_global_work_sizes(&[self.width, self.height])
                    .enqueue_nd_range(&self.queue)?;
                if at % EVERY == 0 {
                    self.queue.enqueue_copy_buffer(next, &mut self.history, middle, at / EVERY * row, row, &[])?;
                }
            }
            let (mut field, mut history) = (vec![0.0; self.width * self.height], vec![0.0; size / 4]);
            self.queue.enqueue_read_buffer(&self.fields[STEPS % 2], CL_BLOCKING, 0, &mut field, &[])?;
            self.queue.enqueue_read_buffer(&self.history, CL_BLOCKING, 0, &mut history, &[])?;
            Ok((field, history))
        }
    }
}
