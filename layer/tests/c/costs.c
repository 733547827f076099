/* What calls and command buffers cost: `costs`, with the layer or without it; `costs plain` asks for no function of the layer. A line a
 * number, in nanoseconds: the median of the rounds, and the middle half of them. */
#define CL_TARGET_OPENCL_VERSION 300
#include "../../include/clgraph_layer.h"

#include <string.h>
#include <time.h>

#include "check.h"

enum { KERNELS = 1000, ROUNDS = 61 };

typedef cl_command_buffer_khr(CL_API_CALL *create_function)(cl_uint, const cl_command_queue *, const cl_ulong *, cl_int *);
typedef cl_int(CL_API_CALL *buffer_function)(cl_command_buffer_khr);
typedef cl_int(CL_API_CALL *launch_function)(cl_command_buffer_khr, cl_command_queue, const cl_ulong *, cl_kernel, cl_uint,
                                             const size_t *, const size_t *, const size_t *, cl_uint, const cl_uint *, cl_uint *,
                                             cl_mutable_command_khr *);
typedef cl_int(CL_API_CALL *enqueue_function)(cl_uint, cl_command_queue *, cl_command_buffer_khr, cl_uint, const cl_event *,
                                              cl_event *);

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static int order(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void told(const char *what, double *rounds) {
    qsort(rounds, ROUNDS, sizeof *rounds, order);
    printf("%s: %.0f (%.0f to %.0f)\n", what, rounds[ROUNDS / 2], rounds[ROUNDS / 4], rounds[ROUNDS * 3 / 4]);
}

static cl_platform_id platform;
static int is_plain;

static void *function(const char *name) {
    return is_plain ? NULL : clGetExtensionFunctionAddressForPlatform(platform, name);
}

int main(int argc, char **argv) {
    is_plain = argc > 1 && strcmp(argv[1], "plain") == 0;
    cl_device_id device;
    cl_int status;
    CHECK(clGetPlatformIDs(1, &platform, NULL) == CL_SUCCESS);
    CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) == CL_SUCCESS);
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
    CHECK(status == CL_SUCCESS);
    const char *source = "kernel void add(global uint *a) { a[0] += 1; }";
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &status);
    CHECK(status == CL_SUCCESS && clBuildProgram(program, 1, &device, "", NULL, NULL) == CL_SUCCESS);
    cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, NULL, &status);
    CHECK(status == CL_SUCCESS);
    cl_mem memory = clCreateBuffer(context, CL_MEM_READ_WRITE, 64, NULL, &status);
    CHECK(status == CL_SUCCESS);
    create_function create = (create_function)function("clCreateCommandBufferKHR");
    launch_function record = (launch_function)function("clCommandNDRangeKernelKHR");
    buffer_function finalize = (buffer_function)function("clFinalizeCommandBufferKHR");
    buffer_function release = (buffer_function)function("clReleaseCommandBufferKHR");
    enqueue_function enqueue = (enqueue_function)function("clEnqueueCommandBufferKHR");
    clBeginCaptureCLG_fn begin = (clBeginCaptureCLG_fn)function("clBeginCaptureCLG");
    clEndCaptureCLG_fn end = (clEndCaptureCLG_fn)function("clEndCaptureCLG");
    cl_kernel kernel = clCreateKernel(program, "add", &status);
    CHECK(status == CL_SUCCESS && clSetKernelArg(kernel, 0, sizeof memory, &memory) == CL_SUCCESS);
    const size_t one = 1;

    static double sets[ROUNDS], launches[ROUNDS], events[ROUNDS], clones[ROUNDS], records[ROUNDS], captures[ROUNDS],
        buffers[ROUNDS], ratios[ROUNDS];
    cl_event list[KERNELS];
    for (int round = 0; round < ROUNDS; round++) {
        double at = now();
        for (int i = 0; i < KERNELS; i++) clSetKernelArg(kernel, 0, sizeof memory, &memory);
        sets[round] = (now() - at) / KERNELS;
        at = now();
        for (int i = 0; i < KERNELS; i++) clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL);
        launches[round] = (now() - at) / KERNELS;
        CHECK(clFinish(queue) == CL_SUCCESS);
        for (int i = 0; i < KERNELS; i++) clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 0, NULL, &list[i]);
        CHECK(clFinish(queue) == CL_SUCCESS);
        at = now();
        for (int i = 0; i < KERNELS; i++) {
            clGetEventInfo(list[i], CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
            clReleaseEvent(list[i]);
        }
        events[round] = (now() - at) / KERNELS;
        if (begin == NULL) continue;
        at = now();
        for (int i = 0; i < KERNELS; i++) CHECK(clReleaseKernel(clCloneKernel(kernel, NULL)) == CL_SUCCESS);
        clones[round] = (now() - at) / KERNELS;
        at = now();
        cl_command_buffer_khr buffer = create(1, &queue, NULL, &status);
        for (int i = 0; i < KERNELS; i++)
            CHECK(record(buffer, NULL, NULL, kernel, 1, NULL, &one, NULL, 0, NULL, NULL, NULL) == CL_SUCCESS);
        CHECK(finalize(buffer) == CL_SUCCESS);
        records[round] = (now() - at) / KERNELS;
        at = now();
        CHECK(enqueue(0, NULL, buffer, 0, NULL, NULL) == CL_SUCCESS);
        buffers[round] = (now() - at) / KERNELS;
        CHECK(clFinish(queue) == CL_SUCCESS && release(buffer) == CL_SUCCESS);
        ratios[round] = buffers[round] / launches[round] * 1000;
        /* Each launch with its arguments set anew, as libraries do. */
        at = now();
        CHECK(begin(queue, NULL) == CL_SUCCESS);
        for (int i = 0; i < KERNELS; i++) {
            clSetKernelArg(kernel, 0, sizeof memory, &memory);
            CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL) == CL_SUCCESS);
        }
        CHECK(end(queue, &buffer) == CL_SUCCESS);
        captures[round] = (now() - at) / KERNELS;
        CHECK(release(buffer) == CL_SUCCESS);
    }
    told("set an argument", sets);
    told("enqueue a kernel", launches);
    told("ask an event and release it", events);
    if (begin != NULL) {
        told("clone a kernel and release it", clones);
        told("record a kernel", records);
        told("capture a kernel with other arguments", captures);
        told("enqueue a command buffer, a kernel", buffers);
        told("the same, of 1000 of kernels enqueued by hand", ratios);
    }
    return 0;
}
