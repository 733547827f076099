/* What a program without command buffers calls, 1 000 times each: `./ci/instructions` counts what the layer adds. Prints the name of each
 * call before it is counted. */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>

#include "check.h"

enum { CALLS = 1000 };

static cl_device_id device;
static cl_context context;
static cl_program program;
static cl_command_queue queue;
static cl_mem memory;
static cl_kernel kernel;
static cl_event events[CALLS];
static cl_mem buffers[CALLS];
static cl_kernel kernels[CALLS];

static void launch(int at) {
    static const size_t one = 1;
    CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL) == CL_SUCCESS);
    (void)at;
}

static void launch_with_event(int at) {
    static const size_t one = 1;
    const cl_event *before = at == 0 ? NULL : &events[at - 1];
    CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, at > 0, before, &events[at]) == CL_SUCCESS);
}

static void set_argument(int at) {
    CHECK(clSetKernelArg(kernel, 0, sizeof memory, &memory) == CL_SUCCESS);
    (void)at;
}

static void ask_event(int at) {
    cl_int status;
    CHECK(clGetEventInfo(events[at], CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL) == CL_SUCCESS);
}

static void wait_for_event(int at) { CHECK(clWaitForEvents(1, &events[at]) == CL_SUCCESS); }

static void release_event(int at) { CHECK(clReleaseEvent(events[at]) == CL_SUCCESS); }

static void read_buffer(int at) {
    CHECK(clEnqueueReadBuffer(queue, memory, CL_TRUE, 0, 4, &at, 0, NULL, NULL) == CL_SUCCESS);
}

static void finish(int at) {
    CHECK(clFinish(queue) == CL_SUCCESS);
    (void)at;
}

static void create_buffer(int at) {
    buffers[at] = clCreateBuffer(context, CL_MEM_READ_WRITE, 64, NULL, NULL);
    CHECK(buffers[at] != NULL);
}

static void release_buffer(int at) { CHECK(clReleaseMemObject(buffers[at]) == CL_SUCCESS); }

static void create_kernel(int at) {
    kernels[at] = clCreateKernel(program, "add", NULL);
    CHECK(kernels[at] != NULL);
}

static void release_kernel(int at) { CHECK(clReleaseKernel(kernels[at]) == CL_SUCCESS); }

static void ask_device(int at) {
    cl_uint units;
    CHECK(clGetDeviceInfo(device, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof units, &units, NULL) == CL_SUCCESS);
    (void)at;
}

__attribute__((noinline)) void collected(void (*call)(int)) {
    for (int at = 0; at < CALLS; at++) call(at);
}

__attribute__((noinline)) void counted(const char *name, void (*call)(int)) {
    printf("layer, %d calls of %s\n", CALLS, name);
    collected(call);
}

int main(void) {
    cl_platform_id platform;
    cl_int status;
    CHECK(clGetPlatformIDs(1, &platform, NULL) == CL_SUCCESS);
    CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) == CL_SUCCESS);
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
    CHECK(status == CL_SUCCESS);
    const char *source = "kernel void add(global uint *a) { a[0] += 1; }";
    program = clCreateProgramWithSource(context, 1, &source, NULL, &status);
    CHECK(status == CL_SUCCESS && clBuildProgram(program, 1, &device, "", NULL, NULL) == CL_SUCCESS);
    queue = clCreateCommandQueueWithProperties(context, device, NULL, &status);
    CHECK(status == CL_SUCCESS);
    memory = clCreateBuffer(context, CL_MEM_READ_WRITE, 64, NULL, &status);
    CHECK(status == CL_SUCCESS);
    kernel = clCreateKernel(program, "add", &status);
    CHECK(status == CL_SUCCESS && clSetKernelArg(kernel, 0, sizeof memory, &memory) == CL_SUCCESS);
    counted("clEnqueueNDRangeKernel", launch);
    counted("clFinish", finish);
    counted("clEnqueueNDRangeKernel with events", launch_with_event);
    counted("clWaitForEvents", wait_for_event);
    counted("clGetEventInfo", ask_event);
    counted("clReleaseEvent", release_event);
    counted("clSetKernelArg", set_argument);
    counted("clEnqueueReadBuffer", read_buffer);
    counted("clCreateBuffer", create_buffer);
    counted("clReleaseMemObject", release_buffer);
    counted("clCreateKernel", create_kernel);
    counted("clReleaseKernel", release_kernel);
    counted("clGetDeviceInfo", ask_device);
    return 0;
}
