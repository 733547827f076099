/* Calls CLBlast (https://github.com/CNugteren/CLBlast) again and again: `library gemm`, or `asum`, or `trsm`. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

/* From clblast_c.h. */
enum { ROW_MAJOR = 101, PLAIN = 111, LOWER = 122, NOT_UNIT = 131, LEFT = 141 };
int CLBlastSgemm(int layout, int a_transposed, int b_transposed, size_t m, size_t n, size_t k, float alpha, cl_mem a,
                 size_t a_at, size_t a_row, cl_mem b, size_t b_at, size_t b_row, float beta, cl_mem c, size_t c_at,
                 size_t c_row, cl_command_queue *queue, cl_event *event);
int CLBlastStrsm(int layout, int side, int triangle, int transposed, int diagonal, size_t m, size_t n, float alpha,
                 cl_mem a, size_t a_at, size_t a_row, cl_mem b, size_t b_at, size_t b_row, cl_command_queue *queue,
                 cl_event *event);

int CLBlastSasum(size_t n, cl_mem sum, size_t sum_at, cl_mem x, size_t x_at, size_t x_step, cl_command_queue *queue,
                 cl_event *event);
int CLBlastSaxpy(size_t n, float alpha, cl_mem x, size_t x_at, size_t x_step, cl_mem y, size_t y_at, size_t y_step,
                 cl_command_queue *queue, cl_event *event);

enum { SIZE = 64, COUNT = SIZE * SIZE, TIMES = 20 };

int main(int argc, char **argv) {
    CHECK(argc == 2);
    cl_platform_id platform;
    cl_device_id device;
    cl_int status;
    CHECK(clGetPlatformIDs(1, &platform, NULL) == CL_SUCCESS);
    CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) == CL_SUCCESS);
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
    CHECK(status == CL_SUCCESS);
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &status);
    CHECK(status == CL_SUCCESS);
    static float values[3][COUNT];
    cl_mem memory[3];
    for (int of = 0; of < 3; of++) {
        for (int i = 0; i < COUNT; i++) values[of][i] = (float)((i * 7 + of) % 5) + (i % (SIZE + 1) == 0 ? 4 * SIZE : 0);
        memory[of] = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof values[of], values[of], &status);
        CHECK(status == CL_SUCCESS);
    }
    for (int i = 0; i < TIMES; i++) {
        if (strcmp(argv[1], "gemm") == 0) {
            for (int to = 1; to < 3; to++)
                CHECK(CLBlastSgemm(ROW_MAJOR, PLAIN, PLAIN, SIZE, SIZE, SIZE, 0.01f, memory[0], 0, SIZE, memory[3 - to], 0,
                                   SIZE, 0.0f, memory[to], 0, SIZE, &queue, NULL) == 0);
        } else if (strcmp(argv[1], "asum") == 0) {
            CHECK(CLBlastSaxpy(COUNT, 0.5f, memory[0], 0, 1, memory[2], 0, 1, &queue, NULL) == 0);
            CHECK(CLBlastSasum(COUNT, memory[1], 0, memory[2], 0, 1, &queue, NULL) == 0);
        } else {
            CHECK(CLBlastStrsm(ROW_MAJOR, LEFT, LOWER, PLAIN, NOT_UNIT, SIZE, SIZE, 1.0f, memory[0], 0, SIZE, memory[1], 0,
                               SIZE, &queue, NULL) == 0);
        }
        CHECK(clFinish(queue) == CL_SUCCESS);
    }
    CHECK(clEnqueueReadBuffer(queue, memory[1], CL_TRUE, 0, sizeof values[1], values[1], 0, NULL, NULL) == CL_SUCCESS);
    double sum = 0;
    for (int i = 0; i < COUNT; i++) sum += values[1][i];
    printf("%.6e\n", sum);
    return 0;
}
