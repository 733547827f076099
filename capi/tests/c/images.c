/* Images: commands, mapped images, parameters of images and samplers. */
#include "common.h"

enum { WIDTH = 16, HEIGHT = 8 };

static bool has_images(bench all) {
    cl_bool has = CL_FALSE;
    CHECK(clGetDeviceInfo(all.device, CL_DEVICE_IMAGE_SUPPORT, sizeof has, &has, NULL) == CL_SUCCESS);
    return has == CL_TRUE;
}

static const char *IMAGES =
    "kernel void invert(read_only image2d_t from, write_only image2d_t to, sampler_t with) {\n"
    "    int2 at = (int2)(get_global_id(0), get_global_id(1));\n"
    "    write_imageui(to, at, 255 - read_imageui(from, with, at));\n"
    "}\n";

static clg_kernel inverting(bench all) {
    cl_int status;
    cl_program program = clCreateProgramWithSource(all.context, 1, &IMAGES, NULL, &status);
    CHECK(clBuildProgram(program, 1, &all.device, "", NULL, NULL) == CL_SUCCESS);
    cl_kernel raw = clCreateKernel(program, "invert", &status);
    CHECK(status == CL_SUCCESS);
    clg_kernel invert;
    OK(clg_kernel_from_cl(all.context, raw, &invert));
    CHECK(clReleaseKernel(raw) == CL_SUCCESS && clReleaseProgram(program) == CL_SUCCESS);
    return invert;
}

static clg_image image(bench all) {
    cl_int status;
    cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
    cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = WIDTH, .image_height = HEIGHT};
    cl_mem raw = clCreateImage(all.context, CL_MEM_READ_WRITE, &format, &desc, NULL, &status);
    CHECK(status == CL_SUCCESS);
    clg_image made;
    OK(clg_image_from_cl(all.context, raw, &made));
    CHECK(clReleaseMemObject(raw) == CL_SUCCESS);
    return made;
}

static void commands_of_images(void) {
    bench all = start();
    if (!has_images(all)) {
        clg_image none;
        cl_mem buffer = clCreateBuffer(all.context, CL_MEM_READ_WRITE, 16, NULL, NULL);
        CHECK(clg_image_from_cl(all.context, buffer, &none) != CLG_SUCCESS);
        CHECK(clReleaseMemObject(buffer) == CL_SUCCESS);
        end(all);
        return;
    }
    cl_int status;
    clg_kernel invert = inverting(all);
    cl_sampler raw_sampler = clCreateSampler(all.context, CL_FALSE, CL_ADDRESS_NONE, CL_FILTER_NEAREST, &status);
    CHECK(status == CL_SUCCESS);
    clg_sampler sampler;
    OK(clg_sampler_from_cl(all.context, raw_sampler, &sampler));
    clg_image from = image(all), to = image(all), other = image(all);
    clg_memory packed = buffer(all, 4 * WIDTH * HEIGHT);
    uint8_t pixels[4 * WIDTH * HEIGHT], result[4 * WIDTH * HEIGHT];
    for (size_t i = 0; i < sizeof pixels; i++) {
        pixels[i] = (uint8_t)i;
    }
    uint32_t grey[4] = {100, 100, 100, 100};
    clg_node write, read, part;
    /* Sizes are compared before data is copied. */
    FAILS(CLG_INVALID, "exactly", clg_graph_write_image(all.graph, CLG_WHOLE_IMAGE(from), pixels, (size_t)1 << 40, NULL, NULL, NULL, &write));
    FAILS(CLG_INVALID, "exactly",
          clg_enqueue_write_image(all.queue, CLG_WHOLE_IMAGE(from), pixels, (size_t)1 << 40, NULL, NULL, 0, NULL, NULL));
    OK(clg_graph_write_image(all.graph, CLG_WHOLE_IMAGE(from), pixels, sizeof pixels, NULL, NULL, NULL, &write));
    clg_arg args[] = {CLG_IMAGE_READ(from), CLG_IMAGE_WRITE(to), CLG_SAMPLER(sampler)};
    clg_launch launch = {.kernel = invert, .args = args, .num_args = 3, .work_dim = 2, .global = {WIDTH, HEIGHT}};
    OK(clg_graph_kernel(all.graph, &launch, NULL, NULL));
    OK(clg_graph_copy_image(all.graph, CLG_WHOLE_IMAGE(to), CLG_WHOLE_IMAGE(other), NULL, NULL));
    clg_area corner = {other, {4, 2, 0}, {2, 2, 1}};
    OK(clg_graph_fill_image(all.graph, corner, CLG_COLOR_UINT, grey, NULL, NULL));
    FAILS(CLG_INVALID, "", clg_graph_fill_image(all.graph, corner, CLG_COLOR_FLOAT, grey, NULL, NULL));
    FAILS(CLG_INVALID, "no kind of colour", clg_graph_fill_image(all.graph, corner, 7, grey, NULL, NULL));
    OK(clg_graph_copy_image_to_buffer(all.graph, CLG_WHOLE_IMAGE(other), CLG_ALL(packed), NULL, NULL));
    OK(clg_graph_copy_buffer_to_image(all.graph, CLG_ALL(packed), CLG_WHOLE_IMAGE(from), NULL, NULL));
    OK(clg_graph_read(all.graph, CLG_ALL(packed), NULL, &read));
    OK(clg_graph_read_image(all.graph, (clg_area){from, {4, 2, 0}, {2, 1, 1}}, NULL, &part));
    clg_executable executable;
    OK(clg_graph_finalize(all.graph, NULL, &executable));
    clg_submission run = submitted(all, executable);
    OK(clg_submission_get(run, read, result, sizeof result));
    for (size_t y = 0; y < HEIGHT; y++) {
        for (size_t x = 0; x < WIDTH; x++) {
            bool is_grey = x - 4 < 2 && y - 2 < 2;
            for (size_t i = 4 * (y * WIDTH + x), c = 0; c < 4; c++) {
                CHECK(result[i + c] == (is_grey ? 100 : 255 - pixels[i + c]));
            }
        }
    }
    OK(clg_submission_get(run, part, result, 8));
    CHECK(result[0] == 100 && result[7] == 100);
    OK(clg_submission_release(run));
    OK(clg_executable_release(executable));
    /* The same on the queue. */
    OK(clg_enqueue_write_image(all.queue, CLG_WHOLE_IMAGE(from), pixels, sizeof pixels, NULL, NULL, 0, NULL, NULL));
    clg_event launched;
    OK(clg_enqueue_kernel(all.queue, &launch, 0, NULL, &launched));
    OK(clg_enqueue_copy_image(all.queue, CLG_WHOLE_IMAGE(to), CLG_WHOLE_IMAGE(other), 1, &launched, NULL));
    corner.image = other;
    OK(clg_enqueue_fill_image(all.queue, corner, CLG_COLOR_UINT, grey, 0, NULL, NULL));
    OK(clg_enqueue_copy_image_to_buffer(all.queue, CLG_WHOLE_IMAGE(other), CLG_ALL(packed), 0, NULL, NULL));
    OK(clg_enqueue_copy_buffer_to_image(all.queue, CLG_ALL(packed), CLG_WHOLE_IMAGE(to), 0, NULL, NULL));
    clg_pending_read pending;
    OK(clg_enqueue_read_image(all.queue, CLG_WHOLE_IMAGE(to), 0, NULL, &pending));
    OK(clg_pending_read_wait(pending, result, sizeof result));
    CHECK(result[0] == 255 && result[4 * (2 * WIDTH + 5)] == 100);
    CHECK(result[4 * (4 * WIDTH) + 1] == 255 - pixels[4 * (4 * WIDTH) + 1]);
    FAILS(CLG_INVALID, "", clg_pending_read_node(pending, &read));
    OK(clg_pending_read_release(pending));
    OK(clg_event_release(launched));
    clg_image layers;
    FAILS(CLG_INVALID, "", clg_image_layers(from, 0, 1, &layers));
    OK(clg_image_release(from));
    OK(clg_image_release(to));
    OK(clg_image_release(other));
    OK(clg_sampler_release(sampler));
    OK(clg_kernel_release(invert));
    OK(clg_memory_release(packed));
    CHECK(clReleaseSampler(raw_sampler) == CL_SUCCESS);
    end(all);
}

/* Adds the number of the row to every byte. */
static int adds_rows(clg_task task, void *data, size_t size, size_t row_pitch, size_t slice_pitch, void *user) {
    (void)task;
    CHECK(row_pitch >= 4 * 4 && slice_pitch >= 2 * row_pitch && size == row_pitch + 4 * 4);
    for (size_t y = 0; y < 2; y++) {
        for (size_t x = 0; x < 4 * 4; x++) {
            ((uint8_t *)data)[y * row_pitch + x] += (uint8_t)(y + 1);
        }
    }
    ++*(int *)user;
    return 0;
}

/* The parts of a task that maps images itself: what it has declared, and what it has not. */
typedef struct {
    clg_image to, other;
} mapped_images;

static int maps_itself(clg_task task, void *user) {
    mapped_images *all = user;
    clg_area part = {all->to, {4, 2, 0}, {4, 2, 1}};
    clg_mapped at;
    FAILS(CLG_INVALID, "clg_map_mode", clg_task_map_image(task, part, 8, &at));
    FAILS(CLG_INVALID, "`clg_use.reads`", clg_task_map_image(task, CLG_WHOLE_IMAGE(all->other), CLG_MAP_READ, &at));
    OK(clg_task_map_image(task, part, CLG_MAP_WRITE_INVALIDATE, &at));
    CHECK(at.row_pitch >= 4 * 4 && at.size == at.row_pitch + 4 * 4);
    for (size_t y = 0; y < 2; y++) {
        memset((uint8_t *)at.data + y * at.row_pitch, (int)(y + 5), 4 * 4);
    }
    return 0;
}

static void tasks_map_images(void) {
    bench all = start();
    if (!has_images(all)) {
        end(all);
        return;
    }
    mapped_images state = {.to = image(all), .other = image(all)};
    clg_use use = {.image = state.to, .writes = true};
    clg_host_task task = {.function = maps_itself, .user = &state, .uses = &use, .num_uses = 1};
    uint32_t ten[4] = {10, 10, 10, 10};
    clg_node read;
    OK(clg_graph_fill_image(all.graph, CLG_WHOLE_IMAGE(state.to), CLG_COLOR_UINT, ten, NULL, NULL));
    OK(clg_graph_host_task(all.graph, &task, NULL, NULL));
    OK(clg_graph_read_image(all.graph, CLG_WHOLE_IMAGE(state.to), NULL, &read));
    clg_executable executable;
    OK(clg_graph_finalize(all.graph, NULL, &executable));
    clg_submission run = submitted(all, executable);
    uint8_t result[4 * WIDTH * HEIGHT];
    OK(clg_submission_get(run, read, result, sizeof result));
    CHECK(result[0] == 10 && result[4 * (2 * WIDTH + 4)] == 5 && result[4 * (3 * WIDTH + 7)] == 6 && result[4 * (3 * WIDTH + 8)] == 10);
    OK(clg_submission_release(run));
    OK(clg_executable_release(executable));
    OK(clg_image_release(state.to));
    OK(clg_image_release(state.other));
    end(all);
}

static void maps_and_parameters(void) {
    bench all = start();
    if (!has_images(all)) {
        end(all);
        return;
    }
    clg_image image_a = image(all), image_b = image(all);
    uint32_t ten[4] = {10, 10, 10, 10}, twenty[4] = {20, 20, 20, 20};
    int calls = 0;
    clg_map_task task = {.function = adds_rows, .user = &calls};
    clg_area part = {image_a, {4, 2, 0}, {4, 2, 1}};
    clg_node read;
    OK(clg_graph_fill_image(all.graph, CLG_WHOLE_IMAGE(image_a), CLG_COLOR_UINT, ten, NULL, NULL));
    OK(clg_graph_map_image(all.graph, part, CLG_MAP_WRITE, &task, NULL, NULL));
    FAILS(CLG_INVALID, "clg_map_mode", clg_graph_map_image(all.graph, part, 8, &task, NULL, NULL));
    OK(clg_graph_read_image(all.graph, CLG_WHOLE_IMAGE(image_a), NULL, &read));
    clg_executable executable;
    OK(clg_graph_finalize(all.graph, NULL, &executable));
    clg_submission run = submitted(all, executable);
    uint8_t result[4 * WIDTH * HEIGHT];
    OK(clg_submission_get(run, read, result, sizeof result));
    CHECK(calls == 1 && result[0] == 10 && result[4 * (2 * WIDTH + 4)] == 11 && result[4 * (3 * WIDTH + 7)] == 12);
    CHECK(result[4 * (3 * WIDTH + 8)] == 10);
    OK(clg_submission_release(run));
    OK(clg_executable_release(executable));
    OK(clg_enqueue_map_image(all.queue, part, CLG_MAP_WRITE, &task, 0, NULL, &run));
    OK(clg_submission_wait(run));
    OK(clg_submission_release(run));
    clg_pending_read pending;
    OK(clg_enqueue_read_image(all.queue, CLG_WHOLE_IMAGE(image_a), 0, NULL, &pending));
    OK(clg_pending_read_wait(pending, result, sizeof result));
    CHECK(calls == 2 && result[0] == 10 && result[4 * (3 * WIDTH + 7)] == 14);
    OK(clg_pending_read_release(pending));

    /* Parameters: another image, another sampler. */
    cl_int status;
    clg_kernel invert = inverting(all);
    clg_sampler samplers[2];
    for (size_t i = 0; i < 2; i++) {
        cl_addressing_mode mode = i == 0 ? CL_ADDRESS_NONE : CL_ADDRESS_CLAMP;
        cl_sampler made = clCreateSampler(all.context, CL_FALSE, mode, CL_FILTER_NEAREST, &status);
        CHECK(status == CL_SUCCESS);
        OK(clg_sampler_from_cl(all.context, made, &samplers[i]));
        CHECK(clReleaseSampler(made) == CL_SUCCESS);
    }
    clg_image to = image(all);
    clg_parameter source, with;
    OK(clg_parameter_create_image(image_a, &source));
    OK(clg_parameter_create_sampler(samplers[0], &with));
    FAILS(CLG_INVALID, "", clg_parameter_create_image(NULL, &source));
    OK(clg_enqueue_fill_image(all.queue, CLG_WHOLE_IMAGE(image_a), CLG_COLOR_UINT, ten, 0, NULL, NULL));
    OK(clg_enqueue_fill_image(all.queue, CLG_WHOLE_IMAGE(image_b), CLG_COLOR_UINT, twenty, 0, NULL, NULL));
    clg_graph graph;
    OK(clg_graph_create(all.queue, &graph));
    clg_arg args[] = {{.kind = CLG_ARG_PARAMETER_READ, .parameter = source}, CLG_IMAGE_WRITE(to), CLG_PARAMETER(with)};
    clg_launch launch = {.kernel = invert, .args = args, .num_args = 3, .work_dim = 2, .global = {WIDTH, HEIGHT}};
    clg_node node;
    OK(clg_graph_kernel(graph, &launch, NULL, &node));
    OK(clg_graph_read_image(graph, CLG_WHOLE_IMAGE(to), NULL, &read));
    clg_finalize_options options = {.updatable = true};
    OK(clg_graph_finalize(graph, &options, &executable));
    for (size_t i = 0; i < 2; i++) {
        run = submitted(all, executable);
        OK(clg_submission_get(run, read, result, sizeof result));
        CHECK(result[0] == (i == 0 ? 245 : 235) && result[sizeof result - 1] == result[0]);
        OK(clg_submission_release(run));
        OK(clg_parameter_set_image(source, image_b));
        OK(clg_parameter_set_sampler(with, samplers[1]));
        OK(clg_executable_update(executable, &node, 1));
    }
    FAILS(CLG_INVALID, "", clg_parameter_set_sampler(source, samplers[0]));
    FAILS(CLG_INVALID, "", clg_parameter_set_image(with, image_a));
    OK(clg_executable_release(executable));
    OK(clg_graph_release(graph));
    OK(clg_parameter_release(source));
    OK(clg_parameter_release(with));
    OK(clg_image_release(image_a));
    OK(clg_image_release(image_b));
    OK(clg_image_release(to));
    OK(clg_sampler_release(samplers[0]));
    OK(clg_sampler_release(samplers[1]));
    OK(clg_kernel_release(invert));
    end(all);
}

int main(void) {
    commands_of_images();
    maps_and_parameters();
    tasks_map_images();
    CHECK(clg_live_objects() == 0);
    puts("ok");
    return 0;
}
