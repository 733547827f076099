/* Random command buffers and captures, against a model on the host: `random FIRST COUNT` takes so many seeds. */
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#include "command_buffers/functions.h"

#include "../../include/clgraph_layer.h"

#include <stdbool.h>
#include <string.h>

#define OK(call)                                                                                          \
    do {                                                                                                  \
        cl_int status_ = (call);                                                                          \
        if (status_ != CL_SUCCESS) {                                                                      \
            fprintf(stderr, "seed %u, %s:%d: %s: %d\n", seed, __FILE__, __LINE__, #call, (int)status_);   \
            exit(1);                                                                                      \
        }                                                                                                 \
    } while (0)

enum { BUFFERS = 4, LEN = 64, BYTES = LEN * sizeof(cl_uint), MOST = 30, KERNELS = 3, QUEUES = 4 };

static unsigned seed, state;

static unsigned below(unsigned most) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % most;
}

static cl_platform_id platform;
static cl_device_id device;
static cl_context context;
static cl_program program;
static struct command_buffer_functions f;
static clBeginCaptureCLG_fn begin;
static clEndCaptureCLG_fn end;
static clGetCapturedCommandsCLG_fn captured;
static cl_command_queue queues[QUEUES];
static cl_mem memory[BUFFERS];
static cl_uint model[BUFFERS][LEN];

static const char *SOURCE =
    "typedef struct { uint by; uchar more; } pair;\n"
    "kernel void blend(global uint *to, global const uint *from, pair with, local uint *room) {\n"
    "    size_t at = get_global_id(0);\n"
    "    room[get_local_id(0)] = with.by;\n"
    "    to[at] = to[at] * room[get_local_id(0)] + from[at] + with.more;\n"
    "}\n";

struct pair {
    cl_uint by;
    cl_uchar more;
};

/* Numbers of a command: `to` and `from` are buffers, the others count in numbers. */
struct command {
    enum { FILL, COPY, RECT, BLEND } kind;
    unsigned to, from, to_at, from_at, count;
    struct pair with;
    mutable_command handle;
};

static void choose(struct command *of) {
    *of = (struct command){.kind = below(4), .to = below(BUFFERS), .to_at = below(32), .from_at = below(32)};
    of->from = (of->to + 1 + below(BUFFERS - 1)) % BUFFERS;
    of->count = below(32);
    if (of->kind == BLEND) of->to_at = 4 * below(8), of->count = 4 * below(9);
    of->with = (struct pair){below(7) + 1, (cl_uchar)below(256)};
}

static void compute(const struct command *of) {
    cl_uint *to = model[of->to], *from = model[of->from];
    for (unsigned i = 0; i < of->count && of->kind != RECT; i++)
        if (of->kind == FILL) to[of->to_at + i] = of->with.by;
        else if (of->kind == COPY) to[of->to_at + i] = from[of->from_at + i];
        else to[of->to_at + i] = to[of->to_at + i] * of->with.by + from[of->to_at + i] + of->with.more;
    for (unsigned y = 0; y < 3 && of->kind == RECT; y++)
        for (unsigned x = 0; x < 4; x++) to[of->to_at + y * 8 + x] = from[of->from_at + y * 8 + x];
}

/* Whether one has to wait for the other. */
static int touch(const struct command *a, const struct command *b) {
    return a->to == b->to || (b->kind != FILL && a->to == b->from) || (a->kind != FILL && a->from == b->to);
}

/* Sets the arguments of a launch; sometimes to memory first that is released at once. */
static void set(cl_kernel kernel, const struct command *of) {
    if (below(4) == 0) {
        cl_int status;
        cl_mem gone = clCreateBuffer(context, CL_MEM_READ_WRITE, BYTES, NULL, &status);
        OK(status);
        OK(clSetKernelArg(kernel, 0, sizeof gone, &gone));
        OK(clReleaseMemObject(gone));
    }
    OK(clSetKernelArg(kernel, 0, sizeof(cl_mem), &memory[of->to]));
    OK(clSetKernelArg(kernel, 1, sizeof(cl_mem), &memory[of->from]));
    OK(clSetKernelArg(kernel, 2, sizeof of->with, &of->with));
    OK(clSetKernelArg(kernel, 3, 4 * sizeof(cl_uint), NULL));
}

/* Records a command, or enqueues it to a queue that is captured. */
static void add(command_buffer buffer, cl_command_queue queue, struct command *of, cl_kernel kernel, cl_uint count,
                const sync_point *points, const cl_event *events, sync_point *point, cl_event *event) {
    cl_mem to = memory[of->to], from = memory[of->from];
    size_t to_at = of->to_at * sizeof(cl_uint), from_at = of->from_at * sizeof(cl_uint), bytes = of->count * sizeof(cl_uint);
    size_t from_origin[] = {from_at % 32, from_at / 32, 0}, to_origin[] = {to_at % 32, to_at / 32, 0}, region[] = {16, 3, 1};
    size_t offset = of->to_at, global = of->count, local = 4;
    const sync_point *after = count ? points : NULL;
    const cl_event *list = count ? events : NULL;
    if (of->kind == BLEND) set(kernel, of);
    if (buffer != NULL) {
        if (of->kind == FILL) OK(f.fill(buffer, NULL, NULL, to, &of->with.by, 4, to_at, bytes, count, after, point, NULL));
        else if (of->kind == COPY)
            OK(f.copy(buffer, NULL, NULL, from, to, from_at, to_at, bytes, count, after, point, NULL));
        else if (of->kind == RECT)
            OK(f.copy_rect(buffer, NULL, NULL, from, to, from_origin, to_origin, region, 32, 0, 32, 0, count, after, point, NULL));
        else
            OK(f.kernel(buffer, NULL, NULL, kernel, 1, &offset, &global, &local, count, after, point, &of->handle));
    } else if (of->kind == FILL) {
        OK(clEnqueueFillBuffer(queue, to, &of->with.by, 4, to_at, bytes, count, list, event));
    } else if (of->kind == COPY) {
        OK(clEnqueueCopyBuffer(queue, from, to, from_at, to_at, bytes, count, list, event));
    } else if (of->kind == RECT) {
        OK(clEnqueueCopyBufferRect(queue, from, to, from_origin, to_origin, region, 32, 0, 32, 0, count, list, event));
    } else {
        OK(clEnqueueNDRangeKernel(queue, kernel, 1, &offset, &global, &local, count, list, event));
    }
}

/* Gives a launch other numbers, another range, or other memory; the latter only where order does not come from the memory. */
static void change(command_buffer buffer, struct command *of, int other_memory) {
    struct dispatch_argument arguments[2];
    struct dispatch_config config = {.command = of->handle};
    size_t offset, global;
    if (below(2)) {
        of->with = (struct pair){below(7) + 1, (cl_uchar)below(256)};
        arguments[config.num_args++] = (struct dispatch_argument){2, sizeof of->with, &of->with};
    }
    if (other_memory && below(2)) {
        of->to = (of->from + 1 + below(BUFFERS - 1)) % BUFFERS;
        arguments[config.num_args++] = (struct dispatch_argument){0, sizeof(cl_mem), &memory[of->to]};
    }
    if (below(2)) {
        of->to_at = 4 * below(8), of->count = 4 * below(9);
        offset = of->to_at, global = of->count;
        config.global_work_offset = &offset, config.global_work_size = &global;
    }
    if (config.num_args > 0) config.arg_list = arguments;
    cl_uint kind = 0;
    const void *configs[] = {&config};
    OK(f.update(buffer, 1, &kind, configs));
}

static void run(void) {
    state = seed * 2654435761u + 1;
    unsigned on = below(QUEUES);
    cl_command_queue queue = queues[on];
    int out_of_order = on >= 2, capture = below(3) == 0, count = 1 + (int)below(MOST);
    cl_int status;
    for (int i = 0; i < BUFFERS; i++) {
        memory[i] = clCreateBuffer(context, CL_MEM_READ_WRITE, BYTES, NULL, &status);
        OK(status);
        for (int at = 0; at < LEN; at++) model[i][at] = below(100000);
        OK(clEnqueueWriteBuffer(queue, memory[i], CL_TRUE, 0, BYTES, model[i], 0, NULL, NULL));
    }
    OK(clFinish(queue));
    cl_kernel kernels[KERNELS];
    for (int i = 0; i < KERNELS; i++) {
        kernels[i] = clCreateKernel(program, "blend", &status);
        OK(status);
    }

    struct command commands[MOST];
    sync_point points[MOST], after[MOST];
    cl_event events[MOST], list[MOST];
    const cl_properties properties[] = {BUFFER_FLAGS, MUTABLE | SIMULTANEOUS_USE, 0};
    command_buffer buffer = NULL;
    if (capture) OK(begin(queue, NULL));
    else buffer = f.create(1, &queue, properties, &status);
    OK(capture ? CL_SUCCESS : status);
    int barrier = 0;
    for (int i = 0; i < count; i++) {
        if (i > 0 && below(4) == 0) commands[i] = commands[below((unsigned)i)];
        else choose(&commands[i]);
        commands[i].handle = NULL;
        if (out_of_order && below(8) == 0) {
            if (capture) OK(clEnqueueBarrierWithWaitList(queue, 0, NULL, NULL));
            else OK(f.barrier(buffer, NULL, NULL, 0, NULL, NULL, NULL));
            barrier = i;
        }
        cl_uint waits = 0;
        for (int before = barrier; before < i && out_of_order; before++)
            if (touch(&commands[before], &commands[i]) || below(8) == 0) {
                after[waits] = points[before];
                list[waits++] = events[before];
            }
        add(buffer, queue, &commands[i], kernels[below(KERNELS)], waits, after, list, &points[i], &events[i]);
    }
    for (int i = 0; i < KERNELS; i++) OK(clReleaseKernel(kernels[i]));
    if (capture) {
        cl_command_buffer_khr made;
        OK(end(queue, &made));
        buffer = (command_buffer)made;
        cl_mutable_command_khr handles[MOST];
        cl_uint launches = 0, next = 0;
        OK(captured(made, MOST, handles, &launches));
        for (int i = 0; i < count; i++) {
            if (commands[i].kind == BLEND) commands[i].handle = (mutable_command)handles[next++];
            OK(clReleaseEvent(events[i]));
        }
        CHECK(next == launches);
    } else {
        OK(f.finalize(buffer));
    }

    /* Each submission waits for the one before, which may be on another queue, or behind a gate. */
    cl_event gate = below(3) == 0 ? clCreateUserEvent(context, &status) : NULL, last = gate;
    if (gate != NULL) OK(clRetainEvent(gate));
    for (unsigned i = 0, times = 1 + below(4); i < times; i++) {
        for (int at = 0; at < count; at++)
            if (commands[at].handle != NULL && below(4) == 0) change(buffer, &commands[at], !out_of_order);
        cl_command_queue to = below(3) == 0 ? queues[below(QUEUES)] : queue;
        cl_event event;
        OK(f.enqueue(1, &to, buffer, last != NULL, last != NULL ? &last : NULL, &event));
        if (last != NULL) OK(clReleaseEvent(last));
        last = event;
        for (int at = 0; at < count; at++) compute(&commands[at]);
    }
    OK(f.release(buffer));
    if (gate != NULL) {
        OK(clSetUserEventStatus(gate, CL_COMPLETE));
        OK(clReleaseEvent(gate));
    }
    OK(clWaitForEvents(1, &last));
    OK(clReleaseEvent(last));
    for (int i = 0; i < BUFFERS; i++) {
        cl_uint got[LEN];
        OK(clEnqueueReadBuffer(queue, memory[i], CL_TRUE, 0, BYTES, got, 0, NULL, NULL));
        for (int at = 0; at < LEN; at++)
            if (got[at] != model[i][at]) {
                fprintf(stderr, "seed %u, %s, queue %u, %d commands: number %d of buffer %d is %u, not %u\n", seed,
                        capture ? "captured" : "recorded", on, count, at, i, got[at], model[i][at]);
                exit(1);
            }
        OK(clReleaseMemObject(memory[i]));
    }
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    cl_int status;
    OK(clGetPlatformIDs(1, &platform, NULL));
    OK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
    OK(status);
    f = functions_of(platform, true);
    *(void **)&begin = function_of(platform, "clBeginCaptureCLG");
    *(void **)&end = function_of(platform, "clEndCaptureCLG");
    *(void **)&captured = function_of(platform, "clGetCapturedCommandsCLG");
    program = clCreateProgramWithSource(context, 1, &SOURCE, NULL, &status);
    OK(status);
    OK(clBuildProgram(program, 1, &device, "", NULL, NULL));
    for (int i = 0; i < QUEUES; i++) {
        cl_queue_properties bits = (i & 1 ? CL_QUEUE_PROFILING_ENABLE : 0) | (i & 2 ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE : 0);
        cl_queue_properties list[] = {CL_QUEUE_PROPERTIES, bits, 0};
        queues[i] = clCreateCommandQueueWithProperties(context, device, list, &status);
        OK(status);
    }
    unsigned first = (unsigned)strtoul(argv[1], NULL, 10), count = (unsigned)strtoul(argv[2], NULL, 10);
    for (seed = first; seed < first + count; seed++) run();
    for (int i = 0; i < QUEUES; i++) OK(clReleaseCommandQueue(queues[i]));
    OK(clReleaseProgram(program));
    OK(clReleaseContext(context));
    printf("ok\n");
    return 0;
}
