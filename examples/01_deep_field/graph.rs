//! The computation as one graph with a loop in it: built once, finalized once, submitted once for each picture.

use std::sync::Arc;

use clgraph::{Buffer, Executable, Finalize, Graph, HostRead, HostWrite, Loop, Program, Queue, Result};

use crate::objects::{Objects, Parameters};

/// The kernels of this example.
pub(crate) const SOURCE: &str = include_str!("../../kernels-cl/deep_field.cl");

/// An executable for pictures of one size.
pub(crate) struct DeepField {
    queue: Queue,
    executable: Executable,
    photo: HostWrite<u8>,
    /// The labelling: it goes round until nothing changes.
    labelling: Loop,
    labels: HostRead<u32>,
    areas: HostRead<u32>,
    count: HostRead<u32>,
}

impl DeepField {
    /// Builds and finalizes the graph for pictures of `width` x `height` pixels.
    pub(crate) fn new(queue: &Queue, width: usize, height: usize, parameters: &Parameters) -> Result<Self> {
        let program = Program::from_source(queue, SOURCE)?;
        let kernel = |name| program.kernel(name);
        let pixels = width * height;
        let (w, h) = (width as u32, height as u32);
        let Parameters { radius, ceiling, contrast, min_area } = *parameters;

        let rgb = Buffer::<u8>::new(queue, 3 * pixels)?;
        let plane = || Buffer::<u8>::new(queue, pixels);
        let (light, smooth, background, bright) = (plane()?, plane()?, plane()?, plane()?);
        let wide_plane = || Buffer::<u32>::new(queue, pixels);
        let (sums, labels, next, areas) = (wide_plane()?, wide_plane()?, wide_plane()?, wide_plane()?);
        let changed = Buffer::<i32>::new(queue, 1)?;
        let count = Buffer::<u32>::new(queue, 1)?;

        // The kernels guard against work-items outside the picture, and every plane has `pixels` values: that is what
        // each promise below rests on.
        let turn = Graph::new(queue)?;
        turn.fill(&changed, 0).add()?;
        turn.copy(&labels, &next).add()?;
        let add = |kernel: &clgraph::Kernel| turn.kernel(kernel).range([width, height]);
        // SAFETY: see above.
        unsafe {
            add(&kernel("label_step")?).read(&labels).read_write(&next).read_write(&changed).arg(w).arg(h).add()?;
            add(&kernel("label_jump")?).read(&next).write(&labels).arg(w).arg(h).add()?;
        }
        let turn = turn.finalize(Finalize::new())?;

        let graph = Graph::new(queue)?;
        let photo = graph.write(&rgb, vec![0; 3 * pixels]).add()?;
        let add = |kernel: &clgraph::Kernel| graph.kernel(kernel).range([width, height]);
        // SAFETY: see above.
        unsafe {
            add(&kernel("luminance")?).read(&rgb).write(&light).arg(w).arg(h).add()?;
            add(&kernel("median3x3")?).read(&light).write(&smooth).arg(w).arg(h).add()?;
            add(&kernel("box_rows")?).read(&smooth).write(&sums).arg(w).arg(h).arg(radius).arg(ceiling).add()?;
            add(&kernel("box_columns")?).read(&sums).write(&background).arg(w).arg(h).arg(radius).add()?;
            let threshold = add(&kernel("threshold")?).read(&smooth).read(&background).write(&bright);
            threshold.arg(w).arg(h).arg(contrast).add()?;
            add(&kernel("label_init")?).read(&bright).write(&labels).arg(w).arg(h).add()?;
        }
        let labelling = graph.repeat_while(&changed, &turn).at_least_once().label("until no label changes").add()?;
        graph.fill(&areas, 0).add()?;
        graph.fill(&count, 0).add()?;
        // SAFETY: see above; labels are 0 or an index of a pixel plus 1, so that areas are counted inside the plane.
        unsafe {
            add(&kernel("measure_areas")?).read(&labels).read_write(&areas).arg(w).arg(h).add()?;
            add(&kernel("count_objects")?).read(&areas).read_write(&count).arg(w).arg(h).arg(min_area).add()?;
        }
        let (labels, areas, count) = (graph.read(&labels).add()?, graph.read(&areas).add()?, graph.read(&count).add()?);
        let executable = graph.finalize(Finalize::new())?;
        Ok(Self { queue: queue.clone(), executable, photo, labelling, labels, areas, count })
    }

    /// Finds the objects of one picture (red, green, blue of each pixel). Returns them and how many turns it took.
    pub(crate) fn run(&self, rgb: &Arc<Vec<u8>>) -> Result<(Objects, u64)> {
        let run = self.executable.submit_to(&self.queue).with(&self.photo, Arc::clone(rgb)).submit()?;
        run.wait()?;
        let (labels, areas) = (run.get(&self.labels)?.to_vec(), run.get(&self.areas)?.to_vec());
        Ok((Objects { labels, areas, count: run.get(&self.count)?[0] }, run.turns(&self.labelling)?))
    }

    /// Draws what is submitted.
    #[allow(dead_code)] // The test draws nothing.
    pub(crate) fn print(&self, path: &std::path::Path) -> Result<()> {
        self.executable.print_graph(path, clgraph::DrawingDetail::Brief, None)
    }

    /// What was decided.
    pub(crate) fn report(&self) -> clgraph::Report {
        self.executable.report()
    }
}
