//! The threads for tasks: how many there are, and what they take first.

use std::sync::mpsc::channel;

use super::*;

/// A wait that is refused counts for nothing, and one that ends makes room for one other.
#[test]
fn waits_for_the_device_are_counted() {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    for _ in 0..2 {
        let mut waits: Vec<DeviceWait> = std::iter::from_fn(|| DeviceWait::counted_by(&COUNT)).collect();
        assert_eq!(waits.len(), DeviceWait::MOST);
        for _ in 0..3 {
            assert!(DeviceWait::counted_by(&COUNT).is_none());
        }
        waits.pop();
        waits.extend(DeviceWait::counted_by(&COUNT));
        assert_eq!(waits.len(), DeviceWait::MOST);
        assert!(DeviceWait::counted_by(&COUNT).is_none());
    }
    assert_eq!(COUNT.load(Ordering::Relaxed), 0);
}

/// Host tasks may take all threads of the system, so a waker's comes first, and one for clgraph's own jobs.
#[test]
fn wakers_have_a_thread_before_host_tasks_have_all() {
    assert!(start(None, Box::new(|| ())).is_ok());
    assert!(WAKERS.lock().threads > 0 && OWN.lock().threads > 0);
    let (sender, woken) = channel();
    struct Tells(Mutex<std::sync::mpsc::Sender<Option<String>>>);
    impl std::task::Wake for Tells {
        fn wake(self: std::sync::Arc<Self>) {
            let name = thread::current().name().map(str::to_owned);
            self.0.lock().unwrap().send(name).unwrap();
        }
    }
    wake(Waker::from(std::sync::Arc::new(Tells(Mutex::new(sender)))));
    assert_eq!(woken.recv().unwrap().as_deref(), Some("clgraph-task"));
}

/// Starts a job and returns whether it was taken.
fn starts(workers: &'static Workers, gate: Option<GateId>, job: impl FnOnce() + Send + 'static) -> bool {
    workers.start(gate, Box::new(job)).is_ok()
}

/// With two threads, of which one waits: the other one does what is waited for first, and nothing else as long as that
/// may come. Another task might wait too.
#[test]
fn where_threads_are_short_what_a_task_waits_for_goes_first() {
    for comes_later in [false, true] {
        let workers: &'static Workers = Box::leak(Box::new(Workers::new("jobs", 2, false)));
        let (own, awaited) = (gates::number(), gates::number());
        gates::close(own, Gates::default());
        gates::close(awaited, Gates::default());
        let ((waits, waiting), (go, gone), (free, freed)) = (channel(), channel::<()>(), channel::<()>());
        let waiter = move || {
            let _inside = reentrancy::ReentrancyGuard::task(1, None, Some(own), None);
            let waiting = WaitGuard::within(workers, &Gates::of(awaited), By::Call);
            waits.send(waiting.is_ok()).unwrap();
            gone.recv().unwrap();
        };
        assert!(starts(workers, Some(own), waiter));
        assert!(starts(workers, None, move || freed.recv().unwrap()));
        assert!(waiting.recv().unwrap());
        let (ran, order) = channel();
        let (other, this) = (ran.clone(), ran);
        assert!(starts(workers, None, move || other.send("another").unwrap()));
        let start = || {
            assert!(starts(workers, Some(awaited), move || {
                this.send("what is waited for").unwrap();
                go.send(()).unwrap();
            }));
        };
        if comes_later {
            free.send(()).unwrap();
            // The thread has nothing else to do, and does not take the other one.
            assert!(order.recv_timeout(GRACE / 10).is_err());
            start();
        } else {
            start();
            free.send(()).unwrap();
        }
        assert_eq!(order.recv().unwrap(), "what is waited for");
        assert_eq!(order.recv().unwrap(), "another");
        gates::open(own);
        gates::open(awaited);
    }
}

/// Rule S4: jobs that block, as wakers may, hold up others only where there can be no more threads. Then the log says so, and
/// the others run when one returns.
#[test]
fn jobs_that_block_do_not_hold_up_others_silently() {
    let workers: &'static Workers = Box::leak(Box::new(Workers::new("jobs", 2, true)));
    let ((begun, begins), (ran, runs)) = (channel(), channel());
    let blocks = |begun: std::sync::mpsc::Sender<()>| {
        let (go, gone) = channel::<()>();
        assert!(starts(workers, None, move || {
            begun.send(()).unwrap();
            gone.recv().unwrap();
        }));
        go
    };
    let first = blocks(begun.clone());
    begins.recv().unwrap();
    let other = ran.clone();
    assert!(starts(workers, None, move || other.send(1).unwrap()));
    assert_eq!(runs.recv().unwrap(), 1);
    assert!(!workers.said.is_completed());
    let second = blocks(begun);
    begins.recv().unwrap();
    assert!(starts(workers, None, move || ran.send(2).unwrap()));
    assert!(workers.said.is_completed());
    assert!(runs.try_recv().is_err());
    first.send(()).unwrap();
    assert_eq!(runs.recv().unwrap(), 2);
    second.send(()).unwrap();
}

/// A task that waits for several things by futures takes one thread. Its futures may end on any thread.
#[test]
fn a_thread_that_waits_by_several_futures_counts_once() {
    let workers: &'static Workers = Box::leak(Box::new(Workers::new("jobs", 2, false)));
    let ((polled, polls), (go, gone)) = (channel(), channel::<()>());
    let task = move || {
        let waits = [(); 3].map(|()| WaitGuard::within(workers, &Gates::default(), By::Future).unwrap());
        polled.send(waits).unwrap();
        gone.recv().unwrap();
    };
    assert!(starts(workers, None, task));
    let waits = polls.recv().unwrap();
    let (ran, runs) = channel();
    for _ in 0..3 {
        let ran = ran.clone();
        assert!(starts(workers, None, move || ran.send(()).unwrap()), "one of two threads waits");
    }
    (0..3).for_each(|_| runs.recv().unwrap());
    assert_eq!(workers.lock().waiting.len(), 1);
    drop(waits);
    assert!(workers.lock().waiting.is_empty());
    go.send(()).unwrap();
}

/// Two tasks that are started at once have a thread each, also in a pool that has none yet: one of them may wait for
/// the other.
#[test]
fn tasks_that_are_started_at_once_have_a_thread_each() {
    for _ in 0..100 {
        let workers: &'static Workers = Box::leak(Box::new(Workers::new("jobs", 8, false)));
        let (report, gets) = channel::<()>();
        let (ended, ends) = channel();
        let start = std::sync::Barrier::new(2);
        thread::scope(|scope| {
            scope.spawn(|| {
                start.wait();
                let wait = move || ended.send(gets.recv_timeout(Duration::from_secs(20)).is_ok()).unwrap();
                assert!(workers.start(None, Box::new(wait)).is_ok());
            });
            scope.spawn(|| {
                start.wait();
                assert!(workers.start(None, Box::new(move || report.send(()).unwrap())).is_ok());
            });
        });
        assert!(ends.recv().unwrap(), "the second task had to wait for the first");
    }
}

/// The last thread's wait has ended, but the thread has not run again since. What it would refuse then is not refused:
/// neither a task nor a wait.
#[test]
fn a_wait_that_is_about_to_end_refuses_nothing() {
    let workers: &'static Workers = Box::leak(Box::new(Workers::new("jobs", 1, false)));
    let ((begun, begins), (report, outcomes)) = (channel(), channel());
    let task = move || {
        let waiting = WaitGuard::within(workers, &Gates::default(), By::Call);
        begun.send(()).unwrap();
        thread::sleep(GRACE / 10);
        drop(waiting);
    };
    assert!(workers.start(None, Box::new(task)).is_ok());
    begins.recv().unwrap();
    let (second, gave_up) = (report.clone(), report.clone());
    let second: Run = Box::new(move || second.send(true).unwrap());
    if let Err(job) = workers.start(None, second) {
        workers.refuse(Job { run: job, gate: None }, Box::new(move || gave_up.send(false).unwrap()));
    }
    while workers.look_at_refused() {
        thread::yield_now();
    }
    assert!(outcomes.recv().unwrap(), "a thread was free soon");

    // Nothing will free the thread: all tasks are given up at the same time.
    let workers: &'static Workers = Box::leak(Box::new(Workers::new("jobs", 1, false)));
    let ((begun, begins), (go, gone)) = (channel(), channel::<()>());
    let task = move || {
        let _waiting = WaitGuard::within(workers, &Gates::default(), By::Call);
        begun.send(()).unwrap();
        gone.recv().unwrap();
    };
    assert!(workers.start(None, Box::new(task)).is_ok());
    begins.recv().unwrap();
    let since = Instant::now();
    for _ in 0..20 {
        let Err(job) = workers.start(None, Box::new(|| ())) else { panic!("a thread that waits for ever") };
        let report = report.clone();
        workers.refuse(Job { run: job, gate: None }, Box::new(move || report.send(false).unwrap()));
    }
    while workers.look_at_refused() {
        thread::sleep(GRACE / 100);
    }
    assert_eq!(outcomes.try_iter().filter(|ran| !ran).count(), 20);
    assert!(since.elapsed() >= GRACE);
    go.send(()).unwrap();

    let workers: &'static Workers = Box::leak(Box::new(Workers::new("jobs", 2, false)));
    let ((begun, begins), (report, outcomes)) = (channel(), channel());
    let first = move || {
        let waiting = WaitGuard::within(workers, &Gates::default(), By::Call);
        begun.send(()).unwrap();
        thread::sleep(GRACE / 10);
        drop(waiting);
    };
    let second = move || {
        begins.recv().unwrap();
        // A job for which there is no thread yet.
        assert!(workers.start(None, Box::new(|| ())).is_ok());
        report.send(WaitGuard::within(workers, &Gates::default(), By::Call).err()).unwrap();
    };
    assert!(workers.start(None, Box::new(first)).is_ok());
    assert!(workers.start(None, Box::new(second)).is_ok());
    assert_eq!(outcomes.recv().unwrap(), None);
}

/// With two threads: two tasks of which each waits for a third one stand still for ever. The second wait is
/// refused.
#[test]
fn a_wait_or_a_task_for_which_no_thread_is_left_is_refused() {
    let workers: &'static Workers = Box::leak(Box::new(Workers::new("jobs", 2, false)));
    let ((go, gone), (report, outcomes)) = (channel::<()>(), channel());
    let gone = std::sync::Arc::new(Mutex::new(gone));
    for _ in 0..2 {
        let (report, gone) = (report.clone(), std::sync::Arc::clone(&gone));
        let task = move || {
            let waiting = WaitGuard::within(workers, &Gates::default(), By::Call);
            report.send(waiting.as_ref().err().cloned()).unwrap();
            gone.lock().unwrap().recv().unwrap();
            drop(waiting);
        };
        assert!(workers.start(None, Box::new(task)).is_ok());
    }
    assert_eq!(outcomes.recv().unwrap(), None);
    assert_eq!(outcomes.recv().unwrap(), None, "nothing waits for a thread yet");
    // Both threads wait: no other task will ever have one.
    assert!(workers.start(None, Box::new(|| ())).is_err());
    go.send(()).unwrap();
    go.send(()).unwrap();
    // A task that is there before the threads wait makes the second wait an error.
    let (begin, begun) = channel::<()>();
    let begun = std::sync::Arc::new(Mutex::new(begun));
    let (report, outcomes) = channel();
    for _ in 0..2 {
        let (report, begun, gone) = (report.clone(), std::sync::Arc::clone(&begun), std::sync::Arc::clone(&gone));
        let task = move || {
            begun.lock().unwrap().recv().unwrap();
            let waiting = WaitGuard::within(workers, &Gates::default(), By::Call);
            report.send(waiting.as_ref().err().cloned()).unwrap();
            if waiting.is_ok() {
                gone.lock().unwrap().recv().unwrap();
            }
        };
        while !workers.lock().waiting.is_empty() {
            thread::yield_now();
        }
        assert!(workers.start(None, Box::new(task)).is_ok());
    }
    let (third, ran) = channel();
    assert!(workers.start(None, Box::new(move || third.send(()).unwrap())).is_ok());
    begin.send(()).unwrap();
    begin.send(()).unwrap();
    assert_eq!(outcomes.recv().unwrap(), None);
    assert_eq!(outcomes.recv().unwrap(), Some(SubmitError::NoThread { threads: 2 }));
    assert_eq!(workers.lock().waiting.len(), 1, "a wait that is refused does not count");
    ran.recv().unwrap();
    go.send(()).unwrap();
}
