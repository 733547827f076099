"""The ends of the interpreter, forks, and Python without pyopencl. Each test runs a process of its own."""

import sys

import pytest

START = """
import threading, time, os, sys
import numpy as np
import pyopencl as cl
import clgraph
context = cl.create_some_context(interactive=False)
queue = cl.CommandQueue(context)
graph = clgraph.Graph(queue)
"""


def test_the_interpreter_ends_while_a_task_runs(run_python):
    output = run_python(START + """
begun = threading.Event()
def task():
    begun.set()
    time.sleep(0.3)
    print("the task ended")
graph.host_task(task)
executable = graph.finalize()
run = executable.submit()
assert begun.wait(20)
print("main ended")
""")
    assert output == "main ended\nthe task ended\n"


def test_the_interpreter_ends_while_tasks_are_still_to_come(run_python):
    output = run_python(START + """
begun = threading.Event()
order = None
for number in range(50):
    def task(number=number):
        begun.set()
        time.sleep(0.01)
    order = graph.host_task(task, after=order or ())
executables = [graph.finalize() for _ in range(4)]
runs = [executable.submit() for executable in executables for _ in range(5)]
runs[0].on_complete(lambda outcome: print("never"))
assert begun.wait(20)
print("main ended")
""")
    assert output == "main ended\n"


def test_the_interpreter_ends_while_a_submission_waits_for_ever(run_python):
    output = run_python(START + """
wait = graph.wait_event()
data = np.zeros(4, np.int32)
memory = cl.Buffer(context, cl.mem_flags.READ_WRITE, 16)
graph.write(memory, data, copy=False, after=wait)
graph.host_task(lambda task: print("never"), reads=memory)
event = clgraph.UserEvent(queue)
run = graph.finalize().submit(events={wait: event})
run.on_complete(lambda outcome: print("never"))
waiter = threading.Thread(target=run.wait, daemon=True)
waiter.start()
keep = [event, run, graph]
import builtins
builtins.keep = keep  # lives longer than the module
print("main ended")
""")
    assert output == "main ended\n"


def test_objects_are_dropped_at_the_end_in_any_order(run_python):
    output = run_python(START + """
class Holder:
    def __init__(self): self.graph, self.me = graph, self
    def __call__(self): pass
graph.host_task(Holder())
executable = graph.finalize()
for _ in range(100):
    run = executable.submit()
run.on_complete(lambda outcome: None)
print("main ended")
""")
    assert output == "main ended\n"


def test_a_forked_child_is_refused(run_python):
    output = run_python(START + """
memory = cl.Buffer(context, cl.mem_flags.READ_WRITE, 16)
fill = graph.fill(memory, np.int32(1))
read = graph.read(memory, np.int32)
executable = graph.finalize()
run = executable.submit()
parameter = clgraph.Param(np.int32(3))
recorder, event = clgraph.Queue(queue), clgraph.UserEvent(queue)
run.wait()
child = os.fork()
if child == 0:
    calls = [lambda: clgraph.devices(), lambda: clgraph.Graph(queue), lambda: graph.empty(), lambda: graph.finalize(),
             lambda: executable.submit(), lambda: executable.update(fill), lambda: run.wait(), lambda: run[read],
             lambda: run.event, lambda: parameter.set(3), lambda: clgraph.Queue(queue), lambda: recorder.fill(memory, np.int32(1)),
             lambda: recorder.finish(), lambda: event.complete(), lambda: len(graph), lambda: repr(graph), lambda: run.done,
             lambda: graph.to_svg(), lambda: executable.report, lambda: clgraph.Param(np.int32(3)), lambda: event.wait(1)]
    for call in calls:
        try:
            call()
        except clgraph.InvalidError:
            pass
        else:
            os._exit(3)
    del calls, graph, executable, run, recorder, event  # leaked: OpenCL is not asked
    if "rusticl" in context.devices[0].platform.name.lower():
        # Mesa 26.2.6: a release of pyopencl's queue waits for ever for a thread of the driver, which the child does not have.
        os._exit(7)
    sys.exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
print(executable.submit()[read].tolist())
""")
    assert output == "[1, 1, 1, 1]\n"


def test_a_child_that_leaves_the_function_that_forked_it_ends(run_python):
    """Functions of nodes run on threads of clgraph, or inside of a submission, and that is the parent's."""
    output = run_python(START + """
def forks(leaves):
    child = os.fork()
    if child == 0:
        print("child", flush=False)
        leaves()
    else:
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
def fails():
    sys.stderr = open(os.devnull, "w")
    raise KeyError
for leaves in (lambda: sys.exit(4), sys.exit, lambda: sys.exit("text"), fails, lambda: None):
    graph = clgraph.Graph(queue)
    order = graph.host_task(lambda: forks(leaves))
    graph.native_command(lambda queue: forks(leaves), after=order)
    run = graph.finalize().submit()
    called = threading.Event()
    run.on_complete(lambda outcome: (forks(leaves), called.set()))
    run.wait()
    assert called.wait(20)
print("parent")
""")
    assert output == "".join(f"child\n{status}\n" * 3 for status in (4, 0, 1, 1, 0)) + "parent\n"


def test_a_child_of_a_process_that_only_imported_it_may_use_it(run_python):
    output = run_python("""
import os, clgraph
child = os.fork()
if child == 0:
    graph = clgraph.Graph(clgraph.Queue(clgraph.devices()[0]))
    graph.empty()
    graph.finalize().submit().wait()
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
""")
    assert output == "7\n"


def test_pyopencl_is_imported_only_where_an_object_of_it_is_needed(run_python):
    output = run_python("""
import sys
sys.modules["pyopencl"] = None  # as if it were not installed
import numpy as np
import clgraph
device = clgraph.devices()[0]
queue = clgraph.Queue(device)
with clgraph.Graph(queue) as graph:
    memory = graph.alloc(4, np.int32)
    graph.fill(memory, 7)
    read = graph.read(memory)
run = graph.finalize().submit()
print(run[read].tolist())
for needs in (lambda: run.event, lambda: queue.queue, lambda: device.device, lambda: clgraph.UserEvent(queue).event):
    try:
        needs()
    except ImportError:
        pass
    else:
        print("no error")
try:
    clgraph.Graph(3)
except TypeError:
    print("refused")
""")
    assert output == "[7, 7, 7, 7]\nrefused\n"


def test_ctrl_c_ends_a_wait_with_a_limit(run_python):
    output = run_python(START + """
import signal
wait = graph.wait_event()
event = clgraph.UserEvent(queue)
run = graph.finalize().submit(events={wait: event})
threading.Timer(0.2, signal.raise_signal, [signal.SIGINT]).start()
try:
    run.wait(30)
except KeyboardInterrupt:
    print("interrupted")
event.complete()
run.wait()
""")
    assert output == "interrupted\n"


@pytest.mark.skipif(sys.platform != "linux", reason="it looks into /proc")
def test_pyopencl_and_clgraph_have_one_loader(run_python):
    output = run_python(START + """
program = clgraph.Program(context, "kernel void f(global int *a) { a[0] = 1; }")
graph.kernel(program.kernel("f"), 1, clgraph.Out(cl.Buffer(context, cl.mem_flags.READ_WRITE, 4)))
graph.finalize().submit().wait()
with open("/proc/self/maps") as maps:
    print(len({line.split()[-1] for line in maps if "libOpenCL" in line}))
""")
    assert output == "1\n"


def test_devices_are_listed_before_pyopencl_is_imported(run_python):
    output = run_python("""
import sys
import clgraph
print(len(clgraph.devices()) > 0, "pyopencl" in sys.modules)
import pyopencl
print(len(pyopencl.get_platforms()) > 0)
""")
    assert output == "True False\nTrue\n"


def test_a_subinterpreter_is_refused(run_python):
    output = run_python("""
try:
    import _interpreters as interpreters
    create = lambda: interpreters.create("legacy")
except ImportError:
    import _xxsubinterpreters as interpreters
    create = interpreters.create
for _ in range(2):
    other = create()
    source = "try:\\n    import clgraph\\nexcept ImportError as error:\\n    print('main interpreter' in str(error), flush=True)"
    interpreters.run_string(other, source)
    interpreters.destroy(other)
    import clgraph
print(len(clgraph.devices()) > 0)
""")
    assert output == "True\nTrue\nTrue\n"


def test_the_first_error_imports_nothing(run_python):
    output = run_python("""
import sys
import clgraph
del sys.modules["clgraph._errors"]
sys.meta_path.clear()
try:
    clgraph.Param(clgraph.Local(0))
except clgraph.InvalidError:
    print("invalid")
""")
    assert output == "invalid\n"


def test_ctrl_c_and_exit_inside_a_native_command_stay_what_they_are(run_python):
    output = run_python(START + """
import signal
def interrupted(queue):
    signal.raise_signal(signal.SIGINT)
def left(queue):
    sys.exit(7)
for function in (interrupted, left):
    graph = clgraph.Graph(queue)
    graph.native_command(function)
    for call in (lambda: graph.finalize().submit(), lambda: clgraph.Queue(queue).native_command(function)):
        try:
            call()
        except BaseException as error:
            print(type(error).__name__, error.__cause__)
clgraph.Queue(queue).native_command(left)
""", status=7)
    assert output == "KeyboardInterrupt None\n" * 2 + "SystemExit None\n" * 2
