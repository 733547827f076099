/* Edges of a photograph at eight scales: blurred in two directions, and the gradient taken. One graph, submitted once for each
 * scale, with another radius each time; and the same with the calls of OpenCL.
 *
 *     edges PHOTO.jpg EDGES.jpg
 */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <clgraph.h>
#include <string.h>
#include <time.h>
#include "photo.h"

static const char *SOURCE =
    "kernel void blur(global const uchar *in, global uchar *out, int dx, int dy, int radius) {\n"
    "    int x = get_global_id(0), y = get_global_id(1), w = get_global_size(0), h = get_global_size(1), sum = 0;\n"
    "    for (int i = -radius; i <= radius; i++)\n"
    "        sum += in[clamp(y + i * dy, 0, h - 1) * w + clamp(x + i * dx, 0, w - 1)];\n"
    "    out[y * w + x] = sum / (2 * radius + 1);\n"
    "}\n"
    "kernel void gradient(global const uchar *in, global uchar *out) {\n"
    "    int x = get_global_id(0), y = get_global_id(1), w = get_global_size(0), h = get_global_size(1);\n"
    "    int dx = in[y * w + min(x + 1, w - 1)] - in[y * w + max(x - 1, 0)];\n"
    "    int dy = in[min(y + 1, h - 1) * w + x] - in[max(y - 1, 0) * w + x];\n"
    "    out[y * w + x] = min(4 * (int)sqrt((float)(dx * dx + dy * dy)), 255);\n"
    "}\n";

enum { SCALES = 8 };

/* A call of clgraph. */
static void run(clg_status status) {
    if (status != CLG_SUCCESS) {
        fprintf(stderr, "%s: %s\n", clg_status_name(status), clg_last_error());
        exit(1);
    }
}

/* A call of OpenCL. */
static void check(cl_int status) {
    if (status != CL_SUCCESS) {
        fprintf(stderr, "OpenCL: %d\n", status);
        exit(1);
    }
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: %s PHOTO.jpg EDGES.jpg\n", argv[0]);
        return 2;
    }
    photo of = photo_read(argv[1]);
    size_t size = of.width * of.height, range[2] = {of.width, of.height};

    /* What every OpenCL program has. */
    cl_platform_id platform;
    cl_device_id device;
    cl_int status;
    check(clGetPlatformIDs(1, &platform, NULL));
    check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
    check(status);
    cl_command_queue command_queue = clCreateCommandQueue(context, device, 0, &status);
    check(status);
    cl_program program = clCreateProgramWithSource(context, 1, &SOURCE, NULL, &status);
    check(status);
    check(clBuildProgram(program, 1, &device, "-cl-kernel-arg-info", NULL, NULL));
    cl_kernel blur_kernel = clCreateKernel(program, "blur", &status), gradient_kernel = clCreateKernel(program, "gradient", &status);
    cl_mem buffers[3];
    for (int i = 0; i < 3; i++) {
        buffers[i] = clCreateBuffer(context, CL_MEM_READ_WRITE, size, NULL, &status);
        check(status);
    }

    /* The graph, with these objects. */
    clg_queue queue;
    clg_kernel blur, gradient;
    clg_memory input, across, down;
    run(clg_queue_from_cl(command_queue, &queue));
    run(clg_kernel_from_cl(context, blur_kernel, &blur));
    run(clg_kernel_from_cl(context, gradient_kernel, &gradient));
    run(clg_memory_from_cl(context, buffers[0], &input));
    run(clg_memory_from_cl(context, buffers[1], &across));
    run(clg_memory_from_cl(context, buffers[2], &down));
    clg_graph graph;
    run(clg_graph_create(queue, &graph));
    cl_int zero = 0, one = 1, first = 1;
    clg_parameter radius;
    run(clg_parameter_create(&first, sizeof first, &radius));
    clg_node result, blurs[2];
    run(clg_graph_write(graph, CLG_ALL(input), of.pixels, size, NULL, NULL, NULL, NULL));
    clg_arg x_args[] = {CLG_READ(input), CLG_WRITE(across), CLG_VALUE(one), CLG_VALUE(zero), CLG_PARAMETER(radius)};
    clg_arg y_args[] = {CLG_READ(across), CLG_WRITE(down), CLG_VALUE(zero), CLG_VALUE(one), CLG_PARAMETER(radius)};
    clg_arg edge_args[] = {CLG_READ(down), CLG_WRITE(across)};
    clg_launch x = {.kernel = blur, .args = x_args, .num_args = 5, .work_dim = 2, .global = {of.width, of.height}};
    clg_launch y = {.kernel = blur, .args = y_args, .num_args = 5, .work_dim = 2, .global = {of.width, of.height}};
    clg_launch edge = {.kernel = gradient, .args = edge_args, .num_args = 2, .work_dim = 2, .global = {of.width, of.height}};
    run(clg_graph_kernel(graph, &x, NULL, &blurs[0]));
    run(clg_graph_kernel(graph, &y, NULL, &blurs[1]));
    run(clg_graph_kernel(graph, &edge, NULL, NULL));
    run(clg_graph_read(graph, CLG_ALL(across), NULL, &result));
    clg_finalize_options options = {.updatable = true};
    clg_executable executable;
    run(clg_graph_finalize(graph, &options, &executable));

    /* The driver compiles the kernels when they first run. */
    clg_submission warm;
    run(clg_executable_submit(executable, queue, NULL, NULL, &warm));
    run(clg_submission_wait(warm));
    run(clg_submission_release(warm));

    unsigned char *by_graph[SCALES], *by_loop = malloc(size);
    double start = seconds();
    for (cl_int scale = 0; scale < SCALES; scale++) {
        cl_int now = 1 << (scale / 2);
        clg_submission submission;
        run(clg_parameter_set(radius, &now, sizeof now));
        run(clg_executable_update(executable, blurs, 2));
        run(clg_executable_submit(executable, queue, NULL, NULL, &submission));
        run(clg_submission_wait(submission));
        by_graph[scale] = malloc(size);
        run(clg_submission_get(submission, result, by_graph[scale], size));
        run(clg_submission_release(submission));
    }
    double graph_time = seconds() - start;

    /* The same by hand. */
    start = seconds();
    int differs = 0;
    for (cl_int scale = 0; scale < SCALES; scale++) {
        cl_int now = 1 << (scale / 2);
        check(clEnqueueWriteBuffer(command_queue, buffers[0], CL_FALSE, 0, size, of.pixels, 0, NULL, NULL));
        for (int pass = 0; pass < 2; pass++) {
            cl_int dx = 1 - pass, dy = pass;
            check(clSetKernelArg(blur_kernel, 0, sizeof(cl_mem), &buffers[pass]));
            check(clSetKernelArg(blur_kernel, 1, sizeof(cl_mem), &buffers[pass + 1]));
            check(clSetKernelArg(blur_kernel, 2, sizeof dx, &dx));
            check(clSetKernelArg(blur_kernel, 3, sizeof dy, &dy));
            check(clSetKernelArg(blur_kernel, 4, sizeof now, &now));
            check(clEnqueueNDRangeKernel(command_queue, blur_kernel, 2, NULL, range, NULL, 0, NULL, NULL));
        }
        check(clSetKernelArg(gradient_kernel, 0, sizeof(cl_mem), &buffers[2]));
        check(clSetKernelArg(gradient_kernel, 1, sizeof(cl_mem), &buffers[1]));
        check(clEnqueueNDRangeKernel(command_queue, gradient_kernel, 2, NULL, range, NULL, 0, NULL, NULL));
        check(clEnqueueReadBuffer(command_queue, buffers[1], CL_TRUE, 0, size, by_loop, 0, NULL, NULL));
        differs |= memcmp(by_graph[scale], by_loop, size) != 0;
    }
    double loop_time = seconds() - start;
    printf("%zu x %zu pixels, %d scales: %.1f ms by the graph, %.1f ms by the loop of calls; the pictures are %s\n", of.width,
           of.height, SCALES, graph_time * 1e3, loop_time * 1e3, differs ? "different" : "the same");
    photo edges = {of.width, of.height, by_graph[3]};
    photo_write(argv[2], edges);

    for (int i = 0; i < SCALES; i++) {
        free(by_graph[i]);
    }
    free(by_loop);
    free(of.pixels);
    run(clg_executable_release(executable));
    run(clg_graph_release(graph));
    run(clg_parameter_release(radius));
    run(clg_memory_release(input));
    run(clg_memory_release(across));
    run(clg_memory_release(down));
    run(clg_kernel_release(blur));
    run(clg_kernel_release(gradient));
    run(clg_queue_release(queue));
    for (int i = 0; i < 3; i++) {
        check(clReleaseMemObject(buffers[i]));
    }
    check(clReleaseKernel(blur_kernel));
    check(clReleaseKernel(gradient_kernel));
    check(clReleaseProgram(program));
    check(clReleaseCommandQueue(command_queue));
    check(clReleaseContext(context));
    if (differs || clg_live_objects() != 0) {
        return 1;
    }
    puts("ok");
    return 0;
}
