//! A small convolutional network: two blocks of two convolutions with a way around the second,
//! each followed by pooling, and a dense layer that says which digit it is.

/// A square of so many points a side, in each of some channels.
#[derive(Clone, Copy, PartialEq)]
pub struct Shape {
    pub channels: usize,
    pub side: usize,
}

impl Shape {
    pub const fn len(self) -> usize {
        self.channels * self.side * self.side
    }
}

#[derive(Clone, Copy)]
pub enum Kind {
    /// A convolution of 3 x 3 points, less than zero is zero.
    Conv,
    /// Adds a value that was computed before.
    Add(usize),
    /// The largest of 2 x 2 points.
    Pool,
    /// Each output is of all inputs.
    Dense,
}

/// Computes value `i + 1` of value `i`, where it is layer `i` of the network.
pub struct Layer {
    pub kind: Kind,
    pub from: Shape,
    pub to: Shape,
    /// For each output channel the weights, input channel by input channel, and a bias behind them.
    pub weights: Vec<f32>,
}

pub const DIGITS: usize = 10;

/// The layers, with random weights that are always the same.
pub fn layers() -> Vec<Layer> {
    let mut random = fastrand::Rng::with_seed(7);
    let shape = |channels, side| Shape { channels, side };
    let plan = [
        (Kind::Conv, shape(8, 8)),
        (Kind::Conv, shape(8, 8)),
        (Kind::Add(1), shape(8, 8)),
        (Kind::Pool, shape(8, 4)),
        (Kind::Conv, shape(16, 4)),
        (Kind::Conv, shape(16, 4)),
        (Kind::Add(5), shape(16, 4)),
        (Kind::Pool, shape(16, 2)),
        (Kind::Dense, shape(DIGITS, 1)),
    ];
    let mut from = shape(1, 8);
    let layer = |(kind, to): (Kind, Shape)| {
        let inputs = match kind {
            Kind::Conv => from.channels * 9,
            Kind::Dense => from.len(),
            Kind::Add(_) | Kind::Pool => 0,
        };
        let scale = 2.0 * (6.0 / inputs.max(1) as f32).sqrt();
        let count = if inputs == 0 { 0 } else { to.channels * (inputs + 1) };
        let weight = |at: usize| if at % (inputs + 1) < inputs { (random.f32() - 0.5) * scale } else { 0.0 };
        let weights = (0..count).map(weight).collect();
        let layer = Layer { kind, from, to, weights };
        from = to;
        layer
    };
    plan.map(layer).into()
}

/// Which digit a result of the network says.
pub fn read(said: &[f32]) -> Option<usize> {
    (0..DIGITS).max_by(|a, b| said[*a].total_cmp(&said[*b]))
}

/// Calls `each` with an output of a convolution, the weight and the input that count for it, of every output in one order;
/// the bias has no input.
#[inline]
pub fn taps(layer: &Layer, mut each: impl FnMut(usize, usize, Option<usize>)) {
    let (from, side) = (layer.from, layer.from.side);
    let row = from.channels * 9 + 1;
    // Points whose neighbour so far away is one.
    let inside = |by: usize| 1_usize.saturating_sub(by)..(side + 1 - by).min(side);
    for channel in 0..layer.to.channels {
        let (first, weight) = (channel * side * side, channel * row);
        (first..first + side * side).for_each(|out| each(out, weight + row - 1, None));
        for (c, dy, dx) in (0..from.channels).flat_map(|c| (0..9).map(move |at| (c, at / 3, at % 3))) {
            for y in inside(dy) {
                for x in inside(dx) {
                    let at = (c * side + y + dy - 1) * side + x + dx - 1;
                    each(first + y * side + x, weight + c * 9 + dy * 3 + dx, Some(at));
                }
            }
        }
    }
}

/// Which of the four inputs of an output of pooling is the largest.
pub fn largest(layer: &Layer, input: &[f32], out: usize) -> usize {
    let (side, half) = (layer.from.side, layer.to.side);
    let first = (out / (half * half) * side + out / half % half * 2) * side + out % half * 2;
    let of = [first, first + 1, first + side, first + side + 1];
    of.into_iter().max_by(|a, b| input[*a].total_cmp(&input[*b])).unwrap_or(first)
}

/// All values that the network computes of a picture: the last is a number for each digit.
pub fn forward(layers: &[Layer], picture: &[f32]) -> Vec<Vec<f32>> {
    let mut values = vec![picture.to_vec()];
    for layer in layers {
        let input = &values[values.len() - 1];
        let mut output = vec![0.0; layer.to.len()];
        match layer.kind {
            Kind::Conv => {
                taps(layer, |out, weight, at| output[out] += layer.weights[weight] * at.map_or(1.0, |at| input[at]));
                output.iter_mut().for_each(|value| *value = value.max(0.0));
            }
            Kind::Add(other) => (0..output.len()).for_each(|at| output[at] = input[at] + values[other][at]),
            Kind::Pool => (0..output.len()).for_each(|at| output[at] = input[largest(layer, input, at)]),
            Kind::Dense => {
                for (out, row) in layer.weights.chunks_exact(input.len() + 1).enumerate() {
                    output[out] = row[input.len()] + row.iter().zip(input).map(|(w, x)| w * x).sum::<f32>();
                }
            }
        }
        values.push(output);
    }
    values
}
