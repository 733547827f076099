"""Calls at random all that is public, with right and wrong arguments, from several threads: test_misuse.py runs it in a process of
its own. It prints what is not an exception that a program expects. `python misuse.py SEED CALLS THREADS`
"""

import faulthandler
import inspect
import os
import random
import sys
import threading
import warnings

import numpy as np
import pyopencl as cl
import pyopencl.array as cl_array

import clgraph
from clgraph import In, InOut, Local

# It stays inside of its memory, whatever that is: this is what a program promises, and nobody can check it.
SOURCE = "kernel void add(global int *a, int n) { if (a != 0 && get_global_id(0) == 0) a[0] = n; } kernel void nothing(void) {}"
EXPECTED = (clgraph.Error, TypeError, ValueError, ArithmeticError, LookupError, AttributeError, MemoryError, BufferError, OSError, cl.Error, KeyboardInterrupt)
SPECIAL = ("__getitem__", "__setitem__", "__len__", "__repr__", "__hash__", "__enter__", "__exit__")

os.environ["PYOPENCL_NO_CACHE"] = "1"  # as conftest.py says
warnings.simplefilter("ignore")
sys.setswitchinterval(1e-5)
faulthandler.dump_traceback_later(150)  # test_misuse.py ends it after 200 seconds
seed, calls, threads = (int(given) for given in sys.argv[1:])
context = cl.create_some_context(interactive=False)
foreign = cl.Context(context.devices)
queue = cl.CommandQueue(context)
program = cl.Program(context, SOURCE).build(options=["-cl-kernel-arg-info"])
form = cl.ImageFormat(cl.channel_order.RGBA, cl.channel_type.UNSIGNED_INT8)
pool = [clgraph.Graph(queue), clgraph.Graph(queue), clgraph.Queue(queue), clgraph.UserEvent(queue), clgraph.DeviceGlobal("misuse::a", np.int32(1))]


class Raises:
    def __iter__(self):
        raise ValueError("no")

    __index__ = __float__ = __len__ = __str__ = __bool__ = __hash__ = __iter__


class Long:
    """It says that it is longer than any memory. But it ends: `list` too waits for ever for one that does not."""

    def __len__(self):
        return 2**62

    def __getitem__(self, index):
        if index == 100:
            raise IndexError
        return index


def fails(*_):
    raise ValueError("no")


def keeps(*given):
    pool.extend(one for one in given if type(one).__module__ == "clgraph")


endless = []
endless.append(endless)
ANYTHING = [None, 0, -1, 2**64, "", "x\0y", "\ud800", "a" * 10_000, b"", endless, Raises(), Long(), object(), {}, {1: 2}, print, float("nan"), np.zeros(0),
            np.array(None), type, clgraph, True, queue, context, foreign, context.devices[0]]
# Small, or too large for every machine. What is between would be given: all memory of the machine, or a kernel of an hour.
SIZES = [0, 1, 4, -1, (2, 2), (4,), (), (-1,), 2**62, 2**70, (2**40, 2**40), 1.5, "4", None, np.int64(4), True, Long(), [4], Raises()]
NUMBERS = [0, 1, 4, 16, -1, 2**63, 2**64 - 1, 10**30, float("nan"), float("inf"), 0.5, None, "1", np.uint64(2**63), Raises()]
DTYPES = [np.int32, "i4", np.float64, object, "V0", "S5", np.dtype([("a", "i4"), ("b", "O")]), ">i4", None, 3, np.dtype((np.int32, (2, 2)))]
NAMES = ["a", "misuse::a", "misuse::b", "", "1", "a\0b", "add"]
FLAGS = ("copy", "zeroed", "profiling", "updatable", "allow_conflicts", "prints", "or_null", "of_program")


class Misuser(threading.Thread):
    def __init__(self, number):
        super().__init__(daemon=True)
        self.random = random.Random(seed * 100 + number)
        self.good = 0

    def one(self, *ways):
        return self.random.choice(ways)()

    def pooled(self, *classes):
        found = [one for one in list(pool) if not classes or isinstance(one, classes)]
        return self.random.choice(found) if found else None

    def memory(self):
        return self.one(
            lambda: self.pooled(clgraph.Memory), lambda: self.pooled(clgraph.Memory), lambda: self.pooled(clgraph.DeviceGlobal),
            lambda: cl.Buffer(context, cl.mem_flags.READ_WRITE, 16), lambda: cl.Buffer(foreign, cl.mem_flags.READ_WRITE, 16),
            lambda: cl_array.zeros(queue, 4, np.int32), lambda: cl.create_image(context, cl.mem_flags.READ_WRITE, form, shape=(4, 3)),
        )

    def nodes(self):
        return self.one(
            lambda: self.pooled(clgraph.Node), lambda: [self.pooled(clgraph.Node)] * 3, lambda: self.pooled(clgraph.Loop, clgraph.Branch), lambda: "leaves", lambda: [], lambda: self.pooled(clgraph.Event),
            lambda: self.pooled(clgraph.UserEvent), lambda: self.pooled(clgraph.Submission),
        )

    def data(self):
        return self.one(
            lambda: np.zeros(4, np.int32), lambda: np.zeros(2, np.int32), lambda: b"x" * 16, lambda: bytearray(16), lambda: np.zeros(4), lambda: 7,
            lambda: np.zeros(8, np.int32)[::2], lambda: np.zeros(2, object), lambda: np.int32(3), lambda: np.zeros((3, 4, 4), np.uint8),
        )

    def argument(self):
        return self.one(
            lambda: InOut(self.memory()), lambda: In(self.memory()), lambda: np.int32(1), lambda: self.pooled(clgraph.Param), lambda: 3, lambda: None,
            lambda: InOut(self.pooled(clgraph.Param)), lambda: Local(16), self.memory,
        )

    def given(self, name, small):
        if name in ("n", "at_most"):  # every loop ends
            return self.random.choice([0, 1, 2, -1, 1.5, 2**64, "1", Raises()])
        if self.random.random() < 0.08:
            return self.random.choice(ANYTHING)
        if name in ("memory", "src", "dst", "reads", "writes", "flag") or name == "index" and self.random.random() < 0.5:
            return self.memory()
        if name in ("key", "read"):
            return self.pooled(clgraph.Read, clgraph.Pending)
        if name in ("after", "node", "before", "replaces", "wait_for"):
            return self.nodes()
        if name in ("data", "value", "out", "initial", "reason"):
            return self.data()
        if name in ("shape", "region") or name.endswith(("_size", "origin", "offset", "up_to")):
            return self.random.choice(SIZES[:8] if small else SIZES)
        if name in ("nbytes", "timeout", "index") or name.endswith("pitch"):
            return self.random.choice(NUMBERS)
        if name == "cases":
            return [self.pooled(clgraph.Executable) for _ in range(self.random.randrange(4))]
        if name == "function":
            return self.random.choice([fails, keeps, print, lambda *given: None, lambda *given: self.call(), 3, int])
        if name in ("inputs", "events", "signals"):
            return {self.pooled(clgraph.Node): self.data() if name == "inputs" else self.pooled(clgraph.UserEvent)}
        if name == "run":  # it is waited for
            run = self.pooled(clgraph.Submission)
            return run if run is None or run.done else None
        if name == "members":
            return [self.pooled(clgraph.Launch)] if self.random.random() < 0.5 else [print, fails]
        if name == "kernel":
            return cl.Kernel(program, self.random.choice(["add", "nothing"]))
        if name in FLAGS:
            return self.random.random() < 0.5
        known = {
            "dtype": lambda: self.random.choice(DTYPES), "queue": lambda: self.random.choice([queue, context, self.pooled(clgraph.Queue)]),
            "graph": lambda: self.pooled(clgraph.Graph), "executable": lambda: self.pooled(clgraph.Executable), "branch": lambda: self.pooled(clgraph.Branch), "name": lambda: self.random.choice(NAMES),
            **dict.fromkeys(("then", "otherwise", "body"), lambda: self.pooled(clgraph.Executable)),
            "group": lambda: self.pooled(clgraph.CommandGroup), "label": lambda: self.random.choice(NAMES),
            "globals": lambda: [InOut(self.pooled(clgraph.DeviceGlobal))], "path": lambda: self.random.choice(["auto", "native", "replay", "queues", "no"]),
        }
        return known.get(name, lambda: self.random.choice(ANYTHING))()

    def use(self, member):
        args, named = [], {}
        for one in inspect.signature(member).parameters.values():
            if one.kind is one.VAR_POSITIONAL:
                args += [self.nodes() if one.name == "nodes" else self.argument() for _ in range(self.random.randrange(3))]
            elif one.default is one.empty and one.name != "self":
                args.append(self.given(one.name, member is clgraph.DeviceGlobal))
            elif one.name != "self" and (self.random.random() < 0.4 or one.name == "at_most"):
                named[one.name] = self.given(one.name, member is clgraph.DeviceGlobal)
        self.keep(member(*args, **named))

    def decide(self, name):
        """By a queue of its own, for which nothing waits; the functions end every loop."""
        own, left = clgraph.Queue(cl.CommandQueue(context)), iter(range(5))

        def ends(given):
            if next(left, None) is None:
                raise ValueError("no")

        functions = [fails, ends, ends, 3]
        flag, n = self.memory(), self.random.randrange(3)

        def use():
            one, other = self.random.choice(functions), self.random.choice([*functions, None])
            given = {"when": (flag, one, other), "switch": (flag, [one, other]), "repeat_while": (flag, one), "repeat": (n, one)}
            self.keep(getattr(own, name)(*given[name]))

        if self.random.random() < 0.5:
            return use()
        functions += [keeps, print, lambda given: self.call()]
        with clgraph.Graph(own) as graph:
            use()
        return self.keep(graph)

    def keep(self, made):
        for one in made[:1] if type(made) is list else [made]:
            if type(one).__module__ == "clgraph":
                pool.append(one)

    def call(self):
        if self.random.random() < 0.2:
            return self.use(self.random.choice(CLASSES))
        of = self.pooled()
        name = self.random.choice([name for name in dir(of) if not name.startswith("__") or name in SPECIAL])
        if isinstance(of, clgraph.Queue) and name in ("when", "switch", "repeat_while", "repeat"):
            return self.decide(name)
        # What would wait for ever, or write a file.
        if name in ("finish", "write_svg", "trace") or type(of) in (clgraph.Event, clgraph.Pending) and name in ("wait", "get"):
            return None
        if isinstance(of, clgraph.Submission) and name in ("__getitem__", "read_into", "profile") and not of.done:
            return None
        if name == "__exit__":
            return of.__exit__(None, None, None)
        member = getattr(of, name)
        if name == "wait":
            return member(0.001)
        return self.use(member) if callable(member) else self.keep(member)

    def run(self):
        for _ in range(calls):
            try:
                if len(pool) > 120:
                    del pool[self.random.randrange(5, len(pool))]
                self.call()
                self.good += 1
            except EXPECTED as error:
                if "panic" in str(error):
                    print(f"{type(error).__name__}: {error}")
            except BaseException as error:
                print(f"{type(error).__name__}: {error}")


CLASSES = [of for of in map(vars(clgraph).get, clgraph.__all__) if isinstance(of, type) and not issubclass(of, Exception) and "__new__" in vars(of)]
misusers = [Misuser(number) for number in range(threads)]
for one in misusers:
    one.start()
for one in misusers:
    one.join()
for one in pool:
    if isinstance(one, clgraph.UserEvent):
        try:
            one.complete()
        except clgraph.Error:
            pass
# In one piece, on a line of its own: calls print parts of lines, and tasks that still run print too.
sys.stdout.write("\nok\n" if sum(one.good for one in misusers) > calls // 2 else "\nhardly a call was right\n")
