/* Handles that are released in every order while submissions run. No kernels: nothing is slow under valgrind. */
#include "common.h"

enum { LEN = 256, KINDS = 6 };

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

/* The order of number `which`, of those in which KINDS things can be released. */
static void order(int which, int *of) {
    int left[KINDS];
    for (int i = 0; i < KINDS; i++) {
        left[i] = i;
    }
    for (int n = KINDS; n > 0; n--) {
        int at = which % n;
        which /= n;
        of[KINDS - n] = left[at];
        memmove(left + at, left + at + 1, (size_t)(n - at - 1) * sizeof *left);
    }
}

static void in_order(bench all, int which, volatile int *ran, volatile int *back) {
    clg_memory a = buffer(all, 4 * LEN), b = buffer(all, 4 * LEN);
    clg_graph graph;
    OK(clg_graph_create(all.queue, &graph));
    static uint32_t data[LEN];
    uint32_t seven = 7;
    clg_node write, read;
    OK(clg_graph_write(graph, CLG_ALL(a), data, sizeof data, given_back, (void *)back, NULL, &write));
    clg_use use = {.range = CLG_ALL(a), .reads = true, .writes = true};
    clg_host_task task = {.function = waits, .user = (void *)ran, .uses = &use, .num_uses = 1};
    OK(clg_graph_host_task(graph, &task, NULL, NULL));
    OK(clg_graph_fill(graph, (clg_range){a, 0, 16}, &seven, sizeof seven, NULL, NULL));
    OK(clg_graph_copy(graph, CLG_ALL(a), CLG_ALL(b), NULL, NULL));
    OK(clg_graph_read(graph, CLG_ALL(b), NULL, &read));
    clg_executable executable;
    OK(clg_graph_finalize(graph, NULL, &executable));
    clg_submission first, second;
    OK(clg_executable_submit(executable, all.queue, NULL, NULL, &first));
    clg_input input = {.write = write, .data = data, .size = sizeof data, .release = given_back, .user = (void *)back};
    clg_submit_options with = {.inputs = &input, .num_inputs = 1};
    OK(clg_executable_submit(executable, all.queue, &with, NULL, &second));
    int next[KINDS];
    order(which, next);
    for (int i = 0; i < KINDS; i++) {
        switch (next[i]) {
        case 0: OK(clg_graph_release(graph)); break;
        case 1: OK(clg_executable_release(executable)); break;
        case 2: OK(clg_memory_release(a)); break;
        case 3: OK(clg_memory_release(b)); break;
        case 4: {
            uint32_t result[LEN];
            OK(clg_submission_wait(second));
            OK(clg_submission_get(second, read, result, sizeof result));
            CHECK(result[3] == 7 && result[4] == 0);
            OK(clg_submission_release(second));
            break;
        }
        default: OK(clg_submission_release(first));
        }
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
