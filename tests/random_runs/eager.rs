//! What a submission does, done on the CPU.

use crate::case::{BUFFERS, LEN, OWNED, Op, Part, Use, copied, number};

pub struct Eager<'a> {
    /// Of the buffers.
    content: &'a mut Vec<Vec<u32>>,
    /// Of the memory of the graph that runs.
    owned: [Vec<u32>; OWNED],
    input: u32,
    /// What updates have added to the values of nodes.
    shift: u32,
    pub reads: Vec<Vec<u32>>,
}

impl<'a> Eager<'a> {
    pub fn new(content: &'a mut Vec<Vec<u32>>, input: u32, shift: u32) -> Self {
        Self { content, owned: Self::memory(), input, shift, reads: Vec::new() }
    }

    fn memory() -> [Vec<u32>; OWNED] {
        std::array::from_fn(|_| vec![0; LEN])
    }

    fn of(&mut self, part: Part) -> &mut [u32] {
        match part.owned() {
            Some(at) => &mut self.owned[at],
            None => &mut self.content[part.memory()],
        }
    }

    /// The first elements of a view.
    fn view(&mut self, part: Part, len: usize) -> &mut [u32] {
        &mut self.of(part)[part.side().1..][..len]
    }

    pub fn run(&mut self, op: &Op, outermost: bool) {
        // Updates reach the nodes of the graph itself.
        let shifted = |value: &u32, shift: u32| if outermost { value.wrapping_add(shift) } else { *value };
        let shift = self.shift;
        match op {
            Op::Fill(part, value) | Op::Native(part, value, _) => {
                self.of(*part)[part.place()].fill(shifted(value, shift));
            }
            Op::Copy(from, to) | Op::NativeCopy(from, to) => {
                let (len, src, dst) = copied(*from, *to);
                let data = self.of(*from)[src..src + len].to_vec();
                self.of(*to)[dst..dst + len].copy_from_slice(&data);
            }
            Op::Stir(part) => {
                let data = self.view(*part, part.side().2);
                data.iter_mut().zip(0..).for_each(|(x, i)| *x = x.wrapping_mul(5).wrapping_add(i));
            }
            Op::Scale(from, to, by) => {
                let len = from.side().2.min(to.side().2);
                let by = shifted(by, shift);
                let data: Vec<u32> = self.view(*from, len).iter().map(|x| x.wrapping_mul(3).wrapping_add(by)).collect();
                self.view(*to, len).copy_from_slice(&data);
            }
            Op::Blend(a, b, to) => {
                let len = [a, b, to].map(|part| part.side().2).into_iter().min().unwrap_or(0);
                let [a, b] = [a, b].map(|part| self.view(*part, len).to_vec());
                let sums: Vec<u32> = a.iter().zip(&b).map(|(a, b)| a.wrapping_mul(7).wrapping_add(*b)).collect();
                self.view(*to, len).copy_from_slice(&sums);
            }
            Op::Task(uses, by) => {
                let buffers = uses.iter().filter(|(part, _)| part.memory() < BUFFERS);
                let read = buffers.clone().filter(|(_, how)| *how != Use::Writes);
                let read: Vec<u32> = read.flat_map(|(part, _)| self.of(*part)[part.place()].to_vec()).collect();
                let value = number(read.into_iter(), shifted(by, shift));
                for (part, _) in buffers.filter(|(_, how)| *how != Use::Reads) {
                    let data = &mut self.of(*part)[part.place()];
                    data.iter_mut().zip(0..).for_each(|(x, i)| *x = value.wrapping_add(i));
                }
            }
            Op::Alloc(at, value) => self.owned[*at].fill(*value),
            Op::Input(part) if outermost => {
                let input = self.input;
                self.of(*part)[part.place()].fill(input);
            }
            Op::Read(part) if outermost => {
                let read = self.of(*part)[part.place()].to_vec();
                self.reads.push(read);
            }
            Op::Input(_) | Op::Read(_) | Op::Wait | Op::Signal | Op::Free(_) => {}
            Op::Sub(ops) => {
                let outer = std::mem::replace(&mut self.owned, Self::memory());
                ops.iter().for_each(|op| self.run(op, false));
                self.owned = outer;
            }
        }
    }
}
