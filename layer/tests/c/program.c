/* Programs that never heard of clgraph. `program USE` prints what it computes; the tests run it with and without the layer. */
#define _DEFAULT_SOURCE
#define CL_TARGET_OPENCL_VERSION 200
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#include <CL/cl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

#define OK(call)                                                                         \
    do {                                                                                 \
        cl_int status_ = (call);                                                         \
        if (status_ != CL_SUCCESS) {                                                     \
            fprintf(stderr, "%s:%d: %s: %d\n", __FILE__, __LINE__, #call, (int)status_); \
            exit(1);                                                                     \
        }                                                                                \
    } while (0)

enum { LEN = 256, BYTES = LEN * sizeof(cl_uint) };

static const char *SOURCE =
    "kernel void scale(global uint *a, uint by) { a[get_global_id(0)] *= by; }\n"
    "kernel void add(global const uint *a, global uint *to) { to[get_global_id(0)] += a[get_global_id(0)]; }\n";

static cl_device_id device;
static cl_context context;
static cl_program program;

static void start(void) {
    cl_platform_id platform;
    cl_int status;
    OK(clGetPlatformIDs(1, &platform, NULL));
    OK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
    OK(status);
    program = clCreateProgramWithSource(context, 1, &SOURCE, NULL, &status);
    OK(status);
    OK(clBuildProgram(program, 1, &device, "", NULL, NULL));
}

static void end(void) {
    OK(clReleaseProgram(program));
    OK(clReleaseContext(context));
}

static cl_command_queue new_queue(void) {
    cl_int status;
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &status);
    OK(status);
    return queue;
}

static cl_mem new_buffer(void) {
    cl_int status;
    cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, BYTES, NULL, &status);
    OK(status);
    return buffer;
}

static cl_kernel new_kernel(const char *name) {
    cl_int status;
    cl_kernel kernel = clCreateKernel(program, name, &status);
    OK(status);
    return kernel;
}

static void launch(cl_command_queue queue, cl_kernel kernel, cl_uint count, const cl_event *list, cl_event *event) {
    size_t global = LEN;
    OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, NULL, count, list, event));
}

static void set(cl_kernel scale, cl_mem buffer, cl_uint by) {
    OK(clSetKernelArg(scale, 0, sizeof buffer, &buffer));
    OK(clSetKernelArg(scale, 1, sizeof by, &by));
}

static cl_uint sum(const cl_uint *values) {
    cl_uint total = 0;
    for (int i = 0; i < LEN; i++) total = total * 31 + values[i];
    return total;
}

static void tell(cl_command_queue queue, cl_mem buffer) {
    cl_uint values[LEN];
    OK(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, BYTES, values, 0, NULL, NULL));
    printf("%u\n", sum(values));
}

static void fill(cl_command_queue queue, cl_mem buffer, cl_uint with) {
    OK(clEnqueueFillBuffer(queue, buffer, &with, sizeof with, 0, BYTES, 0, NULL, NULL));
}

typedef struct {
    cl_command_queue queue;
    cl_mem a, b;
    cl_kernel scale, add;
} objects;

static objects make(void) {
    objects all = {new_queue(), new_buffer(), new_buffer(), new_kernel("scale"), new_kernel("add")};
    cl_uint values[LEN] = {1, 2, 3};
    OK(clEnqueueWriteBuffer(all.queue, all.a, CL_FALSE, 0, BYTES, values, 0, NULL, NULL));
    OK(clEnqueueWriteBuffer(all.queue, all.b, CL_TRUE, 0, BYTES, values, 0, NULL, NULL));
    set(all.scale, all.a, 3);
    OK(clSetKernelArg(all.add, 0, sizeof all.a, &all.a));
    OK(clSetKernelArg(all.add, 1, sizeof all.b, &all.b));
    return all;
}

static void drop(objects all) {
    OK(clReleaseKernel(all.scale));
    OK(clReleaseKernel(all.add));
    OK(clReleaseMemObject(all.a));
    OK(clReleaseMemObject(all.b));
    OK(clReleaseCommandQueue(all.queue));
}

/* The same run again and again. */
static void same(objects all, int times) {
    for (int i = 0; i < times; i++) {
        fill(all.queue, all.a, 1);
        OK(clEnqueueCopyBuffer(all.queue, all.a, all.b, 0, 0, BYTES, 0, NULL, NULL));
        launch(all.queue, all.scale, 0, NULL, NULL);
        launch(all.queue, all.add, 0, NULL, NULL);
        launch(all.queue, all.scale, 0, NULL, NULL);
        OK(clFinish(all.queue));
    }
    tell(all.queue, all.b);
}

/* A run with other values, other memory and another range each time. */
static void changing(objects all) {
    cl_uint data[8][LEN];
    for (cl_uint i = 0; i < 8; i++) {
        for (cl_uint k = 0; k < LEN; k++) data[i][k] = i * k;
        cl_mem temporary = new_buffer();
        OK(clEnqueueWriteBuffer(all.queue, temporary, CL_FALSE, 0, BYTES, data[i], 0, NULL, NULL));
        cl_kernel scale = new_kernel("scale");
        set(scale, temporary, i + 2);
        size_t global = LEN - i;
        OK(clEnqueueNDRangeKernel(all.queue, scale, 1, NULL, &global, NULL, 0, NULL, NULL));
        OK(clReleaseKernel(scale));
        OK(clEnqueueCopyBuffer(all.queue, temporary, all.b, 0, 4 * i, BYTES - 4 * i, 0, NULL, NULL));
        fill(all.queue, all.a, i);
        OK(clFinish(all.queue));
        OK(clReleaseMemObject(temporary));
    }
    tell(all.queue, all.b);
}

static void nothing(cl_event event, cl_int status, void *data) {
    (void)event;
    (void)status;
    __atomic_fetch_add((int *)data, 1, __ATOMIC_SEQ_CST);
}

/* A run with everything that is not in a graph as it is. */
static void obstacles(objects all) {
    cl_command_queue other = new_queue();
    int called = 0;
    cl_int status;
    for (int i = 0; i < 4; i++) {
        cl_uint *mapped =
            clEnqueueMapBuffer(all.queue, all.a, CL_FALSE, CL_MAP_READ, 0, BYTES, 0, NULL, NULL, &status);
        OK(status);
        OK(clEnqueueUnmapMemObject(all.queue, all.a, mapped, 0, NULL, NULL));
        cl_event gate = clCreateUserEvent(context, &status), elsewhere, done;
        OK(status);
        launch(all.queue, all.scale, 1, &gate, NULL);
        OK(clEnqueueMarkerWithWaitList(other, 0, NULL, &elsewhere));
        launch(all.queue, all.add, 1, &elsewhere, &done);
        OK(clSetEventCallback(done, CL_COMPLETE, nothing, &called));
        OK(clSetUserEventStatus(gate, CL_COMPLETE));
        OK(clFlush(other));
        OK(clFinish(all.queue));
        OK(clReleaseEvent(gate));
        OK(clReleaseEvent(elsewhere));
        OK(clReleaseEvent(done));
    }
    OK(clFinish(other));
    OK(clReleaseCommandQueue(other));
    /* Drivers call when the command is done, and some a bit later. */
    while (__atomic_load_n(&called, __ATOMIC_SEQ_CST) < 4) sched_yield();
    tell(all.queue, all.b);
}

/* Waits where a graph would have none. */
static void waits(objects all) {
    cl_uint values[LEN] = {0};
    fill(all.queue, all.a, 1);
    fill(all.queue, all.b, 2);
    for (int i = 0; i < 10; i++) {
        cl_event event;
        launch(all.queue, all.scale, 0, NULL, &event);
        OK(clWaitForEvents(1, &event));
        OK(clReleaseEvent(event));
        launch(all.queue, all.add, 0, NULL, NULL);
        OK(clEnqueueReadBuffer(all.queue, all.b, CL_TRUE, 0, BYTES, values, 0, NULL, NULL));
        launch(all.queue, all.add, 0, NULL, NULL);
        OK(clFinish(all.queue));
    }
    printf("%u\n", sum(values));
}

/* One wait at the end of a long loop. */
static void turns(objects all, int count) {
    fill(all.queue, all.a, 1);
    for (int i = 0; i < count; i++) {
        set(all.scale, all.a, (cl_uint)i);
        launch(all.queue, all.scale, 0, NULL, NULL);
        launch(all.queue, all.add, 0, NULL, NULL);
    }
    tell(all.queue, all.b);
}

/* The program looks whether it is done. */
static void polls(objects all) {
    for (int i = 0; i < 5; i++) {
        cl_event event;
        cl_int status;
        launch(all.queue, all.scale, 0, NULL, NULL);
        launch(all.queue, all.add, 0, NULL, &event);
        OK(clFlush(all.queue));
        do OK(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL));
        while (status > CL_COMPLETE);
        OK(clReleaseEvent(event));
    }
    tell(all.queue, all.b);
}

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static void *of_its_own(void *with) {
    objects all = *(objects *)with;
    fill(all.queue, all.b, 2);
    cl_uint values[LEN];
    for (int i = 0; i < 200; i++) {
        CHECK(pthread_mutex_lock(&turn) == 0);
        fill(all.queue, all.a, 1);
        launch(all.queue, all.scale, 0, NULL, NULL);
        launch(all.queue, all.add, 0, NULL, NULL);
        OK(clFinish(all.queue));
        CHECK(pthread_mutex_unlock(&turn) == 0);
        sched_yield();
    }
    OK(clEnqueueReadBuffer(all.queue, all.b, CL_TRUE, 0, BYTES, values, 0, NULL, NULL));
    return (void *)(uintptr_t)sum(values);
}

/* Two threads with queues of their own. They take turns: rusticl of Mesa 26 crashes now and then when two threads enqueue at once
 * to two queues. */
static void threads(void) {
    pthread_t ids[2];
    objects all[2] = {make(), make()};
    for (int i = 0; i < 2; i++) CHECK(pthread_create(&ids[i], NULL, of_its_own, &all[i]) == 0);
    for (int i = 0; i < 2; i++) {
        void *total;
        CHECK(pthread_join(ids[i], &total) == 0);
        printf("%u\n", (unsigned)(uintptr_t)total);
    }
    for (int i = 0; i < 2; i++) drop(all[i]);
}

typedef struct {
    cl_command_queue queue;
    cl_mem buffer;
    cl_kernel scale;
    cl_uint with;
    pthread_barrier_t *both;
} share;

static void *of_both(void *given) {
    share *of = given;
    cl_uint values[LEN];
    pthread_barrier_wait(of->both);
    for (int i = 0; i < 200; i++) {
        fill(of->queue, of->buffer, of->with);
        launch(of->queue, of->scale, 0, NULL, NULL);
        OK(clFinish(of->queue));
    }
    OK(clEnqueueReadBuffer(of->queue, of->buffer, CL_TRUE, 0, BYTES, values, 0, NULL, NULL));
    return (void *)(uintptr_t)sum(values);
}

/* Two threads with one queue. Neither makes or releases anything, which PoCL 7.1 does not stand beside calls that enqueue. */
static void one_queue(void) {
    pthread_t ids[2];
    pthread_barrier_t both;
    cl_command_queue queue = new_queue();
    share shares[2];
    CHECK(pthread_barrier_init(&both, NULL, 2) == 0);
    for (cl_uint i = 0; i < 2; i++) {
        shares[i] = (share){queue, new_buffer(), new_kernel("scale"), 5 + 2 * i, &both};
        set(shares[i].scale, shares[i].buffer, 3);
    }
    for (int i = 0; i < 2; i++) CHECK(pthread_create(&ids[i], NULL, of_both, &shares[i]) == 0);
    for (int i = 0; i < 2; i++) {
        void *total;
        CHECK(pthread_join(ids[i], &total) == 0);
        printf("%u\n", (unsigned)(uintptr_t)total);
    }
    for (int i = 0; i < 2; i++) {
        OK(clReleaseKernel(shares[i].scale));
        OK(clReleaseMemObject(shares[i].buffer));
    }
    OK(clReleaseCommandQueue(queue));
}

/* What drivers refuse, they refuse with the layer too. */
static void refused(objects all) {
    cl_uint number = 0;
    size_t global = LEN, local = 7, origin[3] = {0, 0, 0}, region[3] = {0, 1, 1};
    cl_int status;
    cl_event event = NULL;
    fill(all.queue, all.a, 1);
    printf("%d\n", clEnqueueFillBuffer(all.queue, all.a, &number, 3, 0, BYTES, 0, NULL, NULL));
    printf("%d\n", clEnqueueReadBuffer(all.queue, all.a, CL_TRUE, BYTES, 4, &number, 0, NULL, NULL));
    printf("%d\n", clEnqueueReadBuffer(all.queue, NULL, CL_TRUE, 0, 4, &number, 0, NULL, NULL));
    printf("%d\n", clEnqueueReadBuffer(NULL, all.a, CL_TRUE, 0, 4, &number, 0, NULL, NULL));
    printf("%d\n", clEnqueueReadBuffer(all.queue, all.a, CL_TRUE, 0, 4, &number, 1, NULL, NULL));
    printf("%d\n", clEnqueueReadBuffer(all.queue, all.a, CL_TRUE, 0, 4, &number, 1, &event, NULL));
    printf("%d\n", clEnqueueCopyBuffer(all.queue, all.a, all.b, 0, BYTES, 4, 0, NULL, &event));
    printf("%d\n", clEnqueueCopyBufferRect(all.queue, all.a, all.b, origin, origin, region, 0, 0, 0, 0, 0, NULL, NULL));
    printf("%d\n", clEnqueueNDRangeKernel(all.queue, all.scale, 4, NULL, &global, NULL, 0, NULL, NULL));
    printf("%d\n", clEnqueueNDRangeKernel(all.queue, all.scale, 1, NULL, &global, &local, 0, NULL, NULL));
    printf("%d\n", clSetKernelArg(all.scale, 9, 4, &number));
    printf("%d\n", clSetKernelArg(all.scale, 1, 3, &number));
    printf("%d\n", clWaitForEvents(0, NULL));
    printf("%d\n", clWaitForEvents(1, &event));
    printf("%d\n", clFinish(NULL));
    printf("%d\n", clGetEventInfo(NULL, CL_EVENT_COMMAND_EXECUTION_STATUS, 4, &number, NULL));
    void *mapped = clEnqueueMapBuffer(all.queue, all.a, CL_TRUE, CL_MAP_READ, BYTES, 4, 0, NULL, NULL, &status);
    printf("%d %d\n", mapped == NULL, status);
    cl_kernel kernel = clCreateKernel(program, "none", &status);
    printf("%d %d\n", kernel == NULL, status);
    cl_mem buffer = clCreateBuffer(context, 0, 0, NULL, &status);
    printf("%d %d\n", buffer == NULL, status);
    cl_command_queue queue = clCreateCommandQueue(context, NULL, 0, &status);
    printf("%d %d\n", queue == NULL, status);
    OK(clFinish(all.queue));
}

/* Objects have the references that the program took. */
static void references(objects all) {
    cl_event event;
    cl_uint count;
    for (int i = 0; i < 3; i++) {
        launch(all.queue, all.scale, 0, NULL, &event);
        OK(clFinish(all.queue));
        /* A thread of rusticl has one for a moment longer. */
        cl_uint least = UINT32_MAX;
        for (int look = 0; look < 10000; look++) {
            OK(clGetEventInfo(event, CL_EVENT_REFERENCE_COUNT, sizeof count, &count, NULL));
            least = count < least ? count : least;
            sched_yield();
        }
        printf("%u\n", least);
        OK(clReleaseEvent(event));
    }
    OK(clGetKernelInfo(all.scale, CL_KERNEL_REFERENCE_COUNT, sizeof count, &count, NULL));
    printf("%u\n", count);
    OK(clGetMemObjectInfo(all.a, CL_MEM_REFERENCE_COUNT, sizeof count, &count, NULL));
    printf("%u\n", count);
    OK(clGetCommandQueueInfo(all.queue, CL_QUEUE_REFERENCE_COUNT, sizeof count, &count, NULL));
    printf("%u\n", count);
}

/* A new queue for each run. */
static void queues(void) {
    for (int i = 0; i < 300; i++) {
        objects all = make();
        fill(all.queue, all.a, 1);
        launch(all.queue, all.scale, 0, NULL, NULL);
        OK(clFinish(all.queue));
        drop(all);
    }
    printf("300\n");
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    const char *use = argv[1];
    start();
    if (strcmp(use, "leaves") == 0) {
        /* Nothing is released, and for the last command nobody waits: it is done before drivers come to their ends, which is
         * all that some of them stand. */
        static int called;
        objects all = make();
        cl_event event;
        same(all, 50);
        launch(all.queue, all.scale, 0, NULL, &event);
        OK(clSetEventCallback(event, CL_COMPLETE, nothing, &called));
        OK(clFlush(all.queue));
        while (__atomic_load_n(&called, __ATOMIC_SEQ_CST) == 0) sched_yield();
        exit(0);
    }
    if (strcmp(use, "threads") == 0) threads();
    else if (strcmp(use, "one-queue") == 0) one_queue();
    else if (strcmp(use, "queues") == 0) queues();
    else {
        objects all = make();
        if (strcmp(use, "same") == 0) same(all, 1000);
        else if (strcmp(use, "arguments") == 0) {
            /* The program's own to change, also to what is no memory. */
            same(all, 10);
            argv[0] = argv[1] = (char *)(uintptr_t)16;
        }
        else if (strcmp(use, "changing") == 0) changing(all);
        else if (strcmp(use, "obstacles") == 0) obstacles(all);
        else if (strcmp(use, "waits") == 0) waits(all);
        else if (strcmp(use, "turns") == 0) turns(all, 500);
        else if (strcmp(use, "long") == 0) turns(all, 5000);
        else if (strcmp(use, "polls") == 0) polls(all);
        else if (strcmp(use, "refused") == 0) refused(all);
        else if (strcmp(use, "references") == 0) references(all);
        else CHECK(!"a use that there is");
        drop(all);
    }
    end();
    return 0;
}
