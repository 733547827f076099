/* clgraph for C and C++: graphs of OpenCL commands that are built once and submitted often.
 *
 * Every function returns a clg_status. After anything but CLG_SUCCESS, clg_last_error() says what was wrong and what to do.
 * Objects are counted as OpenCL's are: functions that make one give one reference away, and *_release takes one back.
 * Handles that are null, released, of another type or made up are errors, and never crash.
 * OpenCL's own handles (cl_context, cl_command_queue, cl_kernel, cl_mem, cl_event, cl_device_id) are passed as they are.
 * All functions may be called from any thread. A process that has forked must not use clgraph in the child.
 */

#ifndef CLGRAPH_H
#define CLGRAPH_H

/* Generated from the crate clgraph-capi by cbindgen: change the crate, not this file. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
/* As the size of a range: all bytes from the offset on. */
#define CLG_WHOLE ((size_t)-1)


// The version of the header, which the version of the library must have the same major and minor number as.
#define CLG_VERSION_MAJOR 0

// The minor number of the version.
#define CLG_VERSION_MINOR 1

// The third number of the version.
#define CLG_VERSION_PATCH 0

// The result of a call: what kind of error it was, or success.
typedef enum clg_status {
    // The call succeeded.
    CLG_SUCCESS = 0,
    // The call breaks a rule of clgraph or of OpenCL, or a handle or a pointer is wrong. Nothing changed.
    CLG_INVALID = 1,
    // The driver, the platform or the device does not support what was asked for.
    CLG_FEATURE_NOT_SUPPORTED = 2,
    // A kernel or a program cannot be used on this device.
    CLG_KERNEL_NOT_SUPPORTED = 3,
    // The host or the device is out of memory or of other resources.
    CLG_OUT_OF_MEMORY = 4,
    // An OpenCL call failed for another reason, or a command failed while it ran.
    CLG_DRIVER = 5,
    // The program's own code reported a failure: a host task, or a user event.
    CLG_FAILED = 6,
    // The call is not possible now, but can be later.
    CLG_NOT_READY = 7,
    // A defect of clgraph. Please report it.
    CLG_DEFECT = 8,
} clg_status;

// How an executable runs.
typedef enum clg_path {
    // clgraph times the ways that may pay, and takes the fastest.
    CLG_PATH_AUTO = 0,
    // Command buffers (`cl_khr_command_buffer`), where the device has them.
    CLG_PATH_NATIVE = 1,
    // Commands are enqueued one by one.
    CLG_PATH_REPLAY = 2,
} clg_path;

// What an argument of a kernel is.
typedef enum clg_arg_kind {
    // A value: `data` points to `size` bytes.
    CLG_ARG_VALUE = 0,
    // Memory that the kernel only reads: `range`.
    CLG_ARG_READ = 1,
    // Memory that the kernel only writes: `range`. Bytes that it does not write keep their values.
    CLG_ARG_WRITE = 2,
    // Memory that the kernel reads and writes: `range`.
    CLG_ARG_READ_WRITE = 3,
    // Local memory of `size` bytes.
    CLG_ARG_LOCAL = 4,
    // A null pointer.
    CLG_ARG_NULL = 5,
    // A parameter of a value or of local memory: `parameter`.
    CLG_ARG_PARAMETER = 6,
    // A parameter of memory that the kernel only reads: `parameter`.
    CLG_ARG_PARAMETER_READ = 7,
    // A parameter of memory that the kernel only writes: `parameter`.
    CLG_ARG_PARAMETER_WRITE = 8,
    // A parameter of memory that the kernel reads and writes: `parameter`.
    CLG_ARG_PARAMETER_READ_WRITE = 9,
} clg_arg_kind;

// What a `clg_executable` names.
typedef struct clg_executable_object clg_executable_object;

// What a `clg_graph` names.
typedef struct clg_graph_object clg_graph_object;

// What a `clg_kernel` names.
typedef struct clg_kernel_object clg_kernel_object;

// What a `clg_memory` names.
typedef struct clg_memory_object clg_memory_object;

// What a `clg_parameter` names.
typedef struct clg_parameter_object clg_parameter_object;

// What a `clg_queue` names.
typedef struct clg_queue_object clg_queue_object;

// What a `clg_submission` names.
typedef struct clg_submission_object clg_submission_object;

// What a `clg_task` names.
typedef struct clg_task_object clg_task_object;

// What a `clg_user_event` names.
typedef struct clg_user_event_object clg_user_event_object;

// A finalized graph, which can be submitted.
typedef struct clg_executable_object *clg_executable;

// One run of an executable.
typedef struct clg_submission_object *clg_submission;

// A graph of commands for one device of one context.
typedef struct clg_graph_object *clg_graph;

// Options of finalizing. All zeros are the defaults.
typedef struct clg_finalize_options {
    // How it runs: a `clg_path`.
    int32_t path;
    // Whether values can change between submissions: see `clg_executable_update`.
    bool updatable;
    // Whether submissions record times: see `clg_submission_profile`.
    bool profiling;
    // How many submissions can hold results at a time, or 0 for as many as the program likes.
    size_t result_slots;
} clg_finalize_options;

// A command queue of the program.
typedef struct clg_queue_object *clg_queue;

// An event that the program completes.
typedef struct clg_user_event_object *clg_user_event;

// A node of a graph, or a write, read or event inside a sub-graph. It is a plain value and keeps nothing alive.
typedef struct clg_node {
    // The number of the graph.
    uint64_t graph;
    // The position of the node in the order in which nodes were added, from 0.
    uint32_t index;
    // Which write, read or event inside a sub-graph node; 0 for all other nodes.
    uint32_t part;
} clg_node;

// Data of a write, for one submission.
typedef struct clg_input {
    // The write.
    struct clg_node write;
    // The data, of as many bytes as the node writes.
    const void *data;
    // The number of bytes.
    size_t size;
    // Null: the data is copied. Else the data is used where it is, until this is called with `user`; it is called
    // exactly once, on any thread, also if the submission fails.
    void (*release)(void *user);
    // What `release` gets.
    void *user;
} clg_input;

// An event of a node, for one submission: exactly one of `wait` and `user_event` is not null.
typedef struct clg_event_input {
    // The node.
    struct clg_node node;
    // For a node of `clg_graph_wait_event`: a `cl_event` to wait for.
    void *wait;
    // A user event: what a node of `clg_graph_wait_event` waits for, or a node of `clg_graph_signal_event` completes.
    clg_user_event user_event;
    // Whether the node is one of `clg_graph_signal_event`.
    bool signals;
} clg_event_input;

// What a submission is given. Null in its place is nothing of it.
typedef struct clg_submit_options {
    // Events (`cl_event`) that the submission waits for, beside what its queue says.
    void *const *wait_list;
    // How many.
    size_t num_waits;
    // User events that it waits for.
    const clg_user_event *user_events;
    // How many.
    size_t num_user_events;
    // Submissions that it waits for.
    const clg_submission *submissions;
    // How many.
    size_t num_submissions;
    // Inputs.
    const struct clg_input *inputs;
    // How many.
    size_t num_inputs;
    // Events of nodes.
    const struct clg_event_input *events;
    // How many.
    size_t num_events;
} clg_submit_options;

// What every node can have. Null in its place is nothing of it.
typedef struct clg_node_options {
    // Nodes that the node waits for, beside those that used the same memory before.
    const struct clg_node *after;
    // How many.
    size_t num_after;
    // A name for drawings, profiles and errors, or null.
    const char *label;
} clg_node_options;

// Memory: a buffer of the program, memory that clgraph allocated, or memory of a graph.
typedef struct clg_memory_object *clg_memory;

// Some bytes of memory.
typedef struct clg_range {
    // The memory.
    clg_memory memory;
    // The first byte.
    size_t offset;
    // The number of bytes, or CLG_WHOLE for all bytes from the offset on.
    size_t size;
} clg_range;

// A kernel function. Arguments that were set on the program's `cl_kernel` are not used.
typedef struct clg_kernel_object *clg_kernel;

// A value, a size of local memory, or memory, which several kernel nodes can use and which can change.
typedef struct clg_parameter_object *clg_parameter;

// An argument of a kernel. Fields that its kind does not name are not looked at.
typedef struct clg_arg {
    // What it is: a `clg_arg_kind`.
    int32_t kind;
    // A size in bytes.
    size_t size;
    // A value, which is copied.
    const void *data;
    // Memory. A kernel gets the whole buffer; the range says which bytes it uses.
    struct clg_range range;
    // A parameter.
    clg_parameter parameter;
} clg_arg;

// A launch of a kernel.
typedef struct clg_launch {
    // The kernel.
    clg_kernel kernel;
    // Its arguments, in order.
    const struct clg_arg *args;
    // How many.
    size_t num_args;
    // The number of dimensions, from 1 to 3.
    uint32_t work_dim;
    // The first work-item in each dimension.
    size_t offset[3];
    // The number of work-items in each dimension.
    size_t global[3];
    // The size of a work-group in each dimension, or zeros: the driver chooses.
    size_t local[3];
    // The largest number of work-items in each dimension that an update can set, or zeros: the number cannot change.
    size_t bound[3];
} clg_launch;

// A host task that runs: the handle is valid until its function returns.
typedef struct clg_task_object *clg_task;

// Memory that a host task uses.
typedef struct clg_use {
    // The memory.
    struct clg_range range;
    // Whether the task reads it.
    bool reads;
    // Whether the task writes it.
    bool writes;
} clg_use;

// A host task.
typedef struct clg_host_task {
    // The function. It runs once in each submission, on a thread of clgraph, and never twice at the same time. If it
    // returns anything but 0, the submission fails, with the text of `clg_task_fail`. No C++ exception may leave it.
    int (*function)(clg_task task, void *user);
    // What the function gets.
    void *user;
    // Called exactly once when `user` is no longer used, on any thread, also if the node is not added. May be null.
    void (*release)(void *user);
    // The memory that the function uses, so that nodes with the same memory wait for each other.
    const struct clg_use *uses;
    // How many.
    size_t num_uses;
} clg_host_task;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Returns how many objects of the process have handles: 0 when a program has released all that it made.
size_t clg_live_objects(void);

// Returns the version of the library that was loaded, for example "0.1.0".
const char *clg_version(void);

// Adds a reference to the object.
enum clg_status clg_executable_retain(clg_executable object);

// Removes a reference. The last one ends the object; what runs goes on.
enum clg_status clg_executable_release(clg_executable object);

// Adds a reference to the object.
enum clg_status clg_submission_retain(clg_submission object);

// Removes a reference. The last one ends the object; what runs goes on.
enum clg_status clg_submission_release(clg_submission object);

// Plans the graph for its device and prepares everything that a submission needs. The graph does not change.
//
// # Safety
// The pointers are null or point to what their types say.
enum clg_status clg_graph_finalize(clg_graph graph, const struct clg_finalize_options *options, clg_executable *result);

// Submits the executable to a queue. It runs after earlier commands of an in-order queue, and after what it is given to
// wait for.
//
// `event` gets a `cl_event` of the submission, which the program releases with clReleaseEvent: it is complete when the
// submission has ended, well or not. `submission` gets a handle. Either may be null; if both are, the submission is
// detached: only the log knows whether it failed.
//
// # Safety
// The pointers are null or point to what their types say, and events are live.
enum clg_status clg_executable_submit(clg_executable executable,
                                      clg_queue queue,
                                      const struct clg_submit_options *options,
                                      void **event,
                                      clg_submission *submission);

// Blocks until the submission has ended. Returns its error if it failed.
enum clg_status clg_submission_wait(clg_submission submission);

// Blocks until the submission has ended, but at most for a time, in nanoseconds. Then it returns CLG_NOT_READY.
enum clg_status clg_submission_wait_for(clg_submission submission, uint64_t nanoseconds);

// Returns whether the submission has ended, well or not.
enum clg_status clg_submission_is_done(clg_submission submission, bool *result);

// Copies the result of a read. `size` is the size of the read.
//
// # Safety
// `data` has room for `size` bytes.
enum clg_status clg_submission_get(clg_submission submission, struct clg_node read, void *data, size_t size);

// Returns where the result of a read is. It stays there, and does not change, until the last reference to the
// submission is released.
//
// # Safety
// The pointers are null or point to what their types say.
enum clg_status clg_submission_result(clg_submission submission, struct clg_node read, const void **data, size_t *size);

// Calls a function when the submission has ended: with CLG_SUCCESS and null, or with the kind and the text of its
// error. The text is valid during the call. The function runs on a thread of clgraph, one such function after the
// other; it may call clgraph. `release` is called exactly once when `user` is no longer used.
//
// # Safety
// The functions may be called on any thread. No C++ exception may leave them.
enum clg_status clg_submission_on_complete(clg_submission submission,
                                           void (*function)(enum clg_status status, const char *text, void *user),
                                           void *user,
                                           void (*release)(void *user));

// Applies the current values of nodes to the executable, for later submissions: values of parameters, ranges, and
// launches that replaced others. It applies all of them or, if it fails, none.
//
// # Safety
// `nodes` points to as many nodes as `num_nodes` says.
enum clg_status clg_executable_update(clg_executable executable, const struct clg_node *nodes, size_t num_nodes);

// Applies the current values of all nodes of a graph that was built in the same way.
enum clg_status clg_executable_update_from(clg_executable executable, clg_graph graph);

// Writes what was decided for the executable, and why. `size` gets the number of bytes with the zero at the end.
//
// # Safety
// `text` is null or has room for `room` bytes.
enum clg_status clg_executable_report(clg_executable executable, size_t room, char *text, size_t *size);

// Draws the executable as SVG, with the times of a submission that was profiled if one is given.
//
// # Safety
// `text` is null or has room for `room` bytes.
enum clg_status clg_executable_to_svg(clg_executable executable,
                                      clg_submission submission,
                                      size_t room,
                                      char *text,
                                      size_t *size);

// Writes the times of a submission and of its nodes as a table. The executable was finalized with `profiling`.
//
// # Safety
// `text` is null or has room for `room` bytes.
enum clg_status clg_submission_profile(clg_submission submission, size_t room, char *text, size_t *size);

// Returns the name of a status, for example "CLG_INVALID". Never null.
const char *clg_status_name(int status);

// Adds a reference to the object.
enum clg_status clg_graph_retain(clg_graph object);

// Removes a reference. The last one ends the object; what runs goes on.
enum clg_status clg_graph_release(clg_graph object);

// Makes a graph for the context and device of a queue.
enum clg_status clg_graph_create(clg_queue queue, clg_graph *result);

// Makes a graph for a device of a context.
//
// # Safety
// `context` is null or a live context, and `device` is null or a device.
enum clg_status clg_graph_create_for_device(void *context, void *device, clg_graph *result);

// Returns the number of nodes.
enum clg_status clg_graph_size(clg_graph graph, size_t *result);

// Makes a node wait for another one.
enum clg_status clg_graph_add_edge(clg_graph graph, struct clg_node before, struct clg_node after);

// Adds a node that does nothing, and only orders others.
//
// # Safety
// The pointers are null or point to what their types say.
enum clg_status clg_graph_empty(clg_graph graph, const struct clg_node_options *options, struct clg_node *node);

// Adds a copy of bytes from memory to memory, of ranges of one size.
//
// # Safety
// The pointers are null or point to what their types say.
enum clg_status clg_graph_copy(clg_graph graph,
                               struct clg_range from,
                               struct clg_range to,
                               const struct clg_node_options *options,
                               struct clg_node *node);

// Adds a fill of memory with a pattern, of a size that divides the size of the range.
//
// # Safety
// `pattern` points to as many bytes as `pattern_size` says; the other pointers are null or point to what their types
// say.
enum clg_status clg_graph_fill(clg_graph graph,
                               struct clg_range to,
                               const void *pattern,
                               size_t pattern_size,
                               const struct clg_node_options *options,
                               struct clg_node *node);

// Adds a write of host data to memory. Each submission writes this data, or data of its own: the node is also the
// name of the input.
//
// Without `release` the data is copied. With `release` it is used where it is, until `release(user)` gives it back: it
// is called exactly once, on any thread, also if this call fails.
//
// # Safety
// `data` points to as many bytes as the range has; the other pointers are null or point to what their types say.
enum clg_status clg_graph_write(clg_graph graph,
                                struct clg_range to,
                                const void *data,
                                size_t data_size,
                                void (*release)(void *user),
                                void *user,
                                const struct clg_node_options *options,
                                struct clg_node *node);

// Adds a read of memory into host memory. The node is also the name of the result of each submission.
//
// # Safety
// The pointers are null or point to what their types say.
enum clg_status clg_graph_read(clg_graph graph,
                               struct clg_range from,
                               const struct clg_node_options *options,
                               struct clg_node *node);

// Adds an allocation of memory that belongs to the graph. Each executable has memory of its own for it.
//
// # Safety
// The pointers are null or point to what their types say.
enum clg_status clg_graph_allocate(clg_graph graph,
                                   size_t size,
                                   bool zeroed,
                                   const struct clg_node_options *options,
                                   clg_memory *memory);

// Adds the end of the life of memory of the graph.
//
// # Safety
// The pointers are null or point to what their types say.
enum clg_status clg_graph_free(clg_graph graph,
                               clg_memory memory,
                               const struct clg_node_options *options,
                               struct clg_node *node);

// Adds all commands of an executable as one node.
//
// # Safety
// The pointers are null or point to what their types say.
enum clg_status clg_graph_sub_graph(clg_graph graph,
                                    clg_executable executable,
                                    const struct clg_node_options *options,
                                    struct clg_node *node);

// Adds a node that waits for an event, which each submission is given for it.
//
// # Safety
// The pointers are null or point to what their types say.
enum clg_status clg_graph_wait_event(clg_graph graph, const struct clg_node_options *options, struct clg_node *node);

// Adds a node that completes a user event, which each submission is given for it.
//
// # Safety
// The pointers are null or point to what their types say.
enum clg_status clg_graph_signal_event(clg_graph graph, const struct clg_node_options *options, struct clg_node *node);

// Draws the graph in the DOT language. `size` gets the number of bytes with the zero at the end.
//
// # Safety
// `text` is null or has room for `room` bytes.
enum clg_status clg_graph_to_dot(clg_graph graph, size_t room, char *text, size_t *size);

// Draws the graph as SVG. `size` gets the number of bytes with the zero at the end.
//
// # Safety
// `text` is null or has room for `room` bytes.
enum clg_status clg_graph_to_svg(clg_graph graph, size_t room, char *text, size_t *size);

// Adds a launch of a kernel.
//
// The program promises what OpenCL leaves to it: the kernel stays inside its memory, uses it as declared, and has no
// data races, for all values that its parameters get.
//
// # Safety
// The promise above. The pointers are null or point to what their types say.
enum clg_status clg_graph_kernel(clg_graph graph,
                                 const struct clg_launch *launch,
                                 const struct clg_node_options *options,
                                 struct clg_node *node);

// Replaces the launch of a kernel node: arguments, ranges and, if the node was added so, the kernel. Edges stay.
// Executables get the change when they are updated.
//
// # Safety
// As of `clg_graph_kernel`.
enum clg_status clg_graph_replace_kernel(clg_graph graph, struct clg_node node, const struct clg_launch *launch);

// Adds a reference to the object.
enum clg_status clg_queue_retain(clg_queue object);

// Removes a reference. The last one ends the object; what runs goes on.
enum clg_status clg_queue_release(clg_queue object);

// Adds a reference to the object.
enum clg_status clg_kernel_retain(clg_kernel object);

// Removes a reference. The last one ends the object; what runs goes on.
enum clg_status clg_kernel_release(clg_kernel object);

// Adds a reference to the object.
enum clg_status clg_memory_retain(clg_memory object);

// Removes a reference. The last one ends the object; what runs goes on.
enum clg_status clg_memory_release(clg_memory object);

// Adds a reference to the object.
enum clg_status clg_parameter_retain(clg_parameter object);

// Removes a reference. The last one ends the object; what runs goes on.
enum clg_status clg_parameter_release(clg_parameter object);

// Adds a reference to the object.
enum clg_status clg_user_event_retain(clg_user_event object);

// Removes a reference. The last one ends the object; what runs goes on.
enum clg_status clg_user_event_release(clg_user_event object);

// Wraps and retains a `cl_command_queue`.
//
// # Safety
// `queue` is null or a live command queue.
enum clg_status clg_queue_from_cl(void *queue, clg_queue *result);

// Waits until everything that was enqueued so far is complete.
enum clg_status clg_queue_finish(clg_queue queue);

// Wraps the function of a `cl_kernel` of a context. Arguments that were set on it are not used.
//
// # Safety
// `context` is null or a live context; `kernel` is null or a live kernel, whose program is not built again meanwhile.
enum clg_status clg_kernel_from_cl(void *context, void *kernel, clg_kernel *result);

// Wraps and retains a buffer (`cl_mem`) of a context.
//
// # Safety
// `context` is null or a live context; `buffer` is null or a live memory object.
enum clg_status clg_memory_from_cl(void *context, void *buffer, clg_memory *result);

// Allocates memory for the device of a queue, with undefined content: device memory of
// `cl_intel_unified_shared_memory` if the device has it, else coarse-grain SVM, else a buffer.
enum clg_status clg_memory_allocate(clg_queue queue, size_t size, clg_memory *result);

// Makes a parameter of a value: a number, a vector or a struct, as many bytes as the kernel's parameter has.
//
// The program promises that every value which it gives the parameter is fine for the kernels that use it.
//
// # Safety
// `value` points to `size` bytes.
enum clg_status clg_parameter_create(const void *value, size_t size, clg_parameter *result);

// Makes a parameter of local memory, of a size in bytes.
enum clg_status clg_parameter_create_local(size_t size, clg_parameter *result);

// Makes a parameter of a buffer. Kernels take the whole buffer.
enum clg_status clg_parameter_create_memory(clg_memory memory, clg_parameter *result);

// Sets the value of a parameter, of as many bytes as before. Executables get it when they are updated.
//
// # Safety
// `value` points to `size` bytes.
enum clg_status clg_parameter_set(clg_parameter parameter, const void *value, size_t size);

// Sets the size of a parameter of local memory, in bytes.
enum clg_status clg_parameter_set_local(clg_parameter parameter, size_t size);

// Sets the memory of a parameter of memory.
enum clg_status clg_parameter_set_memory(clg_parameter parameter, clg_memory memory);

// Makes an event that the program completes.
//
// # Safety
// `context` is null or a live context.
enum clg_status clg_user_event_create(void *context, clg_user_event *result);

// Completes the event: what waits for it runs.
enum clg_status clg_user_event_complete(clg_user_event event);

// Fails the event: what waits for it does not run, and fails with this text.
//
// # Safety
// `text` is null or a text.
enum clg_status clg_user_event_fail(clg_user_event event, const char *text);

// Blocks until the event has ended.
enum clg_status clg_user_event_wait(clg_user_event event);

// Returns what was wrong with the last call of this thread that failed, and what to do, as UTF-8. Never null: the text
// is empty if no call has failed. The text is valid until the next call of this thread fails.
const char *clg_last_error(void);

// Returns the status of the last call of this thread that failed, or CLG_SUCCESS if none has.
enum clg_status clg_last_status(void);

// Returns the status of the OpenCL call that made the last call of this thread fail, or 0 if none did.
int clg_last_cl_status(void);

// Adds a reference to the object.
enum clg_status clg_task_retain(clg_task object);

// Removes a reference. The last one ends the object; what runs goes on.
enum clg_status clg_task_release(clg_task object);

// Adds a host task: a function that runs on the host between the nodes before and after it.
//
// # Safety
// The function may be called on any thread. The pointers are null or point to what their types say.
enum clg_status clg_graph_host_task(clg_graph graph,
                                    const struct clg_host_task *task,
                                    const struct clg_node_options *options,
                                    struct clg_node *node);

// Copies the result of a read that comes before the task. `size` is the size of the read.
//
// # Safety
// `data` has room for `size` bytes.
enum clg_status clg_task_get(clg_task task, struct clg_node read, void *data, size_t size);

// Sets the data of a write that comes after the task, for this submission. The data is copied.
//
// # Safety
// `data` points to `size` bytes.
enum clg_status clg_task_put(clg_task task, struct clg_node write, const void *data, size_t size);

// Says why the task fails. The submission fails with this text when the function returns, whatever it returns.
//
// # Safety
// `text` is null or a text.
enum clg_status clg_task_fail(clg_task task, const char *text);

// Returns what was wrong with the last call of this thread that failed, and what to do, as UTF-8. Never null: the text
// is empty if no call has failed. The text is valid until the next call of this thread fails.
const char *clg_last_error(void);

// Returns the status of the last call of this thread that failed, or CLG_SUCCESS if none has.
enum clg_status clg_last_status(void);

// Returns the status of the OpenCL call that made the last call of this thread fail, or 0 if none did.
int clg_last_cl_status(void);

// Adds a reference to the object.
enum clg_status clg_queue_retain(clg_queue object);

// Removes a reference. The last one ends the object; what runs goes on.
enum clg_status clg_queue_release(clg_queue object);

// Adds a reference to the object.
enum clg_status clg_kernel_retain(clg_kernel object);

// Removes a reference. The last one ends the object; what runs goes on.
enum clg_status clg_kernel_release(clg_kernel object);

// Adds a reference to the object.
enum clg_status clg_memory_retain(clg_memory object);

// Removes a reference. The last one ends the object; what runs goes on.
enum clg_status clg_memory_release(clg_memory object);

// Adds a reference to the object.
enum clg_status clg_parameter_retain(clg_parameter object);

// Removes a reference. The last one ends the object; what runs goes on.
enum clg_status clg_parameter_release(clg_parameter object);

// Adds a reference to the object.
enum clg_status clg_user_event_retain(clg_user_event object);

// Removes a reference. The last one ends the object; what runs goes on.
enum clg_status clg_user_event_release(clg_user_event object);

// Wraps and retains a `cl_command_queue`.
//
// # Safety
// `queue` is null or a live command queue.
enum clg_status clg_queue_from_cl(void *queue, clg_queue *result);

// Waits until everything that was enqueued so far is complete.
enum clg_status clg_queue_finish(clg_queue queue);

// Wraps the function of a `cl_kernel` of a context. Arguments that were set on it are not used.
//
// # Safety
// `context` is null or a live context; `kernel` is null or a live kernel, whose program is not built again meanwhile.
enum clg_status clg_kernel_from_cl(void *context, void *kernel, clg_kernel *result);

// Wraps and retains a buffer (`cl_mem`) of a context.
//
// # Safety
// `context` is null or a live context; `buffer` is null or a live memory object.
enum clg_status clg_memory_from_cl(void *context, void *buffer, clg_memory *result);

// Allocates memory for the device of a queue, with undefined content: device memory of
// `cl_intel_unified_shared_memory` if the device has it, else coarse-grain SVM, else a buffer.
enum clg_status clg_memory_allocate(clg_queue queue, size_t size, clg_memory *result);

// Makes a parameter of a value: a number, a vector or a struct, as many bytes as the kernel's parameter has.
//
// The program promises that every value which it gives the parameter is fine for the kernels that use it.
//
// # Safety
// `value` points to `size` bytes.
enum clg_status clg_parameter_create(const void *value, size_t size, clg_parameter *result);

// Makes a parameter of local memory, of a size in bytes.
enum clg_status clg_parameter_create_local(size_t size, clg_parameter *result);

// Makes a parameter of a buffer. Kernels take the whole buffer.
enum clg_status clg_parameter_create_memory(clg_memory memory, clg_parameter *result);

// Sets the value of a parameter, of as many bytes as before. Executables get it when they are updated.
//
// # Safety
// `value` points to `size` bytes.
enum clg_status clg_parameter_set(clg_parameter parameter, const void *value, size_t size);

// Sets the size of a parameter of local memory, in bytes.
enum clg_status clg_parameter_set_local(clg_parameter parameter, size_t size);

// Sets the memory of a parameter of memory.
enum clg_status clg_parameter_set_memory(clg_parameter parameter, clg_memory memory);

// Makes an event that the program completes.
//
// # Safety
// `context` is null or a live context.
enum clg_status clg_user_event_create(void *context, clg_user_event *result);

// Completes the event: what waits for it runs.
enum clg_status clg_user_event_complete(clg_user_event event);

// Fails the event: what waits for it does not run, and fails with this text.
//
// # Safety
// `text` is null or a text.
enum clg_status clg_user_event_fail(clg_user_event event, const char *text);

// Blocks until the event has ended.
enum clg_status clg_user_event_wait(clg_user_event event);

// Adds a reference to the object.
enum clg_status clg_graph_retain(clg_graph object);

// Removes a reference. The last one ends the object; what runs goes on.
enum clg_status clg_graph_release(clg_graph object);

// Makes a graph for the context and device of a queue.
enum clg_status clg_graph_create(clg_queue queue, clg_graph *result);

// Makes a graph for a device of a context.
//
// # Safety
// `context` is null or a live context, and `device` is null or a device.
enum clg_status clg_graph_create_for_device(void *context, void *device, clg_graph *result);

// Returns the number of nodes.
enum clg_status clg_graph_size(clg_graph graph, size_t *result);

// Makes a node wait for another one.
enum clg_status clg_graph_add_edge(clg_graph graph, struct clg_node before, struct clg_node after);

// Adds a node that does nothing, and only orders others.
//
// # Safety
// The pointers are null or point to what their types say.
enum clg_status clg_graph_empty(clg_graph graph, const struct clg_node_options *options, struct clg_node *node);

// Adds a copy of bytes from memory to memory, of ranges of one size.
//
// # Safety
// The pointers are null or point to what their types say.
enum clg_status clg_graph_copy(clg_graph graph,
                               struct clg_range from,
                               struct clg_range to,
                               const struct clg_node_options *options,
                               struct clg_node *node);

// Adds a fill of memory with a pattern, of a size that divides the size of the range.
//
// # Safety
// `pattern` points to as many bytes as `pattern_size` says; the other pointers are null or point to what their types
// say.
enum clg_status clg_graph_fill(clg_graph graph,
                               struct clg_range to,
                               const void *pattern,
                               size_t pattern_size,
                               const struct clg_node_options *options,
                               struct clg_node *node);

// Adds a write of host data to memory. Each submission writes this data, or data of its own: the node is also the
// name of the input.
//
// Without `release` the data is copied. With `release` it is used where it is, until `release(user)` gives it back: it
// is called exactly once, on any thread, also if this call fails.
//
// # Safety
// `data` points to as many bytes as the range has; the other pointers are null or point to what their types say.
enum clg_status clg_graph_write(clg_graph graph,
                                struct clg_range to,
                                const void *data,
                                size_t data_size,
                                void (*release)(void *user),
                                void *user,
                                const struct clg_node_options *options,
                                struct clg_node *node);

// Adds a read of memory into host memory. The node is also the name of the result of each submission.
//
// # Safety
// The pointers are null or point to what their types say.
enum clg_status clg_graph_read(clg_graph graph,
                               struct clg_range from,
                               const struct clg_node_options *options,
                               struct clg_node *node);

// Adds an allocation of memory that belongs to the graph. Each executable has memory of its own for it.
//
// # Safety
// The pointers are null or point to what their types say.
enum clg_status clg_graph_allocate(clg_graph graph,
                                   size_t size,
                                   bool zeroed,
                                   const struct clg_node_options *options,
                                   clg_memory *memory);

// Adds the end of the life of memory of the graph.
//
// # Safety
// The pointers are null or point to what their types say.
enum clg_status clg_graph_free(clg_graph graph,
                               clg_memory memory,
                               const struct clg_node_options *options,
                               struct clg_node *node);

// Adds all commands of an executable as one node.
//
// # Safety
// The pointers are null or point to what their types say.
enum clg_status clg_graph_sub_graph(clg_graph graph,
                                    clg_executable executable,
                                    const struct clg_node_options *options,
                                    struct clg_node *node);

// Adds a node that waits for an event, which each submission is given for it.
//
// # Safety
// The pointers are null or point to what their types say.
enum clg_status clg_graph_wait_event(clg_graph graph, const struct clg_node_options *options, struct clg_node *node);

// Adds a node that completes a user event, which each submission is given for it.
//
// # Safety
// The pointers are null or point to what their types say.
enum clg_status clg_graph_signal_event(clg_graph graph, const struct clg_node_options *options, struct clg_node *node);

// Draws the graph in the DOT language. `size` gets the number of bytes with the zero at the end.
//
// # Safety
// `text` is null or has room for `room` bytes.
enum clg_status clg_graph_to_dot(clg_graph graph, size_t room, char *text, size_t *size);

// Draws the graph as SVG. `size` gets the number of bytes with the zero at the end.
//
// # Safety
// `text` is null or has room for `room` bytes.
enum clg_status clg_graph_to_svg(clg_graph graph, size_t room, char *text, size_t *size);

// Adds a launch of a kernel.
//
// The program promises what OpenCL leaves to it: the kernel stays inside its memory, uses it as declared, and has no
// data races, for all values that its parameters get.
//
// # Safety
// The promise above. The pointers are null or point to what their types say.
enum clg_status clg_graph_kernel(clg_graph graph,
                                 const struct clg_launch *launch,
                                 const struct clg_node_options *options,
                                 struct clg_node *node);

// Replaces the launch of a kernel node: arguments, ranges and, if the node was added so, the kernel. Edges stay.
// Executables get the change when they are updated.
//
// # Safety
// As of `clg_graph_kernel`.
enum clg_status clg_graph_replace_kernel(clg_graph graph, struct clg_node node, const struct clg_launch *launch);

// Adds a reference to the object.
enum clg_status clg_task_retain(clg_task object);

// Removes a reference. The last one ends the object; what runs goes on.
enum clg_status clg_task_release(clg_task object);

// Adds a host task: a function that runs on the host between the nodes before and after it.
//
// # Safety
// The function may be called on any thread. The pointers are null or point to what their types say.
enum clg_status clg_graph_host_task(clg_graph graph,
                                    const struct clg_host_task *task,
                                    const struct clg_node_options *options,
                                    struct clg_node *node);

// Copies the result of a read that comes before the task. `size` is the size of the read.
//
// # Safety
// `data` has room for `size` bytes.
enum clg_status clg_task_get(clg_task task, struct clg_node read, void *data, size_t size);

// Sets the data of a write that comes after the task, for this submission. The data is copied.
//
// # Safety
// `data` points to `size` bytes.
enum clg_status clg_task_put(clg_task task, struct clg_node write, const void *data, size_t size);

// Says why the task fails. The submission fails with this text when the function returns, whatever it returns.
//
// # Safety
// `text` is null or a text.
enum clg_status clg_task_fail(clg_task task, const char *text);

// Adds a reference to the object.
enum clg_status clg_executable_retain(clg_executable object);

// Removes a reference. The last one ends the object; what runs goes on.
enum clg_status clg_executable_release(clg_executable object);

// Adds a reference to the object.
enum clg_status clg_submission_retain(clg_submission object);

// Removes a reference. The last one ends the object; what runs goes on.
enum clg_status clg_submission_release(clg_submission object);

// Plans the graph for its device and prepares everything that a submission needs. The graph does not change.
//
// # Safety
// The pointers are null or point to what their types say.
enum clg_status clg_graph_finalize(clg_graph graph, const struct clg_finalize_options *options, clg_executable *result);

// Submits the executable to a queue. It runs after earlier commands of an in-order queue, and after what it is given to
// wait for.
//
// `event` gets a `cl_event` of the submission, which the program releases with clReleaseEvent: it is complete when the
// submission has ended, well or not. `submission` gets a handle. Either may be null; if both are, the submission is
// detached: only the log knows whether it failed.
//
// # Safety
// The pointers are null or point to what their types say, and events are live.
enum clg_status clg_executable_submit(clg_executable executable,
                                      clg_queue queue,
                                      const struct clg_submit_options *options,
                                      void **event,
                                      clg_submission *submission);

// Blocks until the submission has ended. Returns its error if it failed.
enum clg_status clg_submission_wait(clg_submission submission);

// Blocks until the submission has ended, but at most for a time, in nanoseconds. Then it returns CLG_NOT_READY.
enum clg_status clg_submission_wait_for(clg_submission submission, uint64_t nanoseconds);

// Returns whether the submission has ended, well or not.
enum clg_status clg_submission_is_done(clg_submission submission, bool *result);

// Copies the result of a read. `size` is the size of the read.
//
// # Safety
// `data` has room for `size` bytes.
enum clg_status clg_submission_get(clg_submission submission, struct clg_node read, void *data, size_t size);

// Returns where the result of a read is. It stays there, and does not change, until the last reference to the
// submission is released.
//
// # Safety
// The pointers are null or point to what their types say.
enum clg_status clg_submission_result(clg_submission submission, struct clg_node read, const void **data, size_t *size);

// Calls a function when the submission has ended: with CLG_SUCCESS and null, or with the kind and the text of its
// error. The text is valid during the call. The function runs on a thread of clgraph, one such function after the
// other; it may call clgraph. `release` is called exactly once when `user` is no longer used.
//
// # Safety
// The functions may be called on any thread. No C++ exception may leave them.
enum clg_status clg_submission_on_complete(clg_submission submission,
                                           void (*function)(enum clg_status status, const char *text, void *user),
                                           void *user,
                                           void (*release)(void *user));

// Applies the current values of nodes to the executable, for later submissions: values of parameters, ranges, and
// launches that replaced others. It applies all of them or, if it fails, none.
//
// # Safety
// `nodes` points to as many nodes as `num_nodes` says.
enum clg_status clg_executable_update(clg_executable executable, const struct clg_node *nodes, size_t num_nodes);

// Applies the current values of all nodes of a graph that was built in the same way.
enum clg_status clg_executable_update_from(clg_executable executable, clg_graph graph);

// Writes what was decided for the executable, and why. `size` gets the number of bytes with the zero at the end.
//
// # Safety
// `text` is null or has room for `room` bytes.
enum clg_status clg_executable_report(clg_executable executable, size_t room, char *text, size_t *size);

// Draws the executable as SVG, with the times of a submission that was profiled if one is given.
//
// # Safety
// `text` is null or has room for `room` bytes.
enum clg_status clg_executable_to_svg(clg_executable executable,
                                      clg_submission submission,
                                      size_t room,
                                      char *text,
                                      size_t *size);

// Writes the times of a submission and of its nodes as a table. The executable was finalized with `profiling`.
//
// # Safety
// `text` is null or has room for `room` bytes.
enum clg_status clg_submission_profile(clg_submission submission, size_t room, char *text, size_t *size);

// Returns the name of a status, for example "CLG_INVALID". Never null.
const char *clg_status_name(int status);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* CLGRAPH_H */

/* Arguments of kernels, for initializers: clg_arg args[] = {CLG_READ(a), CLG_WRITE(b), CLG_VALUE(n)}; */
#ifndef __cplusplus
#define CLG_VALUE(value) {CLG_ARG_VALUE, sizeof(value), &(value), {0, 0, 0}, 0}
#define CLG_READ(memory) {CLG_ARG_READ, 0, 0, {(memory), 0, CLG_WHOLE}, 0}
#define CLG_WRITE(memory) {CLG_ARG_WRITE, 0, 0, {(memory), 0, CLG_WHOLE}, 0}
#define CLG_READ_WRITE(memory) {CLG_ARG_READ_WRITE, 0, 0, {(memory), 0, CLG_WHOLE}, 0}
#define CLG_LOCAL(bytes) {CLG_ARG_LOCAL, (bytes), 0, {0, 0, 0}, 0}
#define CLG_NULL {CLG_ARG_NULL, 0, 0, {0, 0, 0}, 0}
#define CLG_PARAMETER(parameter) {CLG_ARG_PARAMETER, 0, 0, {0, 0, 0}, (parameter)}
#define CLG_ALL(memory) ((clg_range){(memory), 0, CLG_WHOLE})
#endif
