//! The computation as graphs: built once, finalized once, submitted again and again.

use std::sync::Arc;

use clgraph::{Buffer, Executable, Finalize, Graph, HostRead, HostWrite, Program, Queue, Result};

use crate::objects::{Objects, Parameters};

/// The kernels of this example.
pub(crate) const SOURCE: &str = include_str!("../../kernels-cl/deep_field.cl");

/// Three executables for pictures of one size: what comes before the loop, one turn of the loop, and what comes after.
pub(crate) struct DeepField {
    queue: Queue,
    prepare: Executable,
    photo: HostWrite<u8>,
    /// One turn of the labelling. It is submitted until nothing changes.
    turn: Executable,
    changed: HostRead<i32>,
    finish: Executable,
    labels: HostRead<u32>,
    areas: HostRead<u32>,
    count: HostRead<u32>,
    /// The graph of a turn, for drawing.
    pub(crate) turn_graph: Graph,
}

impl DeepField {
    /// Builds and finalizes the graphs for pictures of `width` x `height` pixels.
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
        let prepare = Graph::new(queue)?;
        let photo = prepare.write(&rgb, vec![0; 3 * pixels]).add()?;
        let add = |kernel: &clgraph::Kernel| prepare.kernel(kernel).range([width, height]);
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

        let turn = Graph::new(queue)?;
        turn.fill(&changed, 0).add()?;
        turn.copy(&labels, &next).add()?;
        let add = |kernel: &clgraph::Kernel| turn.kernel(kernel).range([width, height]);
        // SAFETY: see above.
        unsafe {
            add(&kernel("label_step")?).read(&labels).read_write(&next).read_write(&changed).arg(w).arg(h).add()?;
            add(&kernel("label_jump")?).read(&next).write(&labels).arg(w).arg(h).add()?;
        }
        let changed = turn.read(&changed).add()?;

        let finish = Graph::new(queue)?;
        finish.fill(&areas, 0).add()?;
        finish.fill(&count, 0).add()?;
        let add = |kernel: &clgraph::Kernel| finish.kernel(kernel).range([width, height]);
        // SAFETY: see above; labels are 0 or an index of a pixel plus 1, so that areas are counted inside the plane.
        unsafe {
            add(&kernel("measure_areas")?).read(&labels).read_write(&areas).arg(w).arg(h).add()?;
            add(&kernel("count_objects")?).read(&areas).read_write(&count).arg(w).arg(h).arg(min_area).add()?;
        }
        let (labels, areas, count) =
            (finish.read(&labels).add()?, finish.read(&areas).add()?, finish.read(&count).add()?);

        Ok(Self {
            queue: queue.clone(),
            prepare: prepare.finalize(Finalize::new())?,
            photo,
            turn: turn.finalize(Finalize::new())?,
            changed,
            finish: finish.finalize(Finalize::new())?,
            labels,
            areas,
            count,
            turn_graph: turn,
        })
    }

    /// Finds the objects of one picture (red, green, blue of each pixel). Returns them and how many turns it took.
    pub(crate) fn run(&self, rgb: &Arc<Vec<u8>>) -> Result<(Objects, usize)> {
        self.prepare.submit_to(&self.queue).with(&self.photo, Arc::clone(rgb)).submit_detached()?;
        let mut turns = 0;
        loop {
            let turn = self.turn.submit(&self.queue)?;
            turn.wait()?;
            turns += 1;
            if turn.get(&self.changed)?[0] == 0 {
                break;
            }
        }
        let end = self.finish.submit(&self.queue)?;
        end.wait()?;
        let (labels, areas) = (end.get(&self.labels)?.to_vec(), end.get(&self.areas)?.to_vec());
        Ok((Objects { labels, areas, count: end.get(&self.count)?[0] }, turns))
    }

    /// What was decided for one turn.
    pub(crate) fn report(&self) -> clgraph::Report {
        self.turn.report()
    }
}
