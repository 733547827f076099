/* Captures: what a program, or a library that it uses, enqueues to a queue becomes a command buffer.
 *
 * The functions are those of clgraph's layer (docs/layer.md). Ask for them by name, with clGetExtensionFunctionAddressForPlatform;
 * it returns NULL where the layer is not loaded, or does not serve the platform:
 *
 *     clBeginCaptureCLG_fn begin = (clBeginCaptureCLG_fn)
 *         clGetExtensionFunctionAddressForPlatform(platform, "clBeginCaptureCLG");
 */
#ifndef CLGRAPH_LAYER_H
#define CLGRAPH_LAYER_H

#include <CL/cl.h>
#include <CL/cl_ext.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Names of properties of clBeginCaptureCLG. */
#define CL_CAPTURE_MODE_CLG 0x434C4701

/* Values of CL_CAPTURE_MODE_CLG. */
#define CL_CAPTURE_STRICT_CLG 0  /* a call that waits spoils the capture */
#define CL_CAPTURE_RELAXED_CLG 1 /* clFinish, and waits for captured events, do not wait for captured commands, of which nothing has run */

/* Names of clGetCaptureInfoCLG. */
#define CL_CAPTURE_STATUS_CLG 0x434C4702        /* cl_uint: one of the next three */
#define CL_CAPTURE_COMMAND_COUNT_CLG 0x434C4703 /* cl_uint: how many commands were captured */
#define CL_CAPTURE_FAULT_CLG 0x434C4704         /* char[]: the name of the call that spoilt the capture, or an empty text */

#define CL_CAPTURE_NONE_CLG 0
#define CL_CAPTURE_ACTIVE_CLG 1
#define CL_CAPTURE_INVALID_CLG 2

/* Begins a capture of a queue. Until its end, what any thread enqueues to the queue becomes commands, and does not run. Functions of
 * extensions that enqueue, such as clEnqueueMemcpyINTEL, are not seen, and run at once. A capture that never ends keeps its queue.
 *
 * properties is NULL, or names and values that end with 0. Without CL_CAPTURE_MODE_CLG the capture is strict.
 *
 * An event that such a call returns is complete when the capture ends, whether it succeeds or not. Until then it is for wait lists of
 * the same queue, and clGetEventInfo says of it what it says of a user event. Kernels, memory objects and what is written from the
 * program's memory may change, and may be released, after each call. That holds for kernels and memory objects that were made after
 * the program first asked for a function of captures or command buffers, and for memory objects of this API: shared objects of
 * graphics stay the program's to keep. Memory that a call reads into is the program's to keep, as long as the command buffer is used, and so are both sides of
 * clEnqueueSVMMemcpy.
 *
 * What cannot be captured returns CL_INVALID_OPERATION, or CL_INVALID_EVENT_WAIT_LIST for an event that is not of the capture, and
 * spoils the capture: blocking calls, waits, maps, native kernels, shared objects of graphics, command buffers. A call with an
 * error of its own returns that error, and the capture goes on without it.
 *
 * Returns CL_INVALID_COMMAND_QUEUE; CL_INVALID_VALUE for wrong properties; CL_INVALID_OPERATION if the queue is captured already, or
 * if its device does not have OpenCL 2.1. */
typedef cl_int(CL_API_CALL *clBeginCaptureCLG_fn)(cl_command_queue queue, const cl_ulong *properties);

/* Ends a capture. The queue runs again what is enqueued to it.
 *
 * *result becomes a command buffer: finalized, with CL_COMMAND_BUFFER_MUTABLE_KHR, and one reference, which is the caller's.
 *
 * Returns CL_INVALID_OPERATION, and a NULL in *result, if the capture is spoilt, or if there is none; CL_INVALID_VALUE if result is
 * NULL: then the capture goes on. */
typedef cl_int(CL_API_CALL *clEndCaptureCLG_fn)(cl_command_queue queue, cl_command_buffer_khr *result);

/* Tells how the capture of a queue stands. The arguments are those of all clGet...Info functions. */
typedef cl_int(CL_API_CALL *clGetCaptureInfoCLG_fn)(cl_command_queue queue, cl_uint name, size_t size, void *value,
                                                    size_t *size_ret);

/* Returns the handles of the kernels that were captured, in the order of the calls. They are for clUpdateMutableCommandsKHR and
 * clGetMutableCommandInfoKHR, and live as long as the command buffer.
 *
 * commands has room for that many, or is NULL with a room of 0. *count, if there is one, becomes their number. */
typedef cl_int(CL_API_CALL *clGetCapturedCommandsCLG_fn)(cl_command_buffer_khr buffer, cl_uint room,
                                                         cl_mutable_command_khr *commands, cl_uint *count);

/* What follows is for libraries that make commands of their own of what was captured, as clgraph does for its graphs. */

/* Kinds of arguments. */
#define CL_CAPTURED_UNKNOWN_CLG 0 /* it was set where the layer did not see it, or is no object any more */
#define CL_CAPTURED_BYTES_CLG 1   /* value points to size bytes */
#define CL_CAPTURED_MEMORY_CLG 2  /* value is a cl_mem */
#define CL_CAPTURED_SAMPLER_CLG 3 /* value is a cl_sampler */
#define CL_CAPTURED_NOTHING_CLG 4 /* size bytes of a work-group's own memory; or no buffer, where a pointer has size bytes */
#define CL_CAPTURED_POINTER_CLG 5 /* value is an address of shared virtual memory */
#define CL_CAPTURED_INTEL_POINTER_CLG 6 /* value is an address that clSetKernelArgMemPointerINTEL was given */

typedef struct cl_captured_argument_clg {
    cl_uint kind;
    size_t size;
    const void *value;
} cl_captured_argument_clg;

/* What a command does with memory. */
#define CL_CAPTURED_READ_CLG 1
#define CL_CAPTURED_WRITE_CLG 2

typedef struct cl_captured_memory_clg {
    cl_mem memory;
    cl_uint access; /* one of the above */
    size_t offset;  /* in bytes */
    size_t size;    /* in bytes; 0 with an offset of 0 for some part that is not told */
} cl_captured_memory_clg;

/* A command. What it points to is valid until the function returns that is given it, and its objects live as long. */
typedef struct cl_captured_command_clg {
    cl_uint type;         /* CL_COMMAND_..., as of an event */
    cl_uint is_work;      /* 0 if it only orders others, such as a barrier, or a copy of no bytes */
    cl_uint has_list;     /* 0 if it had no wait list: then a barrier or a marker is after all that the queue got before */
    cl_uint has_exec_info; /* not 0 if clSetKernelExecInfo was called for the kernel */
    cl_uint dimensions;   /* of a kernel's range */
    const cl_uint *after; /* the commands that it runs after, counted from 0; what these run after is not repeated */
    size_t after_count;
    /* What it reads and writes, but for kernels and for shared virtual memory. A copy reads the first and writes the second. */
    const cl_captured_memory_clg *memory;
    size_t memory_count;
    const void *pattern; /* of a fill of a buffer */
    size_t pattern_size; /* in bytes */
    /* Of a kernel. */
    cl_kernel kernel;      /* the program's: it may have other arguments by now */
    size_t offset[3];
    size_t global[3];
    size_t local[3]; /* 0 where the driver chooses */
    const cl_captured_argument_clg *arguments; /* those after the last are not known */
    size_t argument_count;
} cl_captured_command_clg;

/* Is given each command, in the order of the calls. Returns CL_SUCCESS to go on. It must not unwind. */
typedef cl_int(CL_CALLBACK *cl_visit_captured_clg)(void *data, const cl_captured_command_clg *command);

typedef struct cl_capture_table_clg {
    clBeginCaptureCLG_fn begin;
    clEndCaptureCLG_fn end;
    clGetCaptureInfoCLG_fn info;
    /* Calls a function with each command of a command buffer, and returns what it has returned at last. */
    cl_int(CL_API_CALL *visit)(cl_command_buffer_khr buffer, cl_visit_captured_clg function, void *data);
    /* Enqueues one command that is work. The order is the caller's: the queue may be any of the context. Errors are those of clEnqueue
     * functions, CL_INVALID_VALUE for a place where there is no work, and CL_INVALID_OPERATION while the queue is captured. */
    cl_int(CL_API_CALL *enqueue)(cl_command_buffer_khr buffer, cl_uint place, cl_command_queue queue, cl_uint count,
                                 const cl_event *list, cl_event *event);
    cl_int(CL_API_CALL *retain)(cl_command_buffer_khr buffer);
    cl_int(CL_API_CALL *release)(cl_command_buffer_khr buffer);
} cl_capture_table_clg;

/* Returns the functions of a version, or NULL if the layer does not have it. There is version 1. */
typedef const cl_capture_table_clg *(CL_API_CALL *clGetCaptureTableCLG_fn)(cl_uint version);

#ifdef __cplusplus
}
#endif
#endif
