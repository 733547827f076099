"""The exceptions of clgraph. Each says what is wrong, where, and what to do."""


class Error(Exception):
    """Any error of clgraph.

    A call that raises it has changed nothing. If a command fails later, its submission fails, and
    `Submission.wait` raises the error.
    """

    cl_status: int | None = None
    """The status of the OpenCL call that failed, as a number of `CL/cl.h`, or None."""


class InvalidError(Error, ValueError):
    """The call breaks a rule of clgraph or of OpenCL."""


class NotSupportedError(Error):
    """The driver, the platform or the device does not support what was asked for."""


class KernelNotSupportedError(Error):
    """A kernel or a program cannot be used on this device."""


class OutOfMemoryError(Error, MemoryError):
    """The host or the device is out of memory or of other resources."""


class DriverError(Error, RuntimeError):
    """An OpenCL call failed for another reason, or a command failed while it ran."""


class FailedError(Error, RuntimeError):
    """The program's own code reported a failure: a host task raised an exception, or a user event failed."""


class NotReadyError(Error):
    """The call is not possible now, but can be later: something is not complete yet, or is in use."""


class TimedOutError(NotReadyError, TimeoutError):
    """The submission or the event did not end in time. It goes on."""
