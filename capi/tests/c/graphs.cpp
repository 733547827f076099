// The C++ header: what it makes of C, and exceptions.
#include "common.hpp"

// What a native command throws is the error of its submission.
static void native_commands_throw(const bench &all) {
    clg::queue queue(all.cl_queue);
    clg::graph graph(queue);
    graph.native_command([](const clg_native_target &) { throw std::runtime_error("no copy today"); }, {});
    auto executable = graph.finalize();
    throws(CLG_FAILED, "no copy today", [&] { executable.submit(queue).wait(); });
}

static void graphs(const bench &all) {
    cl_int status;
    auto make = [&](size_t size) {
        cl_mem raw = clCreateBuffer(all.context, CL_MEM_READ_WRITE, size, nullptr, &status);
        CHECK(status == CL_SUCCESS);
        clg::memory made(object{all.context}, object{raw});
        clReleaseMemObject(raw);
        return made;
    };
    cl_kernel raw = clCreateKernel(all.program, "scale", &status);
    clg::kernel scale(all.context, raw);
    clReleaseKernel(raw);
    clg::queue queue{object{all.cl_queue}};
    const size_t len = 32;
    auto a = make(4 * len), b = make(4 * len);
    std::vector<uint32_t> count(len), twos(len, 2);
    std::iota(count.begin(), count.end(), 0u);

    clg::graph graph(queue);
    clg::parameter<uint32_t> by(3);
    auto write = graph.write(a, count, {"count"});
    auto launch = graph.kernel(scale, {clg::extent(len), clg::extent(8)}, {clg::in_out(a), by});
    graph.copy(a, b);
    graph.kernel(scale, len, {clg::in_out(b), uint32_t{10}}, {"tenfold", {launch}});
    auto read = graph.read(b);
    std::atomic<uint32_t> seen{0};
    graph.host_task(
        [&, read](const clg::task &task) {
            auto data = task.get<uint32_t>(read, len);
            seen = data[1];
            if (data[1] == 70) {
                throw std::runtime_error("seventy\xfc");
            }
        },
        {clg::reads(a)}, {read});
    clg_finalize_options updatable = {};
    updatable.updatable = true;
    auto executable = graph.finalize(updatable);
    auto run = executable.submit(queue);
    run.wait();
    CHECK(run.get<uint32_t>(read)[31] == 930 && seen == 30 && run.is_done());
    auto result = run.result<uint32_t>(read);
    CHECK(result.size() == len && std::accumulate(result.begin(), result.end(), 0u) == 30 * 31 * 16);
    by.set(5);
    executable.update(launch);
    clg::user_event go(object{all.context});
    run = executable.submit(queue, clg::submit().with(write, twos).after(go));
    std::atomic<bool> heard{false};
    run.on_complete([&](const clg::error *error) { heard = error == nullptr; });
    go.complete();
    run.wait();
    CHECK(run.get<uint32_t>(read) == std::vector<uint32_t>(len, 100));
    for (int i = 0; i < 10000 && !heard; i++) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    CHECK(heard);
    by.set(7);
    executable.update({launch});
    throws(CLG_FAILED, "seventy", [&] { executable.submit(queue).wait(); });
    graph.replace(launch, scale, len, {clg::in_out(a), by});
    executable.update(launch);
    CHECK(executable.report().find("commands") != std::string::npos && graph.to_dot().find("tenfold") != std::string::npos);
    CHECK(executable.to_svg().find("</svg>") != std::string::npos && graph.size() == 6);
    throws(CLG_INVALID, "", [&] { graph.fill(a.slice(0, 6), uint32_t{1}); });
    throws(CLG_INVALID, "", [&] { graph.kernel(scale, len, {clg::in_out(a)}); });
    throws(CLG_INVALID, "", [&] { executable.update(clg::node{}); });

    auto other = clg::graph(queue);
    auto kept = other.allocate(4 * len, true);
    other.copy(a, kept);
    other.free(kept);
    auto sub = other.sub_graph(executable);
    auto signal = other.signal_event({sub});
    clg::user_event done(all.context);
    by.set(1);
    executable.update(launch);
    auto outer = other.finalize();
    outer.submit(queue, clg::submit().with_signal(signal, done)).wait();
    done.wait();
    auto moved = std::move(outer);
    clg::executable copied = moved;
    moved = copied;
    CHECK(copied.raw() == moved.raw());
    executable.submit_detached(queue);
    queue.finish();
}

// A task that maps memory itself, and a function with mapped memory that uses the results of its submission.
static void maps(const bench &all) {
    clg::queue queue(all.cl_queue);
    clg::commands on(queue);
    const size_t len = 16;
    clg::memory a(buffer(all, 4 * len)), b(buffer(all, 4 * len));
    clg::graph graph(queue);
    graph.fill(a, uint32_t{7});
    graph.host_task(
        [&](const clg::task &task) {
            auto from = task.map<const uint32_t>(a, CLG_MAP_READ);
            auto to = task.map<uint32_t>(b, CLG_MAP_WRITE_INVALIDATE);
            CHECK(from.size() == len && to.size() == len);
            std::copy(from.begin(), from.end(), to.begin());
            throws(CLG_INVALID, "clg_use.writes", [&] { task.map<uint32_t>(a, CLG_MAP_WRITE_INVALIDATE); });
        },
        {clg::reads(a), clg::writes(b)});
    auto read = graph.read(b);
    graph.map(b, CLG_MAP_WRITE, [read](const clg::task &task, void *data, size_t size) {
        CHECK(size == 4 * len && task.get<uint32_t>(read, len)[3] == 7);
        static_cast<uint32_t *>(data)[0] = 8;
    }, {read});
    auto last = graph.read(b);
    auto run = graph.finalize().submit(queue);
    run.wait();
    CHECK(run.get<uint32_t>(last)[0] == 8 && run.get<uint32_t>(last)[1] == 7);
    bool ran = false;
    clg::memory_function kept = [&](const clg::task &, void *, size_t) { ran = true; };
    on.map(b, CLG_MAP_READ, kept).wait();
    CHECK(ran);
}

static void commands(const bench &all) {
    cl_int status;
    auto make = [&](size_t size) {
        cl_mem raw = clCreateBuffer(all.context, CL_MEM_READ_WRITE, size, nullptr, &status);
        clg::memory made(object{all.context}, object{raw});
        clReleaseMemObject(raw);
        return made;
    };
    const size_t len = 32;
    auto a = make(4 * len), b = make(4 * len);
    cl_kernel raw = clCreateKernel(all.program, "scale", &status);
    clg::kernel scale(all.context, raw);
    clReleaseKernel(raw);
    clg::queue queue{object{all.cl_queue}};
    clg::commands on(queue);
    // The same code executes, and is recorded.
    auto existing = [&] {
        auto filled = on.fill(a, uint32_t{4});
        auto scaled = on.kernel(scale, len, {clg::in_out(a), uint32_t{5}}, {filled});
        on.write(b, std::vector<uint32_t>(len, 1));
        on.barrier();
        on.copy(a.slice(0, 64), b.slice(64), {scaled});
        on.marker();
        return on.read(b);
    };
    auto now = existing().wait<uint32_t>();
    CHECK(now[0] == 1 && now[15] == 1 && now[16] == 20 && now[31] == 20);
    clg::graph graph(queue);
    clg::node result = {};
    {
        auto recording = graph.record(queue);
        auto read = existing();
        result = read.node();
        throws(CLG_INVALID, "", [&] { read.wait<uint32_t>(); });
        throws(CLG_INVALID, "", [&] { (void)graph.record(queue); });
    }
    CHECK(graph.size() == 7);
    auto mapped = graph.map(a, CLG_MAP_WRITE, [](void *data, size_t size) {
        CHECK(size == 4 * len);
        static_cast<uint32_t *>(data)[0] = 77;
    });
    auto native = graph.native_command(
        [](const clg_native_target &target) {
            const clg_native_memory &from = target.memory[0], &to = target.memory[1];
            cl_int status = clEnqueueCopyBuffer(target.queue, static_cast<cl_mem>(from.pointer),
                                                static_cast<cl_mem>(to.pointer), from.offset, to.offset, 4, 0, nullptr, nullptr);
            if (status != CL_SUCCESS) {
                throw std::runtime_error("no copy");
            }
        },
        {clg::reads(a.slice(0, 4)), clg::writes(b.slice(0, 4))}, {mapped});
    auto last = graph.read(b.slice(0, 4), {native});
    clg_finalize_options updatable = {};
    updatable.updatable = true;
    auto executable = graph.finalize(updatable);
    auto run = executable.submit(queue);
    run.wait();
    run.event().wait();
    CHECK(run.get<uint32_t>(result) == now && run.get<uint32_t>(last)[0] == 77);
    CHECK(executable.required_memory() == 0 && executable.memory_map().find("svg") != std::string::npos);

    // In another graph, with its own result; a fill that is replaced; a parameter of memory.
    clg::graph outer(queue);
    auto sub = outer.sub_graph(executable, {"all of it"});
    auto fill = outer.fill(a, uint32_t{2}, {sub});
    clg::parameter<clg::memory> which(a);
    auto launch = outer.kernel(scale, len, {clg::in_out(which), uint32_t{3}}, {"last", {fill}});
    auto read = outer.read(a);
    auto whole = outer.finalize(updatable);
    run = whole.submit(queue);
    run.wait();
    CHECK(run.get<uint32_t>(sub.read(result)) == now && run.get<uint32_t>(read)[5] == 6);
    throws(CLG_INVALID, "", [&] { sub.write(result); });
    outer.fill(a, uint32_t{10}, clg::replacing(fill));
    const std::vector<clg::node> changed{fill, launch};
    whole.update(changed);
    whole.update({fill, launch});
    run = whole.submit(queue);
    run.wait();
    CHECK(run.get<uint32_t>(read)[5] == 30);
    throws(CLG_INVALID, "", [&] { which.set(b.slice(0, 4)); });
    throws(CLG_INVALID, "", [&] { which.set_null(); });

    // A device global.
    auto hits = clg::global::with_value("cpp::hits", uint32_t{100});
    clg::program program(all.context, "CLG_DEVICE_GLOBAL(uint, hits); kernel void hit(CLG_ONLY_PARAMS) { atomic_inc(&CLG_GLOBAL(hits)); }",
                         {{"hits", hits}});
    on.kernel(program.kernel("hit"), size_t{11}, {}).wait();
    CHECK(on.read(hits.on(queue)).wait<uint32_t>()[0] == 111);
}

// What most programs never call.
static void rarer_calls(const bench &all) {
    cl_int status;
    const size_t len = 32;
    cl_mem raw = clCreateBuffer(all.context, CL_MEM_READ_WRITE, 4 * len, nullptr, &status);
    clg::memory a(all.context, raw);
    clReleaseMemObject(raw);
    cl_kernel raw_scale = clCreateKernel(all.program, "scale", &status), raw_total = clCreateKernel(all.program, "total", &status);
    clg::kernel scale(all.context, raw_scale), total(all.context, raw_total);
    clReleaseKernel(raw_scale);
    clReleaseKernel(raw_total);
    clg::queue queue(all.cl_queue);
    clg::commands on(queue);
    CHECK(a.size() == 4 * len);

    // A group, labels, lists, times.
    clg::graph graph(queue);
    auto filled = graph.fill(a, uint32_t{1}, {"ones"});
    auto group = graph.command_group({{scale, len, {clg::in_out(a), uint32_t{2}}}, {scale, len, {clg::in_out(a), uint32_t{10}}}});
    auto member = graph.command_group_node(group);
    auto result = graph.read(a);
    CHECK(graph.nodes().size() == 3 && graph.nodes(CLG_NODES_BEFORE, member)[0].index == filled.index);
    CHECK(graph.label(filled) == "ones" && graph.kind(filled) == "fill");
    graph.set_label(filled, "first");
    CHECK(graph.label(filled) == "first");
    clg_finalize_options options = {};
    options.updatable = options.profiling = true;
    auto executable = graph.finalize(options);
    auto run = executable.submit(queue);
    CHECK(run.wait_for(std::chrono::hours(1)) && run.progress() == CLG_PROGRESS_COMPLETE && run.get<uint32_t>(result)[0] == 2);
    CHECK(run.node_times().size() == 3);
    group.set_active(1);
    CHECK(group.active() == 1);
    throws(CLG_INVALID, "", [&] { group.set_active(2); });
    executable.update(member);
    run = executable.submit(queue);
    run.wait();
    CHECK(run.get<uint32_t>(result)[len - 1] == 10);
    clg::user_event never(all.context);
    CHECK(!never.wait_for(std::chrono::milliseconds(1)));
    run = executable.submit(queue, clg::submit().after(never));
    CHECK(!run.wait_for(std::chrono::nanoseconds(-1)) && run.progress() == CLG_PROGRESS_WAITING);
    never.complete();
    run.wait();

    // It waits for the event of a command.
    auto marked = on.marker();
    executable.submit(queue, clg::submit().after(marked)).wait();

    // Local memory whose size changes, of one work-group.
    clg::graph sums(queue);
    clg::local_parameter room(4 * len);
    auto sum = sums.kernel(total, clg::range(clg::extent(len), clg::extent(len)), {clg::in(a), clg::in_out(a), room});
    auto summed = sums.finalize(options);
    on.fill(a, uint32_t{1});
    summed.submit(queue).wait();
    CHECK(on.read(a).wait<uint32_t>()[0] == len);
    room.set(8 * len);
    summed.update(sum);
    on.fill(a, uint32_t{2});
    summed.submit(queue).wait();
    CHECK(on.read(a).wait<uint32_t>()[0] == 2 * len);

    // Functions on a queue.
    bool ran = false;
    on.host_task([&](const clg::task &) { ran = true; }).wait();
    CHECK(ran);
    throws(CLG_FAILED, "no task", [&] { on.host_task([](const clg::task &) { throw std::runtime_error("no task"); }).wait(); });
    on.map(a, CLG_MAP_WRITE, [](void *data, size_t size) { static_cast<uint32_t *>(data)[size / 4 - 1] = 99; }).wait();
    CHECK(on.read(a.slice(4 * len - 4)).wait<uint32_t>()[0] == 99);
    on.native_command([&](const clg_native_target &target) {
        const uint32_t five = 5;
        CHECK(clEnqueueFillBuffer(target.queue, static_cast<cl_mem>(target.memory[0].pointer), &five, 4, target.memory[0].offset,
                                  target.memory[0].size, 0, nullptr, nullptr) == CL_SUCCESS);
    }, {clg::writes(a)}).wait();
    CHECK(on.read(a).wait<uint32_t>()[7] == 5);

    // Memory that the host uses by its address, where the device has such memory.
    clg::memory shared;
    try {
        shared = clg::memory::allocate(queue, 4 * len, CLG_MEMORY_HOST_ACCESSIBLE);
    } catch (const clg::error &error) {
        CHECK(error.kind() == CLG_FEATURE_NOT_SUPPORTED || error.kind() == CLG_INVALID);
        return;
    }
    {
        auto values = shared.access_host<uint32_t>();
        CHECK(values.size() == len);
        std::fill(values.begin(), values.end(), 3u);
        throws(CLG_NOT_READY, "", [&] { shared.access_host<const uint32_t>(); });
        auto moved = std::move(values);
        CHECK(values.data() == nullptr && values.size() == 0 && moved.size() == len && moved[len - 1] == 3);
        values = std::move(moved);
        CHECK(moved.data() == nullptr && moved.size() == 0 && values.size() == len);
    }
    on.hint(shared, CLG_HINT_TO_DEVICE);
    graph = clg::graph(queue);
    graph.hint(shared, CLG_HINT_TO_DEVICE);
    graph.finalize().submit(queue).wait();
    on.copy(shared, a);
    CHECK(on.read(a).wait<uint32_t>()[0] == 3);
    queue.finish();
    auto values = shared.access_host<const uint32_t>();
    CHECK(values[len - 1] == 3);
}

static void images(const bench &all) {
    cl_bool has = CL_FALSE;
    CHECK(clGetDeviceInfo(all.device, CL_DEVICE_IMAGE_SUPPORT, sizeof has, &has, nullptr) == CL_SUCCESS);
    if (!has) {
        return;
    }
    cl_int status;
    cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
    cl_image_desc desc = {};
    desc.image_type = CL_MEM_OBJECT_IMAGE2D;
    desc.image_width = 8, desc.image_height = 4;
    auto make = [&] {
        cl_mem raw = clCreateImage(all.context, CL_MEM_READ_WRITE, &format, &desc, nullptr, &status);
        CHECK(status == CL_SUCCESS);
        clg::image made(all.context, raw);
        clReleaseMemObject(raw);
        return made;
    };
    const char *source = "kernel void invert(read_only image2d_t from, write_only image2d_t to, sampler_t with) {\n"
                         "    int2 at = (int2)(get_global_id(0), get_global_id(1));\n"
                         "    write_imageui(to, at, 255 - read_imageui(from, with, at));\n"
                         "}\n";
    cl_program program = clCreateProgramWithSource(all.context, 1, &source, nullptr, &status);
    CHECK(clBuildProgram(program, 1, &all.device, "", nullptr, nullptr) == CL_SUCCESS);
    cl_kernel raw = clCreateKernel(program, "invert", &status);
    clg::kernel invert(all.context, raw);
    clReleaseKernel(raw);
    clReleaseProgram(program);
    auto make_sampler = [&](cl_addressing_mode mode) {
        cl_sampler raw = clCreateSampler(all.context, CL_FALSE, mode, CL_FILTER_NEAREST, &status);
        clg::sampler made(all.context, raw);
        clReleaseSampler(raw);
        return made;
    };
    auto a = make(), b = make(), to = make();
    auto none = make_sampler(CL_ADDRESS_NONE), clamp = make_sampler(CL_ADDRESS_CLAMP);
    clg::queue queue(all.cl_queue);
    clg::commands on(queue);
    const size_t bytes = 4 * 8 * 4;
    clg::memory packed = clg::memory::allocate(queue, bytes, CLG_MEMORY_BUFFER);
    on.fill(a, std::array<uint32_t, 4>{10, 20, 30, 40});
    on.write(b, std::vector<uint8_t>(bytes, 7));
    on.map(b.area({0, 0, 0}, {8, 1, 1}), CLG_MAP_WRITE, [](const clg::pixels &row) {
        CHECK(row.size == 32 && row.row_pitch >= 32);
        static_cast<uint8_t *>(row.data)[0] = 1;
    }).wait();
    on.copy(b, packed);
    on.copy(packed, to);
    auto back = on.read(to, bytes).wait<uint8_t>();
    CHECK(back[0] == 1 && back[1] == 7 && back[bytes - 1] == 7);

    clg::parameter<clg::image> source_image(a);
    clg::parameter<clg::sampler> with(none);
    clg::graph graph(queue);
    auto node = graph.kernel(invert, clg::extent(8, 4), {clg::in(source_image), clg::out(to), with});
    graph.map(to.area({0, 0, 0}, {1, 1, 1}), CLG_MAP_WRITE, [](const clg::task &, const clg::pixels &pixel) { static_cast<uint8_t *>(pixel.data)[3] = 0; });
    graph.host_task([&to](const clg::task &task) {
        auto pixel = task.map(to.area({2, 0, 0}, {1, 1, 1}), CLG_MAP_WRITE);
        CHECK(pixel.size == 4);
        static_cast<uint8_t *>(pixel.data)[0] = 1;
    }, {clg::reads_and_writes(to)});
    auto read = graph.read(to);
    clg_finalize_options updatable = {};
    updatable.updatable = true;
    auto executable = graph.finalize(updatable);
    auto run = executable.submit(queue);
    run.wait();
    auto first = run.get<uint8_t>(read);
    CHECK(first[0] == 245 && first[1] == 235 && first[3] == 0 && first[7] == 215 && first[8] == 1);
    source_image.set(b);
    with.set(clamp);
    executable.update(node);
    run = executable.submit(queue);
    run.wait();
    auto second = run.get<uint8_t>(read);
    CHECK(second[0] == 254 && second[4] == 248);
}

// Two numbers are neither a range of two dimensions nor a range with work-groups.
static_assert(!std::is_constructible_v<clg::range, int, int> && !std::is_constructible_v<clg::range, std::size_t, std::size_t>);
static_assert(std::is_constructible_v<clg::range, clg::extent, clg::extent> && std::is_convertible_v<int, clg::range>);

// What it calls throws this text.
template <class Call> std::string thrown(Call call) {
    try {
        call();
    } catch (const clg::error &error) {
        return error.what();
    }
    return "nothing was thrown";
}

void words_of_the_program(const bench &all) {
    clg::queue queue(all.cl_queue);
    clg::graph graph(queue);
    const std::string words = "connection dropped: drop `label`, see `wait` and `Parameter`";
    graph.host_task([words](const clg::task &) { throw std::runtime_error(words); }, {}, {"`range` is dropped"});
    auto run = graph.finalize().submit(queue);
    const std::string text = thrown([&] { run.wait(); });
    CHECK(text.find(words) != std::string::npos && text.find("`range` is dropped") != std::string::npos);
    clg::user_event event(all.context);
    event.fail(words);
    CHECK(thrown([&] { event.wait(); }) == "a user event failed: " + words);
    // clgraph's own words are those of C.
    CHECK(thrown([&] { graph.finalize().update({}); }).find("`clg_finalize_options.updatable`") != std::string::npos);
}

void types_of_values(const bench &all) {
    clg::queue queue(all.cl_queue);
    clg::graph graph(queue);
    clg::memory memory(buffer(all, 64));
    clg::kernel scale(kernel(all, "scale"));
    CHECK(thrown([&] { graph.kernel(scale, clg::extent(4), {clg::in_out(memory), 2.f}); }).find("argument 1") != std::string::npos);
    CHECK(thrown([&] { graph.kernel(scale, clg::extent(4), {clg::in_out(memory), clg::parameter(2.f)}); }).find("argument 1") !=
          std::string::npos);
    auto by = clg::parameter<cl_uint>::within(2, 1, 9);
    CHECK(thrown([&] { by.set(10); }).find("1..=9") != std::string::npos && by.get() == 2);
    clg::local_parameter room(48);
    CHECK(room.get() == 48);
    // An argument may have several parameters.
    clg::graph(queue).kernel(scale, clg::extent(4), {clg::in_out(memory), by, clg::also(clg::parameter<cl_uint>(3))});
    CHECK(thrown([&] { graph.kernel(scale, clg::extent(4), {clg::also(room), clg::in_out(memory), 1u}); }).find("CLG_ARG_ALSO_PARAMETER") != std::string::npos);
    // Arguments keep what they name.
    std::vector<clg::arg> args{clg::in_out(clg::memory(buffer(all, 64))), clg::parameter<cl_uint>(2)};
    clg::launch launch{scale, clg::extent(4), {clg::in_out(clg::memory(buffer(all, 64)).slice(0, 16)), 2u}};
    graph.kernel(scale, clg::extent(4), args);
    graph.command_group({launch});
    graph.finalize().submit(queue).wait();
}

// A copy of a handle that is released throws, by construction and by assignment. Moves cannot.
template <class T> void is_assigned(T of, T to) {
    static_assert(!std::is_nothrow_copy_constructible_v<T> && !std::is_nothrow_copy_assignable_v<T>);
    static_assert(std::is_nothrow_move_constructible_v<T> && std::is_nothrow_move_assignable_v<T>);
    const auto raw = of.raw();
    const T &same = to = of;
    CHECK(&same == &to && to.raw() == raw && of.raw() == raw);
    to = same;
    CHECK(to.raw() == raw);
    T moved(std::move(to));
    CHECK(moved.raw() == raw && !to);
    to = std::move(moved);
    CHECK(to.raw() == raw && !moved);
}

void assignments(const bench &all) {
    clg::queue queue(all.cl_queue);
    is_assigned(queue, clg::queue(all.cl_queue));
    is_assigned(clg::graph(queue), clg::graph(queue));
    is_assigned(clg::user_event(all.context), clg::user_event(all.context));
    is_assigned(clg::memory(buffer(all, 64)), clg::memory());
    is_assigned(clg::graph(queue).finalize(), clg::graph(queue).finalize());
    clg::graph dead(queue), other(queue);
    const auto kept = other.raw();
    static_assert(std::is_nothrow_move_assignable_v<clg::host_access<int>>);
    static_assert(!std::is_nothrow_copy_assignable_v<clg::host_access<int>>);
    CHECK(clg_graph_release(dead.raw()) == CLG_SUCCESS);
    throws(CLG_INVALID, "", [&] { other = dead; });
    throws(CLG_INVALID, "", [&] { clg::graph copy(dead); });
    CHECK(other.raw() == kept && other.size() == 0);
}

int main() {
    CHECK(clg::live_objects() == 0 && clg::version() == clg_version());
    bench all = start();
    CHECK(clg::device_caps(object{all.device}).front() == '{');
    words_of_the_program(all);
    types_of_values(all);
    assignments(all);
    graphs(all);
    maps(all);
    commands(all);
    native_commands_throw(all);
    rarer_calls(all);
    images(all);
    end(all);
    CHECK(clg_live_objects() == 0);
    puts("ok");
}
