//! Updates, compared with `clSetKernelArg` and `clUpdateMutableCommandsKHR`.

use clgraph::{Buffer, Executable, Finalize, Graph, Kernel, Node, Parameter, Path, Queue};

use crate::Failure;
use crate::changes::{REPEATED, What};
use crate::cuda;
use crate::raw::{Arg, Held, Kernels, MutableBuffer};
use crate::rounds::{Times, Variant, timed};

/// Kernels in each command buffer of `raw_parts`: the number that clgraph uses for executables that are updated in
/// place.
const PART: usize = 256;

/// A chain of kernels with two buffers and a number, which is a parameter of each.
pub struct Chain<'a> {
    pub queue: &'a Queue,
    pub kernel: &'a Kernel,
    pub buffers: &'a [Buffer<u32>; 2],
    pub len: usize,
}

struct Made {
    executable: Executable,
    nodes: Vec<(Node, Parameter<u32>)>,
}

impl Made {
    fn update_one(&self, place: usize, number: u32) -> Result<(), Failure> {
        let (node, parameter) = &self.nodes[place];
        for at in 0..REPEATED as u32 {
            parameter.set(number + at)?;
            self.executable.update(node)?;
        }
        Ok(())
    }

    fn update(&self, places: &[usize], nodes: &[Node], number: u32) -> Result<(), Failure> {
        for place in places {
            self.nodes[*place].1.set(number)?;
        }
        Ok(self.executable.update(nodes)?)
    }
}

/// A variant that is an update and nothing else, by the number of its round.
fn update_variant<'a>(
    variant: &'static str,
    mut round: Box<dyn FnMut(u32) -> Result<(), Failure> + 'a>,
) -> Variant<'a> {
    let mut number = 0;
    let run = move || {
        number += 1;
        let ((), total) = timed(|| round(number))?;
        Ok(Times { update: Some(total), total, ..Times::default() })
    };
    Variant { name: variant, run: Box::new(run) }
}

impl Chain<'_> {
    fn make(&self, path: Path) -> Result<Made, Failure> {
        let graph = Graph::new(self.queue)?;
        let mut nodes = Vec::with_capacity(self.len);
        for at in 0..self.len {
            let (from, into) = (&self.buffers[at % 2], &self.buffers[(at + 1) % 2]);
            let number = Parameter::any(at as u32);
            // SAFETY: its one work-item touches the first elements.
            let node = unsafe { graph.kernel(self.kernel).read(from).write(into).arg(&number).range(1).add()? };
            nodes.push((node, number));
        }
        let executable = graph.finalize(Finalize::new().path(path).updatable())?;
        Ok(Made { executable, nodes })
    }

    fn raw_buffers(&self) -> [*mut std::ffi::c_void; 2] {
        [self.buffers[0].raw(), self.buffers[1].raw()]
    }

    /// The indices of the nodes that are updated.
    fn places(&self, count: usize) -> impl Iterator<Item = usize> + use<> {
        let len = self.len;
        (0..count).map(move |at| at * len / count)
    }

    /// The variants. The first is `clSetKernelArg` alone.
    pub fn variants(&self, what: What) -> Result<Vec<Variant<'_>>, Failure> {
        let mut variants: Vec<Variant<'_>> = Vec::new();
        for variant in ["loop", "loop_again"] {
            let kernels = Kernels::with_numbers(self.kernel, self.raw_buffers(), self.len)?;
            let places: Vec<usize> = self.chosen(what);
            variants.push(update_variant(
                variant,
                Box::new(move |number| match what {
                    What::One => {
                        (0..REPEATED as u32).try_for_each(|at| kernels.set(places[0], 2, Arg::Number(number + at)))
                    }
                    What::Some(_) => places.iter().try_for_each(|place| kernels.set(*place, 2, Arg::Number(number))),
                }),
            ));
        }
        let kernels = Kernels::with_numbers(self.kernel, self.raw_buffers(), self.len)?;
        if let Some(buffer) = MutableBuffer::record(self.queue, kernels, 1, false)? {
            let places = self.chosen(what);
            let set = move |number| buffer.set_each(&places, 2, Arg::Number(number));
            variants.push(update_variant(
                "raw_mutable",
                Box::new(move |number| match what {
                    What::One => (0..REPEATED as u32).try_for_each(|at| set(number + at)),
                    What::Some(_) => set(number),
                }),
            ));
        }
        if let What::Some(count) = what
            && count > PART
        {
            variants.extend(self.raw_in_parts(count)?);
        }
        variants.extend(cuda::update(self.queue, self.len, self.chosen(what), what)?);
        for (variant, path) in [("replay", Path::Replay), ("native", Path::Native)] {
            let made = self.make(path)?;
            let chosen = self.chosen(what);
            let nodes: Vec<Node> = chosen.iter().map(|place| made.nodes[*place].0).collect();
            variants.push(update_variant(
                variant,
                Box::new(move |number| match what {
                    What::One => made.update_one(chosen[0], number),
                    What::Some(_) => made.update(&chosen, &nodes, number),
                }),
            ));
        }
        if let What::One = what {
            for (variant, path) in [("replay_in_flight", Path::Replay), ("native_in_flight", Path::Native)] {
                let (made, place) = (self.make(path)?, self.len / 2);
                let mut number = 0;
                let run = move || {
                    number += 1;
                    let held = Held::new(self.queue)?;
                    let flight = made.executable.submit(self.queue)?;
                    let ((), update) = timed(|| made.update_one(place, number))?;
                    let is_held = !flight.is_done()?;
                    drop(held);
                    flight.wait()?;
                    if !is_held {
                        return Err(format!("{variant}: the submission ended meanwhile").into());
                    }
                    Ok(Times { update: Some(update), total: update, ..Times::default() })
                };
                variants.push(Variant { name: variant, run: Box::new(run) });
            }
        }
        if let What::Some(count) = what
            && count == self.len
        {
            // What a program would have to do without updates.
            for (variant, path) in [("anew_replay", Path::Replay), ("anew_native", Path::Native)] {
                let run = move || {
                    let ((), total) = timed(|| self.make(path).map(drop))?;
                    Ok(Times { total, ..Times::default() })
                };
                variants.push(Variant { name: variant, run: Box::new(run) });
            }
        }
        Ok(variants)
    }

    /// The same number of kernels by hand, all of them changed, in several command buffers: the time that the driver
    /// needs.
    fn raw_in_parts(&self, count: usize) -> Result<Option<Variant<'_>>, Failure> {
        let kernels = (0..count.div_ceil(PART)).map(|part| {
            let len = PART.min(count - part * PART);
            Kernels::with_numbers(self.kernel, self.raw_buffers(), len)
        });
        let kernels: Vec<Kernels> = kernels.collect::<Result<_, _>>()?;
        let lens: Vec<usize> = kernels.iter().map(Kernels::len).collect();
        let parts = kernels.into_iter().map(|kernels| MutableBuffer::record(self.queue, kernels, 1, false));
        let Some(parts) = parts.collect::<Result<Option<Vec<_>>, Failure>>()? else { return Ok(None) };
        let places: Vec<usize> = (0..PART).collect();
        let set = move |number| {
            let mut parts = parts.iter().zip(&lens);
            parts.try_for_each(|(part, len)| part.set_each(&places[..*len], 2, Arg::Number(number)))
        };
        Ok(Some(update_variant("raw_parts", Box::new(set))))
    }

    fn chosen(&self, what: What) -> Vec<usize> {
        match what {
            What::One => vec![self.len / 2],
            What::Some(count) => self.places(count).collect(),
        }
    }
}
