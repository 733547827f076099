//! How the host trains the network: the slopes of the error by each weight, picture by picture.

use crate::network::{Kind, Layer, forward, largest, taps};

const BATCH: usize = 25;

/// Adds to `slopes` how the weights of all layers change the error of one picture.
fn backward(layers: &[Layer], picture: &[f32], digit: u32, slopes: &mut [Vec<f32>]) {
    let values = forward(layers, picture);
    let mut errors: Vec<Vec<f32>> = values.iter().map(|value| vec![0.0; value.len()]).collect();
    let said = &values[layers.len()];
    let most = said.iter().copied().fold(f32::MIN, f32::max);
    let all: f32 = said.iter().map(|x| (x - most).exp()).sum();
    for (k, error) in errors[layers.len()].iter_mut().enumerate() {
        *error = (said[k] - most).exp() / all - f32::from(u8::from(k == digit as usize));
    }
    for (at, layer) in layers.iter().enumerate().rev() {
        let (error, input) = (errors[at + 1].clone(), &values[at]);
        let (slope, back) = (&mut slopes[at], &mut errors[at]);
        match layer.kind {
            Kind::Conv => taps(layer, |out, weight, from| {
                let error = if values[at + 1][out] > 0.0 { error[out] } else { 0.0 };
                slope[weight] += error * from.map_or(1.0, |from| input[from]);
                if let Some(from) = from {
                    back[from] += error * layer.weights[weight];
                }
            }),
            Kind::Add(other) => {
                back.iter_mut().zip(&error).for_each(|(back, error)| *back += error);
                errors[other].iter_mut().zip(&error).for_each(|(back, error)| *back += error);
            }
            Kind::Pool => (0..error.len()).for_each(|out| back[largest(layer, input, out)] += error[out]),
            Kind::Dense => {
                for (out, error) in error.iter().enumerate() {
                    let first = out * (input.len() + 1);
                    for from in 0..input.len() {
                        slope[first + from] += error * input[from];
                        back[from] += error * layer.weights[first + from];
                    }
                    slope[first + input.len()] += error;
                }
            }
        }
    }
}

/// Learns from pictures and the digits that they show, once through all of them.
pub fn train(layers: &mut [Layer], samples: &[(&[f32], u32)], rate: f32) {
    for batch in samples.chunks(BATCH) {
        let mut slopes: Vec<Vec<f32>> = layers.iter().map(|layer| vec![0.0; layer.weights.len()]).collect();
        batch.iter().for_each(|(picture, digit)| backward(layers, picture, *digit, &mut slopes));
        for (layer, slope) in layers.iter_mut().zip(&slopes) {
            layer.weights.iter_mut().zip(slope).for_each(|(weight, slope)| *weight -= rate * slope / BATCH as f32);
        }
    }
}
