/* Graphs from C: built, finalized, submitted, updated, on the path that clgraph chooses and on the others. */
#include "common.h"

enum { LEN = 64 };

static void all_is(const uint32_t *data, uint32_t value) {
    for (size_t i = 0; i < LEN; i++) {
        CHECK(data[i] == value);
    }
}

static void kernels_and_transfers(int path) {
    bench all = start();
    clg_memory a = buffer(all, 4 * LEN), b = buffer(all, 4 * LEN), c = buffer(all, 4 * LEN);
    clg_kernel scale = kernel(all, "scale"), add = kernel(all, "add");
    uint32_t ones[LEN], two = 2, seven = 7, factor = 3;
    for (size_t i = 0; i < LEN; i++) {
        ones[i] = 1;
    }
    clg_node write, launch, fill, sum, copy, read;
    clg_node_options named = {.label = "input"};
    OK(clg_graph_write(all.graph, CLG_ALL(a), ones, sizeof ones, NULL, NULL, &named, &write));
    clg_parameter by;
    OK(clg_parameter_create(&factor, sizeof factor, &by));
    clg_arg scale_args[] = {CLG_READ_WRITE(a), CLG_PARAMETER(by)};
    clg_launch scaling = {.kernel = scale, .args = scale_args, .num_args = 2, .work_dim = 1, .global = {LEN}};
    OK(clg_graph_kernel(all.graph, &scaling, NULL, &launch));
    OK(clg_graph_fill(all.graph, CLG_ALL(b), &two, sizeof two, NULL, &fill));
    clg_arg add_args[] = {CLG_READ(a), CLG_READ(b), CLG_WRITE(c)};
    clg_launch adding = {.kernel = add, .args = add_args, .num_args = 3, .work_dim = 1, .global = {LEN}, .local = {8}};
    OK(clg_graph_kernel(all.graph, &adding, NULL, &sum));
    clg_range half = {c, 0, 2 * LEN}, other = {a, 2 * LEN, CLG_WHOLE};
    OK(clg_graph_copy(all.graph, half, other, NULL, &copy));
    OK(clg_graph_read(all.graph, CLG_ALL(c), NULL, &read));
    clg_node end_node;
    clg_node_options after = {.after = (clg_node[]){copy, read}, .num_after = 2};
    OK(clg_graph_empty(all.graph, &after, &end_node));
    size_t nodes;
    OK(clg_graph_size(all.graph, &nodes));
    CHECK(nodes == 7);

    clg_executable executable;
    clg_finalize_options options = {.path = path, .updatable = true};
    clg_status finalized = clg_graph_finalize(all.graph, &options, &executable);
    if (path == CLG_PATH_NATIVE && finalized == CLG_FEATURE_NOT_SUPPORTED) {
        end(all);
        return;
    }
    CHECK(finalized == CLG_SUCCESS);
    uint32_t result[LEN];
    for (int round = 0; round < 3; round++) {
        clg_submission run;
        OK(clg_executable_submit(executable, all.queue, NULL, NULL, &run));
        OK(clg_submission_wait(run));
        OK(clg_submission_get(run, read, result, sizeof result));
        all_is(result, factor + 2);
        const void *data;
        size_t size;
        OK(clg_submission_result(run, read, &data, &size));
        CHECK(size == sizeof result && memcmp(data, result, size) == 0);
        OK(clg_submission_release(run));
        factor += 10;
        OK(clg_parameter_set(by, &factor, sizeof factor));
        OK(clg_executable_update(executable, &launch, 1));
    }
    /* Input for one submission, and an event that it waits for. */
    uint32_t sevens[LEN];
    for (size_t i = 0; i < LEN; i++) {
        sevens[i] = seven;
    }
    cl_int status;
    cl_event go = clCreateUserEvent(all.context, &status), done;
    clg_input input = {.write = write, .data = sevens, .size = sizeof sevens};
    clg_submit_options given = {.wait_list = &go, .num_waits = 1, .inputs = &input, .num_inputs = 1};
    clg_submission run;
    OK(clg_executable_submit(executable, all.queue, &given, &done, &run));
    bool is_done;
    OK(clg_submission_is_done(run, &is_done));
    CHECK(!is_done);
    FAILS(CLG_NOT_READY, "", clg_submission_wait_for(run, 1000000));
    CHECK(clSetUserEventStatus(go, CL_COMPLETE) == CL_SUCCESS);
    CHECK(clWaitForEvents(1, &done) == CL_SUCCESS);
    OK(clg_submission_wait(run));
    OK(clg_submission_get(run, read, result, sizeof result));
    all_is(result, 7 * factor + 2);
    /* Texts. */
    size_t size;
    OK(clg_executable_report(executable, 0, NULL, &size));
    char *text = malloc(size);
    OK(clg_executable_report(executable, size, text, NULL));
    CHECK(strlen(text) + 1 == size && strstr(text, "command") != NULL);
    FAILS(CLG_INVALID, "there is room for 3", clg_executable_report(executable, 3, text, NULL));
    free(text);
    OK(clg_graph_to_dot(all.graph, CLG_DRAWING_BRIEF, 0, NULL, &size));
    OK(clg_graph_to_svg(all.graph, CLG_DRAWING_FULL, 0, NULL, &size));
    OK(clg_executable_to_svg(executable, CLG_DRAWING_VERBOSE, NULL, 0, NULL, &size));
    /* Everything may go while a submission runs. */
    OK(clg_executable_submit(executable, all.queue, NULL, NULL, NULL));
    OK(clg_executable_release(executable));
    OK(clg_submission_release(run));
    OK(clg_parameter_release(by));
    OK(clg_kernel_release(scale));
    OK(clg_kernel_release(add));
    OK(clg_memory_release(a));
    OK(clg_memory_release(b));
    OK(clg_memory_release(c));
    CHECK(clReleaseEvent(go) == CL_SUCCESS && clReleaseEvent(done) == CL_SUCCESS);
    end(all);
}

static void memory_of_graphs_and_sub_graphs(void) {
    bench all = start();
    clg_memory out = buffer(all, 4), kept;
    clg_kernel total = kernel(all, "total");
    uint32_t five = 5;
    clg_node node, read;
    OK(clg_graph_allocate(all.graph, 4 * LEN, false, NULL, &kept));
    OK(clg_graph_fill(all.graph, CLG_ALL(kept), &five, sizeof five, NULL, NULL));
    clg_arg args[] = {CLG_READ(kept), CLG_WRITE(out), CLG_LOCAL(4 * LEN)};
    clg_launch launch = {.kernel = total, .args = args, .num_args = 3, .work_dim = 1, .global = {LEN}, .local = {LEN}};
    OK(clg_graph_kernel(all.graph, &launch, NULL, NULL));
    OK(clg_graph_free(all.graph, kept, NULL, NULL));
    clg_executable inner, outer;
    OK(clg_graph_finalize(all.graph, NULL, &inner));
    clg_graph around;
    OK(clg_graph_create_for_device(all.context, all.device, NULL, &around));
    OK(clg_graph_sub_graph(around, inner, NULL, &node, NULL));
    OK(clg_graph_read(around, CLG_ALL(out), NULL, &read));
    OK(clg_graph_finalize(around, NULL, &outer));
    clg_submission run;
    OK(clg_executable_submit(outer, all.queue, NULL, NULL, &run));
    OK(clg_submission_wait(run));
    uint32_t sum;
    OK(clg_submission_get(run, read, &sum, sizeof sum));
    CHECK(sum == 5 * LEN);
    OK(clg_submission_release(run));
    OK(clg_executable_release(inner));
    OK(clg_executable_release(outer));
    OK(clg_graph_release(around));
    OK(clg_memory_release(kept));
    OK(clg_memory_release(out));
    OK(clg_kernel_release(total));
    end(all);
}

/* What the host tasks of a test share. */
typedef struct {
    clg_node read, write;
    clg_task task;
    int released, fails;
} shared;

static int doubles(clg_task task, void *user) {
    shared *all = user;
    uint32_t data[LEN];
    all->task = task;
    if (all->fails) {
        OK(clg_fail("the disk is full"));
        return 0;
    }
    OK(clg_task_get(task, all->read, data, sizeof data));
    FAILS(CLG_INVALID, "256 bytes", clg_task_get(task, all->read, data, 3));
    for (size_t i = 0; i < LEN; i++) {
        data[i] *= 2;
    }
    OK(clg_task_put(task, all->write, data, sizeof data));
    return 0;
}

static int returns_nine(clg_task task, void *user) {
    (void)task;
    (void)user;
    return 9;
}

static int returns_nothing(clg_task task, void *user) {
    (void)task;
    (void)user;
    return 0;
}

static void is_released(void *user) { ((shared *)user)->released++; }

static void told(clg_status status, const char *text, void *user) {
    CHECK(status == CLG_FAILED && strstr(text, "the disk is full") != NULL);
    clg_user_event event = user;
    OK(clg_user_event_complete(event));
}

static void host_tasks_and_events(void) {
    bench all = start();
    static shared state;
    memset(&state, 0, sizeof state);
    clg_memory a = buffer(all, 4 * LEN), b = buffer(all, 4 * LEN);
    uint32_t three = 3, zeros[LEN] = {0}, result[LEN];
    clg_node wait, signal, task, last;
    OK(clg_graph_wait_event(all.graph, NULL, &wait));
    clg_node_options after_wait = {.after = &wait, .num_after = 1};
    OK(clg_graph_fill(all.graph, CLG_ALL(a), &three, sizeof three, &after_wait, NULL));
    OK(clg_graph_read(all.graph, CLG_ALL(a), NULL, &state.read));
    OK(clg_graph_write(all.graph, CLG_ALL(b), zeros, sizeof zeros, NULL, NULL, NULL, &state.write));
    clg_host_task given = {.function = doubles, .user = &state, .release = is_released};
    clg_node_options after_read = {.after = &state.read, .num_after = 1, .label = "doubles"};
    OK(clg_graph_host_task(all.graph, &given, &after_read, &task));
    OK(clg_graph_add_edge(all.graph, task, state.write));
    OK(clg_graph_read(all.graph, CLG_ALL(b), NULL, &last));
    clg_node_options after_last = {.after = &last, .num_after = 1};
    OK(clg_graph_signal_event(all.graph, &after_last, &signal));
    clg_executable executable;
    OK(clg_graph_finalize(all.graph, NULL, &executable));
    for (state.fails = 0; state.fails < 2; state.fails++) {
        clg_user_event go, done, heard;
        OK(clg_user_event_create(all.context, &go));
        OK(clg_user_event_create(all.context, &done));
        OK(clg_user_event_create(all.context, &heard));
        clg_event_input events[] = {{.node = wait, .user_event = go}, {.node = signal, .user_event = done, .signals = true}};
        clg_submit_options with = {.node_events = events, .num_node_events = 2};
        clg_submission run;
        OK(clg_executable_submit(executable, all.queue, &with, NULL, &run));
        OK(clg_user_event_complete(go));
        FAILS(CLG_INVALID, "", clg_user_event_complete(go));
        if (state.fails) {
            OK(clg_submission_on_complete(run, told, heard, NULL));
            FAILS(CLG_FAILED, "the disk is full", clg_submission_wait(run));
            FAILS(CLG_FAILED, "the disk is full", clg_user_event_wait(done));
            OK(clg_user_event_wait(heard));
            FAILS(CLG_FAILED, "", clg_submission_get(run, last, result, sizeof result));
        } else {
            OK(clg_submission_wait(run));
            OK(clg_user_event_wait(done));
            OK(clg_submission_get(run, last, result, sizeof result));
            all_is(result, 6);
        }
        FAILS(CLG_INVALID, "no function", clg_fail("too late"));
        uint32_t late[LEN];
        FAILS(CLG_INVALID, "", clg_task_get(state.task, state.read, late, sizeof late));
        OK(clg_submission_release(run));
        OK(clg_user_event_release(go));
        OK(clg_user_event_release(done));
        OK(clg_user_event_release(heard));
    }
    OK(clg_executable_release(executable));
    end(all);
    OK(clg_memory_release(a));
    OK(clg_memory_release(b));
    /* The function is dropped with its graph and executables, on a thread of clgraph. */
    for (int i = 0; i < 10000 && !*(volatile int *)&state.released; i++) {
        struct { long seconds, nanoseconds; } nap = {0, 1000000};
        extern int nanosleep(const void *, void *);
        nanosleep(&nap, NULL);
    }
    CHECK(state.released == 1);

    bench other = start();
    given = (clg_host_task){.function = returns_nine};
    OK(clg_graph_host_task(other.graph, &given, NULL, NULL));
    OK(clg_graph_finalize(other.graph, NULL, &executable));
    clg_submission run;
    OK(clg_executable_submit(executable, other.queue, NULL, NULL, &run));
    FAILS(CLG_FAILED, "the function returned 9", clg_submission_wait(run));
    OK(clg_submission_release(run));
    OK(clg_executable_release(executable));
    end(other);
}

/* A node waits for a command or for a submission: one that fails fails what waits for it. */
static void events_of_nodes(void) {
    bench all = start();
    clg_memory a = buffer(all, 4 * LEN);
    uint32_t one = 1;
    clg_node wait, signal;
    OK(clg_graph_wait_event(all.graph, NULL, &wait));
    OK(clg_graph_signal_event(all.graph, &(clg_node_options){.after = &wait, .num_after = 1}, &signal));
    clg_executable executable;
    OK(clg_graph_finalize(all.graph, NULL, &executable));
    clg_event filled;
    OK(clg_enqueue_fill_buffer(all.queue, CLG_ALL(a), &one, sizeof one, 0, NULL, &filled));
    clg_submission before[2], run;
    OK(clg_enqueue_host_task(all.queue, &(clg_host_task){.function = returns_nine}, 0, NULL, &before[0]));
    OK(clg_enqueue_host_task(all.queue, &(clg_host_task){.function = returns_nothing}, 0, NULL, &before[1]));
    for (int i = 0; i < 3; i++) {
        clg_user_event done;
        OK(clg_user_event_create(all.context, &done));
        clg_event_input events[] = {{.node = wait}, {.node = signal, .user_event = done, .signals = true}};
        clg_submit_options with = {.node_events = events, .num_node_events = 2};
        FAILS(CLG_INVALID, "exactly one of", clg_executable_submit(executable, all.queue, &with, NULL, &run));
        events[0].event = filled, events[0].submission = before[0];
        FAILS(CLG_INVALID, "exactly one of", clg_executable_submit(executable, all.queue, &with, NULL, &run));
        events[0].event = i == 2 ? filled : NULL, events[0].submission = i == 2 ? NULL : before[i];
        events[1].event = filled;
        FAILS(CLG_INVALID, "`user_event` and nothing else", clg_executable_submit(executable, all.queue, &with, NULL, &run));
        events[1].event = NULL;
        clg_status status = clg_executable_submit(executable, all.queue, &with, NULL, &run);
        if (i == 0) {
            if (status == CLG_SUCCESS) {
                status = clg_submission_wait(run);
                OK(clg_submission_release(run));
            }
            CHECK(status == CLG_FAILED && strstr(clg_last_error(), "the function returned 9") != NULL);
        } else {
            CHECK(status == CLG_SUCCESS);
            OK(clg_submission_wait(run));
            OK(clg_submission_release(run));
            OK(clg_user_event_wait(done));
        }
        OK(clg_user_event_release(done));
    }
    OK(clg_submission_release(before[0]));
    OK(clg_submission_release(before[1]));
    OK(clg_event_release(filled));
    OK(clg_executable_release(executable));
    OK(clg_memory_release(a));
    end(all);
}

/* The memory that a task maps itself. */
typedef struct {
    clg_memory from, to;
    clg_task task;
    cl_mem raw;
    cl_command_queue queue;
} mapped_memory;

static int triples(clg_task task, void *user) {
    mapped_memory *all = user;
    clg_mapped from, to;
    all->task = task;
    FAILS(CLG_INVALID, "`result` is null", clg_task_map(task, CLG_ALL(all->from), CLG_MAP_READ, NULL));
    FAILS(CLG_INVALID, "clg_map_mode", clg_task_map(task, CLG_ALL(all->from), 8, &from));
    FAILS(CLG_INVALID, "`clg_use.writes`", clg_task_map(task, CLG_ALL(all->from), CLG_MAP_WRITE_INVALIDATE, &from));
    FAILS(CLG_INVALID, "`clg_use.reads` and `clg_use.writes`", clg_task_map(task, CLG_ALL(all->to), CLG_MAP_WRITE, &from));
    OK(clg_task_map(task, CLG_ALL(all->from), CLG_MAP_READ, &from));
    OK(clg_task_map(task, (clg_range){all->to, 0, 4 * LEN}, CLG_MAP_WRITE_INVALIDATE, &to));
    CHECK(from.size == 4 * LEN && to.size == from.size && to.row_pitch == to.size && to.slice_pitch == to.size);
    for (size_t i = 0; i < LEN; i++) {
        ((uint32_t *)to.data)[i] = 3 * ((uint32_t *)from.data)[i];
    }
    return 0;
}

static void tasks_map_memory(void) {
    bench all = start();
    mapped_memory state = {.from = buffer(all, 4 * LEN), .to = buffer(all, 4 * LEN)};
    clg_use uses[] = {{.range = CLG_ALL(state.from), .reads = true}, {.range = CLG_ALL(state.to), .writes = true}};
    clg_host_task task = {.function = triples, .user = &state, .uses = uses, .num_uses = 2};
    uint32_t seven = 7, result[LEN];
    clg_node read;
    OK(clg_graph_fill(all.graph, CLG_ALL(state.from), &seven, sizeof seven, NULL, NULL));
    OK(clg_graph_host_task(all.graph, &task, NULL, NULL));
    OK(clg_graph_read(all.graph, CLG_ALL(state.to), NULL, &read));
    clg_executable executable;
    OK(clg_graph_finalize(all.graph, NULL, &executable));
    for (int round = 0; round < 2; round++) {
        clg_submission run = submitted(all, executable);
        OK(clg_submission_get(run, read, result, sizeof result));
        all_is(result, 21);
        OK(clg_submission_release(run));
    }
    clg_mapped late;
    FAILS(CLG_INVALID, "clg_task was released", clg_task_map(state.task, CLG_ALL(state.from), CLG_MAP_READ, &late));
    OK(clg_executable_release(executable));
    OK(clg_memory_release(state.from));
    OK(clg_memory_release(state.to));
    end(all);
}

/* A task maps memory, and the program unmaps it: a mistake that drivers see. */
static int unmaps_itself(clg_task task, void *user) {
    mapped_memory *all = user;
    clg_mapped to;
    OK(clg_task_map(task, CLG_ALL(all->to), CLG_MAP_WRITE_INVALIDATE, &to));
    CHECK(clEnqueueUnmapMemObject(all->queue, all->raw, to.data, 0, NULL, NULL) == CL_SUCCESS && clFinish(all->queue) == CL_SUCCESS);
    return 0;
}

/* A task whose memory cannot be unmapped fails with the driver's error, if the driver has one. */
static void tasks_fail_if_memory_cannot_be_unmapped(void) {
    bench all = start();
    cl_int status;
    mapped_memory state = {.raw = clCreateBuffer(all.context, CL_MEM_READ_WRITE, 4 * LEN, NULL, &status)};
    CHECK(status == CL_SUCCESS);
    /* Another queue: that of the submission waits for the task. */
    state.queue = clCreateCommandQueue(all.context, all.device, 0, &status);
    CHECK(status == CL_SUCCESS);
    void *data = clEnqueueMapBuffer(state.queue, state.raw, CL_TRUE, CL_MAP_WRITE, 0, 4 * LEN, 0, NULL, NULL, &status);
    CHECK(status == CL_SUCCESS && clEnqueueUnmapMemObject(state.queue, state.raw, data, 0, NULL, NULL) == CL_SUCCESS);
    CHECK(clFinish(state.queue) == CL_SUCCESS);
    cl_int again = clEnqueueUnmapMemObject(state.queue, state.raw, data, 0, NULL, NULL);
    OK(clg_memory_from_cl(all.context, state.raw, &state.to));
    clg_use use = {.range = CLG_ALL(state.to), .writes = true};
    OK(clg_graph_host_task(all.graph, &(clg_host_task){.function = unmaps_itself, .user = &state, .uses = &use, .num_uses = 1}, NULL, NULL));
    clg_executable executable;
    clg_submission run;
    OK(clg_graph_finalize(all.graph, NULL, &executable));
    OK(clg_executable_submit(executable, all.queue, NULL, NULL, &run));
    if (again == CL_SUCCESS) {
        OK(clg_submission_wait(run));
    } else {
        FAILS(CLG_FAILED, "what the task mapped cannot be unmapped: clEnqueueUnmapMemObject failed", clg_submission_wait(run));
    }
    OK(clg_submission_release(run));
    OK(clg_executable_release(executable));
    OK(clg_memory_release(state.to));
    CHECK(clReleaseMemObject(state.raw) == CL_SUCCESS && clReleaseCommandQueue(state.queue) == CL_SUCCESS);
    end(all);
}

/* An argument with two parameters has the value of the one that was set last. */
static void two_parameters(void) {
    bench all = start();
    clg_memory a = buffer(all, 4 * LEN);
    clg_kernel scale = kernel(all, "scale");
    uint32_t three = 3, five = 5, seven = 7, one = 1, result[LEN];
    clg_parameter bytes, number;
    OK(clg_parameter_create(&three, sizeof three, &bytes));
    OK(clg_parameter_create_number(CLG_TYPE_UINT, &five, NULL, NULL, &number));
    clg_arg args[] = {CLG_READ_WRITE(a), CLG_PARAMETER(bytes), CLG_ALSO_PARAMETER(number)};
    clg_launch launch = {.kernel = scale, .args = args, .num_args = 3, .work_dim = 1, .global = {LEN}};
    clg_node scaled, read;
    OK(clg_graph_fill(all.graph, CLG_ALL(a), &one, sizeof one, NULL, NULL));
    OK(clg_graph_kernel(all.graph, &launch, NULL, &scaled));
    OK(clg_graph_read(all.graph, CLG_ALL(a), NULL, &read));
    clg_executable executable;
    OK(clg_graph_finalize(all.graph, &(clg_finalize_options){.updatable = true}, &executable));
    for (uint32_t i = 0; i < 2; i++) {
        OK(clg_parameter_set(i == 0 ? number : bytes, &seven, sizeof seven));
        OK(clg_executable_update(executable, &scaled, 1));
        clg_submission run = submitted(all, executable);
        OK(clg_submission_get(run, read, result, sizeof result));
        all_is(result, seven);
        OK(clg_submission_release(run));
        seven += 10;
    }
    clg_arg first[] = {CLG_ALSO_PARAMETER(number), CLG_READ_WRITE(a), CLG_VALUE(one)};
    launch.args = first;
    FAILS(CLG_INVALID, "CLG_ARG_ALSO_PARAMETER", clg_graph_kernel(all.graph, &launch, NULL, NULL));
    args[2].parameter = NULL;
    launch.args = args;
    FAILS(CLG_INVALID, "argument 1: the handle of type clg_parameter is null", clg_graph_kernel(all.graph, &launch, NULL, NULL));
    OK(clg_executable_release(executable));
    OK(clg_parameter_release(bytes));
    OK(clg_parameter_release(number));
    OK(clg_kernel_release(scale));
    OK(clg_memory_release(a));
    end(all);
}

static void hears_five(clg_status status, const char *text, void *user) {
    CHECK(status != CLG_SUCCESS && clg_last_status() == status && clg_last_cl_status() == -5);
    /* The text stays when another call fails. */
    CHECK(strcmp(text, clg_last_error()) == 0 && strstr(text, "event") != NULL);
    FAILS(CLG_INVALID, "clg_graph is null", clg_graph_release(NULL));
    CHECK(strstr(text, "event") != NULL);
    OK(clg_user_event_complete(user));
}

/* An event of the program fails: the status is that of the event, also for a function that is called. */
static void failing_events(void) {
    bench all = start();
    clg_memory a = buffer(all, 4 * LEN);
    uint32_t one = 1;
    OK(clg_graph_fill(all.graph, CLG_ALL(a), &one, sizeof one, NULL, NULL));
    clg_executable executable;
    OK(clg_graph_finalize(all.graph, NULL, &executable));
    cl_int status;
    cl_event go = clCreateUserEvent(all.context, &status);
    clg_submit_options with = {.wait_list = &go, .num_waits = 1};
    clg_submission run;
    OK(clg_executable_submit(executable, all.queue, &with, NULL, &run));
    clg_user_event heard;
    OK(clg_user_event_create(all.context, &heard));
    OK(clg_submission_on_complete(run, hears_five, heard, NULL));
    CHECK(clSetUserEventStatus(go, -5) == CL_SUCCESS);
    CHECK(clg_submission_wait(run) != CLG_SUCCESS);
    CHECK(clg_last_cl_status() == -5 && strstr(clg_last_error(), "event") != NULL);
    OK(clg_user_event_wait(heard));
    OK(clg_user_event_release(heard));
    OK(clg_submission_release(run));
    OK(clg_executable_release(executable));
    CHECK(clReleaseEvent(go) == CL_SUCCESS);
    OK(clg_memory_release(a));
    end(all);
}

int main(void) {
    CHECK(strcmp(clg_version(), "0.1.0") == 0);
    CHECK(strcmp(clg_last_error(), "") == 0 && clg_last_status() == CLG_SUCCESS);
    OK(clg_check_version(CLG_VERSION_MAJOR, CLG_VERSION_MINOR));
    FAILS(CLG_INVALID, "header of clgraph 0.7", clg_check_version(0, 7));
    kernels_and_transfers(CLG_PATH_AUTO);
    kernels_and_transfers(CLG_PATH_REPLAY);
    kernels_and_transfers(CLG_PATH_NATIVE);
    memory_of_graphs_and_sub_graphs();
    host_tasks_and_events();
    failing_events();
    two_parameters();
    events_of_nodes();
    tasks_map_memory();
    tasks_fail_if_memory_cannot_be_unmapped();
    CHECK(clg_live_objects() == 0);
    puts("ok");
    return 0;
}
