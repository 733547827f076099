// The C++ header: branches and loops of graphs and of queues.
#include "common.hpp"

static const auto LONG = std::chrono::seconds(60);
static const size_t LEN = 8;

static std::vector<uint32_t> powers(uint32_t base, uint64_t times) {
    uint32_t value = 1;
    for (uint64_t i = 0; i < times; i++) {
        value *= base;
    }
    return std::vector<uint32_t>(LEN, value);
}

static void graphs(const bench &all) {
    clg::queue queue(all.cl_queue);
    clg::memory data(buffer(all, 4 * LEN)), left(buffer(all, 4));
    clg::kernel scale(kernel(all, "scale")), count_down(kernel(all, "count_down"));
    auto times = [&](uint32_t by, bool counts) {
        clg::graph graph(queue);
        graph.kernel(scale, LEN, {clg::in_out(data), by});
        if (counts) {
            graph.kernel(count_down, size_t{1}, {clg::in_out(left)});
        }
        return graph.finalize();
    };
    const auto turn = times(2, true), by_3 = times(3, false), by_5 = times(5, false);
    clg::graph graph(queue);
    auto input = graph.write(left, std::vector<uint32_t>{4});
    graph.fill(data, uint32_t{1});
    auto loop = graph.repeat_while(left, turn, {false, 6}, {"doubling"});
    auto more = graph.repeat(2, by_3);
    auto branch = graph.when(left, by_5, by_3), none = graph.when(left, by_5);
    auto choice = graph.switch_on(left, {by_5, by_3});
    auto result = graph.read(data);
    CHECK(graph.kind(loop) == "loop `repeat_while`" && graph.label(loop) == "doubling" && graph.kind(choice) == "branch `switch`");
    clg_finalize_options updatable = {};
    updatable.updatable = true;
    auto executable = graph.finalize(updatable);
    auto run = executable.submit(queue);
    CHECK(run.wait_for(LONG));
    CHECK(run.get<uint32_t>(result)[0] == 16 * 9 * 3 * 5);
    CHECK(run.turns(loop) == 4 && run.turns(more) == 2 && run.turns(branch) == 1 && run.turns(none) == 0 && run.turns(choice) == 1);
    run = executable.submit(queue, clg::submit().with(input, std::vector<uint32_t>{7}));
    throws(CLG_FAILED, "`at_most` does not allow", [&] { run.wait_for(LONG); });
    CHECK(run.turns(loop) == 6);
    throws(CLG_INVALID, "no branch or loop", [&] { run.turns(input); });
    // Another number of turns, and a loop that goes on until it is cancelled. The node keeps the handle that it has got.
    auto replaced = graph.repeat(3, by_3, clg::replacing(more));
    CHECK(!replaced && replaced.node().index == more.node().index && more);
    throws(CLG_INVALID, "null", [&] { replaced.body(); });
    executable.update(more);
    run = executable.submit(queue);
    CHECK(run.wait_for(LONG) && run.turns(more) == 3);
    clg::graph endless(queue);
    endless.fill(left, uint32_t{1});
    auto forever = endless.repeat_while(left, by_3, {true, 0});
    run = endless.finalize().submit(queue);
    while (run.turns(forever) < 5) {
    }
    run.cancel();
    throws(CLG_FAILED, "cancelled", [&] { run.wait_for(LONG); });

    // Inputs and results of bodies, and loops inside.
    clg::graph with_ports(queue);
    auto write = with_ports.write(data, powers(7, 1));
    auto inner = with_ports.repeat(2, by_3);
    auto read = with_ports.read(data);
    auto body = with_ports.finalize();
    clg::graph outer(queue);
    auto twice = outer.repeat(2, body);
    auto sub = outer.sub_graph(body);
    executable = outer.finalize();
    auto inside = twice.body();
    run = executable.submit(queue, clg::submit().with(inside.write(write), powers(10, 1)));
    CHECK(run.wait_for(LONG));
    CHECK(run.get<uint32_t>(inside.read(read))[0] == 90 && run.get<uint32_t>(sub.read(read))[0] == 63);
    CHECK(run.turns(inside.control(inner)) == 4 && run.turns(sub.control(inner)) == 2 && run.turns(twice) == 2);
    throws(CLG_INVALID, "no body 1", [&] { twice.body(1); });
}

static void queues(const bench &all) {
    clg::queue queue(all.cl_queue);
    clg::memory data(buffer(all, 4 * LEN)), left(buffer(all, 4));
    clg::kernel scale(kernel(all, "scale")), count_down(kernel(all, "count_down"));
    auto doubles = [&](const clg::queue &on) { clg::commands(on).kernel(scale, LEN, {clg::in_out(data), 2u}); };
    auto program = [&](uint32_t count) {
        clg::commands on(queue);
        on.fill(data, uint32_t{1});
        on.fill(left, count);
        auto loop = on.repeat_while(left, [&](const clg::queue &turn) {
            clg::commands(turn).repeat(2, doubles);
            clg::commands(turn).kernel(count_down, size_t{1}, {clg::in_out(left)});
        });
        on.when(left, doubles);
        on.when(left, [](const clg::queue &) {}, doubles);
        on.switch_on(left, 2, [&](const clg::queue &turn, std::size_t number) {
            if (number == 0) {
                doubles(turn);
            }
        });
        return loop;
    };
    auto loop = program(3);
    CHECK(!loop && loop.node().graph == 0);
    CHECK(clg::commands(queue).read(data).wait<uint32_t>() == powers(2, 8));
    clg::graph graph(queue);
    {
        auto recording = graph.record(queue);
        loop = program(5);
        // What a function throws is thrown here, and nothing is recorded.
        const auto size = graph.size();
        throws(CLG_FAILED, "enough", [&] { clg::commands(queue).repeat(2, [](const clg::queue &) { throw std::runtime_error("enough"); }); });
        throws(CLG_INVALID, "`body` is null", [&] { clg::commands(queue).repeat(2, {}); });
        CHECK(graph.size() == size);
    }
    auto result = graph.read(data);
    CHECK(loop && loop.body());
    auto run = graph.finalize().submit(queue);
    CHECK(run.wait_for(LONG) && run.turns(loop) == 5);
    CHECK(run.get<uint32_t>(result) == powers(2, 12));
    int calls = 0;
    auto counts = [&](const clg::queue &) { calls++; };
    clg::commands(queue).fill(left, uint32_t{1});
    throws(CLG_FAILED, "a loop of a queue would go on after 3 turns", [&] { clg::commands(queue).repeat_while(left, counts, {true, 3}); });
    CHECK(calls == 3);
    throws(CLG_FAILED, "no std::exception", [&] { clg::commands(queue).repeat(2, [](const clg::queue &) { throw 5; }); });
}

int main() {
    bench all = start();
    graphs(all);
    queues(all);
    end(all);
    CHECK(clg_live_objects() == 0);
    puts("ok");
}
