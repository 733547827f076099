// The C++ header: groups of launches, data that is used where it is, and recordings.
#include "common.hpp"

// A kernel that follows an address in its memory, the globals that a kernel uses, and one that prints: what only a clg::launch says.
static void launches(const bench &all) {
    clg::queue queue(all.cl_queue);
    clg::commands on(queue);
    const size_t len = 16;
    clg::memory a(buffer(all, 4 * len));
    clg::kernel scale(kernel(all, "scale"));
    clg::graph graph(queue);
    clg::launch launch{scale, len, {clg::in_out(a), 4u}};
    launch.prints = true;
    launch.indirect.push_back(clg::reads(a));
    throws(CLG_FEATURE_NOT_SUPPORTED, "address", [&] { graph.kernel(launch); });
    launch.indirect.clear();
    try {
        // Only memory with an address can be reached by one, and not every device has such memory.
        auto b = clg::memory::allocate(queue, 4 * len, CLG_MEMORY_SVM_COARSE);
        graph.fill(b, uint32_t{1});
        launch.indirect.push_back(clg::reads_and_writes(b));
    } catch (const clg::error &error) {
        CHECK(error.kind() == CLG_FEATURE_NOT_SUPPORTED && graph.size() == 0);
    }
    auto node = graph.kernel(launch, {"scale"});
    CHECK(graph.nodes(CLG_NODES_BEFORE, node).size() == graph.size() - 1);
    CHECK(graph.kind(node) == "kernel" && graph.label(node) == "scale");
    graph.replace(node, launch);
    on.kernel(launch).wait();
    // Launches whose work-items promise to touch their own elements only.
    clg::graph promised(queue);
    for (unsigned by = 2; by < 5; by++) {
        promised.kernel(scale, len, {clg::in_out(a).elementwise(4), by});
    }
    throws(CLG_INVALID, "`elementwise` of argument 1", [&] { promised.kernel(scale, len, {clg::in_out(a), clg::arg(4u).elementwise(4)}); });
    throws(CLG_INVALID, "`elementwise` of argument 1", [&] { on.kernel(scale, len, {clg::in_out(a), clg::arg(4u).elementwise(4)}); });
    clg_finalize_options now = {};
    now.fuse = CLG_FUSE_NOW;
    on.fill(a, uint32_t{1});
    promised.finalize(now).submit(queue).wait();
    CHECK(on.read(a).wait<uint32_t>() == std::vector<uint32_t>(len, 24));

    auto counted = clg::global::with_value("cpp::counted", uint32_t{5}), other = clg::global("cpp::other", 4);
    clg::program program(all.context,
                         "CLG_DEVICE_GLOBAL(uint, counted); CLG_DEVICE_GLOBAL(uint, other);\n"
                         "kernel void count(CLG_ONLY_PARAMS) { atomic_inc(&CLG_GLOBAL(counted)); }\n"
                         "kernel void both(CLG_ONLY_PARAMS) { CLG_GLOBAL(other) = CLG_GLOBAL(counted); }",
                         {{"counted", counted}, {"other", other}});
    CHECK(program.kernel_names() == (std::vector<std::string>{"count", "both"}) || program.kernel_names() == (std::vector<std::string>{"both", "count"}));
    CHECK(program.globals().size() == 2 && program.globals()[1].find("`other` is cpp::other (4 bytes)") == 0);
    CHECK(program.to_cl() != nullptr);
    // The globals that it uses are what it waits for.
    clg::launch count{program.kernel("count"), size_t{3}, {}};
    count.globals = {clg::reads_and_writes(counted)};
    auto fill = graph.fill(other.on(queue), uint32_t{0});
    auto counting = graph.kernel(count);
    CHECK(graph.nodes(CLG_NODES_BEFORE, counting).empty());
    clg::launch both{program.kernel("both"), size_t{1}, {}};
    both.globals = {clg::reads(counted), clg::writes(other)};
    auto last = graph.kernel(both);
    CHECK(graph.nodes(CLG_NODES_BEFORE, last).size() == 2 && fill.index + 2 == last.index);
    auto result = graph.read(other.on(queue));
    auto run = graph.finalize().submit(queue);
    run.wait();
    CHECK(run.get<uint32_t>(result)[0] == 8);
    // One that uses none of them waits for nothing.
    clg::graph none(queue);
    none.fill(counted.on(queue), uint32_t{0});
    count.globals = std::vector<clg::global_use>{};
    none.kernel(count);
    CHECK(none.nodes(CLG_NODES_BEFORE, none.nodes().at(1)).empty());
}

// Data that is used where it is is kept until it is no longer needed, and then given back.
static void shared_data(const bench &all) {
    using data = std::vector<uint32_t>;
    clg::queue queue(all.cl_queue);
    clg::commands on(queue);
    const size_t len = 16;
    clg::memory a(buffer(all, 4 * len));
    auto ones = std::make_shared<data>(len, 1);
    auto twos = std::make_shared<const data>(len, 2);
    std::weak_ptr<const data> gone_ones = ones, gone_twos = twos;
    {
        clg::graph graph(queue);
        auto write = graph.write(a, ones);
        auto read = graph.read(a);
        ones.reset();
        CHECK(!gone_ones.expired());
        auto executable = graph.finalize();
        auto run = executable.submit(queue);
        run.wait();
        data into(len);
        run.read_into(read, into);
        CHECK(into == data(len, 1));
        throws(CLG_INVALID, "", [&] { run.read_into(read, data(len - 1)); });
        clg::submit given;
        given.with(write, twos);
        twos.reset();
        for (int i = 0; i < 2; i++) {
            run = executable.submit(queue, given);
            run.wait();
            CHECK(run.get<uint32_t>(read) == data(len, 2));
        }
        // It is given back too if the submission is refused.
        throws(CLG_INVALID, "", [&] { executable.submit(queue, clg::submit(given).with(read, std::make_shared<data>(len, 3))); });
    }
    queue.finish();
    auto threes = std::make_shared<data>(len, 3);
    std::weak_ptr<data> gone_threes = threes;
    on.write(a, threes).wait();
    threes.reset();
    auto back = on.read(a);
    CHECK(back.wait<uint32_t>() == data(len, 3));
    back.event().wait();
    throws(CLG_INVALID, "", [&] { on.write(a, std::make_shared<data>(len + 1, 3)); });
    for (int i = 0; i < 10000 && !(gone_ones.expired() && gone_twos.expired() && gone_threes.expired()); i++) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    CHECK(gone_ones.expired() && gone_twos.expired() && gone_threes.expired());
}

// What a queue records besides commands, and what it says of itself.
static void recordings(const bench &all) {
    clg::queue queue(all.cl_queue);
    clg::commands on(queue);
    const size_t len = 16;
    clg::memory a(buffer(all, 4 * len));
    CHECK(queue.to_cl() == all.cl_queue && !queue.is_recording());
    throws(CLG_INVALID, "", [&] { queue.recording_graph(); });
    clg::graph inner(queue);
    auto filled = inner.fill(a, uint32_t{7});
    auto inner_read = inner.read(a);
    auto executable = inner.finalize();

    clg_graph_properties properties = {};
    properties.no_cycle_check = true;
    clg::graph graph(object{all.context}, object{all.device}, properties);
    throws(CLG_INVALID, "", [&] { clg::graph(all.context, static_cast<cl_device_id>(nullptr)); });
    // Of two functions, one is active.
    std::vector<int> called;
    auto group = graph.host_task_group({[&](const clg::task &) { called.push_back(1); }, [&](const clg::task &) { called.push_back(2); }},
                                       {clg::reads(a)});
    throws(CLG_INVALID, "", [&] { graph.host_task_group({}); });
    auto recording = graph.record(queue);
    CHECK(queue.is_recording() && queue.recording_graph().size() == graph.size());
    auto waited = on.wait_event();
    auto signalled = on.signal_event({waited.event});
    auto sub = on.submit(executable).sub_graph(graph);
    auto kept = on.allocate(4 * len);
    on.copy(a, kept);
    on.free(kept);
    on.command_group(group);
    CHECK(recording.end() == 1 && !queue.is_recording() && recording.end() == 0);
    CHECK(graph.kind(waited.node) == "event wait" && graph.kind(signalled.node) == "event signal" && graph.kind(sub) == "sub-graph");
    {
        auto again = graph.record(queue);
        CHECK(graph.end_all_recording() == 1);
    }
    CHECK(!queue.is_recording() && graph.end_all_recording() == 0);
    clg_finalize_options updatable = {};
    updatable.updatable = true;
    auto outer = graph.finalize(updatable);
    cl_int status;
    cl_event go = clCreateUserEvent(all.context, &status);
    clg::user_event done(all.context);
    clg::submit given;
    given.with_event(waited.node, object{go}).with_signal(signalled.node, done);
    auto run = outer.submit(queue, given);
    CHECK(!done.is_done() && clSetUserEventStatus(go, CL_COMPLETE) == CL_SUCCESS);
    run.wait();
    CHECK(done.is_done() && run.get<uint32_t>(sub.read(inner_read))[len - 1] == 7 && called == std::vector<int>{1});
    throws(CLG_INVALID, "", [&] { run.sub_graph(graph); });
    group.set_active(1);
    for (auto node : graph.nodes()) {
        if (graph.kind(node) == "host task") {
            outer.update(node);
        }
    }
    clg::user_event again(all.context);
    given = clg::submit();
    outer.submit(queue, given.with_event(waited.node, go).with_signal(signalled.node, again)).wait();
    CHECK(clReleaseEvent(go) == CL_SUCCESS && called == (std::vector<int>{1, 2}));
    // A node waits for a command, or for a submission, whose failure is its own.
    clg::user_event third(all.context), fourth(all.context);
    outer.submit(queue, clg::submit().with_event(waited.node, on.marker()).with_signal(signalled.node, third)).wait();
    auto fails = on.host_task([](const clg::task &) { throw std::runtime_error("it is broken"); });
    throws(CLG_FAILED, "it is broken", [&] {
        outer.submit(queue, clg::submit().with_event(waited.node, fails).with_signal(signalled.node, fourth)).wait();
    });
    (void)filled;
    for (auto raw : outer.command_buffers()) {
        CHECK(raw != nullptr);
    }

    // A native command that can also be recorded, and memory by its address.
    clg::graph natives(queue);
    clg::native_functions functions;
    std::atomic<int> enqueued{0}, recorded{0};
    functions.enqueue = [&](const clg_native_target &target) { enqueued += target.queue != nullptr; };
    functions.record = [&](const clg_native_target &target) { recorded += target.command_buffer != nullptr; };
    natives.native_command(functions, {clg::reads(a)});
    natives.finalize().submit(queue).wait();
    CHECK(enqueued + recorded >= 1);
    throws(CLG_INVALID, "", [&] { natives.native_command(clg::native_functions(), {}); });
    on.native_command(functions, {clg::reads(a)}).wait();
    CHECK(a.address() == nullptr);
    try {
        auto shared = clg::memory::allocate(queue, 64, CLG_MEMORY_SVM_COARSE);
        CHECK(shared.address() != nullptr);
        void *own = clSVMAlloc(all.context, CL_MEM_READ_WRITE, 64, 0);
        auto wrapped = clg::memory::from_pointer(queue, own, 64, CLG_MEMORY_SVM_COARSE);
        CHECK(wrapped.address() == own && wrapped.size() == 64);
        on.fill(wrapped, uint32_t{9}).wait();
        CHECK(on.read(wrapped).wait<uint32_t>()[15] == 9);
        queue.finish();
        wrapped = clg::memory();
        clSVMFree(all.context, own);
    } catch (const clg::error &error) {
        CHECK(error.kind() == CLG_FEATURE_NOT_SUPPORTED || error.kind() == CLG_INVALID);
    }
    throws(CLG_INVALID, "", [&] { clg::memory::from_pointer(queue, nullptr, 64, CLG_MEMORY_SVM_COARSE); });
}

// What is detached has no handles; and functions that are called hear the status of OpenCL.
static void detached(const bench &all) {
    clg::queue queue(all.cl_queue);
    clg::commands on(queue);
    clg::detached_commands without(queue);
    const size_t len = 16;
    clg::memory a(buffer(all, 4 * len)), b(buffer(all, 4 * len));
    clg::kernel scale(kernel(all, "scale"));
    static_assert(std::is_void_v<decltype(without.fill(a, 1u))> && std::is_same_v<decltype(on.fill(a, 1u)), clg::event>);
    without.fill(a, uint32_t{3});
    without.kernel(scale, len, {clg::in_out(a), 5u}, {on.marker()});
    without.barrier();
    without.copy(a, b);
    CHECK(without.read(b).wait<uint32_t>() == std::vector<uint32_t>(len, 15));
    {
        clg::graph graph(queue);
        auto recording = graph.record(queue);
        without.fill(a, uint32_t{3});
        auto waited = without.wait_event();
        recording.end();
        CHECK(graph.size() == 2 && graph.kind(waited.node) == "event wait");
    }
    clg::graph graph(queue);
    auto write = graph.write(a, std::vector<uint32_t>(len, 1));
    auto executable = graph.finalize();
    clg::user_event go(all.context);
    executable.submit_detached(queue, clg::submit().after(go).with(write, std::vector<uint32_t>(len, 9)));
    CHECK(go.is_done() == false);
    go.complete();
    CHECK(on.read(a).wait<uint32_t>() == std::vector<uint32_t>(len, 9));

    cl_int status;
    cl_event fails = clCreateUserEvent(all.context, &status);
    auto run = executable.submit(queue, clg::submit().after(fails));
    clg::user_event heard(all.context);
    run.on_complete([&heard](const clg::error *error) {
        CHECK(error != nullptr && error->cl_status() == -5);
        heard.complete();
    });
    CHECK(clSetUserEventStatus(fails, -5) == CL_SUCCESS);
    heard.wait();
    CHECK(clReleaseEvent(fails) == CL_SUCCESS);
}

int main() {
    bench all = start();
    detached(all);
    launches(all);
    shared_data(all);
    recordings(all);
    end(all);
    CHECK(clg_live_objects() == 0);
    puts("ok");
}
