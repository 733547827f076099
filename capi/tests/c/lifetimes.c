/* Handles that are released in every order while submissions that use them wait, and then run. */
#include "common.h"

/* All orders of the first things, with the others between them at places that differ. */
enum { LEN = 256, FIRST = 6, KINDS = 12 };

static void slow(void) {
    struct { long seconds, nanoseconds; } nap = {0, 300000};
    extern int nanosleep(const void *, void *);
    nanosleep(&nap, NULL);
}

static int waits(clg_task task, void *user) {
    (void)task;
    slow();
    ++*(volatile int *)user;
    return 0;
}

static void given_back(void *user) { ++*(volatile int *)user; }

/* The order of number `which`, of those in which the things can be released. */
static void order(int which, int *of) {
    int left[FIRST], rest = which;
    for (int i = 0; i < FIRST; i++) {
        left[i] = i;
    }
    for (int n = FIRST; n > 0; n--) {
        int at = rest % n;
        rest /= n;
        of[FIRST - n] = left[at];
        memmove(left + at, left + at + 1, (size_t)(n - at - 1) * sizeof *left);
    }
    for (int kind = FIRST; kind < KINDS; kind++) {
        int at = (which * (2 * kind + 1) + kind) % (kind + 1);
        memmove(of + at + 1, of + at, (size_t)(kind - at) * sizeof *of);
        of[at] = kind;
    }
}

/* An image, where the device has them. */
static clg_image image(bench all) {
    cl_bool has = CL_FALSE;
    CHECK(clGetDeviceInfo(all.device, CL_DEVICE_IMAGE_SUPPORT, sizeof has, &has, NULL) == CL_SUCCESS);
    if (has != CL_TRUE) {
        return NULL;
    }
    cl_int status;
    cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
    cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 4, .image_height = 4};
    cl_mem raw = clCreateImage(all.context, CL_MEM_READ_WRITE, &format, &desc, NULL, &status);
    CHECK(status == CL_SUCCESS);
    clg_image made;
    OK(clg_image_from_cl(all.context, raw, &made));
    CHECK(clReleaseMemObject(raw) == CL_SUCCESS);
    return made;
}

static void in_order(bench all, int which, volatile int *ran, volatile int *back) {
    clg_memory a = buffer(all, 4 * LEN), b = buffer(all, 4 * LEN);
    clg_image picture = image(all);
    clg_kernel scale = kernel(all, "scale");
    clg_queue queue;
    OK(clg_queue_from_cl(all.cl_queue, &queue));
    clg_graph graph;
    OK(clg_graph_create(queue, &graph));
    static uint32_t data[LEN];
    uint32_t seven = 7, three = 3, red[4] = {1, 0, 0, 0};
    clg_parameter by;
    OK(clg_parameter_create(&three, sizeof three, &by));
    clg_node write, read;
    OK(clg_graph_write(graph, CLG_ALL(a), data, sizeof data, given_back, (void *)back, NULL, &write));
    clg_use use = {.range = CLG_ALL(a), .reads = true, .writes = true};
    clg_host_task task = {.function = waits, .user = (void *)ran, .uses = &use, .num_uses = 1};
    OK(clg_graph_host_task(graph, &task, NULL, NULL));
    OK(clg_graph_fill(graph, (clg_range){a, 0, 16}, &seven, sizeof seven, NULL, NULL));
    clg_arg args[] = {CLG_READ_WRITE(a), CLG_PARAMETER(by)};
    clg_launch launch = {.kernel = scale, .args = args, .num_args = 2, .work_dim = 1, .global = {LEN}};
    OK(clg_graph_kernel(graph, &launch, NULL, NULL));
    OK(clg_graph_copy(graph, CLG_ALL(a), CLG_ALL(b), NULL, NULL));
    if (picture != NULL) {
        OK(clg_graph_fill_image(graph, CLG_WHOLE_IMAGE(picture), CLG_COLOR_UINT, red, NULL, NULL));
        OK(clg_graph_copy_image_to_buffer(graph, CLG_WHOLE_IMAGE(picture), (clg_range){b, 64, 64}, NULL, NULL));
    }
    OK(clg_graph_read(graph, CLG_ALL(b), NULL, &read));
    clg_executable executable;
    OK(clg_graph_finalize(graph, NULL, &executable));
    /* Both runs wait until everything is released. */
    clg_user_event go;
    OK(clg_user_event_create(all.context, &go));
    clg_input input = {.write = write, .data = data, .size = sizeof data, .release = given_back, .user = (void *)back};
    clg_submit_options with = {.user_events = &go, .num_user_events = 1};
    clg_submission first, second, kept = NULL;
    OK(clg_executable_submit(executable, queue, &with, NULL, &first));
    with.inputs = &input, with.num_inputs = 1;
    OK(clg_executable_submit(executable, queue, &with, NULL, &second));
    clg_event ended;
    OK(clg_submission_event(second, &ended));
    clg_event marked;
    OK(clg_enqueue_marker(queue, 1, &ended, &marked));
    /* One handle of some stays, to look at the result. */
    if (which % 3 == 0) {
        kept = second;
        OK(clg_submission_retain(kept));
    }
    int next[KINDS];
    order(which, next);
    for (int i = 0; i < KINDS; i++) {
        switch (next[i]) {
        case 0: OK(clg_graph_release(graph)); break;
        case 1: OK(clg_executable_release(executable)); break;
        case 2: OK(clg_memory_release(a)); break;
        case 3: OK(clg_memory_release(b)); break;
        case 4: OK(clg_submission_release(second)); break;
        case 5: OK(clg_submission_release(first)); break;
        case 6: OK(clg_queue_release(queue)); break;
        case 7: OK(clg_kernel_release(scale)); break;
        case 8: OK(clg_parameter_release(by)); break;
        case 9: OK(clg_event_release(ended)); break;
        case 10: OK(clg_event_release(marked)); break;
        default:
            if (picture != NULL) {
                OK(clg_image_release(picture));
            }
        }
    }
    bool done = true;
    OK(clg_user_event_is_done(go, &done));
    CHECK(!done);
    OK(clg_user_event_complete(go));
    OK(clg_user_event_release(go));
    if (kept != NULL) {
        uint32_t result[LEN];
        OK(clg_submission_wait(kept));
        OK(clg_submission_get(kept, read, result, sizeof result));
        CHECK(result[3] == 21 && result[4] == 0 && (picture == NULL || result[16] == 1));
        OK(clg_submission_release(kept));
    }
}

int main(void) {
    static volatile int ran, back;
    bench all = start();
    int orders = 0;
    /* All 720 orders, or a sample of them where time is short. */
    const char *step = getenv("CLGRAPH_TEST_STEP");
    for (int which = 0; which < 720; which += step ? atoi(step) : 1) {
        in_order(all, which, &ran, &back);
        orders++;
    }
    end(all);
    for (int i = 0; i < 100000 && (ran < 2 * orders || back < 2 * orders); i++) {
        slow();
    }
    CHECK(ran == 2 * orders && back == 2 * orders);
    CHECK(clg_live_objects() == 0);
    puts("ok");
    return 0;
}
