//! The fused form of an executable among its submissions and updates: it comes, follows updates, and goes. See `exec/tier.rs`.

use std::sync::Arc;

use crate::cl::completion::user_code::log_later;
use crate::exec::build::values::Old;
use crate::exec::executable::Inner;
use crate::exec::finalized::Finalized;
use crate::exec::submit::executable_state::ExecutableState;
use crate::exec::tier::{Built, FUSED, Tier, Waiting};
use crate::exec::update::destinations::Destinations;
use crate::exec::update::editing::Touched;
use crate::exec::update::following::Unfit;
use crate::report::{FusingState, NotFusedReport};

impl ExecutableState {
    /// Has the fused form built when that is worth its time.
    pub(in crate::exec) fn may_fuse(&mut self, mut waiting: Waiting) {
        if self.autotuner.expects_fused() {
            waiting.after = Some(0);
        }
        self.tier = Tier::Waiting(waiting);
        self.autotuner.watch();
    }

    /// Takes the fused form, which is tried from now on. `unfit`: an update has come meanwhile that it cannot follow.
    pub(in crate::exec) fn has_fused_form(&mut self, exec: &Finalized, built: Built, unfit: Option<Unfit>) {
        let (mut form, base) = match built {
            Ok(built) => built,
            Err((state, why)) => {
                self.autotuner.withdraw_unless_taken();
                self.tier = match std::mem::take(&mut self.tier) {
                    // It was there once: another update may make it fit again.
                    Tier::Building(again) if again.losses > 0 => {
                        self.autotuner.watch();
                        Tier::Waiting(again.after_loss(self.autotuner.spent(), why))
                    }
                    _ => Tier::Ended(state, why),
                };
                return;
            }
        };
        let Tier::Building(again) = std::mem::take(&mut self.tier) else {
            self.leftovers.left().fused = Some(Box::new(form));
            return;
        };
        // The last update may have come a moment ago.
        let is_current = self.editing.is_none() || Arc::ptr_eq(&base, &self.values.tables);
        let old = &mut self.leftovers.left().old;
        let caught_up = match unfit {
            Some(unfit) => Err(unfit),
            None if is_current => Ok(()),
            None => form.catch_up(exec, &base, &self.values.tables, old),
        };
        old.push(base);
        let (pinned, form) = (again.pinned, Box::new(form));
        self.tier = Tier::Ready { form, stays: pinned.is_some(), again };
        match pinned {
            Some(strategy) => self.autotuner.pin(strategy),
            None => self.autotuner.offer(FUSED),
        }
        if let Err(unfit) = caught_up {
            self.lose_fused_form(exec, unfit);
        }
    }

    /// Brings an update to the fused form, or goes on without it.
    pub(in crate::exec) fn follow(&mut self, exec: &Finalized, touched: &[Touched], old: &mut Vec<Old>) {
        if let Tier::Ready { form, .. } = &mut self.tier
            && let Err(unfit) = form.follow(exec, &self.values.tables, touched, old)
        {
            self.lose_fused_form(exec, unfit);
        }
    }

    /// The same for values alone.
    pub(in crate::exec) fn follow_values(&mut self, exec: &Finalized, changed: &Destinations, old: &mut Vec<Old>) {
        if let Tier::Ready { form, .. } = &mut self.tier
            && let Err(unfit) = form.follow_values(exec, &self.values.tables, changed.changed(), old)
        {
            self.lose_fused_form(exec, unfit);
        }
    }

    /// Goes on without the fused form, until it is built again.
    #[cold]
    pub(in crate::exec) fn lose_fused_form(&mut self, exec: &Finalized, Unfit { node, why, apart }: Unfit) {
        let node = exec.origins.of(node).node.index();
        log_later!(Debug, "an executable goes on without its fused form: node {node}: {why}");
        if let Some(editing) = &mut self.editing {
            apart.into_iter().for_each(|(node, need)| editing.shares.set_apart(node, need));
        }
        if let Tier::Ready { form, again, .. } = std::mem::take(&mut self.tier) {
            self.leftovers.left().fused = Some(form);
            self.autotuner.withdraw();
            self.autotuner.watch();
            let lost = vec![NotFusedReport { node, why }];
            self.tier = Tier::Waiting(again.after_loss(self.autotuner.spent(), lost));
        }
    }

    /// Keeps the fused form if it was the fastest in the trial that has ended.
    pub(in crate::exec) fn keep_fused_form_if_fastest(&mut self) {
        if let Tier::Ready { stays, .. } = &mut self.tier
            && !*stays
        {
            *stays = !self.autotuner.withdraw_unless_taken();
            if !*stays && let Tier::Ready { form, .. } = std::mem::take(&mut self.tier) {
                self.leftovers.left().fused = Some(form);
                self.tier = Tier::Ended(FusingState::NotFaster, Vec::new());
            }
        }
    }

    /// Whether an update took the fused form away, which is still to be released.
    #[inline]
    pub(in crate::exec) fn has_lost_fused_form(&self) -> bool {
        self.leftovers.have_fused_form()
    }
}

impl Inner {
    /// Releases the fused form that an update took away, when nothing runs it any more. The caller holds no lock.
    #[cold]
    pub(in crate::exec) fn release_fused_form(&self) {
        let leftovers = self.lock_state().leftovers();
        leftovers.run(&self.exclusive);
    }
}
