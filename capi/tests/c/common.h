/* What the C tests share: an OpenCL context with a queue and kernels, and checks. */
#ifndef COMMON_H
#define COMMON_H

#define CL_TARGET_OPENCL_VERSION 200
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <clgraph.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: not so: %s (last error: %s)\n", __FILE__, __LINE__, #condition, clg_last_error()); \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

/* A call that succeeds. */
#define OK(call)                                                                                                       \
    do {                                                                                                               \
        clg_status status_ = (call);                                                                                   \
        if (status_ != CLG_SUCCESS) {                                                                                  \
            fprintf(stderr, "%s:%d: %s: %s: %s\n", __FILE__, __LINE__, #call, clg_status_name(status_),                \
                    clg_last_error());                                                                                 \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

/* A call that fails with a status, and a text that has these words. */
#define FAILS(status, words, call)                                                                                     \
    do {                                                                                                               \
        CHECK((call) == (status));                                                                                     \
        CHECK(clg_last_status() == (status));                                                                          \
        CHECK(strstr(clg_last_error(), (words)) != NULL);                                                              \
    } while (0)

typedef struct {
    cl_device_id device;
    cl_context context;
    cl_command_queue cl_queue;
    cl_program program;
    clg_queue queue;
    clg_graph graph;
} bench;

static const char *SOURCE =
    "kernel void scale(global uint *a, uint by) { a[get_global_id(0)] *= by; }\n"
    "kernel void add(global const uint *a, global const uint *b, global uint *to) {\n"
    "    size_t i = get_global_id(0); to[i] = a[i] + b[i];\n"
    "}\n"
    "kernel void count_down(global uint *a) { *a -= 1; }\n"
    "kernel void total(global const uint *a, global uint *to, local uint *room) {\n"
    "    size_t i = get_local_id(0); room[i] = a[i]; barrier(CLK_LOCAL_MEM_FENCE);\n"
    "    if (i == 0) { uint sum = 0; for (size_t k = 0; k < get_local_size(0); k++) sum += room[k]; *to = sum; }\n"
    "}\n";

static bench start(void) {
    bench all;
    cl_platform_id platform;
    cl_int status;
    CHECK(clGetPlatformIDs(1, &platform, NULL) == CL_SUCCESS);
    CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &all.device, NULL) == CL_SUCCESS);
    all.context = clCreateContext(NULL, 1, &all.device, NULL, NULL, &status);
    CHECK(status == CL_SUCCESS);
    all.cl_queue = clCreateCommandQueue(all.context, all.device, 0, &status);
    CHECK(status == CL_SUCCESS);
    all.program = clCreateProgramWithSource(all.context, 1, &SOURCE, NULL, &status);
    CHECK(status == CL_SUCCESS);
    CHECK(clBuildProgram(all.program, 1, &all.device, "-cl-kernel-arg-info", NULL, NULL) == CL_SUCCESS);
    OK(clg_queue_from_cl(all.cl_queue, &all.queue));
    OK(clg_graph_create(all.queue, &all.graph));
    return all;
}

__attribute__((unused)) static void end(bench all) {
    OK(clg_graph_release(all.graph));
    OK(clg_queue_release(all.queue));
    CHECK(clReleaseProgram(all.program) == CL_SUCCESS);
    CHECK(clReleaseCommandQueue(all.cl_queue) == CL_SUCCESS);
    CHECK(clReleaseContext(all.context) == CL_SUCCESS);
}

__attribute__((unused)) static clg_kernel kernel(bench all, const char *name) {
    cl_int status;
    cl_kernel raw = clCreateKernel(all.program, name, &status);
    CHECK(status == CL_SUCCESS);
    clg_kernel wrapped;
    OK(clg_kernel_from_cl(all.context, raw, &wrapped));
    CHECK(clReleaseKernel(raw) == CL_SUCCESS);
    return wrapped;
}

__attribute__((unused)) static clg_memory buffer(bench all, size_t size) {
    cl_int status;
    cl_mem raw = clCreateBuffer(all.context, CL_MEM_READ_WRITE, size, NULL, &status);
    CHECK(status == CL_SUCCESS);
    clg_memory memory;
    OK(clg_memory_from_cl(all.context, raw, &memory));
    CHECK(clReleaseMemObject(raw) == CL_SUCCESS);
    return memory;
}

__attribute__((unused)) static clg_submission submitted(bench all, clg_executable executable) {
    clg_submission run;
    OK(clg_executable_submit(executable, all.queue, NULL, NULL, &run));
    OK(clg_submission_wait(run));
    return run;
}

#endif
