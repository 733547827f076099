//! A loop whose turns a kernel does. The host launches it, and reads whether the loop goes on, unless the loop counts its turns and the
//! rest takes little time. A launch does so many turns at most as take some time by what is known
//! ([`LaunchPace`](crate::exec::tune::pace::LaunchPace)): so a submission can be cancelled, and drivers that end kernels after a time do
//! not end it, unless turns suddenly take much longer.

use std::sync::Arc;
use std::time::Instant;

use crate::cl::completion::event_reaper;
use crate::command::{Control, ControlKind};
use crate::error::{Result, SubmitError};
use crate::exec::build::device_loops::DeviceLoop;
use crate::exec::build::values::Values;
use crate::exec::submit::deferred::Deferred;
use crate::exec::submit::frames::Turn;
use crate::ir::{Span, ViewId};

impl Deferred {
    /// Carries out a loop whose turns a kernel does. Returns its outcome; None if nobody sees it any more.
    pub(super) fn device_loop(
        self: &Arc<Self>,
        of: &DeviceLoop,
        mut turn: Turn,
        control: &Control<ViewId, Span>,
        values: &Values,
    ) -> Option<Result<()>> {
        let (at_least_once, at_most, is_counted) = match control.kind {
            ControlKind::While { at_least_once, at_most } => (at_least_once, at_most, false),
            ControlKind::Repeat { turns } => (false, Some(turns), true),
            ControlKind::When | ControlKind::Switch => return Some(Ok(())),
        };
        let outcome = loop {
            if event_reaper::process_ends() {
                self.forget();
                return None;
            }
            let left = at_most.map_or(u64::MAX, |most| most.saturating_sub(turn.turns));
            if left == 0 || is_counted {
                // Too many turns, or these are all, or the last one was the last. One that is counted waits if too much is enqueued.
                match self.next_turn(&turn, control, values) {
                    Ok(_) if left > 0 => {}
                    outcome => break outcome.map(drop),
                }
            }
            if self.state.is_cancelled() {
                break Err(self.cancelled(&turn));
            }
            let most = u32::try_from(left).unwrap_or(u32::MAX).min(of.pace().next());
            if is_counted && u64::from(most) == left && of.pace().is_brief(most) {
                // These are all, and nobody has to wait to know.
                if let Err(error) = self.try_enqueue(|| of.prepare(&self.own, most, false)) {
                    break Err(error);
                }
                turn = self.whole_turn(of.flow(), turn, false)?;
                if turn.failed {
                    break Err(self.failure());
                }
                turn.turns += left - 1;
                self.state.turn(of.flow(), left);
                break Ok(());
            }
            let begun = Instant::now();
            let (goes_on, done) = match self.launch_turns(of, &turn, most, at_least_once && turn.turns == 0) {
                Ok(read) => read,
                Err(error) => break Err(error),
            };
            of.pace().launch(done, u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX));
            turn.turns += u64::from(done);
            self.state.turn(of.flow(), u64::from(done));
            if !goes_on {
                break Ok(());
            }
        };
        Some(outcome.and_then(|()| self.settle(turn.of, turn.last.take())))
    }

    /// Launches the kernel, and reads whether the loop goes on and how many turns it did.
    fn launch_turns(&self, of: &DeviceLoop, turn: &Turn, most: u32, is_free: bool) -> Result<(bool, u32)> {
        if turn.failed {
            return Err(self.failure());
        }
        self.try_enqueue(|| of.prepare(&self.own, most, is_free))?;
        let mut progress = self.lock();
        if !self.enqueue_turn(&mut progress, of.flow(), turn.of.frame, false, None) {
            drop(progress);
            return Err(self.failure());
        }
        let all = progress.enqueued;
        drop(progress);
        let elsewhere = self.wait_to_read()?;
        let read = of.read(&self.own).map_err(SubmitError::CommandFailed)?;
        drop(elsewhere);
        self.has_waited(all);
        Ok(read)
    }
}
