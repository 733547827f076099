//! The same computation by a plain loop of OpenCL calls, to compare with: an in-order queue, all arguments of kernels set
//! once, and one launch after the other.

use std::error::Error;
use std::ptr;

use opencl3::command_queue::CommandQueue;
use opencl3::context::Context;
use opencl3::kernel::Kernel;
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE, ClMem};
use opencl3::program::Program;
use opencl3::types::{CL_BLOCKING, cl_int, cl_mem, cl_uchar, cl_uint};

use crate::objects::{Objects, Parameters};

pub(crate) struct PlainLoop {
    queue: CommandQueue,
    /// One work-item for each pixel.
    global: [usize; 2],
    pixels: usize,
    rgb: Buffer<cl_uchar>,
    labels: Buffer<cl_uint>,
    next: Buffer<cl_uint>,
    changed: Buffer<cl_int>,
    areas: Buffer<cl_uint>,
    count: Buffer<cl_uint>,
    /// What only kernels use.
    _kept: ([Buffer<cl_uchar>; 4], Buffer<cl_uint>),
    /// Kernels in the order of their launches: before the labelling, in each turn of it, and behind it.
    before: Vec<Kernel>,
    turn: Vec<Kernel>,
    after: Vec<Kernel>,
}

impl PlainLoop {
    /// Creates the buffers and the kernels for images of one size, and sets all arguments of the kernels.
    pub(crate) fn new(
        context: &Context,
        program: &Program,
        width: usize,
        height: usize,
        parameters: &Parameters,
    ) -> Result<Self, Box<dyn Error>> {
        #[allow(deprecated)] // The newer call needs OpenCL 2.0.
        let queue = CommandQueue::create_default(context, 0)?;
        let pixels = width * height;
        let plane = || buffer::<cl_uchar>(context, pixels);
        let (rgb, planes) = (buffer(context, 3 * pixels)?, [plane()?, plane()?, plane()?, plane()?]);
        let (sums, labels, next, areas) =
            (buffer(context, pixels)?, buffer(context, pixels)?, buffer(context, pixels)?, buffer(context, pixels)?);
        let (changed, count) = (buffer(context, 1)?, buffer(context, 1)?);
        let size = [width as cl_uint, height as cl_uint];
        let kernel = |name: &str, buffers: &[cl_mem], numbers: &[cl_uint]| -> Result<Kernel, Box<dyn Error>> {
            let kernel = Kernel::create(program, name)?;
            for (index, buffer) in buffers.iter().enumerate() {
                // SAFETY: the buffers and numbers are those that the kernel expects, in its order.
                unsafe { kernel.set_arg(index as cl_uint, buffer)? };
            }
            for (index, number) in size.iter().chain(numbers).enumerate() {
                // SAFETY: as above; the size of the image stands behind the buffers.
                unsafe { kernel.set_arg((buffers.len() + index) as cl_uint, number)? };
            }
            Ok(kernel)
        };
        let [light, smooth, background, bright] = [0, 1, 2, 3].map(|at| planes[at].get());
        let p = parameters;
        let before = vec![
            kernel("luminance", &[rgb.get(), light], &[])?,
            kernel("median3x3", &[light, smooth], &[])?,
            kernel("box_rows", &[smooth, sums.get()], &[p.radius, p.ceiling])?,
            kernel("box_columns", &[sums.get(), background], &[p.radius])?,
            kernel("threshold", &[smooth, background, bright], &[p.contrast])?,
            kernel("label_init", &[bright, labels.get()], &[])?,
        ];
        let turn = vec![
            kernel("label_step", &[labels.get(), next.get(), changed.get()], &[])?,
            kernel("label_jump", &[next.get(), labels.get()], &[])?,
        ];
        let after = vec![
            kernel("measure_areas", &[labels.get(), areas.get()], &[])?,
            kernel("count_objects", &[areas.get(), count.get()], &[p.min_area])?,
        ];
        let (global, _kept) = ([width, height], (planes, sums));
        Ok(Self { queue, global, pixels, rgb, labels, next, changed, areas, count, _kept, before, turn, after })
    }

    /// Finds the objects of one picture. Returns them and how many turns it took.
    pub(crate) fn run(&mut self, rgb: &[u8]) -> Result<(Objects, usize), Box<dyn Error>> {
        assert_eq!(rgb.len(), 3 * self.pixels);
        let bytes = self.pixels * size_of::<cl_uint>();
        // SAFETY: the sizes agree, and the write is blocking.
        unsafe { self.queue.enqueue_write_buffer(&mut self.rgb, CL_BLOCKING, 0, rgb, &[])? };
        self.launch(&self.before)?;
        let mut turns = 0;
        loop {
            // SAFETY: the ranges lie within the buffers.
            unsafe {
                self.queue.enqueue_fill_buffer(&mut self.changed, &[0], 0, size_of::<cl_int>(), &[])?;
                self.queue.enqueue_copy_buffer(&self.labels, &mut self.next, 0, 0, bytes, &[])?;
            }
            self.launch(&self.turn)?;
            turns += 1;
            if self.read(&self.changed, 1)?[0] == 0 {
                break;
            }
        }
        // SAFETY: the ranges lie within the buffers.
        unsafe {
            self.queue.enqueue_fill_buffer(&mut self.areas, &[0], 0, bytes, &[])?;
            self.queue.enqueue_fill_buffer(&mut self.count, &[0], 0, size_of::<cl_uint>(), &[])?;
        }
        self.launch(&self.after)?;
        let (labels, areas) = (self.read(&self.labels, self.pixels)?, self.read(&self.areas, self.pixels)?);
        Ok((Objects { labels, areas, count: self.read(&self.count, 1)?[0] }, turns))
    }

    /// Enqueues kernels, one work-item for each pixel.
    fn launch(&self, kernels: &[Kernel]) -> Result<(), Box<dyn Error>> {
        let (queue, global) = (&self.queue, self.global.as_ptr());
        for kernel in kernels {
            // SAFETY: all arguments are set; the kernels guard against work-items outside of the image.
            unsafe { queue.enqueue_nd_range_kernel(kernel.get(), 2, ptr::null(), global, ptr::null(), &[])? };
        }
        Ok(())
    }

    /// Waits for all that is enqueued, and downloads a buffer.
    fn read<T: Clone + Default>(&self, buffer: &Buffer<T>, values: usize) -> Result<Vec<T>, Box<dyn Error>> {
        let mut result = vec![T::default(); values];
        // SAFETY: the buffer has that many values, and the read is blocking.
        unsafe { self.queue.enqueue_read_buffer(buffer, CL_BLOCKING, 0, &mut result, &[])? };
        Ok(result)
    }
}

fn buffer<T>(context: &Context, values: usize) -> Result<Buffer<T>, Box<dyn Error>> {
    // SAFETY: no host memory is used.
    Ok(unsafe { Buffer::create(context, CL_MEM_READ_WRITE, values, ptr::null_mut())? })
}
