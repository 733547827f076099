//! Nodes that map memory for the host: host tasks whose function gets the memory as slices. The memory is mapped before
//! the function runs, and unmapped after it.

use crate::cl::memory::host::Element;
use crate::cl::memory::map::{MapAccess, MapMode, Mapped, check_reach};
use crate::cl::memory::map_image::MappedImage;
use crate::cl::memory::region::{AsDestination, AsRegion, AsSource, Region};
use crate::cl::objects::context::InContext;
use crate::cl::objects::image::Image;
use crate::cl::objects::queue::DriverQueue;
use crate::error::{BuildCause, BuildError, MemoryError, Result};
use crate::graph::Graph;
use crate::graph::nodes::host_task::{HostTaskContext, HostTaskNode, Task, TaskOutcome};
use crate::graph::nodes::image::check_area;
use crate::graph::nodes::request::Target;
use crate::graph::nodes::transfer::check_map;
use crate::images::Area;
use crate::ir::Mode;

impl Graph {
    /// Starts a node that maps memory, calls a function with it, and unmaps it.
    ///
    /// The host works on the memory itself, so nothing is copied on devices that share memory with the host. Of a
    /// slice, only its part is mapped.
    ///
    /// The node is a [host task](Self::host_task) that reads the memory, writes it, or both, as the mode says, and
    /// nodes that use the same memory wait for each other. If the driver cannot map, the task fails. Without a
    /// [`label`](HostTaskNode::label), reports, drawings and traces call the node `map`.
    ///
    /// Any memory that [`Queue::map`](crate::Queue::map) accepts can be mapped. [`GraphMemory`](crate::GraphMemory)
    /// cannot, because it belongs to the device. A host task maps more than one memory by [`HostTaskContext::map`].
    ///
    /// # Safety
    /// From the call of the function until the memory is unmapped, no command of any queue, no executable and no other
    /// map writes to the memory; and, if the function may write, none reads it. Nodes of this graph that declare what
    /// they use are ordered accordingly, as long as the function does not move the [`Mapped`] out of its place: moved
    /// elsewhere, it stays mapped until it is dropped.
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::{Buffer, Finalize, Graph, MapWrite, Queue};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// let buffer = Buffer::from_slice(&queue, &[3_u32, 1, 2])?;
    /// let graph = Graph::new(&queue)?;
    /// graph.fill(&buffer.slice(..1)?, 7).add()?;
    /// // SAFETY: only this graph uses the buffer.
    /// let sort = unsafe { graph.map(&buffer, MapWrite, |_, numbers| numbers.sort_unstable()) };
    /// sort.add()?;
    /// let sorted = graph.read(&buffer).add()?;
    /// let run = graph.finalize(Finalize::new())?.submit(&queue)?;
    /// run.wait()?;
    /// assert_eq!(*run.get(&sorted)?, [1, 2, 7]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`add`](HostTaskNode::add) returns those of a host task, [`MemoryError::NotHostAccessible`] for USM of the
    /// device, [`MemoryError::Empty`], and [`BuildCause::AccessForbidden`] for a buffer that was created with a flag
    /// that forbids the map. The submission fails ([`SubmitError::HostTask`](crate::SubmitError::HostTask)) when the
    /// driver refuses, or for [`MemoryError::ElementAlign`].
    #[doc(alias("clEnqueueMapBuffer", "clEnqueueSVMMap", "clEnqueueUnmapMemObject", "clEnqueueSVMUnmap"))]
    #[allow(unsafe_code)] // A declaration: the promise itself. Nothing unsafe is done here.
    pub unsafe fn map<T: Element, M: MapMode, R: TaskOutcome>(
        &self,
        memory: &(impl AsSource<T> + AsDestination<T>),
        mode: M,
        function: impl FnMut(&HostTaskContext<'_>, &mut Mapped<T, M>) -> R + Send + 'static,
    ) -> HostTaskNode<'_> {
        HostTaskNode::new(self, of_memory(memory, mode, function))
    }

    /// Starts a node that maps a part of an image, calls a function with it, and unmaps it.
    ///
    /// The part is `region` pixels in each dimension from `origin` on. The function gets it as rows of elements; a row
    /// must be a whole number of elements. Otherwise as [`map`](Self::map).
    ///
    /// # Safety
    /// That of [`map`](Self::map).
    ///
    /// # Errors
    /// [`add`](HostTaskNode::add) returns those of a host task, [`BuildCause::ImageArea`], [`BuildCause::NotSupported`]
    /// when a row is not a whole number of elements, [`MemoryError::Empty`], and [`BuildCause::AccessForbidden`]. The
    /// submission fails as for [`map`](Self::map).
    #[doc(alias = "clEnqueueMapImage")]
    #[allow(unsafe_code)] // As above.
    pub unsafe fn map_image<T: Element, M: MapMode, R: TaskOutcome>(
        &self,
        image: &Image,
        origin: [usize; 3],
        region: [usize; 3],
        mode: M,
        function: impl FnMut(&HostTaskContext<'_>, &mut MappedImage<T, M>) -> R + Send + 'static,
    ) -> HostTaskNode<'_> {
        HostTaskNode::new(self, of_image(image, origin, region, mode, function))
    }
}

impl HostTaskContext<'_> {
    /// Maps memory until the function returns. The task must have declared the use of the memory
    /// ([`reads`](HostTaskNode::reads), [`writes`](HostTaskNode::writes)).
    ///
    /// [`Graph::map`] makes a task that maps one memory.
    ///
    /// # Errors
    /// [`MemoryError::NotHostAccessible`] for USM of the device, [`MemoryError::Empty`], [`MemoryError::ElementAlign`];
    /// [`BuildCause::OtherContext`], [`BuildCause::AccessForbidden`], [`BuildCause::Undeclared`] for a use that the
    /// node has not declared, and [`BuildCause::NotSupported`] for [`GraphMemory`](crate::GraphMemory), in a
    /// [`BuildError`]; [`crate::DriverError`]. If the memory cannot be unmapped, the task fails.
    ///
    /// # Safety
    /// As for [`Graph::map`]. In addition, the function drops or [unmaps](Mapped::unmap) the mapping before it returns.
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::{Buffer, Finalize, Graph, MapRead, MapWriteInvalidate, Queue};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// let (a, b) = (Buffer::from_slice(&queue, &[1_u32, 2])?, Buffer::<u32>::new(&queue, 2)?);
    /// let graph = Graph::new(&queue)?;
    /// let (from, into) = (a.clone(), b.clone());
    /// let double = graph.host_task(move |task| -> clgraph::Result<()> {
    ///     // SAFETY: only this graph uses the buffers, and the node declares that it uses them.
    ///     let from = unsafe { task.map(&from, MapRead)? };
    ///     // SAFETY: as above.
    ///     let mut into = unsafe { task.map(&into, MapWriteInvalidate)? };
    ///     into.iter_mut().zip(&*from).for_each(|(into, from)| *into = from * 2);
    ///     into.unmap()?;
    ///     Ok(())
    /// });
    /// double.reads(&a).writes(&b).add()?;
    /// let result = graph.read(&b).add()?;
    /// let run = graph.finalize(Finalize::new())?.submit(&queue)?;
    /// run.wait()?;
    /// assert_eq!(*run.get(&result)?, [2, 4]);
    /// # Ok(()) }
    /// ```
    #[doc(alias("clEnqueueMapBuffer", "clEnqueueSVMMap"))]
    #[allow(unsafe_code)] // A declaration: the promise itself. Nothing unsafe is done here.
    pub unsafe fn map<T: Element, M: MapMode>(
        &self,
        memory: &(impl AsSource<T> + AsDestination<T>),
        mode: M,
    ) -> Result<Mapped<T, M>> {
        let ((queue, lost), region) = (self.mapper(), memory.region());
        Map::of_memory(region.clone(), mode.access()).check_in(self, &queue)?;
        Ok(Mapped::new(&queue, region, mode)?.tell(lost))
    }

    /// Maps a part of an image until the function returns, as [`Graph::map_image`] does for a whole task.
    ///
    /// # Errors
    /// Those of [`map`](Self::map); [`BuildCause::ImageArea`]; and [`BuildCause::NotSupported`] when a row is not a
    /// whole number of elements.
    ///
    /// # Safety
    /// That of [`map`](Self::map).
    #[doc(alias = "clEnqueueMapImage")]
    #[allow(unsafe_code)] // As above.
    pub unsafe fn map_image<T: Element, M: MapMode>(
        &self,
        image: &Image,
        origin: [usize; 3],
        region: [usize; 3],
        mode: M,
    ) -> Result<MappedImage<T, M>> {
        let ((queue, lost), area) = (self.mapper(), Area { origin, region });
        Map::of_image::<T>(image, area, mode.access()).check_in(self, &queue)?;
        Ok(MappedImage::new(&queue, image, &area, mode)?.tell(lost))
    }
}

/// Memory or a part of an image that is to be mapped.
#[derive(Clone, Debug)]
pub(crate) struct Map {
    what: What,
    mode: MapAccess,
}

#[derive(Clone, Debug)]
enum What {
    Memory(Region),
    /// A part of an image, and the size of an element in bytes.
    Image(Image, Area, usize),
}

impl Map {
    pub(crate) fn of_memory(region: Region, mode: MapAccess) -> Self {
        Self { what: What::Memory(region), mode }
    }

    pub(crate) fn of_image<T>(image: &Image, area: Area, mode: MapAccess) -> Self {
        Self { what: What::Image(image.clone(), area, size_of::<T>()), mode }
    }

    /// Checks the map inside a task.
    fn check_in(&self, task: &HostTaskContext<'_>, queue: &DriverQueue) -> Result<()> {
        self.check_owner().map_err(|cause| BuildError::new(self.subject(), cause))?;
        self.check_alone(queue)?;
        let (region, mode) = self.access();
        if task.declares(&region, mode) {
            return Ok(());
        }
        let (access, by) = match mode {
            Mode::Read => ("reads", "reads"),
            Mode::Write => ("writes", "writes"),
            Mode::ReadWrite => ("reads and writes", "reads_and_writes"),
        };
        Err(BuildError::new(self.subject(), BuildCause::Undeclared { access, by }).into())
    }

    /// Checks that the memory does not belong to a graph.
    fn check_owner(&self) -> Result<(), BuildCause> {
        match &self.what {
            What::Memory(region) if region.mem.graph_allocation().is_some() => {
                let what = "mapping memory that a graph owns".to_owned();
                let why = "each executable has its own copy of this memory, on the device; use a host read or a host \
                           write"
                    .to_owned();
                Err(BuildCause::NotSupported { what, why })
            }
            _ => Ok(()),
        }
    }

    /// Checks the map outside any graph.
    pub(crate) fn check_alone(&self, queue: &DriverQueue) -> Result<()> {
        let target = Target { context: queue.context(), device: queue.device(), graph: None };
        self.check(&target).map_err(|cause| match cause {
            BuildCause::Memory(error) => error.into(),
            cause => BuildError::new(self.subject(), cause).into(),
        })
    }

    /// The name in error texts, and the label of the node if it has no other.
    pub(crate) fn subject(&self) -> &'static str {
        match self.what {
            What::Memory(_) => "map",
            What::Image(..) => "map of an image",
        }
    }

    /// Checks everything except the address that the driver maps to.
    pub(in crate::graph) fn check(&self, target: &Target<'_>) -> Result<(), BuildCause> {
        let is_empty = match &self.what {
            What::Memory(region) => {
                self.check_owner()?;
                check_map(target, region, self.mode)?;
                check_reach(&region.mem)?;
                region.size == 0
            }
            What::Image(image, area, element) => {
                check_area(target, "the part", image, area)?;
                check_map(target, &image.region(), self.mode)?;
                let bytes = area.region[0] * image.pixel_size();
                if *element == 0 || !bytes.is_multiple_of(*element) {
                    let what = format!("mapping rows of {bytes} bytes as elements of {element}");
                    let why = "a row must have a whole number of elements; map bytes (`u8`)".to_owned();
                    return Err(BuildCause::NotSupported { what, why });
                }
                area.is_empty()
            }
        };
        if is_empty { Err(MemoryError::Empty { what: "a map" }.into()) } else { Ok(()) }
    }

    /// How a node that maps this memory uses it.
    pub(in crate::graph) fn access(&self) -> (Region, Mode) {
        let region = match &self.what {
            What::Memory(region) => region.clone(),
            What::Image(image, area, _) => image.part(area),
        };
        let mode = match self.mode {
            MapAccess::Read => Mode::Read,
            MapAccess::Write => Mode::ReadWrite,
            MapAccess::WriteInvalidate => Mode::Write,
        };
        (region, mode)
    }
}

/// Makes a host task that maps memory for its function.
pub(crate) fn of_memory<T: Element, M: MapMode, R: TaskOutcome>(
    memory: &impl AsRegion<T>,
    mode: M,
    mut function: impl FnMut(&HostTaskContext<'_>, &mut Mapped<T, M>) -> R + Send + 'static,
) -> Task {
    let region = memory.region();
    let map = Map::of_memory(region.clone(), mode.access());
    Task::mapping(map, move |task| {
        let (queue, lost) = task.mapper();
        let mapped = Mapped::new(&queue, region.clone(), mode).map_err(|error| error.to_string())?;
        let mut mapped = mapped.tell(lost);
        // Dropping the mapping unmaps it, also after a panic. The task fails if the unmapping fails.
        function(task, &mut mapped).into_outcome()
    })
}

/// Makes a host task that maps an image for its function.
pub(crate) fn of_image<T: Element, M: MapMode, R: TaskOutcome>(
    image: &Image,
    origin: [usize; 3],
    region: [usize; 3],
    mode: M,
    mut function: impl FnMut(&HostTaskContext<'_>, &mut MappedImage<T, M>) -> R + Send + 'static,
) -> Task {
    let (of, area) = (image.clone(), Area { origin, region });
    let map = Map::of_image::<T>(image, area, mode.access());
    Task::mapping(map, move |task| {
        let (queue, lost) = task.mapper();
        let mapped = MappedImage::new(&queue, &of, &area, mode).map_err(|error| error.to_string())?;
        let mut mapped = mapped.tell(lost);
        // Dropping the mapping unmaps it, also after a panic. The task fails if the unmapping fails.
        function(task, &mut mapped).into_outcome()
    })
}
