//! A chain that may grow: which launches it takes, what its kernel is given, and which values of that are in a table.

use std::collections::HashMap;
use std::ops::Range;

use super::waits::Waits;
use super::{Chain, Fit, Group, Limits, Need, Order, Together, WhyApart};
use crate::command::Command;
use crate::ir::{Ir, NodeId};

/// The fewest launches that are worth a kernel of their own.
const LEAST: usize = 2;

/// Bytes of arguments that a table takes.
const TABLE: usize = 8;

/// Where arguments are more bytes than these, the values among them are in a table: NVIDIA's compiler (580) takes a minute for a kernel of 8 000
/// arguments, and its driver 0.1 us for each at a launch.
const MOST_WITHOUT_TABLE: usize = 1_000;

/// The most bytes of values of a chain whose values are in a table.
const MOST_TABLED: usize = 16 << 10;

/// A chain that may grow.
pub(super) struct Open {
    pub(super) group: Group,
    launches: Vec<NodeId>,
    needs: Vec<Need>,
    places: Vec<Vec<u32>>,
    known: HashMap<(u32, Need), u32>,
    /// Where the arguments end, and the bytes of those that are no values, and of the values.
    end: usize,
    others: usize,
    values: usize,
    at: Range<usize>,
    together: Together,
    /// The fewest launches that are worth a kernel.
    least: usize,
    has_launch: bool,
    waits: Waits,
}

impl Open {
    pub(super) fn new(group: Group, at: usize) -> Self {
        let (launches, needs, places, known) = (Vec::new(), Vec::new(), Vec::new(), HashMap::new());
        let (at, together) = (at..at, Together::default());
        let (least, has_launch, waits) = (LEAST, false, Waits::default());
        Self {
            group,
            launches,
            needs,
            places,
            known,
            end: 0,
            others: 0,
            values: 0,
            at,
            together,
            least,
            has_launch,
            waits,
        }
    }

    /// Adds a launch, if it fits.
    pub(super) fn takes(
        &mut self,
        ir: &Ir,
        most: Limits,
        at: usize,
        node: NodeId,
        group: Group,
        fit: Fit<'_>,
    ) -> Result<(), WhyApart> {
        let Fit { piece, each_item } = fit;
        self.group.fits(&group)?;
        let is_alone = group.order == Order::EachItem;
        if piece.begins && !is_alone && !self.launches.is_empty() {
            return Err(WhyApart::Calls);
        }
        if is_alone && self.launches.len() >= most.each_item {
            return Err(WhyApart::Many);
        }
        // Sizes are those of the range, where each work-item is on its own.
        let is_needed = |need: &Need| !is_alone || !matches!(need, Need::Size(_));
        let key = |(at, need): (usize, &Need)| (piece.shares.get(at).copied().unwrap_or(0), need.clone());
        let keys: Vec<(u32, Need)> =
            piece.needs.iter().enumerate().filter(|(_, need)| is_needed(need)).map(key).collect();
        let (mut end, mut others, mut values) = (self.end, self.others, self.values);
        let mut local = 0_usize;
        for (at, key) in keys.iter().enumerate() {
            if !self.known.contains_key(key) && !keys[..at].contains(key) {
                let (_, need) = key;
                end = need.end(end);
                *(if need.is_value() { &mut values } else { &mut others }) += need.size();
                local = local.saturating_add(if let Need::Local(_, bytes) = need { *bytes } else { 0 });
            }
        }
        // Values of work-items that are on their own stay arguments, which compilers know not to change.
        let fits_with_table = others + TABLE <= most.bytes && values > TABLE && values <= MOST_TABLED && !is_alone;
        if !self.launches.is_empty() && end > most.bytes && !fits_with_table {
            return Err(WhyApart::Arguments);
        }
        let local = self.waits.local_with(ir, node, piece, local)?;
        self.together.takes(ir, node, &piece.pointers, each_item.map(|of| &of.uses))?;
        let mut places = Vec::with_capacity(keys.len());
        for key in keys {
            let next = self.needs.len() as u32;
            let place = *self.known.entry(key.clone()).or_insert(next);
            if place == next {
                self.needs.push(key.1);
            }
            places.push(place);
        }
        (self.end, self.others, self.values) = (end, others, values);
        self.has_launch |= piece.launch;
        self.waits.add(ir, node, piece, local);
        if piece.turns && each_item.is_none() {
            self.least = 1;
        }
        self.places.push(places);
        self.launches.push(node);
        self.at.end = at + 1;
        Ok(())
    }

    /// The last launch.
    pub(super) fn last(&self) -> Option<NodeId> {
        self.launches.last().copied()
    }

    pub(super) fn close(mut self, ir: &Ir, (flow, most): (usize, Limits)) -> Option<Chain> {
        // For few values a table would only take room.
        let is_tabled =
            self.end > most.bytes.min(MOST_WITHOUT_TABLE) && self.values > TABLE && self.others + TABLE <= most.bytes;
        let order = self.group.order;
        let tabled = if is_tabled && order != Order::EachItem { self.table(ir) } else { 0 };
        let Self { launches, needs, places, at, least, has_launch, .. } = self;
        let lane_ends = Vec::new();
        let chain = Chain { launches, needs, tabled, places, order, lane_ends, at: (flow, at) };
        (has_launch && chain.launches.len() >= least).then_some(chain)
    }

    /// Brings values behind all other needs, and returns how many there are. Those of one argument of a kernel are neighbours, so that a
    /// loop over its launches walks over them.
    fn table(&mut self, ir: &Ir) -> usize {
        let mut first = vec![(u32::MAX, 0); self.needs.len()];
        for (node, places) in self.launches.iter().zip(&self.places).rev() {
            let kernel = match ir.command(*node) {
                Command::Kernel { kernel, .. } => kernel.index() as u32,
                _ => u32::MAX,
            };
            places.iter().enumerate().for_each(|(need, place)| first[*place as usize] = (kernel, need));
        }
        let mut order: Vec<usize> = (0..self.needs.len()).collect();
        order.sort_by_key(|need| (self.needs[*need].is_value(), self.needs[*need].is_value().then_some(first[*need])));
        let mut now = vec![0; order.len()];
        (0..).zip(&order).for_each(|(place, need)| now[*need] = place);
        self.places.iter_mut().flatten().for_each(|place| *place = now[*place as usize]);
        self.needs = order.into_iter().map(|need| self.needs[need].clone()).collect();
        self.needs.iter().filter(|need| need.is_value()).count()
    }
}
