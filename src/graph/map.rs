//! Nodes that map memory for the host: host tasks whose function gets it as slices, mapped before and unmapped after.

use super::Graph;
use super::host_task::{HostTask, HostTaskNode, Task, TaskOutcome};
use super::image::check_area;
use super::request::Target;
use super::transfer::check_map;
use crate::cl::buffer::{AsDestination, AsRegion, AsSource, Region};
use crate::cl::context::InContext;
use crate::cl::host::Element;
use crate::cl::image::Image;
use crate::cl::map::{MapMode, Mapped, check_reach};
use crate::cl::map_image::MappedImage;
use crate::cl::queue::DriverQueue;
use crate::error::{BuildCause, BuildError, MemoryError, Result};
use crate::images::Area;
use crate::ir::Mode;

impl Graph {
    /// Starts a node that maps memory, calls a function with it, and unmaps it: the host works on the memory itself, where the
    /// device left it, and nothing is copied on devices that share memory with the host. Of a part, that part is mapped.
    ///
    /// It is a [host task](Self::host_task) that reads the memory, writes it, or both, as the mode says, and nodes that use the
    /// same memory wait for each other. Where the driver cannot map, the task fails. Reports, drawings and traces call it `map`, if
    /// it is given no other [`label`](HostTaskNode::label).
    ///
    /// What [`Queue::map`](crate::Queue::map) maps can be mapped, so no [`GraphMemory`](crate::GraphMemory), which is of the device.
    /// A host task maps more than one memory by [`HostTask::map`].
    ///
    /// # Safety
    /// From when the function is called until the memory is unmapped nothing else writes to it, and nothing else reads it if the
    /// function may write: no command of any queue, no executable, and no other map. Nodes of this graph that say what they use
    /// keep to that by their order, as long as the function leaves the [`Mapped`] in its place: one that is put elsewhere stays
    /// mapped until it is dropped.
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::{Buffer, Finalize, Graph, MapMode, Queue};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// let buffer = Buffer::from_slice(&queue, &[3_u32, 1, 2])?;
    /// let graph = Graph::new(&queue)?;
    /// graph.fill(&buffer.slice(..1)?, 7).add()?;
    /// // SAFETY: only this graph uses the buffer.
    /// let sort = unsafe {
    ///     graph.map(&buffer, MapMode::Write, |_, numbers| -> clgraph::Result<()> {
    ///         numbers.as_mut_slice()?.sort_unstable();
    ///         Ok(())
    ///     })
    /// };
    /// sort.add()?;
    /// let sorted = graph.read(&buffer).add()?;
    /// let run = graph.finalize(Finalize::new())?.submit(&queue)?;
    /// run.wait()?;
    /// assert_eq!(*run.get(&sorted)?, [1, 2, 7]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`add`](HostTaskNode::add) gives those of a host task, and [`MemoryError::NotHostAccessible`] for USM of the device,
    /// [`MemoryError::Empty`], and [`BuildCause::AccessForbidden`] for a buffer that was created with a flag against it. The
    /// submission fails ([`SubmitError::HostTask`](crate::SubmitError::HostTask)) when the driver refuses, or for
    /// [`MemoryError::ElementAlign`].
    #[doc(alias("clEnqueueMapBuffer", "clEnqueueSVMMap", "clEnqueueUnmapMemObject", "clEnqueueSVMUnmap"))]
    #[allow(unsafe_code)] // A declaration: the promise itself. Nothing unsafe is done here.
    pub unsafe fn map<T: Element, R: TaskOutcome>(
        &self,
        memory: &(impl AsSource<T> + AsDestination<T>),
        mode: MapMode,
        function: impl FnMut(&HostTask<'_>, &mut Mapped<T>) -> R + Send + 'static,
    ) -> HostTaskNode<'_> {
        HostTaskNode::new(self, of_memory(memory, mode, function))
    }

    /// The same for a part of an image: pixels from `origin` on, `region` of them in each dimension, as rows of elements of which
    /// a row is a whole number.
    ///
    /// # Safety
    /// That of [`map`](Self::map).
    ///
    /// # Errors
    /// [`add`](HostTaskNode::add) gives those of a host task, and [`BuildCause::ImageArea`], [`BuildCause::NotSupported`] for
    /// elements of which a row is no whole number, [`MemoryError::Empty`], [`BuildCause::AccessForbidden`]. The submission fails as
    /// that of [`map`](Self::map) does.
    #[doc(alias = "clEnqueueMapImage")]
    #[allow(unsafe_code)] // As above.
    pub unsafe fn map_image<T: Element, R: TaskOutcome>(
        &self,
        image: &Image,
        origin: [usize; 3],
        region: [usize; 3],
        mode: MapMode,
        function: impl FnMut(&HostTask<'_>, &mut MappedImage<T>) -> R + Send + 'static,
    ) -> HostTaskNode<'_> {
        HostTaskNode::new(self, of_image(image, origin, region, mode, function))
    }
}

impl HostTask<'_> {
    /// Maps memory until the function returns, for a task that says that it uses it ([`reads`](HostTaskNode::reads),
    /// [`writes`](HostTaskNode::writes)). [`Graph::map`] makes a task that maps one memory.
    ///
    /// # Errors
    /// [`MemoryError::NotHostAccessible`] for USM of the device, [`MemoryError::Empty`], [`MemoryError::ElementAlign`];
    /// [`BuildCause::OtherContext`], [`BuildCause::AccessForbidden`], [`BuildCause::Undeclared`] for memory that the node does not
    /// say it uses so, and [`BuildCause::NotSupported`] for [`GraphMemory`](crate::GraphMemory), in a [`BuildError`];
    /// [`crate::DriverError`]. Where it cannot be unmapped, the task fails.
    ///
    /// # Safety
    /// That of [`Graph::map`]: the function drops or [unmaps](Mapped::unmap) it before it returns.
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::{Buffer, Finalize, Graph, MapMode, Queue};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// let (a, b) = (Buffer::from_slice(&queue, &[1_u32, 2])?, Buffer::<u32>::new(&queue, 2)?);
    /// let graph = Graph::new(&queue)?;
    /// let (from, into) = (a.clone(), b.clone());
    /// let double = graph.host_task(move |task| -> clgraph::Result<()> {
    ///     // SAFETY: only this graph uses the buffers, of which the node says that it uses them.
    ///     let (from, mut into) = unsafe { (task.map(&from, MapMode::Read)?, task.map(&into, MapMode::WriteInvalidate)?) };
    ///     into.as_mut_slice()?.iter_mut().zip(&*from).for_each(|(into, from)| *into = from * 2);
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
    pub unsafe fn map<T: Element>(
        &self,
        memory: &(impl AsSource<T> + AsDestination<T>),
        mode: MapMode,
    ) -> Result<Mapped<T>> {
        let ((queue, lost), region) = (self.mapper(), memory.region());
        Map::of_memory(region.clone(), mode).check_in(self, &queue)?;
        Ok(Mapped::new(&queue, region, mode)?.tell(lost))
    }

    /// The same for a part of an image, as [`Graph::map_image`] has it.
    ///
    /// # Errors
    /// Those of [`map`](Self::map), and [`BuildCause::ImageArea`], and [`BuildCause::NotSupported`] for elements of which a row is
    /// no whole number.
    ///
    /// # Safety
    /// That of [`map`](Self::map).
    #[doc(alias = "clEnqueueMapImage")]
    #[allow(unsafe_code)] // As above.
    pub unsafe fn map_image<T: Element>(
        &self,
        image: &Image,
        origin: [usize; 3],
        region: [usize; 3],
        mode: MapMode,
    ) -> Result<MappedImage<T>> {
        let ((queue, lost), area) = (self.mapper(), Area { origin, region });
        Map::of_image::<T>(image, area, mode).check_in(self, &queue)?;
        Ok(MappedImage::new(&queue, image, &area, mode)?.tell(lost))
    }
}

/// What is to be mapped.
#[derive(Clone, Debug)]
pub(crate) struct Map {
    what: What,
    mode: MapMode,
}

#[derive(Clone, Debug)]
enum What {
    Memory(Region),
    /// A part, as elements of so many bytes.
    Image(Image, Area, usize),
}

impl Map {
    pub(crate) fn of_memory(region: Region, mode: MapMode) -> Self {
        Self { what: What::Memory(region), mode }
    }

    pub(crate) fn of_image<T>(image: &Image, area: Area, mode: MapMode) -> Self {
        Self { what: What::Image(image.clone(), area, size_of::<T>()), mode }
    }

    /// Finds what could be wrong with it inside of a task.
    fn check_in(&self, task: &HostTask<'_>, queue: &DriverQueue) -> Result<()> {
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

    /// Whether it is no graph's.
    fn check_owner(&self) -> Result<(), BuildCause> {
        match &self.what {
            What::Memory(region) if region.mem.promise().is_some() => {
                let what = "mapping memory that a graph owns".to_owned();
                let why = "each executable has its own, on the device: use a host read or a host write".to_owned();
                Err(BuildCause::NotSupported { what, why })
            }
            _ => Ok(()),
        }
    }

    /// Finds what could be wrong with it where it is not part of a graph.
    pub(crate) fn check_alone(&self, queue: &DriverQueue) -> Result<()> {
        let target = Target { context: queue.context(), device: queue.device(), graph: None };
        self.check(&target).map_err(|cause| match cause {
            BuildCause::Memory(error) => error.into(),
            cause => BuildError::new(self.subject(), cause).into(),
        })
    }

    /// What error texts call it, and its node's label if that has no other.
    pub(crate) fn subject(&self) -> &'static str {
        match self.what {
            What::Memory(_) => "map",
            What::Image(..) => "map of an image",
        }
    }

    /// Finds what could be wrong with it, but for where a driver maps to.
    pub(super) fn check(&self, target: &Target<'_>) -> Result<(), BuildCause> {
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
                    let why = "a row is a whole number of elements: map bytes".to_owned();
                    return Err(BuildCause::NotSupported { what, why });
                }
                area.is_empty()
            }
        };
        if is_empty { Err(MemoryError::Empty { what: "a map" }.into()) } else { Ok(()) }
    }

    /// How a node that maps it uses it.
    pub(super) fn access(&self) -> (Region, Mode) {
        let region = match &self.what {
            What::Memory(region) => region.clone(),
            What::Image(image, area, _) => image.part(area),
        };
        let mode = match self.mode {
            MapMode::Read => Mode::Read,
            MapMode::Write => Mode::ReadWrite,
            MapMode::WriteInvalidate => Mode::Write,
        };
        (region, mode)
    }
}

/// A host task that maps memory for its function.
pub(crate) fn of_memory<T: Element, R: TaskOutcome>(
    memory: &impl AsRegion<T>,
    mode: MapMode,
    mut function: impl FnMut(&HostTask<'_>, &mut Mapped<T>) -> R + Send + 'static,
) -> Task {
    let region = memory.region();
    let map = Map::of_memory(region.clone(), mode);
    Task::mapping(map, move |task| {
        let (queue, lost) = task.mapper();
        let mapped = Mapped::new(&queue, region.clone(), mode).map_err(|error| error.to_string())?;
        let mut mapped = mapped.tell(lost);
        // It is unmapped when it is dropped, also by a panic, and the task fails if that does.
        function(task, &mut mapped).into_outcome()
    })
}

/// A host task that maps an image for its function.
pub(crate) fn of_image<T: Element, R: TaskOutcome>(
    image: &Image,
    origin: [usize; 3],
    region: [usize; 3],
    mode: MapMode,
    mut function: impl FnMut(&HostTask<'_>, &mut MappedImage<T>) -> R + Send + 'static,
) -> Task {
    let (of, area) = (image.clone(), Area { origin, region });
    let map = Map::of_image::<T>(image, area, mode);
    Task::mapping(map, move |task| {
        let (queue, lost) = task.mapper();
        let mapped = MappedImage::new(&queue, &of, &area, mode).map_err(|error| error.to_string())?;
        let mut mapped = mapped.tell(lost);
        // It is unmapped when it is dropped, also by a panic, and the task fails if that does.
        function(task, &mut mapped).into_outcome()
    })
}
