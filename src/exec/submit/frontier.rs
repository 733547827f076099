//! Which parts of a submission can proceed: which partitions can be enqueued, and which host tasks can run.
//!
//! It knows nothing of OpenCL, threads or events. Its input is what has ended, and its output what comes next.

use std::collections::BTreeSet;

use crate::plan::{Flow, Partition, TaskPlan};

/// How far a submission has come.
#[derive(Debug, Default)]
pub(in crate::exec) struct Frontier {
    partitions: Vec<State>,
    tasks: Vec<State>,
    /// What partitions and tasks still wait for.
    missing_of_partitions: Vec<usize>,
    missing_of_tasks: Vec<usize>,
    /// Partitions that can be enqueued, which happens in their order.
    ready: BTreeSet<usize>,
    /// Tasks that can run.
    runnable: Vec<usize>,
    /// Tasks that will never run.
    given_up: Vec<usize>,
    /// Partitions and tasks that have not ended: a partition ends when it is enqueued, or never will be.
    left: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It waits for others.
    Held,
    /// It can go on, or does.
    Begun,
    EndedWell,
    /// It failed, or something before it did.
    Failed,
}

/// What has ended, and whether well.
enum News {
    Partition(usize, bool),
    Task(usize, bool),
}

impl Frontier {
    pub(in crate::exec) fn new(flow: &Flow) -> Self {
        Self::of(&flow.partitions, &flow.tasks)
    }

    fn of(partitions: &[Partition], tasks: &[TaskPlan]) -> Self {
        let mut this = Self {
            partitions: vec![State::Held; partitions.len()],
            tasks: vec![State::Held; tasks.len()],
            missing_of_partitions: partitions.iter().map(|partition| partition.tasks.len()).collect(),
            missing_of_tasks: tasks.iter().map(|task| task.partitions.len() + task.tasks.len()).collect(),
            ready: BTreeSet::new(),
            runnable: Vec::new(),
            given_up: Vec::new(),
            left: partitions.len() + tasks.len(),
        };
        (0..partitions.len()).for_each(|partition| this.check_partition(partition));
        (0..tasks.len()).for_each(|task| this.check_task(task));
        this
    }

    /// Enqueues the partitions that can be enqueued, and those that can be then. `enqueue` does so, and returns whether
    /// that succeeded. Returns the tasks that can run.
    pub(in crate::exec) fn go_on(&mut self, flow: &Flow, enqueue: impl FnMut(usize) -> bool) -> Vec<usize> {
        self.advance(&flow.partitions, &flow.tasks, enqueue)
    }

    fn advance(
        &mut self,
        partitions: &[Partition],
        tasks: &[TaskPlan],
        mut enqueue: impl FnMut(usize) -> bool,
    ) -> Vec<usize> {
        while let Some(partition) = self.ready.pop_first() {
            let well = enqueue(partition);
            self.apply(partitions, tasks, News::Partition(partition, well));
        }
        std::mem::take(&mut self.runnable)
    }

    /// Takes the tasks that will never run.
    pub(in crate::exec) fn take_given_up(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.given_up)
    }

    /// Whether nothing more will happen.
    pub(in crate::exec) fn is_over(&self) -> bool {
        self.left == 0
    }

    /// Whether a partition was not enqueued, and may be later.
    pub(in crate::exec) fn is_held(&self, partition: usize) -> bool {
        self.partitions.get(partition).is_some_and(|state| matches!(state, State::Held | State::Begun))
    }

    /// Whether a partition will never be enqueued.
    pub(in crate::exec) fn is_given_up(&self, partition: usize) -> bool {
        self.partitions.get(partition) == Some(&State::Failed)
    }

    pub(in crate::exec) fn is_enqueued(&self, partition: usize) -> bool {
        self.partitions.get(partition) == Some(&State::EndedWell)
    }

    /// A task has returned. One that failed may have been the one to complete an event, so it is given up.
    pub(in crate::exec) fn task_ended(&mut self, flow: &Flow, task: usize, well: bool) {
        self.given_up.extend((!well).then_some(task));
        self.apply(&flow.partitions, &flow.tasks, News::Task(task, well));
    }

    fn apply(&mut self, partitions: &[Partition], tasks: &[TaskPlan], first: News) {
        let mut news = vec![first];
        while let Some(one) = news.pop() {
            self.left -= 1;
            let (then_partitions, then_tasks, well): (&[u32], &[u32], bool) = match one {
                News::Task(task, well) => {
                    self.tasks[task] = if well { State::EndedWell } else { State::Failed };
                    (&tasks[task].then_partitions, &tasks[task].then_tasks, well)
                }
                News::Partition(partition, well) => {
                    self.partitions[partition] = if well { State::EndedWell } else { State::Failed };
                    (&[], &partitions[partition].then_tasks, well)
                }
            };
            for partition in then_partitions.iter().map(|partition| *partition as usize) {
                if well {
                    self.missing_of_partitions[partition] -= 1;
                    self.check_partition(partition);
                } else if self.partitions[partition] == State::Held {
                    self.partitions[partition] = State::Begun;
                    news.push(News::Partition(partition, false));
                }
            }
            for task in then_tasks.iter().map(|task| *task as usize) {
                if well {
                    self.missing_of_tasks[task] -= 1;
                    self.check_task(task);
                } else if self.tasks[task] == State::Held {
                    self.tasks[task] = State::Begun;
                    self.given_up.push(task);
                    news.push(News::Task(task, false));
                }
            }
        }
    }

    fn check_partition(&mut self, partition: usize) {
        if self.missing_of_partitions[partition] == 0 && self.partitions[partition] == State::Held {
            self.partitions[partition] = State::Begun;
            self.ready.insert(partition);
        }
    }

    fn check_task(&mut self, task: usize) {
        if self.missing_of_tasks[task] == 0 && self.tasks[task] == State::Held {
            self.tasks[task] = State::Begun;
            self.runnable.push(task);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use quickcheck::{Arbitrary, Gen, QuickCheck};

    use super::*;

    /// Partitions and tasks, each after some of those before it. Then which ends next, and whether well.
    #[derive(Clone, Debug)]
    struct Case {
        nodes: Vec<(bool, Vec<u8>)>,
        ends: Vec<(u8, bool)>,
    }

    impl Arbitrary for Case {
        fn arbitrary(g: &mut Gen) -> Self {
            let mut nodes: Vec<(bool, Vec<u8>)> = Vec::arbitrary(g);
            nodes.truncate(30);
            nodes.iter_mut().for_each(|(_, after)| after.truncate(3));
            Self { nodes, ends: Vec::arbitrary(g) }
        }

        fn shrink(&self) -> Box<dyn Iterator<Item = Self>> {
            let ends = self.ends.clone();
            Box::new(self.nodes.shrink().map(move |nodes| Self { nodes, ends: ends.clone() }))
        }
    }

    /// The partitions and tasks of a case, and by node: its number, and the nodes that it waits for.
    type Built = (Vec<Partition>, Vec<TaskPlan>, Vec<(bool, usize, Vec<usize>)>);

    fn build(nodes: &[(bool, Vec<u8>)]) -> Built {
        let (mut partitions, mut tasks) = (Vec::<Partition>::new(), Vec::<TaskPlan>::new());
        let mut known: Vec<(bool, usize, Vec<usize>)> = Vec::new();
        for (at, (is_task, after)) in nodes.iter().enumerate() {
            let before = after.iter().filter(|_| at > 0).map(|of| usize::from(*of) % at);
            // A partition waits for tasks only.
            let mut before: Vec<usize> = before.filter(|of| *is_task || known[*of].0).collect();
            before.sort_unstable();
            before.dedup();
            let of = |kind: bool| -> Vec<u32> {
                before.iter().filter(|one| known[**one].0 == kind).map(|one| known[*one].1 as u32).collect()
            };
            let (of_tasks, of_partitions) = (of(true), of(false));
            if *is_task {
                let number = tasks.len() as u32;
                of_tasks.iter().for_each(|task| tasks[*task as usize].then_tasks.push(number));
                of_partitions.iter().for_each(|partition| partitions[*partition as usize].then_tasks.push(number));
                tasks.push(TaskPlan {
                    node: crate::ir::NodeId(at as u32),
                    commands: of_partitions.clone(),
                    partitions: of_partitions,
                    tasks: of_tasks,
                    then_partitions: Vec::new(),
                    then_tasks: Vec::new(),
                });
                known.push((true, tasks.len() - 1, before));
            } else {
                let number = partitions.len() as u32;
                of_tasks.iter().for_each(|task| tasks[*task as usize].then_partitions.push(number));
                partitions.push(Partition { tasks: of_tasks, then_tasks: Vec::new(), steps: 0..0, segments: 0..0 });
                known.push((false, partitions.len() - 1, before));
            }
        }
        (partitions, tasks, known)
    }

    /// Whatever ends in whatever order, well or not: each partition and each task goes on once, after all that it waits
    /// for has ended well; what comes after a failure never goes on; and at the end nothing is left.
    #[test]
    fn everything_goes_on_once_after_what_it_waits_for_or_never() {
        fn holds(Case { nodes, ends }: Case) -> bool {
            let (partitions, tasks, known) = build(&nodes);
            let node = |is_task: bool, number: usize| {
                known.iter().position(|(kind, of, _)| (*kind, *of) == (is_task, number)).unwrap()
            };
            let mut frontier = Frontier::of(&partitions, &tasks);
            // By node: how it ended.
            let mut ended: Vec<Option<bool>> = vec![None; known.len()];
            let (mut going, mut ends) = (Vec::new(), ends.into_iter().cycle());
            let mut picks = ends.clone();
            loop {
                let mut begin = |next: usize, ended: &mut Vec<Option<bool>>| {
                    let before = &known[next].2;
                    assert!(ended[next].is_none(), "node {next} goes on twice");
                    assert!(before.iter().all(|of| ended[*of] == Some(true)), "node {next} goes on too early");
                    let well = ends.next().is_none_or(|(_, well)| well);
                    ended[next] = Some(well);
                    well
                };
                let runnable =
                    frontier.advance(&partitions, &tasks, |partition| begin(node(false, partition), &mut ended));
                going.extend(runnable.into_iter().map(|task| node(true, task)));
                for given_up in frontier.take_given_up() {
                    ended[node(true, given_up)] = Some(false);
                }
                if going.is_empty() {
                    break;
                }
                let pick = usize::from(picks.next().map_or(0, |(pick, _)| pick)) % going.len();
                let next = going.swap_remove(pick);
                let well = begin(next, &mut ended);
                frontier.apply(&partitions, &tasks, News::Task(known[next].1, well));
            }
            let enqueued = |partition: usize| ended[node(false, partition)] == Some(true);
            assert!((0..partitions.len()).all(|partition| frontier.is_enqueued(partition) == enqueued(partition)));
            assert!(frontier.is_over());
            let failed = |of: &usize| ended[*of] != Some(true);
            known
                .iter()
                .zip(&ended)
                .all(|((_, _, before), end)| *end == Some(true) || end.is_some() || before.iter().any(failed))
        }
        QuickCheck::new().tests(2_000).quickcheck(holds as fn(Case) -> bool);
    }
}

/// Every order in which threads can meet. docs/testing.md has the command.
#[cfg(all(test, loom))]
mod every_order {
    use loom::sync::{Arc, Mutex};

    use super::*;
    use crate::ir::NodeId;

    fn task(partitions: &[u32], tasks: &[u32], then_partitions: &[u32], then_tasks: &[u32]) -> TaskPlan {
        TaskPlan {
            node: NodeId(0),
            commands: Vec::new(),
            partitions: partitions.to_vec(),
            tasks: tasks.to_vec(),
            then_partitions: then_partitions.to_vec(),
            then_tasks: then_tasks.to_vec(),
        }
    }

    fn partition(tasks: &[u32], then_tasks: &[u32]) -> Partition {
        Partition { tasks: tasks.to_vec(), then_tasks: then_tasks.to_vec(), steps: 0..0, segments: 0..0 }
    }

    /// What a thread of a submission does after a task: all that the task lets go on is enqueued, or returned. It also
    /// returns whether nothing is left.
    fn ended(shared: &Shared, task: usize, well: bool) -> (Vec<usize>, bool) {
        let mut frontier = shared.frontier.lock().unwrap();
        let before = frontier.is_over();
        frontier.apply(&shared.partitions, &shared.tasks, News::Task(task, well));
        let runnable = frontier.advance(&shared.partitions, &shared.tasks, |partition| {
            shared.enqueued.lock().unwrap().push(partition);
            true
        });
        (runnable, frontier.is_over() && !before)
    }

    struct Shared {
        partitions: Vec<Partition>,
        tasks: Vec<TaskPlan>,
        frontier: Mutex<Frontier>,
        enqueued: Mutex<Vec<usize>>,
    }

    /// Two tasks that end on two threads, a partition after both of them, and a task after that. The partition is enqueued once, by
    /// whoever ends last; one thread alone gets the last task; and one alone sees the end. If a task failed, nothing
    /// after it goes on, and still one thread sees the end.
    #[test]
    fn two_tasks_that_end_at_once_hand_over_once() {
        for well in [true, false] {
            loom::model(move || {
                let partitions = vec![partition(&[], &[0, 1]), partition(&[0, 1], &[2])];
                let tasks = vec![task(&[0], &[], &[1], &[]), task(&[0], &[], &[1], &[]), task(&[1], &[], &[], &[])];
                let mut frontier = Frontier::of(&partitions, &tasks);
                let first = frontier.advance(&partitions, &tasks, |partition| partition == 0);
                assert_eq!(first, [0, 1]);
                let frontier = Mutex::new(frontier);
                let shared = Arc::new(Shared { partitions, tasks, frontier, enqueued: Mutex::default() });
                let run = |shared: Arc<Shared>, task: usize, well: bool| {
                    let (mut next, mut ends) = (vec![(task, well)], 0);
                    let mut ran = Vec::new();
                    while let Some((task, well)) = next.pop() {
                        let (runnable, is_over) = ended(&shared, task, well);
                        ran.extend(runnable.clone());
                        next.extend(runnable.into_iter().map(|task| (task, true)));
                        ends += usize::from(is_over);
                    }
                    (ran, ends)
                };
                let other = {
                    let shared = Arc::clone(&shared);
                    loom::thread::spawn(move || run(shared, 1, well))
                };
                let (mut ran, ends) = run(Arc::clone(&shared), 0, true);
                let of_other = other.join().unwrap();
                ran.extend(of_other.0);
                assert_eq!(ends + of_other.1, 1);
                let expected: (&[usize], &[usize]) = if well { (&[1], &[2]) } else { (&[], &[]) };
                assert_eq!((&**shared.enqueued.lock().unwrap(), &*ran), expected);
            });
        }
    }
}
