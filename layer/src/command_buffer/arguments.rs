//! Which arguments of a kernel have a value.

/// The arguments without a value, by their numbers from 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Missing(Vec<u64>);

impl Missing {
    /// None of `count` arguments has a value.
    pub(crate) fn all(count: u32) -> Self {
        let words = (count as usize).div_ceil(64);
        let last = count % 64;
        let mut bits = vec![u64::MAX; words];
        if last != 0 {
            bits[words - 1] = (1 << last) - 1;
        }
        Self(bits)
    }

    /// An argument has got a value.
    pub(crate) fn set(&mut self, argument: u32) {
        if let Some(word) = self.0.get_mut(argument as usize / 64) {
            *word &= !(1 << (argument % 64));
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_missing_until_they_are_set() {
        assert!(Missing::default().is_empty() && Missing::all(0).is_empty());
        for count in [1, 3, 63, 64, 65, 128, 200] {
            let mut missing = Missing::all(count);
            for argument in 0..count {
                assert!(!missing.is_empty(), "{argument} of {count}");
                missing.set(argument);
            }
            missing.set(count);
            missing.set(u32::MAX);
            assert!(missing.is_empty(), "{count}");
        }
    }
}
