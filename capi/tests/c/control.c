/* Branches and loops from C: of graphs, on the path that clgraph chooses and on the others, and of queues. */
#include "common.h"

static const uint64_t LONG = 60000000000;

enum { LEN = 8 };

/* Data that a body doubles, and a number that it counts down. */
typedef struct {
    bench all;
    clg_memory data, left;
    clg_kernel scale, count_down;
} work;

static work begin(void) {
    work of = {.all = start()};
    of.data = buffer(of.all, 4 * LEN);
    of.left = buffer(of.all, 4);
    of.scale = kernel(of.all, "scale");
    of.count_down = kernel(of.all, "count_down");
    return of;
}

static void finish(work of) {
    OK(clg_memory_release(of.data));
    OK(clg_memory_release(of.left));
    OK(clg_kernel_release(of.scale));
    OK(clg_kernel_release(of.count_down));
    end(of.all);
}

static clg_executable finalized(clg_graph graph, int path) {
    int32_t loops = path == CLG_PATH_AUTO ? CLG_LOOPS_AUTO : path == CLG_PATH_NATIVE ? CLG_LOOPS_HOST_DECIDED : CLG_LOOPS_AHEAD;
    clg_finalize_options options = {.path = path, .updatable = path == CLG_PATH_REPLAY, .loops = 3};
    clg_executable executable;
    FAILS(CLG_INVALID, "3 is no way of loops (clg_loops)", clg_graph_finalize(graph, &options, &executable));
    options.loops = loops;
    options.fuse = 4;
    FAILS(CLG_INVALID, "4 says nothing of fusing (clg_fuse)", clg_graph_finalize(graph, &options, &executable));
    options.fuse = path == CLG_PATH_AUTO ? CLG_FUSE_NOW : path == CLG_PATH_NATIVE ? CLG_FUSE_OFF : CLG_FUSE_AUTO;
    OK(clg_graph_finalize(graph, &options, &executable));
    OK(clg_graph_release(graph));
    return executable;
}

static clg_graph empty_graph(work of) {
    clg_graph graph;
    OK(clg_graph_create(of.all.queue, &graph));
    return graph;
}

static void scales(work of, clg_graph graph, uint32_t by) {
    clg_arg args[] = {CLG_READ_WRITE(of.data), CLG_VALUE(by)};
    clg_launch launch = {.kernel = of.scale, .args = args, .num_args = 2, .work_dim = 1, .global = {LEN}};
    OK(clg_graph_kernel(graph, &launch, NULL, NULL));
}

static void counts_down(work of, clg_graph graph) {
    clg_arg args[] = {CLG_READ_WRITE(of.left)};
    clg_launch launch = {.kernel = of.count_down, .args = args, .num_args = 1, .work_dim = 1, .global = {1}};
    OK(clg_graph_kernel(graph, &launch, NULL, NULL));
}

/* A body that multiplies the data. */
static clg_executable times(work of, uint32_t by) {
    clg_graph graph = empty_graph(of);
    scales(of, graph, by);
    return finalized(graph, CLG_PATH_AUTO);
}

/* A body that doubles the data, and counts the number down. */
static clg_executable turn(work of) {
    clg_graph graph = empty_graph(of);
    scales(of, graph, 2);
    counts_down(of, graph);
    return finalized(graph, CLG_PATH_AUTO);
}

static clg_submission given(work of, clg_executable executable, clg_node write, uint32_t value) {
    clg_input input = {.write = write, .data = &value, .size = sizeof value};
    clg_submit_options options = {.inputs = &input, .num_inputs = 1};
    clg_submission run;
    OK(clg_executable_submit(executable, of.all.queue, &options, NULL, &run));
    return run;
}

static uint64_t turns(clg_submission run, clg_node node) {
    uint64_t count;
    OK(clg_submission_turns(run, node, &count));
    return count;
}

static uint32_t first(clg_submission run, clg_node read) {
    uint32_t data[LEN];
    OK(clg_submission_get(run, read, data, sizeof data));
    return data[0];
}

static void has_kind(clg_graph graph, clg_node node, const char *kind) {
    char text[64];
    OK(clg_graph_node_kind(graph, node, sizeof text, text, NULL));
    CHECK(strcmp(text, kind) == 0);
}

static void loops(int path) {
    work of = begin();
    clg_executable body = turn(of), twice = times(of, 3);
    clg_graph graph = empty_graph(of);
    uint32_t one = 1, five = 5;
    clg_node write, node, more, read, found[8];
    OK(clg_graph_write(graph, CLG_ALL(of.left), &five, sizeof five, NULL, NULL, NULL, &write));
    OK(clg_graph_fill(graph, CLG_ALL(of.data), &one, sizeof one, NULL, NULL));
    clg_node_options named = {.label = "doubling"};
    OK(clg_graph_repeat_while(graph, CLG_ALL(of.left), body, false, 0, &named, &node, NULL));
    OK(clg_graph_repeat(graph, 2, twice, NULL, &more, NULL));
    OK(clg_graph_read(graph, CLG_ALL(of.data), NULL, &read));
    has_kind(graph, node, "loop `repeat_while`");
    has_kind(graph, more, "loop `repeat`");
    size_t count;
    OK(clg_graph_nodes(graph, CLG_NODES_ALL, node, 8, found, &count));
    CHECK(count == 5 && memcmp(&found[2], &node, sizeof node) == 0);
    OK(clg_graph_nodes(graph, CLG_NODES_BEFORE, node, 8, found, &count));
    CHECK(count == 2);
    clg_executable executable = finalized(graph, path);
    const uint32_t inputs[] = {5, 0, 1, 12};
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++) {
        clg_submission run = given(of, executable, write, inputs[i]);
        OK(clg_submission_wait_for(run, LONG));
        CHECK(turns(run, node) == inputs[i] && turns(run, more) == 2);
        CHECK(first(run, read) == 9U << inputs[i]);
        uint64_t none;
        FAILS(CLG_INVALID, "no branch or loop", clg_submission_turns(run, write, &none));
        OK(clg_submission_release(run));
    }
    OK(clg_executable_release(executable));
    OK(clg_executable_release(body));
    OK(clg_executable_release(twice));
    finish(of);
}

/* The times of branches and loops, and of what follows them. */
static void profiled(void) {
    work of = begin();
    clg_executable body = times(of, 2);
    clg_graph graph = empty_graph(of);
    uint32_t one = 1;
    clg_node loop, fill;
    OK(clg_graph_fill(graph, CLG_ALL(of.left), &one, sizeof one, NULL, NULL));
    clg_node_options named = {.label = "doubling"};
    OK(clg_graph_repeat(graph, 3, body, &named, &loop, NULL));
    OK(clg_graph_when(graph, CLG_ALL(of.left), body, NULL, NULL, NULL, NULL));
    OK(clg_graph_fill(graph, CLG_ALL(of.data), &one, sizeof one, NULL, &fill));
    clg_executable executable;
    clg_finalize_options options = {.profiling = true};
    OK(clg_graph_finalize(graph, &options, &executable));
    clg_submission run = submitted(of.all, executable);
    clg_node_times list[64];
    size_t count, size;
    OK(clg_submission_node_times(run, 64, list, &count));
    bool has_fill = false;
    uint64_t turns = 0;
    for (size_t i = 0; i < count; i++) {
        if (list[i].node.index == loop.index) {
            CHECK(list[i].turn == turns && list[i].inside != UINT64_MAX);
            turns++;
        } else if (list[i].node.index == fill.index) {
            CHECK(list[i].turn == UINT64_MAX && list[i].inside == UINT64_MAX);
        }
        has_fill = has_fill || list[i].node.index == fill.index;
        CHECK(list[i].start <= list[i].end);
    }
    CHECK(has_fill && turns == 3);
    OK(clg_submission_profile(run, 0, NULL, &size));
    OK(clg_submissions_trace(&run, 1, 0, NULL, &size));
    OK(clg_submission_release(run));
    OK(clg_executable_release(executable));
    OK(clg_executable_release(body));
    OK(clg_graph_release(graph));
    finish(of);
}

static void bounds(void) {
    work of = begin();
    clg_executable body = turn(of);
    clg_graph graph = empty_graph(of);
    uint32_t one = 1;
    clg_node write, node;
    OK(clg_graph_write(graph, CLG_ALL(of.left), &one, sizeof one, NULL, NULL, NULL, &write));
    OK(clg_graph_repeat_while(graph, CLG_ALL(of.left), body, true, 3, NULL, &node, NULL));
    clg_graph kept = graph;
    OK(clg_graph_retain(kept));
    clg_executable executable = finalized(graph, CLG_PATH_REPLAY);
    /* With 0 the first turn makes the number -1, which is not zero. */
    const uint32_t inputs[] = {1, 3}, bad[] = {0, 4};
    for (int i = 0; i < 2; i++) {
        clg_submission run = given(of, executable, write, inputs[i]);
        OK(clg_submission_wait_for(run, LONG));
        CHECK(turns(run, node) == inputs[i]);
        OK(clg_submission_release(run));
        run = given(of, executable, write, bad[i]);
        FAILS(CLG_FAILED, "would go on after 3 turns, which `at_most`", clg_submission_wait_for(run, LONG));
        CHECK(turns(run, node) == 3);
        OK(clg_submission_release(run));
    }
    /* Another bound. The node has the handle that it has. */
    clg_node_options replacing = {.replaces = &node};
    clg_node same;
    clg_control control;
    FAILS(CLG_INVALID, "pass null", clg_graph_repeat_while(kept, CLG_ALL(of.left), body, false, 4, &replacing, NULL, &control));
    FAILS(CLG_INVALID, "", clg_graph_repeat(kept, 4, body, &replacing, NULL, NULL));
    OK(clg_graph_repeat_while(kept, CLG_ALL(of.left), body, false, 4, &replacing, &same, NULL));
    CHECK(memcmp(&same, &node, sizeof node) == 0);
    OK(clg_executable_update(executable, &node, 1));
    clg_submission run = given(of, executable, write, 4);
    OK(clg_submission_wait_for(run, LONG));
    CHECK(turns(run, node) == 4);
    OK(clg_submission_release(run));
    run = given(of, executable, write, 0);
    OK(clg_submission_wait_for(run, LONG));
    CHECK(turns(run, node) == 0);
    OK(clg_submission_release(run));
    OK(clg_graph_release(kept));
    OK(clg_executable_release(executable));
    OK(clg_executable_release(body));
    finish(of);
}

/* Updates of what is in a body, of the number of turns, and of the memory with the number. */
static void updates(void) {
    work of = begin();
    uint32_t one = 1, two = 2, no = 0;
    clg_node fill, zero, write, loop, branch, read;
    clg_graph inner = empty_graph(of), graph = empty_graph(of);
    OK(clg_graph_fill(inner, CLG_ALL(of.data), &one, sizeof one, NULL, &fill));
    OK(clg_graph_retain(inner));
    clg_executable body = finalized(inner, CLG_PATH_REPLAY), threefold = times(of, 3);
    clg_memory flag;
    flag = buffer(of.all, sizeof no);
    OK(clg_graph_fill(graph, CLG_ALL(flag), &no, sizeof no, NULL, &zero));
    OK(clg_graph_write(graph, CLG_ALL(of.left), &one, sizeof one, NULL, NULL, NULL, &write));
    OK(clg_graph_repeat(graph, 1, body, NULL, &loop, NULL));
    clg_node_options behind = {.after = &zero, .num_after = 1};
    OK(clg_graph_when(graph, CLG_ALL(of.left), threefold, NULL, &behind, &branch, NULL));
    OK(clg_graph_read(graph, CLG_ALL(of.data), NULL, &read));
    OK(clg_graph_retain(graph));
    clg_executable executable = finalized(graph, CLG_PATH_REPLAY);
    const uint32_t expected[] = {3, 6, 6, 2};
    for (int i = 0; i < 4; i++) {
        clg_node_options of_loop = {.replaces = &loop}, of_branch = {.replaces = &branch}, of_fill = {.replaces = &fill};
        if (i == 1) {
            OK(clg_graph_fill(inner, CLG_ALL(of.data), &two, sizeof two, &of_fill, NULL));
            OK(clg_executable_update(body, &fill, 1));
            OK(clg_executable_update(executable, &loop, 1));
        } else if (i == 2) {
            OK(clg_graph_repeat(graph, 4, body, &of_loop, NULL, NULL));
            OK(clg_executable_update(executable, &loop, 1));
        } else if (i == 3) {
            OK(clg_graph_when(graph, CLG_ALL(flag), threefold, NULL, &of_branch, NULL, NULL));
            OK(clg_executable_update(executable, &branch, 1));
        }
        clg_submission run = given(of, executable, write, 1);
        OK(clg_submission_wait_for(run, LONG));
        CHECK(first(run, read) == expected[i] && turns(run, loop) == (i < 2 ? 1U : 4U) && turns(run, branch) == (i < 3));
        OK(clg_submission_release(run));
    }
    OK(clg_graph_release(inner));
    OK(clg_graph_release(graph));
    OK(clg_memory_release(flag));
    OK(clg_executable_release(executable));
    OK(clg_executable_release(body));
    OK(clg_executable_release(threefold));
    finish(of);
}

/* A loop goes round as long as the first number of some memory is not zero: a kernel counts it down. */
static void counts_down_in(work of, clg_memory number) {
    clg_arg args[] = {CLG_READ_WRITE(number)};
    clg_launch launch = {.kernel = of.count_down, .args = args, .num_args = 1, .work_dim = 1, .global = {1}};
    clg_graph inner = empty_graph(of);
    OK(clg_graph_kernel(inner, &launch, NULL, NULL));
    clg_executable body = finalized(inner, CLG_PATH_AUTO);
    const int paths[] = {CLG_PATH_AUTO, CLG_PATH_NATIVE, CLG_PATH_REPLAY};
    for (int i = 0; i < 3; i++) {
        uint32_t seven = 7;
        clg_node loop;
        clg_graph graph = empty_graph(of);
        OK(clg_graph_fill(graph, CLG_ALL(number), &seven, sizeof seven, NULL, NULL));
        OK(clg_graph_repeat_while(graph, CLG_ALL(number), body, false, 9, NULL, &loop, NULL));
        clg_executable executable = finalized(graph, paths[i]);
        clg_submission run = submitted(of.all, executable);
        OK(clg_submission_wait_for(run, LONG));
        CHECK(turns(run, loop) == 7);
        OK(clg_submission_release(run));
        OK(clg_executable_release(executable));
    }
    OK(clg_executable_release(body));
}

/* A condition in each kind of memory that the device has, in a device global, and in memory of the graph. */
static void conditions_in_any_memory(void) {
    work of = begin();
    clg_memory memory;
    int kinds = 0;
    for (int32_t kind = CLG_MEMORY_BEST; kind <= CLG_MEMORY_SVM_FINE; kind++) {
        if (clg_memory_allocate(of.all.queue, 4 * LEN, kind, &memory) != CLG_SUCCESS) {
            CHECK(kind > CLG_MEMORY_BUFFER);
            continue;
        }
        kinds++;
        counts_down_in(of, memory);
        OK(clg_memory_release(memory));
    }
    CHECK(kinds > 1);
    clg_global global;
    OK(clg_global_create("control::left", 4, NULL, false, &global));
    OK(clg_global_memory(global, of.all.queue, &memory));
    counts_down_in(of, memory);
    OK(clg_memory_release(memory));
    OK(clg_global_release(global));
    /* Memory of a graph is for the branches of the graph itself, and not for their bodies. */
    uint32_t numbers[] = {5, 0};
    for (uint32_t i = 0; i < 2; i++) {
        clg_graph graph = empty_graph(of);
        clg_executable body = times(of, 3);
        clg_node branch;
        OK(clg_graph_allocate(graph, 4, false, NULL, &memory));
        OK(clg_graph_fill(graph, CLG_ALL(memory), &numbers[i], sizeof numbers[i], NULL, NULL));
        OK(clg_graph_when(graph, CLG_ALL(memory), body, NULL, NULL, &branch, NULL));
        clg_executable executable = finalized(graph, CLG_PATH_AUTO);
        clg_submission run = submitted(of.all, executable);
        OK(clg_submission_wait_for(run, LONG));
        CHECK(turns(run, branch) == (i == 0));
        OK(clg_submission_release(run));
        OK(clg_executable_release(executable));
        OK(clg_executable_release(body));
        OK(clg_memory_release(memory));
    }
    finish(of);
}

/* A body with an input and a result: it sets the data, and reads it. */
static clg_executable ports(work of, uint32_t value, clg_node *write, clg_node *read) {
    uint32_t data[LEN] = {value};
    clg_graph graph = empty_graph(of);
    OK(clg_graph_write(graph, CLG_ALL(of.data), data, sizeof data, NULL, NULL, NULL, write));
    scales(of, graph, 10);
    OK(clg_graph_read(graph, CLG_ALL(of.data), NULL, read));
    return finalized(graph, CLG_PATH_AUTO);
}

static void branches(int path) {
    work of = begin();
    clg_node writes[2], reads[2], inputs[2], results[2], number, branch, choice;
    clg_executable bodies[2] = {ports(of, 1, &writes[0], &reads[0]), ports(of, 2, &writes[1], &reads[1])};
    clg_graph graph = empty_graph(of);
    uint32_t zero = 0;
    clg_control control, cases;
    OK(clg_graph_write(graph, CLG_ALL(of.left), &zero, sizeof zero, NULL, NULL, NULL, &number));
    OK(clg_graph_when(graph, CLG_ALL(of.left), bodies[0], bodies[1], NULL, &branch, &control));
    OK(clg_graph_switch(graph, CLG_ALL(of.left), bodies, 2, NULL, &choice, &cases));
    has_kind(graph, branch, "branch `when`");
    has_kind(graph, choice, "branch `switch`");
    clg_executable executable = finalized(graph, path);
    for (size_t i = 0; i < 2; i++) {
        clg_sub_graph body;
        OK(clg_control_body(control, i, &body));
        OK(clg_sub_graph_port(body, CLG_PORT_WRITE, writes[i], &inputs[i]));
        OK(clg_sub_graph_port(body, CLG_PORT_READ, reads[i], &results[i]));
        FAILS(CLG_INVALID, "no branch or loop", clg_sub_graph_port(body, CLG_PORT_CONTROL, writes[i], NULL));
        OK(clg_sub_graph_release(body));
        OK(clg_control_body(cases, i, &body));
        OK(clg_sub_graph_release(body));
    }
    clg_sub_graph none;
    FAILS(CLG_INVALID, "no body 2", clg_control_body(control, 2, &none));
    /* The number, which body of `when` runs, and whether `switch` runs one. */
    const uint32_t expected[][3] = {{1, 0, 1}, {0, 1, 1}, {7, 0, 0}, {(uint32_t)-1, 0, 0}};
    for (size_t i = 0; i < 4; i++) {
        uint32_t data[LEN] = {40};
        const uint32_t *with = expected[i], ran = with[1];
        clg_input given[] = {{.write = number, .data = &with[0], .size = 4}, {.write = inputs[ran], .data = data, .size = sizeof data}};
        clg_submit_options options = {.inputs = given, .num_inputs = 2};
        clg_submission run;
        OK(clg_executable_submit(executable, of.all.queue, &options, NULL, &run));
        OK(clg_submission_wait_for(run, LONG));
        CHECK(first(run, results[ran]) == 400 && turns(run, branch) == 1 && turns(run, choice) == with[2]);
        FAILS(CLG_INVALID, "`clg_submission_turns`", clg_submission_get(run, results[1 - ran], data, sizeof data));
        OK(clg_submission_release(run));
    }
    OK(clg_control_release(control));
    OK(clg_control_release(cases));
    OK(clg_executable_release(executable));
    OK(clg_executable_release(bodies[0]));
    OK(clg_executable_release(bodies[1]));
    finish(of);
}

/* A loop in a loop, in a sub-graph beside another loop: all of them are asked for. */
static void nested(int path) {
    work of = begin();
    uint32_t one = 1, two = 2;
    clg_executable inner = turn(of), thrice = times(of, 3);
    clg_graph graph = empty_graph(of);
    clg_node deep, beside, outer, sub, again, of_sub, of_loop, of_body;
    OK(clg_graph_fill(graph, CLG_ALL(of.left), &two, sizeof two, NULL, NULL));
    OK(clg_graph_repeat_while(graph, CLG_ALL(of.left), inner, false, 0, NULL, &deep, NULL));
    OK(clg_graph_repeat(graph, 1, thrice, NULL, &beside, NULL));
    clg_executable middle = finalized(graph, CLG_PATH_AUTO);
    graph = empty_graph(of);
    clg_control control;
    OK(clg_graph_repeat(graph, 3, middle, NULL, &outer, &control));
    clg_executable whole = finalized(graph, CLG_PATH_AUTO);
    graph = empty_graph(of);
    clg_sub_graph within, body, round;
    OK(clg_graph_fill(graph, CLG_ALL(of.data), &one, sizeof one, NULL, NULL));
    OK(clg_graph_sub_graph(graph, whole, NULL, &sub, &within));
    clg_control again_control;
    OK(clg_graph_repeat(graph, 2, middle, NULL, &again, &again_control));
    clg_node read;
    OK(clg_graph_read(graph, CLG_ALL(of.data), NULL, &read));
    clg_executable executable = finalized(graph, path);
    OK(clg_sub_graph_port(within, CLG_PORT_CONTROL, outer, &of_sub));
    CHECK(of_sub.index == sub.index && of_sub.graph == sub.graph);
    OK(clg_control_body(again_control, 0, &body));
    OK(clg_sub_graph_port(body, CLG_PORT_CONTROL, deep, &of_loop));
    OK(clg_sub_graph_port(body, CLG_PORT_CONTROL, beside, &of_body));
    FAILS(CLG_INVALID, "no body 1", clg_control_body(again_control, 1, &round));
    clg_submission run;
    OK(clg_executable_submit(executable, of.all.queue, NULL, NULL, &run));
    OK(clg_submission_wait_for(run, LONG));
    /* Five rounds, each of which doubles twice and trebles once. */
    CHECK(first(run, read) == 12 * 12 * 12 * 12 * 12);
    CHECK(turns(run, of_sub) == 3 && turns(run, again) == 2 && turns(run, of_loop) == 4 && turns(run, of_body) == 2);
    uint64_t none;
    FAILS(CLG_INVALID, "no branch or loop", clg_submission_turns(run, sub, &none));
    OK(clg_submission_release(run));
    /* The same loops in the executable that has them in a body. */
    clg_submission own;
    OK(clg_control_body(control, 0, &round));
    OK(clg_sub_graph_port(round, CLG_PORT_CONTROL, deep, &of_loop));
    OK(clg_executable_submit(whole, of.all.queue, NULL, NULL, &own));
    OK(clg_submission_wait_for(own, LONG));
    CHECK(turns(own, outer) == 3 && turns(own, of_loop) == 6);
    OK(clg_submission_release(own));
    OK(clg_sub_graph_release(within));
    OK(clg_sub_graph_release(body));
    OK(clg_sub_graph_release(round));
    OK(clg_control_retain(control));
    OK(clg_control_release(control));
    OK(clg_control_release(control));
    OK(clg_control_release(again_control));
    clg_executable all[] = {inner, thrice, middle, whole, executable};
    for (size_t i = 0; i < 5; i++) {
        OK(clg_executable_release(all[i]));
    }
    finish(of);
}

static void cancelled(void) {
    work of = begin();
    clg_executable body = times(of, 2);
    clg_graph graph = empty_graph(of);
    uint32_t one = 1;
    clg_node node, write;
    OK(clg_graph_write(graph, CLG_ALL(of.left), &one, sizeof one, NULL, NULL, NULL, &write));
    OK(clg_graph_repeat_while(graph, CLG_ALL(of.left), body, false, 0, NULL, &node, NULL));
    clg_executable executable = finalized(graph, CLG_PATH_AUTO);
    clg_submission run;
    OK(clg_executable_submit(executable, of.all.queue, NULL, NULL, &run));
    while (turns(run, node) < 10) {
    }
    OK(clg_submission_cancel(run));
    OK(clg_submission_cancel(run));
    FAILS(CLG_FAILED, "cancelled by the program", clg_submission_wait_for(run, LONG));
    CHECK(turns(run, node) >= 10);
    OK(clg_submission_release(run));
    run = given(of, executable, write, 0);
    OK(clg_submission_wait_for(run, LONG));
    OK(clg_submission_cancel(run));
    OK(clg_submission_wait(run));
    OK(clg_submission_release(run));
    OK(clg_executable_release(executable));
    OK(clg_executable_release(body));
    finish(of);
}

/* What the functions of a queue get. */
typedef struct {
    work of;
    int calls;
    bool fails;
    clg_queue kept;
} user_data;

static int doubles(clg_queue queue, void *user) {
    user_data *data = user;
    data->calls++;
    clg_arg args[] = {CLG_READ_WRITE(data->of.data), {.kind = CLG_ARG_VALUE, .size = 4, .data = &(uint32_t){2}}};
    clg_launch launch = {.kernel = data->of.scale, .args = args, .num_args = 2, .work_dim = 1, .global = {LEN}};
    OK(clg_enqueue_kernel(queue, &launch, 0, NULL, NULL));
    if (data->fails) {
        OK(clg_fail("enough"));
    }
    return 0;
}

static int one_turn(clg_queue queue, void *user) {
    user_data *data = user;
    clg_arg args[] = {CLG_READ_WRITE(data->of.left)};
    clg_launch launch = {.kernel = data->of.count_down, .args = args, .num_args = 1, .work_dim = 1, .global = {1}};
    OK(clg_queue_repeat(queue, 2, doubles, user, NULL, NULL));
    OK(clg_enqueue_kernel(queue, &launch, 0, NULL, NULL));
    return 0;
}

static int does_nothing(clg_queue queue, void *user) {
    (void)queue;
    (void)user;
    return 0;
}

static int keeps_its_queue(clg_queue queue, void *user) {
    OK(clg_queue_retain(queue));
    ((user_data *)user)->kept = queue;
    return 0;
}

static int releases_its_queue(clg_queue queue, void *user) {
    (void)user;
    OK(clg_queue_release(queue));
    return 7;
}

/* While a body is recorded, nothing goes into the graph around it. */
static int uses_another_queue(clg_queue queue, void *user) {
    user_data *data = user;
    uint32_t one = 1;
    clg_queue outer = data->of.all.queue;
    CHECK(queue != outer);
    const char *words = "use the queue that the function of the body is given";
    FAILS(CLG_INVALID, words, clg_enqueue_fill_buffer(outer, CLG_ALL(data->of.data), &one, sizeof one, 0, NULL, NULL));
    FAILS(CLG_INVALID, words, clg_queue_repeat(outer, 2, does_nothing, NULL, NULL, NULL));
    return 8;
}

static int of_case(clg_queue queue, size_t index, void *user) { return index == 0 ? doubles(queue, user) : 0; }

/* 4 ** count doublings, then two more. */
static void program(user_data *data, uint32_t count, clg_node nodes[4], clg_control *control) {
    clg_queue queue = data->of.all.queue;
    uint32_t one = 1;
    clg_range left = CLG_ALL(data->of.left);
    OK(clg_enqueue_fill_buffer(queue, CLG_ALL(data->of.data), &one, sizeof one, 0, NULL, NULL));
    OK(clg_enqueue_fill_buffer(queue, left, &count, sizeof count, 0, NULL, NULL));
    OK(clg_queue_repeat_while(queue, left, one_turn, data, false, 0, &nodes[0], control));
    OK(clg_queue_when(queue, left, doubles, NULL, data, &nodes[1], NULL));
    OK(clg_queue_when(queue, left, does_nothing, doubles, data, &nodes[2], NULL));
    OK(clg_queue_switch(queue, left, 2, of_case, data, &nodes[3], NULL));
}

static void queues(void) {
    user_data data = {.of = begin()};
    work of = data.of;
    clg_node nodes[4], read;
    clg_control control;
    program(&data, 3, nodes, &control);
    CHECK(control == NULL && nodes[0].graph == 0 && nodes[3].graph == 0);
    CHECK(data.calls == 8);
    uint32_t result[LEN];
    clg_pending_read pending;
    OK(clg_enqueue_read_buffer(of.all.queue, CLG_ALL(of.data), 0, NULL, &pending));
    OK(clg_pending_read_wait(pending, result, sizeof result));
    CHECK(result[0] == 256);
    OK(clg_pending_read_release(pending));
    /* The same program becomes a graph. */
    data.calls = 0;
    clg_graph graph = empty_graph(of);
    OK(clg_graph_begin_recording(graph, &of.all.queue, 1));
    program(&data, 5, nodes, &control);
    /* A function that fails: nothing is recorded, and the recording goes on. */
    data.fails = true;
    size_t size, after;
    OK(clg_graph_size(graph, &size));
    FAILS(CLG_FAILED, "enough", clg_queue_repeat(of.all.queue, 2, doubles, &data, NULL, NULL));
    FAILS(CLG_FAILED, "returned 7", clg_queue_when(of.all.queue, CLG_ALL(of.left), does_nothing, releases_its_queue, NULL, NULL, NULL));
    FAILS(CLG_FAILED, "returned 8", clg_queue_repeat(of.all.queue, 2, uses_another_queue, &data, NULL, NULL));
    OK(clg_graph_size(graph, &after));
    CHECK(size == after);
    OK(clg_graph_end_recording(graph, &of.all.queue, 1, NULL));
    OK(clg_graph_read(graph, CLG_ALL(of.data), NULL, &read));
    CHECK(data.calls == 5);
    has_kind(graph, nodes[0], "loop `repeat_while`");
    clg_sub_graph body;
    OK(clg_control_body(control, 0, &body));
    OK(clg_sub_graph_release(body));
    OK(clg_control_release(control));
    clg_executable executable = finalized(graph, CLG_PATH_AUTO);
    clg_submission run;
    OK(clg_executable_submit(executable, of.all.queue, NULL, NULL, &run));
    OK(clg_submission_wait_for(run, LONG));
    CHECK(first(run, read) == 1U << 12);
    CHECK(turns(run, nodes[0]) == 5 && turns(run, nodes[1]) == 0 && turns(run, nodes[2]) == 1 && turns(run, nodes[3]) == 1);
    OK(clg_submission_release(run));
    OK(clg_executable_release(executable));
    /* Bounds, where the queue executes and where it records. */
    uint32_t one = 1, zero = 0;
    clg_range left = CLG_ALL(of.left);
    OK(clg_enqueue_fill_buffer(of.all.queue, left, &one, sizeof one, 0, NULL, NULL));
    const char *too_many = "a loop of a queue would go on after 3 turns";
    FAILS(CLG_FAILED, too_many, clg_queue_repeat_while(of.all.queue, left, does_nothing, NULL, false, 3, NULL, NULL));
    OK(clg_enqueue_fill_buffer(of.all.queue, left, &zero, sizeof zero, 0, NULL, NULL));
    data.fails = false;
    data.calls = 0;
    OK(clg_queue_repeat_while(of.all.queue, left, doubles, &data, true, 3, NULL, NULL));
    CHECK(data.calls == 1);
    graph = empty_graph(of);
    OK(clg_graph_begin_recording(graph, &of.all.queue, 1));
    OK(clg_queue_repeat_while(of.all.queue, left, doubles, &data, true, 3, &nodes[0], NULL));
    OK(clg_graph_end_recording(graph, &of.all.queue, 1, NULL));
    executable = finalized(graph, CLG_PATH_AUTO);
    OK(clg_executable_submit(executable, of.all.queue, NULL, NULL, &run));
    OK(clg_submission_wait_for(run, LONG));
    CHECK(turns(run, nodes[0]) == 1);
    OK(clg_submission_release(run));
    OK(clg_executable_release(executable));
    data.fails = true;
    /* Where the queue executes, a failure ends the loop; a queue that was retained is one as any other. */
    data.calls = 0;
    FAILS(CLG_FAILED, "enough", clg_queue_repeat(of.all.queue, 2, doubles, &data, NULL, NULL));
    CHECK(data.calls == 1);
    OK(clg_queue_repeat(of.all.queue, 1, keeps_its_queue, &data, NULL, NULL));
    OK(clg_queue_finish(data.kept));
    OK(clg_queue_release(data.kept));
    finish(of);
}

int main(void) {
    for (int path = CLG_PATH_AUTO; path <= CLG_PATH_REPLAY; path++) {
        loops(path);
        branches(path);
        nested(path);
    }
    profiled();
    bounds();
    updates();
    conditions_in_any_memory();
    cancelled();
    queues();
    CHECK(clg_live_objects() == 0);
    puts("ok");
    return 0;
}
