//! The same computation by a plain loop of OpenCL calls, to compare with.

use std::error::Error;
use std::ffi::c_void;
use std::ptr;

use opencl3::command_queue::CommandQueue;
use opencl3::context::Context;
use opencl3::kernel::Kernel;
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE};
use opencl3::program::Program;
use opencl3::types::{CL_BLOCKING, cl_int, cl_uchar, cl_uint};

use crate::cpu::{Objects, Parameters};

/// The whole computation with plain OpenCL calls: an in-order queue, all kernel
/// arguments set once, and one launch after the other.
pub(crate) struct PlainLoop {
    queue: CommandQueue,
    /// One work-item for each pixel.
    global: [usize; 2],
    pixels: usize,

    rgb: Buffer<cl_uchar>,
    light: Buffer<cl_uchar>,
    smooth: Buffer<cl_uchar>,
    sums: Buffer<cl_uint>,
    background: Buffer<cl_uchar>,
    bright: Buffer<cl_uchar>,
    labels: Buffer<cl_uint>,
    next: Buffer<cl_uint>,
    changed: Buffer<cl_int>,
    areas: Buffer<cl_uint>,
    count: Buffer<cl_uint>,

    luminance: Kernel,
    median3x3: Kernel,
    box_rows: Kernel,
    box_columns: Kernel,
    threshold: Kernel,
    label_init: Kernel,
    label_step: Kernel,
    label_jump: Kernel,
    measure_areas: Kernel,
    count_objects: Kernel,
}

impl PlainLoop {
    /// Creates the buffers and the kernels for images of one size, and sets all
    /// arguments of the kernels.
    pub(crate) fn new(
        context: &Context,
        program: &Program,
        width: usize,
        height: usize,
        parameters: &Parameters,
    ) -> Result<Self, Box<dyn Error>> {
        let pixels = width * height;
        #[allow(deprecated)] // The newer call needs OpenCL 2.0.
        let queue = CommandQueue::create_default(context, 0)?;
        let kernel = |name| Kernel::create(program, name);
        let plain = Self {
            queue,
            global: [width, height],
            pixels,
            rgb: buffer(context, 3 * pixels)?,
            light: buffer(context, pixels)?,
            smooth: buffer(context, pixels)?,
            sums: buffer(context, pixels)?,
            background: buffer(context, pixels)?,
            bright: buffer(context, pixels)?,
            labels: buffer(context, pixels)?,
            next: buffer(context, pixels)?,
            changed: buffer(context, 1)?,
            areas: buffer(context, pixels)?,
            count: buffer(context, 1)?,
            luminance: kernel("luminance")?,
            median3x3: kernel("median3x3")?,
            box_rows: kernel("box_rows")?,
            box_columns: kernel("box_columns")?,
            threshold: kernel("threshold")?,
            label_init: kernel("label_init")?,
            label_step: kernel("label_step")?,
            label_jump: kernel("label_jump")?,
            measure_areas: kernel("measure_areas")?,
            count_objects: kernel("count_objects")?,
        };

        let size = [width as cl_uint, height as cl_uint];
        let p = parameters;
        // SAFETY: the buffers and numbers are those that the kernels expect, in
        // their order; each plane has `width * height` values.
        unsafe {
            set_args(&plain.luminance, &[mem(&plain.rgb), mem(&plain.light)], size, &[])?;
            set_args(&plain.median3x3, &[mem(&plain.light), mem(&plain.smooth)], size, &[])?;
            set_args(&plain.box_rows, &[mem(&plain.smooth), mem(&plain.sums)], size, &[p.radius, p.ceiling])?;
            set_args(&plain.box_columns, &[mem(&plain.sums), mem(&plain.background)], size, &[p.radius])?;
            set_args(
                &plain.threshold,
                &[mem(&plain.smooth), mem(&plain.background), mem(&plain.bright)],
                size,
                &[p.contrast],
            )?;
            set_args(&plain.label_init, &[mem(&plain.bright), mem(&plain.labels)], size, &[])?;
            set_args(&plain.label_step, &[mem(&plain.labels), mem(&plain.next), mem(&plain.changed)], size, &[])?;
            set_args(&plain.label_jump, &[mem(&plain.next), mem(&plain.labels)], size, &[])?;
            set_args(&plain.measure_areas, &[mem(&plain.labels), mem(&plain.areas)], size, &[])?;
            set_args(&plain.count_objects, &[mem(&plain.areas), mem(&plain.count)], size, &[p.min_area])?;
        }
        Ok(plain)
    }

    /// Finds the objects of one picture. Returns them and how many turns it took.
    pub(crate) fn run(&mut self, rgb: &[u8]) -> Result<(Objects, usize), Box<dyn Error>> {
        self.prepare(rgb)?;
        let mut turns = 1;
        while self.iterate()? {
            turns += 1;
        }
        Ok((self.finish()?, turns))
    }

    /// Uploads the image, and does all that comes before the labelling's loop.
    fn prepare(&mut self, rgb: &[u8]) -> Result<(), Box<dyn Error>> {
        assert_eq!(rgb.len(), 3 * self.pixels);
        // SAFETY: the sizes agree, and the write is blocking.
        unsafe {
            self.queue.enqueue_write_buffer(&mut self.rgb, CL_BLOCKING, 0, rgb, &[])?;
        }
        self.launch(&self.luminance)?;
        self.launch(&self.median3x3)?;
        self.launch(&self.box_rows)?;
        self.launch(&self.box_columns)?;
        self.launch(&self.threshold)?;
        self.launch(&self.label_init)
    }

    /// One iteration of the labelling; tells whether any label changed.
    fn iterate(&mut self) -> Result<bool, Box<dyn Error>> {
        let bytes = self.pixels * size_of::<cl_uint>();
        // SAFETY: the ranges lie within the buffers.
        unsafe {
            self.queue.enqueue_fill_buffer(&mut self.changed, &[0 as cl_int], 0, size_of::<cl_int>(), &[])?;
            self.queue.enqueue_copy_buffer(&self.labels, &mut self.next, 0, 0, bytes, &[])?;
        }
        self.launch(&self.label_step)?;
        self.launch(&self.label_jump)?;
        Ok(self.read(&self.changed, 1)?[0] != 0)
    }

    /// Measures and counts the objects; returns labels, areas and the count.
    fn finish(&mut self) -> Result<Objects, Box<dyn Error>> {
        let bytes = self.pixels * size_of::<cl_uint>();
        let zero: [cl_uint; 1] = [0];
        // SAFETY: the ranges lie within the buffers.
        unsafe {
            self.queue.enqueue_fill_buffer(&mut self.areas, &zero, 0, bytes, &[])?;
            self.queue.enqueue_fill_buffer(&mut self.count, &zero, 0, size_of::<cl_uint>(), &[])?;
        }
        self.launch(&self.measure_areas)?;
        self.launch(&self.count_objects)?;
        Ok(Objects {
            labels: self.read(&self.labels, self.pixels)?,
            areas: self.read(&self.areas, self.pixels)?,
            count: self.read(&self.count, 1)?[0],
        })
    }

    /// Enqueues a kernel, one work-item for each pixel.
    fn launch(&self, kernel: &Kernel) -> Result<(), Box<dyn Error>> {
        // SAFETY: all arguments are set; the kernels guard against work-items
        // outside of the image.
        unsafe {
            self.queue.enqueue_nd_range_kernel(kernel.get(), 2, ptr::null(), self.global.as_ptr(), ptr::null(), &[])?;
        }
        Ok(())
    }

    /// Waits for all that is enqueued, and downloads a buffer.
    fn read<T: Clone + Default>(&self, buffer: &Buffer<T>, values: usize) -> Result<Vec<T>, Box<dyn Error>> {
        let mut result = vec![T::default(); values];
        // SAFETY: the buffer has that many values, and the read is blocking.
        unsafe {
            self.queue.enqueue_read_buffer(buffer, CL_BLOCKING, 0, &mut result, &[])?;
        }
        Ok(result)
    }
}

fn buffer<T>(context: &Context, values: usize) -> Result<Buffer<T>, Box<dyn Error>> {
    // SAFETY: no host memory is used.
    Ok(unsafe { Buffer::create(context, CL_MEM_READ_WRITE, values, ptr::null_mut())? })
}

fn mem<T>(buffer: &Buffer<T>) -> *mut c_void {
    use opencl3::memory::ClMem;
    buffer.get()
}

/// Sets the arguments of a kernel: the buffers, the size of the image, and the
/// kernel's own numbers.
///
/// # Safety
///
/// They must be what the kernel expects.
unsafe fn set_args(
    kernel: &Kernel,
    buffers: &[*mut c_void],
    size: [cl_uint; 2],
    numbers: &[cl_uint],
) -> Result<(), Box<dyn Error>> {
    let mut index = 0;
    for buffer in buffers {
        // SAFETY: promised by the caller.
        unsafe { kernel.set_arg(index, buffer)? };
        index += 1;
    }
    for number in size.iter().chain(numbers) {
        // SAFETY: promised by the caller.
        unsafe { kernel.set_arg(index, number)? };
        index += 1;
    }
    assert_eq!(kernel.num_args()?, index);
    Ok(())
}
