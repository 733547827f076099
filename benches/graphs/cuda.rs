//! CUDA Graphs of the same kernels, beside what runs on NVIDIA's device. NVIDIA's OpenCL driver returns binaries as
//! PTX, which CUDA accepts. It uses the first GPU, and the functions of the driver, so that nothing has to be
//! installed.

use std::ffi::{CStr, CString, c_void};
use std::ptr;

use clgraph::{Device, Program, Queue};

use crate::Failure;
use crate::changes::{REPEATED, What};
use crate::raw::{check, library};
use crate::rounds::{Times, Variant, timed};
use crate::submissions::submission;

/// The same kernel as in `kernels-cl/tests.cl`. CUDA refuses the PTX of that whole file (CUDA_ERROR_INVALID_IMAGE,
/// driver 580).
const SCALE: &str = "kernel void scale(global const uint *in, global uint *out, uint by) {
    size_t i = get_global_id(0);
    out[i] = in[i] * 3u + by;
}";

type Handle = *mut c_void;
/// `CUdeviceptr`.
type Address = u64;

/// `CUDA_KERNEL_NODE_PARAMS_v2`.
#[repr(C)]
struct NodeParams {
    function: Handle,
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
    params: *mut *mut c_void,
    extra: *mut *mut c_void,
    kernel: Handle,
    context: Handle,
}

library! {
    "CUDA_DYLIB_PATH", "libcuda.so.1";
    fn cuInit(u32) -> i32;
    fn cuDeviceGet(*mut i32, i32) -> i32;
    fn cuDevicePrimaryCtxRetain(*mut Handle, i32) -> i32;
    fn cuCtxSetCurrent(Handle) -> i32;
    fn cuModuleLoadData(*mut Handle, *const c_void) -> i32;
    fn cuModuleGetFunction(*mut Handle, Handle, *const std::ffi::c_char) -> i32;
    fn cuModuleUnload(Handle) -> i32;
    fn cuStreamCreate(*mut Handle, u32) -> i32;
    fn cuStreamDestroy_v2(Handle) -> i32;
    fn cuStreamSynchronize(Handle) -> i32;
    fn cuMemAlloc_v2(*mut Address, usize) -> i32;
    fn cuMemFree_v2(Address) -> i32;
    fn cuLaunchKernel(Handle, u32, u32, u32, u32, u32, u32, u32, Handle, *mut *mut c_void, *mut *mut c_void) -> i32;
    fn cuStreamBeginCapture_v2(Handle, i32) -> i32;
    fn cuStreamEndCapture(Handle, *mut Handle) -> i32;
    fn cuGraphInstantiateWithFlags(*mut Handle, Handle, u64) -> i32;
    fn cuGraphGetNodes(Handle, *mut Handle, *mut usize) -> i32;
    fn cuGraphLaunch(Handle, Handle) -> i32;
    fn cuGraphExecKernelNodeSetParams_v2(Handle, Handle, *const NodeParams) -> i32;
    fn cuGraphExecDestroy(Handle) -> i32;
    fn cuGraphDestroy(Handle) -> i32;
}

/// Returns CUDA for a device. If it should be there and is not, says why.
fn is_there(device: &Device) -> bool {
    if device.caps().platform != "NVIDIA CUDA" {
        return false;
    }
    match functions() {
        Ok(_) => true,
        Err(error) => {
            println!("no rows of CUDA: {error}");
            false
        }
    }
}

/// A launch of a kernel in one dimension.
#[derive(Clone)]
pub struct Launch {
    /// The place of its kernel.
    pub kernel: usize,
    /// The places of the memory that are its pointers.
    pub memory: Vec<usize>,
    /// The numbers behind them.
    pub numbers: Vec<u32>,
    /// Its work-items: a power of two.
    pub items: usize,
}

/// The most work-items of a work-group here.
const GROUP: u32 = 256;

impl Launch {
    /// Returns the sizes of its grid and of a block.
    fn sizes(&self) -> (u32, u32) {
        let block = (self.items as u32).min(GROUP);
        (self.items as u32 / block, block)
    }
}

/// Kernels of an OpenCL program, loaded by CUDA, and their launches.
struct Cuda {
    functions: &'static Functions,
    context: Handle,
    module: Handle,
    kernels: Vec<Handle>,
    stream: Handle,
    memory: Vec<Address>,
    launches: Vec<Launch>,
}

impl Cuda {
    /// Each memory has so many bytes.
    fn new(
        queue: &Queue,
        source: &str,
        kernels: &[CString],
        bytes: usize,
        launches: Vec<Launch>,
    ) -> Result<Self, Failure> {
        let functions = functions()?;
        let binary = Program::from_source(queue, source)?.binary(queue.device())?;
        let text = CString::new(binary.split(|byte| *byte == 0).next().unwrap_or_default())?;
        let (mut ordinal, null) = (0, ptr::null_mut());
        let memory = launches.iter().flat_map(|launch| &launch.memory).max().map_or(0, |last| last + 1);
        let mut cuda = Self {
            functions,
            context: null,
            module: null,
            kernels: Vec::new(),
            stream: null,
            memory: Vec::new(),
            launches,
        };
        // SAFETY: places to write to, text that ends with zero, and a context that is never released.
        unsafe {
            check("cuInit", (functions.cuInit)(0))?;
            check("cuDeviceGet", (functions.cuDeviceGet)(&raw mut ordinal, 0))?;
            let retained = (functions.cuDevicePrimaryCtxRetain)(&raw mut cuda.context, ordinal);
            check("cuDevicePrimaryCtxRetain", retained)?;
            check("cuCtxSetCurrent", (functions.cuCtxSetCurrent)(cuda.context))?;
            check("cuModuleLoadData", (functions.cuModuleLoadData)(&raw mut cuda.module, text.as_ptr().cast()))?;
            for name in kernels {
                let mut kernel = null;
                let found = (functions.cuModuleGetFunction)(&raw mut kernel, cuda.module, name.as_ptr());
                check("cuModuleGetFunction", found)?;
                cuda.kernels.push(kernel);
            }
            check("cuStreamCreate", (functions.cuStreamCreate)(&raw mut cuda.stream, 0))?;
            for _ in 0..memory {
                let mut address = 0;
                check("cuMemAlloc", (functions.cuMemAlloc_v2)(&raw mut address, bytes))?;
                cuda.memory.push(address);
            }
        }
        Ok(cuda)
    }

    /// Fills a list with the addresses of a launch's parameters.
    fn params(&self, launch: &Launch, params: &mut Vec<*mut c_void>) {
        params.clear();
        params.extend(launch.memory.iter().map(|at| ptr::from_ref(&self.memory[*at]).cast_mut().cast()));
        params.extend(launch.numbers.iter().map(|number| ptr::from_ref(number).cast_mut().cast()));
    }

    fn launch(&self) -> Result<(), Failure> {
        let (enqueue, none, mut params) = (self.functions.cuLaunchKernel, ptr::null_mut(), Vec::new());
        self.launches.iter().try_for_each(|launch| {
            let (grid, block) = launch.sizes();
            self.params(launch, &mut params);
            // SAFETY: a live kernel, and as many parameters as it has.
            check("cuLaunchKernel", unsafe {
                enqueue(self.kernels[launch.kernel], grid, 1, 1, block, 1, 1, 0, self.stream, params.as_mut_ptr(), none)
            })
        })
    }

    fn finish(&self) -> Result<(), Failure> {
        // SAFETY: a live stream.
        check("cuStreamSynchronize", unsafe { (self.functions.cuStreamSynchronize)(self.stream) })
    }
}

impl Drop for Cuda {
    fn drop(&mut self) {
        let functions = self.functions;
        // SAFETY: what was made, given back once; null is refused.
        unsafe {
            for address in self.memory.drain(..) {
                (functions.cuMemFree_v2)(address);
            }
            (functions.cuStreamDestroy_v2)(self.stream);
            (functions.cuModuleUnload)(self.module);
        }
    }
}

/// A captured chain of launches.
struct CudaGraph {
    cuda: Cuda,
    graph: Handle,
    executable: Handle,
    nodes: Vec<Handle>,
    times: Times,
}

impl CudaGraph {
    fn new(cuda: Cuda) -> Result<Self, Failure> {
        let (functions, null, len) = (cuda.functions, ptr::null_mut(), cuda.launches.len());
        let mut this = Self { cuda, graph: null, executable: null, nodes: vec![null; len], times: Times::default() };
        let ((), record) = timed(|| {
            // SAFETY: a live stream, captured by this thread (CU_STREAM_CAPTURE_MODE_THREAD_LOCAL).
            check("cuStreamBeginCapture", unsafe { (functions.cuStreamBeginCapture_v2)(this.cuda.stream, 1) })?;
            this.cuda.launch()?;
            // SAFETY: as above.
            check("cuStreamEndCapture", unsafe {
                (functions.cuStreamEndCapture)(this.cuda.stream, &raw mut this.graph)
            })
        })?;
        let ((), finalize) = timed(|| {
            // SAFETY: a live graph.
            check("cuGraphInstantiate", unsafe {
                (functions.cuGraphInstantiateWithFlags)(&raw mut this.executable, this.graph, 0)
            })
        })?;
        let mut count = len;
        // SAFETY: room for as many nodes as there are.
        check("cuGraphGetNodes", unsafe {
            (functions.cuGraphGetNodes)(this.graph, this.nodes.as_mut_ptr(), &raw mut count)
        })?;
        this.times = Times { record: Some(record), finalize: Some(finalize), ..Times::default() };
        Ok(this)
    }

    fn launch(&self) -> Result<(), Failure> {
        // SAFETY: live objects.
        check("cuGraphLaunch", unsafe { (self.cuda.functions.cuGraphLaunch)(self.executable, self.cuda.stream) })
    }

    /// Gives nodes another number. Their launches are alike.
    fn set_number(&mut self, places: &[usize], number: u32) -> Result<(), Failure> {
        let Some(first) = places.first() else { return Ok(()) };
        self.cuda.launches[*first].numbers[0] = number;
        let (launch, mut params) = (&self.cuda.launches[*first], Vec::new());
        let (grid, block) = launch.sizes();
        self.cuda.params(launch, &mut params);
        let params = NodeParams {
            function: self.cuda.kernels[0],
            grid: [grid, 1, 1],
            block: [block, 1, 1],
            shared_bytes: 0,
            params: params.as_mut_ptr(),
            extra: ptr::null_mut(),
            kernel: ptr::null_mut(),
            context: ptr::null_mut(),
        };
        let set = self.cuda.functions.cuGraphExecKernelNodeSetParams_v2;
        places.iter().try_for_each(|place| {
            // SAFETY: a live executable graph, and a node of the graph that it was made of.
            check("cuGraphExecKernelNodeSetParams", unsafe {
                set(self.executable, self.nodes[*place], &raw const params)
            })
        })
    }
}

impl Drop for CudaGraph {
    fn drop(&mut self) {
        // SAFETY: what was made, given back once; null is refused.
        unsafe {
            (self.cuda.functions.cuGraphExecDestroy)(self.executable);
            (self.cuda.functions.cuGraphDestroy)(self.graph);
        }
    }
}

/// A chain of `len` launches of one work-item, of a kernel with so many pointers. Empty if there is no CUDA.
pub fn chain<'a>(
    queue: &Queue,
    source: &str,
    kernel: &CStr,
    memory: usize,
    len: usize,
) -> Result<Vec<Variant<'a>>, Failure> {
    let launch = Launch { kernel: 0, memory: (0..memory).collect(), numbers: Vec::new(), items: 1 };
    launches(queue, source, &[kernel.to_owned()], SMALL, vec![launch; len])
}

/// Bytes of memory, where few are needed.
const SMALL: usize = 4096;

/// Launches one after another, by a stream and as a graph, with so many bytes for each memory. Empty if there is no CUDA.
pub fn launches<'a>(
    queue: &Queue,
    source: &str,
    kernels: &[CString],
    bytes: usize,
    launches: Vec<Launch>,
) -> Result<Vec<Variant<'a>>, Failure> {
    if !is_there(queue.device()) {
        return Ok(Vec::new());
    }
    let stream = std::rc::Rc::new(Cuda::new(queue, source, kernels, bytes, launches.clone())?);
    let graph = std::rc::Rc::new(CudaGraph::new(Cuda::new(queue, source, kernels, bytes, launches)?)?);
    let (same, same_graph, once) = (std::rc::Rc::clone(&stream), std::rc::Rc::clone(&graph), graph.times);
    let by_stream = submission("cuda_stream", move || same.launch(), move || stream.finish());
    let mut by_graph = submission("cuda_graph", move || same_graph.launch(), move || graph.cuda.finish());
    let mut run = by_graph.run;
    by_graph.run = Box::new(move || Ok(Times { record: once.record, finalize: once.finalize, ..run()? }));
    Ok(vec![by_stream, by_graph])
}

/// Sets other numbers for nodes of a graph whose kernels have two pointers and a number. None if there is no CUDA.
pub fn update<'a>(queue: &Queue, len: usize, places: Vec<usize>, what: What) -> Result<Option<Variant<'a>>, Failure> {
    if !is_there(queue.device()) {
        return Ok(None);
    }
    let launch = Launch { kernel: 0, memory: vec![0, 1], numbers: vec![1], items: 1 };
    let mut graph = CudaGraph::new(Cuda::new(queue, SCALE, &[c"scale".to_owned()], SMALL, vec![launch; len])?)?;
    let mut number = 0;
    let run = move || {
        number += 1;
        let ((), total) = timed(|| match what {
            What::One => (0..REPEATED as u32).try_for_each(|at| graph.set_number(&places, number + at)),
            What::Some(_) => graph.set_number(&places, number),
        })?;
        Ok(Times { update: Some(total), total, ..Times::default() })
    };
    Ok(Some(Variant { name: "cuda_graph", run: Box::new(run) }))
}
