/* Calls with handles that are null, dead, of another type or made up, with null pointers and wrong sizes, one by one: each is an error.
 * At random, and from many threads: fuzz.c. */
#include "common.h"
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static bench all;

static int nothing(clg_task task, void *user) {
    (void)task;
    (void)user;
    return 0;
}

static int looks_at_nothing(clg_task task, void *data, size_t size, size_t row_pitch, size_t slice_pitch, void *user) {
    (void)data;
    (void)size;
    (void)row_pitch;
    (void)slice_pitch;
    return nothing(task, user);
}

static int enqueues_nothing(const clg_native_target *target, void *user) {
    (void)target;
    (void)user;
    return 0;
}

static int given_back;
static void give_back(void *user) { ++*(int *)user; }

static void one_by_one(void) {
    clg_graph dead;
    OK(clg_graph_create(all.queue, &dead));
    OK(clg_graph_retain(dead));
    OK(clg_graph_release(dead));
    OK(clg_graph_release(dead));
    FAILS(CLG_INVALID, "clg_graph was released", clg_graph_release(dead));
    FAILS(CLG_INVALID, "clg_graph was released", clg_graph_empty(dead, NULL, NULL));
    FAILS(CLG_INVALID, "clg_graph is null", clg_graph_empty(NULL, NULL, NULL));
    FAILS(CLG_INVALID, "not one of type clg_graph", clg_graph_empty((clg_graph)(void *)all.queue, NULL, NULL));
    FAILS(CLG_INVALID, "clg_graph", clg_graph_retain((clg_graph)(uintptr_t)0x7fff12345676));
    FAILS(CLG_INVALID, "`result` is null", clg_graph_create(all.queue, NULL));
    FAILS(CLG_INVALID, "", clg_queue_from_cl(NULL, &all.queue));
    FAILS(CLG_INVALID, "", clg_kernel_from_cl(all.context, NULL, (clg_kernel *)&dead));
    FAILS(CLG_INVALID, "", clg_memory_from_cl(NULL, NULL, (clg_memory *)&dead));
    clg_memory memory = buffer(all, 64);
    uint32_t number = 1;
    FAILS(CLG_INVALID, "", clg_graph_fill(all.graph, (clg_range){memory, 60, 8}, &number, 4, NULL, NULL));
    FAILS(CLG_INVALID, "together", clg_graph_fill(all.graph, (clg_range){memory, 60, (size_t)-9}, &number, 4, NULL, NULL));
    FAILS(CLG_INVALID, "`pattern` is null", clg_graph_fill(all.graph, CLG_ALL(memory), NULL, 4, NULL, NULL));
    FAILS(CLG_INVALID, "", clg_graph_fill(all.graph, CLG_ALL(memory), &number, 0, NULL, NULL));
    /* The data comes back, whatever was wrong. */
    FAILS(CLG_INVALID, "", clg_graph_write(all.graph, CLG_ALL(memory), &number, 4, give_back, &given_back, NULL, NULL));
    FAILS(CLG_INVALID, "", clg_graph_write(NULL, CLG_ALL(memory), &number, 4, give_back, &given_back, NULL, NULL));
    FAILS(CLG_INVALID, "", clg_graph_write(all.graph, CLG_ALL(memory), NULL, 4, give_back, &given_back, NULL, NULL));
    clg_input input = {.data = &number, .size = 4, .release = give_back, .user = &given_back};
    clg_submit_options with_input = {.inputs = &input, .num_inputs = 1};
    FAILS(CLG_INVALID, "", clg_executable_submit(NULL, all.queue, &with_input, NULL, NULL));
    clg_host_task task = {.function = NULL, .user = &given_back, .release = give_back};
    FAILS(CLG_INVALID, "`task->function` is null", clg_graph_host_task(all.graph, &task, NULL, NULL));
    for (int i = 0; i < 10000 && *(volatile int *)&given_back < 5; i++) {
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    CHECK(given_back == 5);
    clg_kernel scale = kernel(all, "scale");
    clg_arg args[] = {CLG_READ_WRITE(memory), {.kind = CLG_ARG_VALUE, .size = 8, .data = "12345678"}};
    clg_launch launch = {.kernel = scale, .args = args, .num_args = 2, .work_dim = 1, .global = {4}};
    FAILS(CLG_INVALID, "8 bytes", clg_graph_kernel(all.graph, &launch, NULL, NULL));
    args[1] = (clg_arg){.kind = 77};
    FAILS(CLG_INVALID, "argument 1: 77 is no kind", clg_graph_kernel(all.graph, &launch, NULL, NULL));
    launch.num_args = 1;
    FAILS(CLG_INVALID, "", clg_graph_kernel(all.graph, &launch, NULL, NULL));
    launch.work_dim = 4;
    FAILS(CLG_INVALID, "work_dim is 4", clg_graph_kernel(all.graph, &launch, NULL, NULL));
    launch.work_dim = 1;
    launch.args = NULL;
    FAILS(CLG_INVALID, "`launch->args` is null", clg_graph_kernel(all.graph, &launch, NULL, NULL));
    size_t nodes;
    OK(clg_graph_size(all.graph, &nodes));
    CHECK(nodes == 0);
    /* Memory of another context. */
    bench other = start();
    clg_memory foreign = buffer(other, 64);
    FAILS(CLG_INVALID, "context", clg_graph_copy(all.graph, CLG_ALL(foreign), CLG_ALL(memory), NULL, NULL));
    OK(clg_memory_release(foreign));
    end(other);
    OK(clg_memory_release(memory));
    OK(clg_kernel_release(scale));
}

/* The result of a host task that gives a write data of a wrong size. */
static clg_node input;

static int puts_too_much(clg_task task, void *user) {
    uint32_t *number = user;
    return clg_task_put(task, input, number, (size_t)1 << 40) == CLG_INVALID && clg_task_put(task, input, number, 65) == CLG_INVALID &&
                   strstr(clg_last_error(), "exactly 64 bytes") != NULL && clg_task_put(task, input, number, 64) == CLG_SUCCESS
               ? 0
               : 1;
}

/* Sizes are compared before data is read or copied: these are of more bytes than there are, and than any host has. */
static void sizes_that_are_wrong(void) {
    static const size_t sizes[] = {0, 63, 65, 80, (size_t)1 << 40, (size_t)1 << 46, (size_t)1 << 62, (size_t)-1};
    clg_memory memory = buffer(all, 64);
    uint8_t *data = calloc(64, 1);
    clg_graph graph;
    clg_executable executable;
    OK(clg_graph_create(all.queue, &graph));
    OK(clg_graph_write(graph, CLG_ALL(memory), data, 64, NULL, NULL, NULL, &input));
    OK(clg_graph_finalize(graph, NULL, &executable));
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        clg_input wrong = {.write = input, .data = data, .size = sizes[i]};
        clg_submit_options options = {.inputs = &wrong, .num_inputs = 1};
        FAILS(CLG_INVALID, "exactly 64 bytes", clg_graph_write(graph, CLG_ALL(memory), data, sizes[i], NULL, NULL, NULL, NULL));
        FAILS(CLG_INVALID, "exactly 64 bytes", clg_enqueue_write_buffer(all.queue, CLG_ALL(memory), data, sizes[i], NULL, NULL, 0, NULL, NULL));
        FAILS(CLG_INVALID, "exactly 64 bytes", clg_executable_submit(executable, all.queue, &options, NULL, NULL));
    }
    clg_host_task task = {.function = puts_too_much, .user = data};
    clg_graph with_task;
    clg_node put;
    OK(clg_graph_create(all.queue, &with_task));
    OK(clg_graph_host_task(with_task, &task, NULL, &put));
    clg_node_options after = {.after = &put, .num_after = 1};
    OK(clg_graph_write(with_task, CLG_ALL(memory), data, 64, NULL, NULL, &after, &input));
    clg_executable runs;
    OK(clg_graph_finalize(with_task, NULL, &runs));
    OK(clg_submission_release(submitted(all, runs)));
    OK(clg_executable_release(runs));
    OK(clg_graph_release(with_task));
    FAILS(CLG_INVALID, "divides", clg_graph_fill(graph, CLG_ALL(memory), data, (size_t)1 << 40, NULL, NULL));
    FAILS(CLG_INVALID, "divides", clg_enqueue_fill_buffer(all.queue, CLG_ALL(memory), data, (size_t)1 << 40, 0, NULL, NULL));
    clg_parameter value;
    FAILS(CLG_INVALID, "buffer", clg_parameter_create(data, (size_t)1 << 40, &value));
    FAILS(CLG_INVALID, "at least one byte", clg_parameter_create(data, 0, &value));
    OK(clg_parameter_create(data, 4, &value));
    FAILS(CLG_INVALID, "buffer", clg_parameter_set(value, data, (size_t)1 << 40));
    OK(clg_parameter_release(value));
    clg_kernel scale = kernel(all, "scale");
    clg_arg args[] = {CLG_READ_WRITE(memory), {.kind = CLG_ARG_VALUE, .size = (size_t)1 << 40, .data = data}};
    clg_launch launch = {.kernel = scale, .args = args, .num_args = 2, .work_dim = 1, .global = {4}};
    FAILS(CLG_INVALID, "argument 1", clg_graph_kernel(graph, &launch, NULL, NULL));
    clg_global global;
    FAILS(CLG_INVALID, "name", clg_global_create("", 4, NULL, false, &global));
    FAILS(CLG_INVALID, "bytes", clg_global_create("misuse::huge", (size_t)-1, NULL, false, &global));
    FAILS(CLG_OUT_OF_MEMORY, "no memory", clg_global_create("misuse::huge", (size_t)1 << 62, data, false, &global));
    OK(clg_kernel_release(scale));
    OK(clg_executable_release(executable));
    OK(clg_graph_release(graph));
    OK(clg_memory_release(memory));
    free(data);
}

/* A node that waits for every node that no other node waits for. */
static void leaves(void) {
    clg_graph graph;
    clg_node nodes[3], last, before[3];
    size_t count = 0;
    OK(clg_graph_create(all.queue, &graph));
    OK(clg_graph_empty(graph, NULL, &nodes[0]));
    OK(clg_graph_empty(graph, NULL, &nodes[1]));
    clg_node_options after = {.after = &nodes[0], .num_after = 1};
    OK(clg_graph_empty(graph, &after, &nodes[2]));
    clg_node_options after_all = {.after_all_leaves = true};
    OK(clg_graph_empty(graph, &after_all, &last));
    OK(clg_graph_nodes(graph, CLG_NODES_BEFORE, last, 3, before, &count));
    CHECK(count == 2 && before[0].index == 1 && before[1].index == 2);
    OK(clg_graph_release(graph));
}

/* Numbers whose type is named are compared with the kernel's parameter, and stay within their bounds. */
static void numbers(void) {
    clg_kernel scale = kernel(all, "scale");
    clg_memory memory = buffer(all, 64);
    cl_float wrong = 2;
    cl_uint right = 2, read = 0, least = 1, most = 9, more = 10;
    clg_arg args[] = {CLG_READ_WRITE(memory), CLG_VALUE(wrong)};
    clg_launch launch = {.kernel = scale, .args = args, .num_args = 2, .work_dim = 1, .global = {4}};
    FAILS(CLG_INVALID, "argument 1", clg_graph_kernel(all.graph, &launch, NULL, NULL));
    FAILS(CLG_INVALID, "argument 1", clg_enqueue_kernel(all.queue, &launch, 0, NULL, NULL));
    args[1].value_type = CLG_TYPE_UNKNOWN;
    OK(clg_enqueue_kernel(all.queue, &launch, 0, NULL, NULL));
    args[1] = (clg_arg)CLG_VALUE(right);
    CHECK(args[1].value_type == CLG_TYPE_UINT);
    OK(clg_enqueue_kernel(all.queue, &launch, 0, NULL, NULL));
    args[1].value_type = CLG_TYPE_LONG;
    FAILS(CLG_INVALID, "8 bytes", clg_graph_kernel(all.graph, &launch, NULL, NULL));
    args[1].value_type = 99;
    FAILS(CLG_INVALID, "99 is no type", clg_graph_kernel(all.graph, &launch, NULL, NULL));
    clg_parameter number;
    FAILS(CLG_INVALID, "`value` is null", clg_parameter_create_number(CLG_TYPE_UINT, NULL, NULL, NULL, &number));
    FAILS(CLG_INVALID, "0 is no type", clg_parameter_create_number(CLG_TYPE_UNKNOWN, &right, NULL, NULL, &number));
    FAILS(CLG_INVALID, "1..=9", clg_parameter_create_number(CLG_TYPE_UINT, &more, &least, &most, &number));
    OK(clg_parameter_create_number(CLG_TYPE_FLOAT, &wrong, NULL, NULL, &number));
    args[1] = (clg_arg)CLG_PARAMETER(number);
    FAILS(CLG_INVALID, "argument 1", clg_graph_kernel(all.graph, &launch, NULL, NULL));
    OK(clg_parameter_release(number));
    OK(clg_parameter_create_number(CLG_TYPE_UINT, &right, &least, &most, &number));
    FAILS(CLG_INVALID, "1..=9", clg_parameter_set(number, &more, sizeof more));
    FAILS(CLG_INVALID, "4 bytes", clg_parameter_set(number, &more, 2));
    OK(clg_parameter_set(number, &most, sizeof most));
    OK(clg_parameter_get(number, &read, sizeof read));
    CHECK(read == 9);
    FAILS(CLG_INVALID, "4 bytes", clg_parameter_get(number, &read, 2));
    OK(clg_parameter_release(number));
    clg_parameter local;
    size_t size = 0;
    OK(clg_parameter_create_local(48, &local));
    OK(clg_parameter_get(local, &size, sizeof size));
    CHECK(size == 48);
    OK(clg_parameter_release(local));
    OK(clg_memory_release(memory));
    OK(clg_kernel_release(scale));
    size_t nodes;
    OK(clg_graph_size(all.graph, &nodes));
    CHECK(nodes == 0);
}

/* A queue that records gives no `cl_event`: then nothing is recorded. */
static void no_event_of_a_recording(void) {
    clg_graph inner, outer;
    clg_executable executable;
    OK(clg_graph_create(all.queue, &inner));
    OK(clg_graph_create(all.queue, &outer));
    OK(clg_graph_empty(inner, NULL, NULL));
    OK(clg_graph_finalize(inner, NULL, &executable));
    OK(clg_graph_begin_recording(outer, &all.queue, 1));
    cl_event event = NULL;
    clg_submission run = NULL;
    FAILS(CLG_INVALID, "pass null for `event`", clg_executable_submit(executable, all.queue, NULL, &event, &run));
    CHECK(event == NULL && run == NULL && strstr(clg_last_error(), "opencl3") == NULL);
    OK(clg_executable_submit(executable, all.queue, NULL, NULL, &run));
    /* A queue that waits for the recorded submission records too. */
    cl_int status;
    cl_command_queue raw = clCreateCommandQueue(all.context, all.device, 0, &status);
    CHECK(status == CL_SUCCESS);
    clg_queue joins;
    OK(clg_queue_from_cl(raw, &joins));
    clg_submit_options after = {.submissions = &run, .num_submissions = 1};
    FAILS(CLG_INVALID, "pass null for `event`", clg_executable_submit(executable, joins, &after, &event, NULL));
    /* So does one that waits for a host task, mapped memory or a native command that was recorded. */
    clg_memory memory = buffer(all, 64);
    clg_submission others[3];
    OK(clg_enqueue_host_task(all.queue, &(clg_host_task){.function = nothing}, 0, NULL, &others[0]));
    OK(clg_enqueue_map(all.queue, CLG_ALL(memory), CLG_MAP_READ, &(clg_map_task){.function = looks_at_nothing}, 0, NULL, &others[1]));
    OK(clg_enqueue_native_command(all.queue, &(clg_native_command){.enqueue = enqueues_nothing}, 0, NULL, &others[2]));
    for (int i = 0; i < 3; i++) {
        after.submissions = &others[i];
        FAILS(CLG_INVALID, "pass null for `event`", clg_executable_submit(executable, joins, &after, &event, NULL));
        OK(clg_submission_release(others[i]));
    }
    OK(clg_memory_release(memory));
    OK(clg_graph_end_all_recording(outer, NULL));
    size_t nodes;
    OK(clg_graph_size(outer, &nodes));
    CHECK(nodes == 4);
    OK(clg_queue_release(joins));
    CHECK(clReleaseCommandQueue(raw) == CL_SUCCESS);
    OK(clg_submission_release(run));
    OK(clg_executable_release(executable));
    OK(clg_graph_release(inner));
    OK(clg_graph_release(outer));
}

static void counts(void *user) { ++*(uint32_t *)user; }

/* In the child of a process that has used clgraph every call is an error. */
static void forked(void) {
    uint32_t given = 0;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        clg_graph made;
        bool refused = clg_graph_create(all.queue, &made) == CLG_INVALID && strstr(clg_last_error(), "forked") != NULL;
        /* And gives nothing back. */
        clg_status written = clg_graph_write(all.graph, CLG_ALL(NULL), &given, sizeof given, counts, &given, NULL, NULL);
        clg_host_task task = {.function = nothing, .user = &given, .release = counts};
        refused = refused && written == CLG_INVALID && clg_graph_host_task(all.graph, &task, NULL, NULL) == CLG_INVALID && given == 0;
        refused = refused && clg_queue_release(all.queue) == CLG_INVALID;
        /* Without an end that valgrind sees: what threads had that the child does not have is lost in it. */
        if (refused) raise(SIGKILL);
        _exit(1);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    size_t nodes;
    OK(clg_graph_size(all.graph, &nodes));
}

static int forks(clg_task task, void *user) {
    (void)task;
    int *outcome = user;
    pid_t child = fork();
    if (child == 0) {
        alarm(10); /* A child that goes on in clgraph may wait for ever: then it ends by a signal. */
        return *outcome;
    }
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
    *outcome = WEXITSTATUS(status);
    return 0;
}

static void release_forks(void *user) { forks(NULL, user); }

static void callback_forks(clg_status status, const char *text, void *user) {
    CHECK(status == CLG_SUCCESS && text == NULL);
    forks(NULL, user);
}

static void is_outcome(volatile int *outcome, int expected) {
    for (int i = 0; i < 20000 && *outcome != expected; i++) {
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    CHECK(*outcome == expected);
}

/* So do those of a callback, and of a function that gets data back: on a thread of clgraph, or on that of a call that failed. */
static void forked_by_other_functions(void) {
    clg_graph graph;
    clg_executable executable;
    OK(clg_graph_create(all.queue, &graph));
    OK(clg_graph_finalize(graph, NULL, &executable));
    clg_submission run = submitted(all, executable);
    static int called = 9, given_back = 9, refused = 9;
    OK(clg_submission_on_complete(run, callback_forks, &called, NULL));
    is_outcome(&called, 0);
    clg_host_task task = {.function = nothing, .user = &given_back, .release = release_forks};
    OK(clg_graph_host_task(graph, &task, NULL, NULL));
    OK(clg_submission_release(run));
    OK(clg_executable_release(executable));
    OK(clg_graph_release(graph));
    is_outcome(&given_back, 0);
    task.user = &refused;
    FAILS(CLG_INVALID, "clg_graph is null", clg_graph_host_task(NULL, &task, NULL, NULL));
    is_outcome(&refused, 0);
}

/* A child that leaves the function which forked it ends: the submission is the parent's. */
static void forked_by_a_task(void) {
    for (int returned = 0; returned < 3; returned++) {
        int outcome = returned;
        clg_host_task task = {.function = forks, .user = &outcome};
        clg_graph graph;
        clg_executable executable;
        OK(clg_graph_create(all.queue, &graph));
        OK(clg_graph_host_task(graph, &task, NULL, NULL));
        OK(clg_graph_finalize(graph, NULL, &executable));
        OK(clg_submission_release(submitted(all, executable)));
        CHECK(outcome == (returned != 0));
        OK(clg_executable_release(executable));
        OK(clg_graph_release(graph));
    }
}

/* Lists of more elements than there can be are seen before they are read. */
static void lists_that_are_too_long(void) {
    static const size_t counts[] = {(size_t)1 << 32, (size_t)1 << 40, (size_t)-1 >> 8, (size_t)-1};
    clg_graph graph;
    clg_executable executable;
    clg_node node;
    OK(clg_graph_create(all.queue, &graph));
    OK(clg_graph_empty(graph, NULL, &node));
    OK(clg_graph_finalize(graph, &(clg_finalize_options){.updatable = true}, &executable));
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        clg_input one = {.write = node};
        clg_node_options after = {.after = &node, .num_after = counts[i]};
        clg_submit_options inputs = {.inputs = &one, .num_inputs = counts[i]};
        clg_host_task task = {.function = nothing, .uses = &(clg_use){.reads = true}, .num_uses = counts[i]};
        FAILS(CLG_INVALID, "is not a list of", clg_graph_empty(graph, &after, NULL));
        FAILS(CLG_INVALID, "is not a list of", clg_executable_submit(executable, all.queue, &inputs, NULL, NULL));
        FAILS(CLG_INVALID, "is not a list of", clg_executable_update(executable, &node, counts[i]));
        FAILS(CLG_INVALID, "is not a list of", clg_graph_begin_recording(graph, &all.queue, counts[i]));
        FAILS(CLG_INVALID, "is not a list of", clg_graph_host_task(graph, &task, NULL, NULL));
    }
    OK(clg_executable_release(executable));
    OK(clg_graph_release(graph));
}

static int enqueues_none(clg_queue queue, void *user) {
    (void)queue;
    (void)user;
    return 0;
}

static int case_of_none(clg_queue queue, size_t index, void *user) {
    (void)index;
    return enqueues_none(queue, user);
}

static void branches_and_loops(void) {
    clg_memory memory = buffer(all, 16);
    clg_range flag = CLG_ALL(memory), small = {memory, 14, 2}, odd = {memory, 2, 8}, beyond = {memory, 12, 8};
    clg_graph graph, events;
    clg_executable body, dead, with_event;
    clg_node node;
    clg_control control;
    OK(clg_graph_create(all.queue, &graph));
    OK(clg_graph_create(all.queue, &events));
    OK(clg_graph_finalize(graph, NULL, &body));
    OK(clg_graph_finalize(graph, NULL, &dead));
    OK(clg_executable_release(dead));
    OK(clg_graph_wait_event(events, NULL, NULL));
    OK(clg_graph_finalize(events, NULL, &with_event));
    FAILS(CLG_INVALID, "clg_graph is null", clg_graph_when(NULL, flag, body, NULL, NULL, NULL, NULL));
    FAILS(CLG_INVALID, "clg_executable is null", clg_graph_when(graph, flag, NULL, body, NULL, NULL, NULL));
    FAILS(CLG_INVALID, "clg_executable was released", clg_graph_when(graph, flag, body, dead, NULL, NULL, NULL));
    FAILS(CLG_INVALID, "clg_memory is null", clg_graph_when(graph, (clg_range){0}, body, NULL, NULL, NULL, NULL));
    FAILS(CLG_INVALID, "has no number", clg_graph_when(graph, small, body, NULL, NULL, NULL, NULL));
    FAILS(CLG_INVALID, "multiple of 4", clg_graph_when(graph, odd, body, NULL, NULL, NULL, NULL));
    FAILS(CLG_INVALID, "", clg_graph_when(graph, beyond, body, NULL, NULL, NULL, NULL));
    FAILS(CLG_INVALID, "event", clg_graph_when(graph, flag, body, with_event, NULL, NULL, NULL));
    FAILS(CLG_INVALID, "`node` is not aligned", clg_graph_when(graph, flag, body, NULL, NULL, (clg_node *)((char *)&node + 1), NULL));
    clg_executable cases[] = {body, dead};
    FAILS(CLG_INVALID, "`cases` is null", clg_graph_switch(graph, flag, NULL, 2, NULL, NULL, NULL));
    FAILS(CLG_INVALID, "not a list", clg_graph_switch(graph, flag, cases, (size_t)-1, NULL, NULL, NULL));
    FAILS(CLG_INVALID, "case 1", clg_graph_switch(graph, flag, cases, 2, NULL, NULL, NULL));
    FAILS(CLG_INVALID, "has no number", clg_graph_switch(graph, small, cases, 1, NULL, NULL, NULL));
    FAILS(CLG_INVALID, "clg_executable is null", clg_graph_repeat_while(graph, flag, NULL, true, 1, NULL, NULL, NULL));
    FAILS(CLG_INVALID, "has no number", clg_graph_repeat_while(graph, small, body, true, 1, NULL, NULL, NULL));
    FAILS(CLG_INVALID, "not one of type clg_executable", clg_graph_repeat(graph, 2, (clg_executable)(void *)graph, NULL, NULL, NULL));
    bench other = start();
    clg_memory foreign = buffer(other, 4);
    FAILS(CLG_INVALID, "context", clg_graph_repeat_while(graph, CLG_ALL(foreign), body, false, 0, NULL, NULL, NULL));
    FAILS(CLG_INVALID, "context", clg_graph_repeat(other.graph, 2, body, NULL, NULL, NULL));
    OK(clg_memory_release(foreign));
    end(other);
    size_t nodes;
    OK(clg_graph_size(graph, &nodes));
    CHECK(nodes == 0);

    OK(clg_graph_repeat(graph, 2, body, NULL, &node, &control));
    clg_node_options replaces = {.replaces = &node};
    FAILS(CLG_INVALID, "", clg_graph_repeat_while(graph, flag, body, false, 0, &replaces, NULL, NULL));
    FAILS(CLG_INVALID, "", clg_graph_repeat(graph, 2, with_event, &replaces, NULL, NULL));
    clg_sub_graph sub_graph;
    FAILS(CLG_INVALID, "`result` is null", clg_control_body(control, 0, NULL));
    FAILS(CLG_INVALID, "no body", clg_control_body(control, (size_t)-1, &sub_graph));
    FAILS(CLG_INVALID, "clg_control is null", clg_control_body(NULL, 0, &sub_graph));
    FAILS(CLG_INVALID, "not one of type clg_control", clg_control_body((clg_control)(void *)graph, 0, &sub_graph));
    OK(clg_control_body(control, 0, &sub_graph));
    FAILS(CLG_INVALID, "no branch or loop", clg_sub_graph_port(sub_graph, CLG_PORT_CONTROL, node, &node));
    OK(clg_sub_graph_release(sub_graph));
    clg_executable runs;
    uint64_t turns;
    OK(clg_graph_finalize(graph, NULL, &runs));
    clg_submission run = submitted(all, runs);
    FAILS(CLG_INVALID, "`result` is null", clg_submission_turns(run, node, NULL));
    FAILS(CLG_INVALID, "no branch or loop", clg_submission_turns(run, (clg_node){0}, &turns));
    const uint32_t parts[] = {1, 2, (uint32_t)-1};
    for (size_t i = 0; i < 3; i++) {
        FAILS(CLG_INVALID, "no branch or loop", clg_submission_turns(run, (clg_node){node.graph, node.index, parts[i]}, &turns));
    }
    OK(clg_submission_turns(run, node, &turns));
    CHECK(turns == 2);
    OK(clg_submission_release(run));
    FAILS(CLG_INVALID, "clg_submission was released", clg_submission_turns(run, node, &turns));
    FAILS(CLG_INVALID, "clg_submission was released", clg_submission_cancel(run));
    FAILS(CLG_INVALID, "clg_submission is null", clg_submission_cancel(NULL));
    OK(clg_control_release(control));
    FAILS(CLG_INVALID, "clg_control was released", clg_control_release(control));
    FAILS(CLG_INVALID, "clg_control was released", clg_control_retain(control));

    FAILS(CLG_INVALID, "clg_queue is null", clg_queue_when(NULL, flag, enqueues_none, NULL, NULL, NULL, NULL));
    FAILS(CLG_INVALID, "`then` is null", clg_queue_when(all.queue, flag, NULL, enqueues_none, NULL, NULL, NULL));
    FAILS(CLG_INVALID, "", clg_queue_when(all.queue, small, enqueues_none, NULL, NULL, NULL, NULL));
    FAILS(CLG_INVALID, "`function` is null", clg_queue_switch(all.queue, flag, 2, NULL, NULL, NULL, NULL));
    FAILS(CLG_INVALID, "clg_memory is null", clg_queue_switch(all.queue, (clg_range){0}, 2, case_of_none, NULL, NULL, NULL));
    FAILS(CLG_INVALID, "`body` is null", clg_queue_repeat_while(all.queue, flag, NULL, NULL, false, 0, NULL, NULL));
    FAILS(CLG_INVALID, "", clg_queue_repeat_while(all.queue, beyond, enqueues_none, NULL, true, 0, NULL, NULL));
    FAILS(CLG_INVALID, "`body` is null", clg_queue_repeat(all.queue, 0, NULL, NULL, NULL, NULL));
    OK(clg_queue_repeat(all.queue, 0, enqueues_none, NULL, &node, &control));
    CHECK(control == NULL);
    clg_executable all_of_them[] = {body, with_event, runs};
    for (size_t i = 0; i < 3; i++) {
        OK(clg_executable_release(all_of_them[i]));
    }
    OK(clg_graph_release(graph));
    OK(clg_graph_release(events));
    OK(clg_memory_release(memory));
}

int main(void) {
    all = start();
    forked();
    /* Memcheck takes for lost what belongs to threads that the child has not got. */
    if (getenv("CLGRAPH_TEST_MEMCHECK") == NULL) {
        forked_by_a_task();
        forked_by_other_functions();
    }
    lists_that_are_too_long();
    one_by_one();
    sizes_that_are_wrong();
    numbers();
    branches_and_loops();
    leaves();
    no_event_of_a_recording();
    end(all);
    CHECK(clg_live_objects() == 0);
    puts("ok");
    return 0;
}
