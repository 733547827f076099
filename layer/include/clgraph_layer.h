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
#define CL_CAPTURE_RELAXED_CLG 1 /* clFinish, and waits for captured events, return at once, and nothing has run */

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
 * the same queue. Kernels, memory objects and what is written from the program's memory may change, and may be released, after each
 * call; memory that a call reads into is the program's to keep, as long as the command buffer is used.
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

#ifdef __cplusplus
}
#endif
#endif
