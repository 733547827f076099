// clgraph for C++17: graphs of OpenCL commands that are built once and submitted often.
//
// A thin layer over clgraph.h: objects count their references, and calls that fail throw clg::error. OpenCL's objects are passed as
// C handles or as the classes of opencl.hpp. Functions of the program may throw: the submission fails with the text of the exception.
#ifndef CLGRAPH_HPP
#define CLGRAPH_HPP

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "clgraph.h"

namespace clg {

// What a call that failed throws: the text says what was wrong and what to do.
class error : public std::runtime_error {
public:
    error(clg_status kind, int cl_status, const std::string &text)
        : std::runtime_error(text), kind_(kind), cl_status_(cl_status) {}
    // The kind of the error.
    clg_status kind() const noexcept { return kind_; }
    // The status of the OpenCL call that failed, or 0.
    int cl_status() const noexcept { return cl_status_; }

private:
    clg_status kind_;
    int cl_status_;
};

namespace detail {

inline void check(clg_status status) {
    if (status != CLG_SUCCESS) {
        throw error(status, clg_last_cl_status(), clg_last_error());
    }
}

// The C handle of an object of opencl.hpp, or the C handle that was given.
template <class T> auto raw(const T &object) {
    if constexpr (std::is_pointer_v<T> || std::is_null_pointer_v<T>) {
        return object;
    } else {
        return object();
    }
}

// A counted reference to an object of clgraph.
template <class Raw, clg_status (*Retain)(Raw), clg_status (*Release)(Raw)> class handle {
public:
    handle() noexcept = default;
    // Takes a reference over.
    explicit handle(Raw raw) noexcept : raw_(raw) {}
    handle(const handle &other) : raw_(other.raw_) {
        if (raw_) {
            check(Retain(raw_));
        }
    }
    handle(handle &&other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
    // Two operators: one that takes a value would make the copies of derived classes noexcept, and retaining can fail.
    handle &operator=(const handle &other) {
        handle copy(other);
        std::swap(raw_, copy.raw_);
        return *this;
    }
    handle &operator=(handle &&other) noexcept {
        handle taken(std::move(other));
        std::swap(raw_, taken.raw_);
        return *this;
    }
    ~handle() {
        if (raw_) {
            Release(raw_);
        }
    }
    // The C handle, which is valid while this object lives.
    Raw raw() const noexcept { return raw_; }
    explicit operator bool() const noexcept { return raw_ != nullptr; }

protected:
    Raw raw_ = nullptr;
};

template <class Call> std::string text(Call call) {
    std::size_t size = 0;
    check(call(std::size_t{0}, static_cast<char *>(nullptr), &size));
    // It may have grown meanwhile, where it tells what has happened so far.
    std::string text(size + 256, '\0');
    check(call(text.size(), &text[0], &size));
    text.resize(size - 1);
    return text;
}

// The parts of a text that are not empty.
inline std::vector<std::string> parts(const std::string &text, char between) {
    std::vector<std::string> found;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find(between, at), text.size());
        if (end > at) {
            found.push_back(text.substr(at, end - at));
        }
        at = end + 1;
    }
    return found;
}

template <class T> void release(void *user) { delete static_cast<T *>(user); }

// Runs a function of the program. If it throws, its submission fails with the text of the exception.
template <class Call> int guarded(Call call) noexcept {
    try {
        call();
        return 0;
    } catch (const std::exception &thrown) {
        clg_fail(thrown.what());
    } catch (...) {
        clg_fail("the function threw something that is no std::exception");
    }
    return 1;
}

} // namespace detail

// The version of the library that was loaded, for example "0.1.0".
inline std::string version() { return clg_version(); }

// How many objects of the process have handles: 0 when a program has released all that it made.
inline std::size_t live_objects() { return clg_live_objects(); }

// What clgraph has found out about a device, as JSON: the same as `clgraph devices --json`.
template <class Device> std::string device_caps(const Device &of) {
    return detail::text([&](std::size_t room, char *text, std::size_t *size) {
        return clg_device_caps(detail::raw(of), room, text, size);
    });
}

// Elements that belong to somebody else.
template <class T> class view {
public:
    view(T *data, std::size_t size) noexcept : data_(data), size_(size) {}
    template <class Container, class = decltype(std::declval<Container &>().data())>
    view(Container &container) noexcept : data_(container.data()), size_(container.size()) {}
    template <std::size_t N> view(T (&array)[N]) noexcept : data_(array), size_(N) {}
    T *data() const noexcept { return data_; }
    std::size_t size() const noexcept { return size_; }
    T *begin() const noexcept { return data_; }
    T *end() const noexcept { return data_ + size_; }
    T &operator[](std::size_t index) const noexcept { return data_[index]; }

private:
    T *data_;
    std::size_t size_;
};

// A node of a graph: a plain value.
using node = clg_node;

class graph;

// A command queue of the program.
class queue : public detail::handle<clg_queue, clg_queue_retain, clg_queue_release> {
public:
    template <class Queue> explicit queue(const Queue &of) {
        detail::check(clg_check_version(CLG_VERSION_MAJOR, CLG_VERSION_MINOR));
        detail::check(clg_queue_from_cl(detail::raw(of), &raw_));
    }
    queue(const queue &) = default;
    queue(queue &&) noexcept = default;
    queue &operator=(const queue &) = default;
    queue &operator=(queue &&) noexcept = default;
    // One of clgraph's, with a reference of its own.
    static queue retained(clg_queue raw) {
        queue made;
        detail::check(clg_queue_retain(raw));
        made.raw_ = raw;
        return made;
    }
    // Waits until everything that was enqueued so far is complete.
    void finish() const { detail::check(clg_queue_finish(raw_)); }
    // The cl_command_queue, without a reference for the program.
    cl_command_queue to_cl() const {
        cl_command_queue raw = nullptr;
        detail::check(clg_queue_to_cl(raw_, &raw));
        return raw;
    }
    bool is_recording() const {
        bool is = false;
        detail::check(clg_queue_is_recording(raw_, &is));
        return is;
    }
    // The graph that it records into. It is an error if it does not record.
    clg::graph recording_graph() const;

private:
    queue() = default;
};

// The host's use of memory through its address, until this ends. Commands that would use the memory are refused meanwhile.
template <class T> class host_access : public detail::handle<clg_host_access, clg_host_access_retain, clg_host_access_release> {
public:
    host_access(clg_host_access raw, T *data, std::size_t size) noexcept : handle(raw), data_(data), size_(size) {}
    host_access(const host_access &) = default;
    host_access(host_access &&other) noexcept
        : handle(std::move(other)), data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
    host_access &operator=(const host_access &) = default;
    host_access &operator=(host_access &&other) noexcept {
        host_access taken(std::move(other));
        std::swap(raw_, taken.raw_);
        std::swap(data_, taken.data_);
        std::swap(size_, taken.size_);
        return *this;
    }
    T *data() const noexcept { return data_; }
    std::size_t size() const noexcept { return size_; }
    T *begin() const noexcept { return data_; }
    T *end() const noexcept { return data_ + size_; }
    T &operator[](std::size_t index) const noexcept { return data_[index]; }

private:
    T *data_;
    std::size_t size_;
};

// Memory: a buffer of the program, memory that clgraph allocated, or memory of a graph.
class memory : public detail::handle<clg_memory, clg_memory_retain, clg_memory_release> {
public:
    using handle::handle;
    // A buffer of a context.
    template <class Context, class Buffer> memory(const Context &context, const Buffer &buffer) {
        detail::check(clg_memory_from_cl(detail::raw(context), detail::raw(buffer), &raw_));
    }
    // Memory for the device of a queue, of a size in bytes.
    static memory allocate(const queue &on, std::size_t size, clg_memory_kind kind = CLG_MEMORY_BEST) {
        memory made;
        detail::check(clg_memory_allocate(on.raw(), size, kind, &made.raw_));
        return made;
    }
    // Memory with an address that the program has allocated: USM or SVM of the context of a queue, of the kind that is named. It stays
    // allocated until every object and command that uses it has ended.
    static memory from_pointer(const queue &of, void *pointer, std::size_t size, clg_memory_kind kind) {
        memory made;
        detail::check(clg_memory_from_pointer(of.raw(), pointer, size, kind, &made.raw_));
        return made;
    }
    // The address of memory that clgraph allocated, or null for memory without one. Kernels may follow it if they declare that:
    // `launch::indirect`.
    void *address() const {
        void *address = nullptr;
        detail::check(clg_memory_address(raw_, &address));
        return address;
    }
    // Its size in bytes.
    std::size_t size() const {
        std::size_t size = 0;
        detail::check(clg_memory_size(raw_, &size));
        return size;
    }
    // Its elements for the host, which may write them unless T is const. Needs memory of CLG_MEMORY_HOST_ACCESSIBLE.
    template <class T> host_access<T> access_host() const {
        void *data = nullptr;
        clg_host_access made = nullptr;
        detail::check(clg_memory_access_host(raw_, !std::is_const_v<T>, &data, &made));
        return {made, static_cast<T *>(data), size() / sizeof(T)};
    }
    // Some of its bytes.
    clg_range slice(std::size_t offset, std::size_t size = CLG_WHOLE) const { return {raw_, offset, size}; }
    operator clg_range() const { return slice(0); }
};

// A kernel function.
class kernel : public detail::handle<clg_kernel, clg_kernel_retain, clg_kernel_release> {
public:
    using handle::handle;
    template <class Context, class Kernel> kernel(const Context &context, const Kernel &of) {
        detail::check(clg_kernel_from_cl(detail::raw(context), detail::raw(of), &raw_));
    }
};

// The event of a command that was enqueued, or of a command that was recorded.
class event : public detail::handle<clg_event, clg_event_retain, clg_event_release> {
public:
    using handle::handle;
    // A cl_event, or a cl::Event.
    template <class Event> static event from(const Event &of) {
        clg_event made = nullptr;
        detail::check(clg_event_from_cl(detail::raw(of), &made));
        return event(made);
    }
    // The cl_event, with a reference for the program.
    cl_event to_cl() const {
        cl_event raw = nullptr;
        detail::check(clg_event_to_cl(raw_, &raw));
        return raw;
    }
    // Blocks until the command has ended, and throws its error if it failed.
    void wait() const { detail::check(clg_event_wait(raw_)); }
    bool is_done() const {
        std::int32_t status = 0;
        detail::check(clg_event_status(raw_, &status));
        return status <= 0;
    }
};

// Events that a command waits for.
using events = std::vector<event>;

// An image of the program, or some layers of one.
class image : public detail::handle<clg_image, clg_image_retain, clg_image_release> {
public:
    using handle::handle;
    template <class Context, class Image> image(const Context &context, const Image &of) {
        detail::check(clg_image_from_cl(detail::raw(context), detail::raw(of), &raw_));
    }
    // Some layers of an array of images, for kernels.
    image layers(std::size_t first, std::size_t count) const {
        clg_image made = nullptr;
        detail::check(clg_image_layers(raw_, first, count, &made));
        return image(made);
    }
    // A part of it.
    clg_area area(std::array<std::size_t, 3> origin, std::array<std::size_t, 3> region) const {
        return {raw_, {origin[0], origin[1], origin[2]}, {region[0], region[1], region[2]}};
    }
    operator clg_area() const { return {raw_, {0, 0, 0}, {0, 0, 0}}; }
};

// A sampler of the program.
class sampler : public detail::handle<clg_sampler, clg_sampler_retain, clg_sampler_release> {
public:
    template <class Context, class Sampler> sampler(const Context &context, const Sampler &of) {
        detail::check(clg_sampler_from_cl(detail::raw(context), detail::raw(of), &raw_));
    }
};

// A variable in device memory, which the kernels of several programs can use.
class global : public detail::handle<clg_global, clg_global_retain, clg_global_release> {
public:
    // Zeros at first.
    global(const std::string &name, std::size_t size, bool of_program = false) {
        detail::check(clg_global_create(name.c_str(), size, nullptr, of_program, &raw_));
    }
    template <class T> static global with_value(const std::string &name, const T &initial, bool of_program = false) {
        static_assert(std::is_trivially_copyable_v<T>, "a device global is plain data");
        global made;
        detail::check(clg_global_create(name.c_str(), sizeof initial, &initial, of_program, &made.raw_));
        return made;
    }
    // Its memory on the device of a queue.
    memory on(const queue &of) const {
        clg_memory made = nullptr;
        detail::check(clg_global_memory(raw_, of.raw(), &made));
        return memory(made);
    }

private:
    global() = default;
};

// A program whose kernels use device globals, each under a name in OpenCL C.
class program : public detail::handle<clg_program, clg_program_retain, clg_program_release> {
public:
    template <class Context>
    program(const Context &context, const std::string &source, const std::vector<std::pair<std::string, global>> &globals,
            const std::string &options = {}) {
        std::vector<clg_program_global> listed;
        for (const auto &one : globals) {
            listed.push_back({one.first.c_str(), one.second.raw()});
        }
        detail::check(clg_program_build(detail::raw(context), source.c_str(), options.c_str(), listed.data(), listed.size(), &raw_));
    }
    clg::kernel kernel(const std::string &name) const {
        clg_kernel made = nullptr;
        detail::check(clg_program_kernel(raw_, name.c_str(), &made));
        return clg::kernel(made);
    }
    // The cl_program, without a reference for the program. Its kernels may have more arguments than in the source.
    cl_program to_cl() const {
        cl_program raw = nullptr;
        detail::check(clg_program_to_cl(raw_, &raw));
        return raw;
    }
    // The names of its kernels.
    std::vector<std::string> kernel_names() const {
        return detail::parts(
            detail::text([&](std::size_t room, char *text, std::size_t *size) { return clg_program_kernel_names(raw_, room, text, size); }), ';');
    }
    // How its kernels reach each of its device globals.
    std::vector<std::string> globals() const {
        return detail::parts(
            detail::text([&](std::size_t room, char *text, std::size_t *size) { return clg_program_globals(raw_, room, text, size); }), '\n');
    }
};

namespace detail {

// The type of a number, which clgraph compares with that of the kernel's parameter.
template <class T> constexpr clg_value_type value_type() {
    if constexpr (std::is_same_v<T, float>) {
        return CLG_TYPE_FLOAT;
    } else if constexpr (std::is_same_v<T, double>) {
        return CLG_TYPE_DOUBLE;
    } else if constexpr (!std::is_integral_v<T> || std::is_same_v<T, bool>) {
        return CLG_TYPE_UNKNOWN;
    } else if constexpr (sizeof(T) == 1) {
        return std::is_signed_v<T> ? CLG_TYPE_CHAR : CLG_TYPE_UCHAR;
    } else if constexpr (sizeof(T) == 2) {
        return std::is_signed_v<T> ? CLG_TYPE_SHORT : CLG_TYPE_USHORT;
    } else if constexpr (sizeof(T) == 4) {
        return std::is_signed_v<T> ? CLG_TYPE_INT : CLG_TYPE_UINT;
    } else if constexpr (sizeof(T) == 8) {
        return std::is_signed_v<T> ? CLG_TYPE_LONG : CLG_TYPE_ULONG;
    } else {
        return CLG_TYPE_UNKNOWN;
    }
}

} // namespace detail

// A value that several kernel nodes can use, and that can change: set it, and update the executable.
template <class T>
class parameter : public detail::handle<clg_parameter, clg_parameter_retain, clg_parameter_release> {
    static_assert(std::is_trivially_copyable_v<T>, "a parameter is plain data");

public:
    explicit parameter(const T &value) {
        if constexpr (detail::value_type<T>() == CLG_TYPE_UNKNOWN) {
            detail::check(clg_parameter_create(&value, sizeof value, &raw_));
        } else {
            detail::check(clg_parameter_create_number(detail::value_type<T>(), &value, nullptr, nullptr, &raw_));
        }
    }
    // A number that stays within two others: `set` refuses all else.
    static parameter within(const T &value, const T &least, const T &most) {
        static_assert(detail::value_type<T>() != CLG_TYPE_UNKNOWN, "only a number has bounds");
        parameter made;
        detail::check(clg_parameter_create_number(detail::value_type<T>(), &value, &least, &most, &made.raw_));
        return made;
    }
    void set(const T &value) const { detail::check(clg_parameter_set(raw_, &value, sizeof value)); }
    // The value that was set last.
    T get() const {
        T value;
        detail::check(clg_parameter_get(raw_, &value, sizeof value));
        return value;
    }

private:
    parameter() = default;
};

// Memory that several kernel nodes can use, and that can change.
template <> class parameter<memory> : public detail::handle<clg_parameter, clg_parameter_retain, clg_parameter_release> {
public:
    // Kernels get the whole memory and use the bytes of the range; other memory has them in the same place.
    explicit parameter(clg_range bytes, bool or_null = false) {
        detail::check(clg_parameter_create_memory(bytes, or_null, &raw_));
    }
    void set(clg_range bytes) const { detail::check(clg_parameter_set_memory(raw_, bytes)); }
    void set_null() const { detail::check(clg_parameter_set_null(raw_)); }
};

// An image that several kernel nodes can use, and that can change: others have its shape and format.
template <> class parameter<image> : public detail::handle<clg_parameter, clg_parameter_retain, clg_parameter_release> {
public:
    explicit parameter(const image &of) { detail::check(clg_parameter_create_image(of.raw(), &raw_)); }
    void set(const image &of) const { detail::check(clg_parameter_set_image(raw_, of.raw())); }
};

// A sampler that several kernel nodes can use, and that can change.
template <> class parameter<sampler> : public detail::handle<clg_parameter, clg_parameter_retain, clg_parameter_release> {
public:
    explicit parameter(const sampler &of) { detail::check(clg_parameter_create_sampler(of.raw(), &raw_)); }
    void set(const sampler &of) const { detail::check(clg_parameter_set_sampler(raw_, of.raw())); }
};

// A size of local memory in bytes, which can change.
class local_parameter : public detail::handle<clg_parameter, clg_parameter_retain, clg_parameter_release> {
public:
    explicit local_parameter(std::size_t size) { detail::check(clg_parameter_create_local(size, &raw_)); }
    void set(std::size_t size) const { detail::check(clg_parameter_set_local(raw_, size)); }
    std::size_t get() const {
        std::size_t size = 0;
        detail::check(clg_parameter_get(raw_, &size, sizeof size));
        return size;
    }
};

// An argument of a kernel.
class arg {
public:
    // A value: a number, a vector, a struct.
    template <class T, class = std::enable_if_t<std::is_trivially_copyable_v<T> && !std::is_pointer_v<T> && !std::is_same_v<T, clg_range>>>
    arg(const T &value) : bytes_(sizeof value) {
        const auto *bytes = reinterpret_cast<const unsigned char *>(&value);
        std::copy(bytes, bytes + sizeof value, bytes_.begin());
        arg_.kind = CLG_ARG_VALUE;
        arg_.value_type = detail::value_type<T>();
    }
    // A parameter of a value.
    template <class T> arg(const parameter<T> &of) : arg(CLG_ARG_PARAMETER, {}, 0, of.raw()) {}
    arg(const local_parameter &of) : arg(CLG_ARG_PARAMETER, {}, 0, of.raw()) {}
    // The argument keeps the memory and the parameter alive. One that is no handle is an error where the argument is used.
    arg(clg_arg_kind kind, clg_range range, std::size_t size = 0, clg_parameter parameter = nullptr) {
        arg_.kind = kind;
        arg_.range = range;
        arg_.size = size;
        arg_.parameter = parameter;
        if (range.memory != nullptr && clg_memory_retain(range.memory) == CLG_SUCCESS) {
            memory_ = memory(range.memory);
        }
        if (parameter != nullptr && clg_parameter_retain(parameter) == CLG_SUCCESS) {
            parameter_ = detail::handle<clg_parameter, clg_parameter_retain, clg_parameter_release>(parameter);
        }
    }
    arg(clg_arg_kind kind, const image &of) : image_(of) {
        arg_.kind = kind;
        arg_.image = of.raw();
    }
    arg(const sampler &of) : sampler_(of) {
        arg_.kind = CLG_ARG_SAMPLER;
        arg_.sampler = of.raw();
    }
    // The same argument, of whose memory each work-item touches only its own bytes, so many: see clg_arg.
    arg elementwise(std::size_t bytes) const {
        arg promised = *this;
        promised.arg_.elementwise = bytes;
        return promised;
    }
    // The argument for C, which is valid while this object lives.
    clg_arg c() const {
        clg_arg given = arg_;
        if (given.kind == CLG_ARG_VALUE) {
            given.data = bytes_.data();
            given.size = bytes_.size();
        }
        return given;
    }

private:
    clg_arg arg_ = {};
    std::vector<unsigned char> bytes_;
    memory memory_;
    detail::handle<clg_parameter, clg_parameter_retain, clg_parameter_release> parameter_;
    image image_;
    detail::handle<clg_sampler, clg_sampler_retain, clg_sampler_release> sampler_;
};

// No argument, but one more parameter of the argument before it, which then has the value of whichever was set last.
template <class T> arg also(const parameter<T> &of) { return arg(CLG_ARG_ALSO_PARAMETER, {}, 0, of.raw()); }
inline arg also(const local_parameter &of) { return arg(CLG_ARG_ALSO_PARAMETER, {}, 0, of.raw()); }
// Memory that a kernel only reads.
inline arg in(clg_range of) { return arg(CLG_ARG_READ, of); }
// Memory that a kernel only writes. Bytes that it does not write keep their values.
inline arg out(clg_range of) { return arg(CLG_ARG_WRITE, of); }
// Memory that a kernel reads and writes.
inline arg in_out(clg_range of) { return arg(CLG_ARG_READ_WRITE, of); }
inline arg in(const parameter<memory> &of) { return arg(CLG_ARG_PARAMETER_READ, {}, 0, of.raw()); }
inline arg out(const parameter<memory> &of) { return arg(CLG_ARG_PARAMETER_WRITE, {}, 0, of.raw()); }
inline arg in_out(const parameter<memory> &of) { return arg(CLG_ARG_PARAMETER_READ_WRITE, {}, 0, of.raw()); }
inline arg in(const parameter<image> &of) { return arg(CLG_ARG_PARAMETER_READ, {}, 0, of.raw()); }
inline arg out(const parameter<image> &of) { return arg(CLG_ARG_PARAMETER_WRITE, {}, 0, of.raw()); }
inline arg in_out(const parameter<image> &of) { return arg(CLG_ARG_PARAMETER_READ_WRITE, {}, 0, of.raw()); }
// An image that a kernel only reads, only writes, or reads and writes.
inline arg in(const image &of) { return arg(CLG_ARG_IMAGE_READ, of); }
inline arg out(const image &of) { return arg(CLG_ARG_IMAGE_WRITE, of); }
inline arg in_out(const image &of) { return arg(CLG_ARG_IMAGE_READ_WRITE, of); }
// Local memory of a size in bytes.
inline arg local(std::size_t size) { return arg(CLG_ARG_LOCAL, clg_range{}, size); }
// A null pointer.
inline arg null() { return arg(CLG_ARG_NULL, clg_range{}); }

// One, two or three numbers of work-items.
class extent {
public:
    extent(std::size_t x) : dims_(1), sizes_{x, 0, 0} {}
    extent(std::size_t x, std::size_t y) : dims_(2), sizes_{x, y, 0} {}
    extent(std::size_t x, std::size_t y, std::size_t z) : dims_(3), sizes_{x, y, z} {}
    std::uint32_t dims() const noexcept { return dims_; }
    const std::array<std::size_t, 3> &sizes() const noexcept { return sizes_; }

private:
    std::uint32_t dims_;
    std::array<std::size_t, 3> sizes_;
};

// How many work-items run, and in which groups.
struct range {
    extent global;
    extent local = 0;
    extent offset = 0;
    extent bound = 0;
    range(extent all) : global(all) {}
    range(std::size_t all) : global(all) {}
    range(extent all, extent group) : global(all), local(group) {}
    // Two plain numbers could be a range of two dimensions, or a range and the size of its work-groups. Write which:
    // `clg::extent(w, h)`, or `clg::range(clg::extent(n), clg::extent(64))`.
    template <class X, class Y, class = std::enable_if_t<std::is_arithmetic_v<X> && std::is_arithmetic_v<Y>>>
    range(X, Y) = delete;
};

// Memory or an image that a command uses, which this keeps alive: made by `reads`, `writes` and `reads_and_writes`.
class use {
public:
    use(clg_range range, bool reads, bool writes) : use_{range, nullptr, reads, writes} {
        if (range.memory != nullptr && clg_memory_retain(range.memory) == CLG_SUCCESS) {
            memory_ = memory(range.memory);
        }
    }
    use(const image &of, bool reads, bool writes) : use_{{}, of.raw(), reads, writes}, image_(of) {}
    // As C describes it, which is valid while this object lives.
    const clg_use &c() const noexcept { return use_; }

private:
    clg_use use_;
    memory memory_;
    image image_;
};

inline use reads(clg_range of) { return {of, true, false}; }
inline use writes(clg_range of) { return {of, false, true}; }
inline use reads_and_writes(clg_range of) { return {of, true, true}; }
inline use reads(const image &of) { return {of, true, false}; }
inline use writes(const image &of) { return {of, false, true}; }
inline use reads_and_writes(const image &of) { return {of, true, true}; }

// How a kernel uses a device global of its program: made by `reads`, `writes` and `reads_and_writes` too.
struct global_use {
    clg::global global;
    bool reads;
    bool writes;
};

inline global_use reads(const global &of) { return {of, true, false}; }
inline global_use writes(const global &of) { return {of, false, true}; }
inline global_use reads_and_writes(const global &of) { return {of, true, true}; }

// A launch of a kernel.
struct launch {
    clg::kernel kernel;
    range over;
    std::vector<arg> args;
    // Memory that the kernel reaches by addresses in other memory.
    std::vector<use> indirect = {};
    // The device globals of its program that the kernel uses. Without a list: all of them, for reading and writing.
    std::optional<std::vector<global_use>> globals = {};
    // Whether the kernel prints.
    bool prints = false;
};

namespace detail {

// Uses as C describes them.
inline std::vector<clg_use> uses_of(const std::vector<use> &uses) {
    std::vector<clg_use> given;
    given.reserve(uses.size());
    for (const auto &one : uses) {
        given.push_back(one.c());
    }
    return given;
}

// What a launch as C describes it points to.
struct launch_lists {
    std::vector<clg_arg> args;
    std::vector<clg_use> indirect;
    std::vector<clg_global_use> globals;
};

inline clg_launch launch_of(const clg::kernel &of, const range &over, const std::vector<arg> &args, launch_lists &lists) {
    lists.args.reserve(args.size());
    for (const auto &one : args) {
        lists.args.push_back(one.c());
    }
    clg_launch launch = {};
    launch.kernel = of.raw();
    launch.args = lists.args.data();
    launch.num_args = lists.args.size();
    launch.work_dim = over.global.dims();
    for (std::size_t i = 0; i < 3; i++) {
        launch.global[i] = over.global.sizes()[i];
        launch.local[i] = over.local.sizes()[i];
        launch.offset[i] = over.offset.sizes()[i];
        launch.bound[i] = over.bound.sizes()[i];
    }
    return launch;
}

inline clg_launch launch_of(const clg::launch &of, launch_lists &lists) {
    clg_launch launch = launch_of(of.kernel, of.over, of.args, lists);
    lists.indirect = uses_of(of.indirect);
    launch.indirect = lists.indirect.data();
    launch.num_indirect = lists.indirect.size();
    launch.prints = of.prints;
    if (of.globals) {
        for (const auto &one : *of.globals) {
            lists.globals.push_back({one.global.raw(), one.reads, one.writes});
        }
        launch.globals = lists.globals.data();
        launch.num_globals = lists.globals.size();
        launch.no_globals = lists.globals.empty();
    }
    return launch;
}

// Gives a launch, as C describes it, to a call.
template <class Call>
auto launched(const clg::kernel &of, const range &over, const std::vector<arg> &args, Call call) {
    launch_lists lists;
    const clg_launch launch = launch_of(of, over, args, lists);
    return call(&launch);
}
template <class Call> auto launched(const clg::launch &of, Call call) {
    launch_lists lists;
    const clg_launch launch = launch_of(of, lists);
    return call(&launch);
}

// Data that is used where it is, until C gives it back.
using shared_data = std::shared_ptr<const void>;

inline void *hold(shared_data data) { return new shared_data(std::move(data)); }

template <class Container> std::pair<const void *, std::size_t> bytes_of(const std::shared_ptr<Container> &data) {
    if (data == nullptr) {
        throw std::invalid_argument("no data was given for a write");
    }
    return {data->data(), data->size() * sizeof(*data->data())};
}

// Waits for something, and returns whether it has ended in time.
template <class Raw>
bool waited(clg_status (*wait)(Raw, std::uint64_t), Raw raw, std::chrono::nanoseconds limit) {
    const auto nanoseconds = std::max<std::chrono::nanoseconds::rep>(limit.count(), 0);
    const clg_status status = wait(raw, static_cast<std::uint64_t>(nanoseconds));
    if (status == CLG_NOT_READY) {
        return false;
    }
    check(status);
    return true;
}

} // namespace detail

// What a node can have besides its work.
struct options {
    std::vector<node> after;
    std::string label;
    // A node that gets this command in place of its own; then no node is added.
    std::vector<node> replaces;
    // Whether the node also waits for every node that no other node waits for when it is added.
    bool after_all_leaves = false;
    options() = default;
    options(std::initializer_list<node> before) : after(before) {}
    options(std::string name, std::vector<node> before = {}) : after(std::move(before)), label(std::move(name)) {}
    clg_node_options c() const {
        clg_node_options given = {};
        given.after = after.data();
        given.num_after = after.size();
        given.label = label.empty() ? nullptr : label.c_str();
        given.replaces = replaces.empty() ? nullptr : replaces.data();
        given.after_all_leaves = after_all_leaves;
        return given;
    }
};

// The options that make a command replace that of a node. Executables get it when they are updated.
inline options replacing(node old) {
    options with;
    with.replaces.push_back(old);
    return with;
}

// An event that the program completes.
class user_event : public detail::handle<clg_user_event, clg_user_event_retain, clg_user_event_release> {
public:
    template <class Context> explicit user_event(const Context &context) {
        detail::check(clg_user_event_create(detail::raw(context), &raw_));
    }
    user_event(const user_event &) = default;
    user_event(user_event &&) noexcept = default;
    user_event &operator=(const user_event &) = default;
    user_event &operator=(user_event &&) noexcept = default;
    void complete() const { detail::check(clg_user_event_complete(raw_)); }
    void fail(const std::string &text) const { detail::check(clg_user_event_fail(raw_, text.c_str())); }
    void wait() const { detail::check(clg_user_event_wait(raw_)); }
    // Returns false if it has not ended in time.
    bool wait_for(std::chrono::nanoseconds limit) const { return detail::waited(clg_user_event_wait_for, raw_, limit); }
    bool is_done() const {
        bool done = false;
        detail::check(clg_user_event_is_done(raw_, &done));
        return done;
    }
    // For wait lists of commands: it shows that the user event has ended, not that it succeeded.
    clg::event event() const {
        clg_event made = nullptr;
        detail::check(clg_user_event_event(raw_, &made));
        return clg::event(made);
    }
};

class sub_graph;

// One run of an executable.
class submission : public detail::handle<clg_submission, clg_submission_retain, clg_submission_release> {
public:
    using handle::handle;
    // Blocks until it has ended, and throws its error if it failed.
    void wait() const { detail::check(clg_submission_wait(raw_)); }
    // Returns false if it has not ended in time, and throws its error if it failed.
    bool wait_for(std::chrono::nanoseconds limit) const { return detail::waited(clg_submission_wait_for, raw_, limit); }
    clg_progress progress() const {
        std::int32_t progress = 0;
        detail::check(clg_submission_progress(raw_, &progress));
        return static_cast<clg_progress>(progress);
    }
    bool is_done() const {
        bool done = false;
        detail::check(clg_submission_is_done(raw_, &done));
        return done;
    }
    // Complete when it has ended, well or not.
    clg::event event() const {
        clg_event made = nullptr;
        detail::check(clg_submission_event(raw_, &made));
        return clg::event(made);
    }
    // When it was submitted, started and ended, if the executable was finalized with profiling.
    clg_submission_times times() const {
        clg_submission_times times = {};
        detail::check(clg_submission_get_times(raw_, &times));
        return times;
    }
    // The times of each node, in the same case.
    std::vector<clg_node_times> node_times() const {
        std::size_t count = 0;
        detail::check(clg_submission_node_times(raw_, 0, nullptr, &count));
        std::vector<clg_node_times> times(count);
        detail::check(clg_submission_node_times(raw_, count, times.data(), &count));
        return times;
    }
    // The result of a read, which stays there as long as this submission has handles.
    template <class T> view<const T> result(node read) const {
        const void *data = nullptr;
        std::size_t size = 0;
        detail::check(clg_submission_result(raw_, read, &data, &size));
        if (size % sizeof(T) != 0) {
            throw std::invalid_argument("the result is no whole number of elements");
        }
        return {static_cast<const T *>(data), size / sizeof(T)};
    }
    // A copy of the result of a read.
    template <class T> std::vector<T> get(node read) const {
        auto result = this->result<T>(read);
        return {result.begin(), result.end()};
    }
    // Copies the result of a read to where the program wants it: as many bytes as the read has.
    template <class Container> void read_into(node read, Container &&into) const {
        detail::check(clg_submission_get(raw_, read, into.data(), into.size() * sizeof(*into.data())));
    }
    // How many turns a loop had so far; for a branch, how often it ran a body. Inside a sub-graph or a body the node is that of
    // `sub_graph::control`.
    std::uint64_t turns(node of) const {
        std::uint64_t turns = 0;
        detail::check(clg_submission_turns(raw_, of, &turns));
        return turns;
    }
    // Stops it at the next decision of a branch or loop: it fails with CLG_FAILED. What is enqueued already still runs.
    void cancel() const { detail::check(clg_submission_cancel(raw_)); }
    // The sub-graph that it stands for, if its queue recorded it into a graph.
    clg::sub_graph sub_graph(const graph &into) const;
    // Calls a function when it has ended: with null, or with its error, which has the status of the OpenCL call that failed. What the
    // function throws is lost.
    void on_complete(std::function<void(const error *)> function) const {
        using held = std::function<void(const error *)>;
        auto call = [](clg_status status, const char *text, void *user) {
            try {
                if (status == CLG_SUCCESS) {
                    (*static_cast<held *>(user))(nullptr);
                } else {
                    error failed(status, clg_last_cl_status(), text);
                    (*static_cast<held *>(user))(&failed);
                }
            } catch (...) {
            }
        };
        detail::check(
            clg_submission_on_complete(raw_, call, new held(std::move(function)), detail::release<held>));
    }
    // The times of its nodes as a table, if the executable was finalized with profiling.
    std::string profile() const {
        return detail::text([&](std::size_t room, char *text, std::size_t *size) {
            return clg_submission_profile(raw_, room, text, size);
        });
    }
};

// What a submission is given.
class submit {
public:
    // The event of a command that was enqueued, which it waits for.
    submit &after(const event &of) {
        events_.push_back(of);
        return *this;
    }
    // A cl_event, or a cl::Event, that it waits for.
    template <class Event> submit &after(const Event &of) {
        kept_.push_back(event::from(of)); // a temporary may be released before the submission
        waits_.push_back(detail::raw(of));
        return *this;
    }
    submit &after(const user_event &event) {
        user_events_.push_back(event);
        return *this;
    }
    submit &after(const submission &run) {
        runs_.push_back(run);
        return *this;
    }
    // Data of a write, for this submission. It is copied when it is submitted, and must stay until then.
    template <class T> submit &with(node write, view<const T> data) {
        inputs_.push_back({write, data.data(), data.size() * sizeof(T), nullptr, nullptr});
        return *this;
    }
    template <class Container> submit &with(node write, const Container &data) {
        return with(write, view<const std::remove_reference_t<decltype(*data.data())>>(data.data(), data.size()));
    }
    // The same, but the data is used where it is: it is kept, and must not change, until the submission has ended.
    template <class Container> submit &with(node write, std::shared_ptr<Container> data) {
        const auto bytes = detail::bytes_of(data);
        shared_.emplace_back(inputs_.size(), std::move(data));
        inputs_.push_back({write, bytes.first, bytes.second, nullptr, nullptr});
        return *this;
    }
    // What a node waits for, or completes.
    submit &with_event(node wait, const user_event &event) {
        user_events_kept_.push_back(event);
        node_event(wait).user_event = event.raw();
        return *this;
    }
    // The event of a command that was enqueued.
    submit &with_event(node wait, const event &of) {
        kept_.push_back(of);
        node_event(wait).event = of.raw();
        return *this;
    }
    // A submission: if it fails, this one fails too.
    submit &with_event(node wait, const submission &run) {
        runs_kept_.push_back(run);
        node_event(wait).submission = run.raw();
        return *this;
    }
    // A cl_event, or a cl::Event. That of a submission is complete also if the submission has failed.
    template <class Event> submit &with_event(node wait, const Event &of) {
        kept_.push_back(event::from(of));
        node_event(wait).wait = detail::raw(of);
        return *this;
    }
    submit &with_signal(node signal, const user_event &event) {
        user_events_kept_.push_back(event);
        auto &given = node_event(signal);
        given.user_event = event.raw();
        given.signals = true;
        return *this;
    }
    template <class Call> auto c(Call call) const {
        std::vector<clg_user_event> user_events;
        for (const auto &event : user_events_) {
            user_events.push_back(event.raw());
        }
        std::vector<clg_submission> runs;
        for (const auto &run : runs_) {
            runs.push_back(run.raw());
        }
        std::vector<clg_event> waits;
        for (const auto &event : events_) {
            waits.push_back(event.raw());
        }
        // What is held here is given back by C, also if the submission fails.
        auto inputs = inputs_;
        std::vector<std::unique_ptr<detail::shared_data>> held;
        for (const auto &one : shared_) {
            held.push_back(std::make_unique<detail::shared_data>(one.second));
        }
        for (std::size_t i = 0; i < shared_.size(); i++) {
            inputs[shared_[i].first].release = detail::release<detail::shared_data>;
            inputs[shared_[i].first].user = held[i].release();
        }
        clg_submit_options options = {};
        options.wait_list = waits_.data(), options.num_waits = waits_.size();
        options.events = waits.data(), options.num_events = waits.size();
        options.user_events = user_events.data(), options.num_user_events = user_events.size();
        options.submissions = runs.data(), options.num_submissions = runs.size();
        options.inputs = inputs.data(), options.num_inputs = inputs.size();
        options.node_events = node_events_.data(), options.num_node_events = node_events_.size();
        return call(&options);
    }

private:
    clg_event_input &node_event(node of) {
        node_events_.emplace_back();
        node_events_.back().node = of;
        return node_events_.back();
    }
    std::vector<cl_event> waits_;
    events kept_, events_;
    std::vector<user_event> user_events_, user_events_kept_;
    std::vector<submission> runs_, runs_kept_;
    std::vector<clg_input> inputs_;
    std::vector<std::pair<std::size_t, detail::shared_data>> shared_; // of which input
    std::vector<clg_event_input> node_events_;
};

// A finalized graph.
class executable : public detail::handle<clg_executable, clg_executable_retain, clg_executable_release> {
public:
    using handle::handle;
    clg::submission submit(const queue &to) const {
        clg_submission run = nullptr;
        detail::check(clg_executable_submit(raw_, to.raw(), nullptr, nullptr, &run));
        return clg::submission(run);
    }
    clg::submission submit(const queue &to, const clg::submit &given) const {
        return given.c([&](const clg_submit_options *options) {
            clg_submission run = nullptr;
            detail::check(clg_executable_submit(raw_, to.raw(), options, nullptr, &run));
            return clg::submission(run);
        });
    }
    // Without a handle: only the log knows whether it failed.
    void submit_detached(const queue &to) const {
        detail::check(clg_executable_submit(raw_, to.raw(), nullptr, nullptr, nullptr));
    }
    void submit_detached(const queue &to, const clg::submit &given) const {
        given.c([&](const clg_submit_options *options) {
            detail::check(clg_executable_submit(raw_, to.raw(), options, nullptr, nullptr));
        });
    }
    // Applies the current values of nodes.
    void update(std::initializer_list<node> nodes) const {
        detail::check(clg_executable_update(raw_, nodes.begin(), nodes.size()));
    }
    void update(const std::vector<node> &nodes) const {
        detail::check(clg_executable_update(raw_, nodes.data(), nodes.size()));
    }
    void update(node one) const { detail::check(clg_executable_update(raw_, &one, 1)); }
    std::string report() const {
        return detail::text([&](std::size_t room, char *text, std::size_t *size) {
            return clg_executable_report(raw_, room, text, size);
        });
    }
    // Applies the current values of all nodes of a graph that was built in the same way.
    template <class Graph> void update_from(const Graph &graph) const {
        detail::check(clg_executable_update_from(raw_, graph.raw()));
    }
    std::string to_svg(clg_drawing_detail detail = CLG_DRAWING_BRIEF) const {
        return detail::text([&](std::size_t room, char *text, std::size_t *size) {
            return clg_executable_to_svg(raw_, detail, nullptr, room, text, size);
        });
    }
    // With the times of a submission.
    std::string to_svg(const clg::submission &run, clg_drawing_detail detail = CLG_DRAWING_BRIEF) const {
        return detail::text([&](std::size_t room, char *text, std::size_t *size) {
            return clg_executable_to_svg(raw_, detail, run.raw(), room, text, size);
        });
    }
    std::string memory_map() const {
        return detail::text([&](std::size_t room, char *text, std::size_t *size) {
            return clg_executable_memory_map(raw_, room, text, size);
        });
    }
    // How many bytes the graph's own memory takes.
    std::size_t required_memory() const {
        std::size_t bytes = 0;
        detail::check(clg_executable_required_memory(raw_, &bytes));
        return bytes;
    }
    // Its command buffers, for queries. They stay the executable's.
    std::vector<cl_command_buffer_khr> command_buffers() const {
        std::size_t count = 0;
        detail::check(clg_executable_command_buffers(raw_, 0, nullptr, &count));
        std::vector<cl_command_buffer_khr> found(count);
        detail::check(clg_executable_command_buffers(raw_, count, found.data(), &count));
        return found;
    }
};

// A node with all commands of an executable. Its inputs, results and events are those of submissions of the outer graph.
class sub_graph : public detail::handle<clg_sub_graph, clg_sub_graph_retain, clg_sub_graph_release> {
public:
    sub_graph(clg_sub_graph raw, clg::node node) : handle(raw), node_(node) {}
    clg::node node() const noexcept { return node_; }
    clg::node write(clg::node inner) const { return port(CLG_PORT_WRITE, inner); }
    clg::node read(clg::node inner) const { return port(CLG_PORT_READ, inner); }
    clg::node wait_event(clg::node inner) const { return port(CLG_PORT_WAIT_EVENT, inner); }
    clg::node signal_event(clg::node inner) const { return port(CLG_PORT_SIGNAL_EVENT, inner); }
    // A branch or loop, for submission::turns.
    clg::node control(clg::node inner) const { return port(CLG_PORT_CONTROL, inner); }
    operator clg::node() const noexcept { return node_; }

private:
    clg::node port(clg_port which, clg::node inner) const {
        clg::node outer = {};
        detail::check(clg_sub_graph_port(raw_, which, inner, &outer));
        return outer;
    }
    clg::node node_;
};

// A branch or a loop of a graph. What a queue returns has no handle where the queue executed.
class control : public detail::handle<clg_control, clg_control_retain, clg_control_release> {
public:
    control(clg_control raw, clg::node node) : handle(raw), node_(node) {}
    clg::node node() const noexcept { return node_; }
    operator clg::node() const noexcept { return node_; }
    // A body, for its inputs and results: 0 is that of a loop and the first one of `when`, 1 the other one; for `switch_on` it is the case.
    sub_graph body(std::size_t index = 0) const {
        clg_sub_graph made = nullptr;
        detail::check(clg_control_body(raw_, index, &made));
        return {made, node_};
    }

private:
    clg::node node_;
};

// When a loop that a number in memory ends has its first turn, and how many it may have: 0 is no bound.
struct loop_bounds {
    bool at_least_once = false;
    std::uint64_t at_most = 0;
};

// A trace of submissions that were profiled, which Perfetto and Chrome show.
inline std::string trace(const std::vector<submission> &runs) {
    std::vector<clg_submission> raw;
    for (const auto &run : runs) {
        raw.push_back(run.raw());
    }
    return detail::text([&](std::size_t room, char *text, std::size_t *size) {
        return clg_submissions_trace(raw.data(), raw.size(), room, text, size);
    });
}

// Pixels of an image that is mapped: `data`, `size`, `row_pitch` and `slice_pitch`, in bytes.
using pixels = clg_mapped;

// The view that a host task has of its submission.
class task {
public:
    explicit task(clg_task raw) noexcept : raw_(raw) {}
    // The result of a read before the task, of a number of elements.
    template <class T> std::vector<T> get(node read, std::size_t count) const {
        std::vector<T> data(count);
        detail::check(clg_task_get(raw_, read, data.data(), count * sizeof(T)));
        return data;
    }
    // The data of a write after the task.
    template <class Container> void put(node write, const Container &data) const {
        detail::check(clg_task_put(raw_, write, data.data(), data.size() * sizeof(*data.data())));
    }
    // Elements of memory, mapped until the function returns. The task has declared how it uses the memory: `clg::reads`,
    // `clg::writes`, or for CLG_MAP_WRITE `clg::reads_and_writes`. Only with a mode that writes may they be written.
    template <class T> view<T> map(clg_range of, clg_map_mode mode) const {
        clg_mapped at = {};
        detail::check(clg_task_map(raw_, of, mode, &at));
        return {static_cast<T *>(at.data), at.size / sizeof(T)};
    }
    // The same for a part of an image.
    pixels map(clg_area of, clg_map_mode mode) const {
        pixels at = {};
        detail::check(clg_task_map_image(raw_, of, mode, &at));
        return at;
    }

private:
    clg_task raw_;
};

// Several launches of which one is active.
class command_group : public detail::handle<clg_command_group, clg_command_group_retain, clg_command_group_release> {
public:
    using handle::handle;
    // Executables get it when they are updated.
    void set_active(std::size_t index) const { detail::check(clg_command_group_set_active(raw_, index)); }
    std::size_t active() const {
        std::size_t index = 0;
        detail::check(clg_command_group_active(raw_, &index));
        return index;
    }
};

// The functions of a native command: one may be empty.
struct native_functions {
    // Enqueues the commands in each submission.
    std::function<void(const clg_native_target &)> enqueue;
    // Records the commands once into a command buffer, where the device has them.
    std::function<void(const clg_native_target &)> record;
};

namespace detail {

// Gives functions that enqueue or record OpenCL commands of their own, as C describes them, to a call.
template <class Call> auto native(native_functions functions, const std::vector<use> &uses, Call call) {
    using held = native_functions;
    auto enqueue = [](const clg_native_target *target, void *user) -> int {
        return guarded([&] { static_cast<held *>(user)->enqueue(*target); });
    };
    auto record = [](const clg_native_target *target, void *user) -> int {
        return guarded([&] { static_cast<held *>(user)->record(*target); });
    };
    const auto used = uses_of(uses);
    clg_native_command given = {};
    given.enqueue = functions.enqueue ? clg_native_function(enqueue) : nullptr;
    given.record = functions.record ? clg_native_function(record) : nullptr;
    given.uses = used.data(), given.num_uses = used.size();
    given.user = new held(std::move(functions)), given.release = release<held>;
    return call(&given);
}

// The same for a function that runs on the host.
using host_function = std::function<void(const task &)>;

inline clg_host_task host_task_of(host_function *function, const std::vector<clg_use> &used) {
    auto run = [](clg_task raw, void *user) -> int {
        return guarded([&] { (*static_cast<host_function *>(user))(task(raw)); });
    };
    return {run, function, release<host_function>, used.data(), used.size()};
}

template <class Call> auto host_task(host_function function, const std::vector<use> &uses, Call call) {
    const auto used = uses_of(uses);
    clg_host_task given = host_task_of(new host_function(std::move(function)), used);
    return call(&given);
}

} // namespace detail

// A function that gets memory mapped: with or without the view of its submission before the rest.
template <class... Given> class mapping {
public:
    template <class Function, class = std::enable_if_t<!std::is_same_v<std::decay_t<Function>, mapping>>> mapping(Function function) {
        if constexpr (std::is_invocable_v<Function &, const task &, Given...>) {
            function_ = std::move(function);
        } else {
            function_ = [without = std::move(function)](const task &, Given... given) mutable { without(given...); };
        }
    }
    void operator()(const task &of, Given... given) const { function_(of, given...); }

private:
    std::function<void(const task &, Given...)> function_;
};

// Of a pointer to the first byte and the number of bytes.
using memory_function = mapping<void *, std::size_t>;
// Of the pixels of an image.
using pixels_function = mapping<const pixels &>;

namespace detail {

// The same for a function that gets memory mapped.
template <class Call> auto map(memory_function function, Call call) {
    auto run = [](clg_task of, void *data, std::size_t size, std::size_t, std::size_t, void *user) -> int {
        return guarded([&] { (*static_cast<memory_function *>(user))(task(of), data, size); });
    };
    clg_map_task given = {run, new memory_function(std::move(function)), release<memory_function>};
    return call(&given);
}

template <class Call> auto map_image(pixels_function function, Call call) {
    auto run = [](clg_task of, void *data, std::size_t size, std::size_t row, std::size_t slice, void *user) -> int {
        return guarded([&] { (*static_cast<pixels_function *>(user))(task(of), {data, size, row, slice}); });
    };
    clg_map_task given = {run, new pixels_function(std::move(function)), release<pixels_function>};
    return call(&given);
}

// The kind of a colour of float, std::int32_t or std::uint32_t.
template <class T> constexpr clg_color_kind color_kind() {
    static_assert(sizeof(T) == 4 && std::is_arithmetic_v<T>, "a colour has four channels of float, int32_t or uint32_t");
    return std::is_floating_point_v<T> ? CLG_COLOR_FLOAT : std::is_signed_v<T> ? CLG_COLOR_INT : CLG_COLOR_UINT;
}

} // namespace detail

// A graph of commands for one device of one context.
class graph : public detail::handle<clg_graph, clg_graph_retain, clg_graph_release> {
public:
    using handle::handle;
    // For the context and device of a queue.
    explicit graph(const queue &of) { detail::check(clg_graph_create(of.raw(), &raw_)); }
    // For a device of a context.
    template <class Context, class Device> graph(const Context &context, const Device &device, clg_graph_properties properties = {}) {
        detail::check(clg_check_version(CLG_VERSION_MAJOR, CLG_VERSION_MINOR));
        detail::check(clg_graph_create_for_device(detail::raw(context), detail::raw(device), &properties, &raw_));
    }
    graph(const graph &) = default;
    graph(graph &&) noexcept = default;
    graph &operator=(const graph &) = default;
    graph &operator=(graph &&) noexcept = default;

    std::size_t size() const {
        std::size_t size = 0;
        detail::check(clg_graph_size(raw_, &size));
        return size;
    }
    // Adds a launch. The program promises that the kernel stays inside its memory, uses it as declared, and has no data races.
    node kernel(const clg::kernel &of, const range &over, const std::vector<arg> &args, const options &with = {}) const {
        return detail::launched(of, over, args, [&](const clg_launch *launch) {
            return added(with, [&](const clg_node_options *c, node *to) { return clg_graph_kernel(raw_, launch, c, to); });
        });
    }
    node kernel(const launch &of, const options &with = {}) const {
        return detail::launched(of, [&](const clg_launch *launch) {
            return added(with, [&](const clg_node_options *c, node *to) { return clg_graph_kernel(raw_, launch, c, to); });
        });
    }
    // Replaces a launch; executables get it when they are updated.
    void replace(node old, const launch &of) const {
        detail::launched(of, [&](const clg_launch *launch) {
            clg_node_options with = {};
            with.replaces = &old;
            detail::check(clg_graph_kernel(raw_, launch, &with, nullptr));
            return old;
        });
    }
    void replace(node old, const clg::kernel &of, const range &over, const std::vector<arg> &args) const {
        replace(old, launch{of, over, args});
    }
    // Makes a group of launches, of which the first is active.
    clg::command_group command_group(const std::vector<launch> &launches) const {
        std::vector<detail::launch_lists> lists(launches.size());
        std::vector<clg_launch> given;
        for (std::size_t i = 0; i < launches.size(); i++) {
            given.push_back(detail::launch_of(launches[i], lists[i]));
        }
        clg_command_group made = nullptr;
        detail::check(clg_graph_command_group(raw_, given.data(), given.size(), &made));
        return clg::command_group(made);
    }
    // Makes a group of functions that run on the host, of which the first is active. All of them use this memory.
    clg::command_group host_task_group(const std::vector<std::function<void(const task &)>> &functions, const std::vector<use> &uses = {}) const {
        const auto used = detail::uses_of(uses);
        std::vector<std::unique_ptr<detail::host_function>> held;
        for (const auto &one : functions) {
            held.push_back(std::make_unique<detail::host_function>(one));
        }
        std::vector<clg_host_task> given(functions.size());
        for (std::size_t i = 0; i < given.size(); i++) {
            given[i] = detail::host_task_of(held[i].release(), used);
        }
        clg_command_group made = nullptr;
        detail::check(clg_graph_host_task_group(raw_, given.data(), given.size(), &made));
        return clg::command_group(made);
    }
    // Adds a node of a group.
    node command_group_node(const clg::command_group &of, const options &with = {}) const {
        return added(with, [&](const clg_node_options *c, node *to) { return clg_graph_command_group_node(raw_, of.raw(), c, to); });
    }
    // Hints how memory with an address is used; `advice` is a number of the vendor's extension.
    node hint(clg_range of, clg_hint hint, std::uint32_t advice = 0, const options &with = {}) const {
        return added(with, [&](const clg_node_options *c, node *to) { return clg_graph_hint(raw_, of, hint, advice, c, to); });
    }
    // The nodes of the graph, or those before or after one.
    std::vector<node> nodes(clg_nodes which = CLG_NODES_ALL, node of = {}) const {
        std::size_t count = 0;
        detail::check(clg_graph_nodes(raw_, which, of, 0, nullptr, &count));
        std::vector<node> found(count);
        detail::check(clg_graph_nodes(raw_, which, of, count, found.data(), &count));
        return found;
    }
    std::string label(node of) const {
        return detail::text([&](std::size_t room, char *text, std::size_t *size) { return clg_graph_node_label(raw_, of, room, text, size); });
    }
    void set_label(node of, const std::string &label) const { detail::check(clg_graph_set_node_label(raw_, of, label.c_str())); }
    std::string kind(node of) const {
        return detail::text([&](std::size_t room, char *text, std::size_t *size) { return clg_graph_node_kind(raw_, of, room, text, size); });
    }
    node empty(const options &with = {}) const {
        return added(with, [&](const clg_node_options *c, node *to) { return clg_graph_empty(raw_, c, to); });
    }
    node copy(clg_range from, clg_range into, const options &with = {}) const {
        return added(with, [&](const clg_node_options *c, node *to) { return clg_graph_copy(raw_, from, into, c, to); });
    }
    template <class T> node fill(clg_range into, const T &pattern, const options &with = {}) const {
        static_assert(std::is_trivially_copyable_v<T>, "a pattern is plain data");
        return added(with, [&](const clg_node_options *c, node *to) {
            return clg_graph_fill(raw_, into, &pattern, sizeof pattern, c, to);
        });
    }
    // Writes host data, which is copied. Each submission can have data of its own.
    template <class Container> node write(clg_range into, const Container &data, const options &with = {}) const {
        return added(with, [&](const clg_node_options *c, node *to) {
            return clg_graph_write(raw_, into, data.data(), data.size() * sizeof(*data.data()), nullptr, nullptr, c, to);
        });
    }
    // The same, but the data is used where it is: it is kept, and must not change, until the graph and its executables are gone.
    template <class Container> node write(clg_range into, std::shared_ptr<Container> data, const options &with = {}) const {
        const auto bytes = detail::bytes_of(data);
        return added(with, [&](const clg_node_options *c, node *to) {
            return clg_graph_write(raw_, into, bytes.first, bytes.second, detail::release<detail::shared_data>, detail::hold(data), c, to);
        });
    }
    node read(clg_range from, const options &with = {}) const {
        return added(with, [&](const clg_node_options *c, node *to) { return clg_graph_read(raw_, from, c, to); });
    }
    // Memory of the graph, of a size in bytes.
    memory allocate(std::size_t size, bool zeroed = false, const options &with = {}) const {
        clg_memory made = nullptr;
        auto c = with.c();
        detail::check(clg_graph_allocate(raw_, size, zeroed, &c, &made));
        return memory(made);
    }
    node free(const memory &of, const options &with = {}) const {
        return added(with, [&](const clg_node_options *c, node *to) { return clg_graph_free(raw_, of.raw(), c, to); });
    }
    clg::sub_graph sub_graph(const executable &of, const options &with = {}) const {
        clg_sub_graph made = nullptr;
        const auto as = added(with, [&](const clg_node_options *c, node *to) { return clg_graph_sub_graph(raw_, of.raw(), c, to, &made); });
        return clg::sub_graph(made, as);
    }
    // Adds a branch: `then` runs if the number of 32 bits at the start of `condition` is not zero. The promise of clg_graph_when holds.
    clg::control when(clg_range condition, const executable &then, const options &with = {}) const {
        return decided(with, [&](const clg_node_options *c, node *to, clg_control *made) {
            return clg_graph_when(raw_, condition, then.raw(), nullptr, c, to, made);
        });
    }
    // The same with a body that runs if it is zero.
    clg::control when(clg_range condition, const executable &then, const executable &otherwise, const options &with = {}) const {
        return decided(with, [&](const clg_node_options *c, node *to, clg_control *made) {
            return clg_graph_when(raw_, condition, then.raw(), otherwise.raw(), c, to, made);
        });
    }
    // Adds a branch with several cases: the one runs whose index is the number at the start of `index`.
    clg::control switch_on(clg_range index, const std::vector<executable> &cases, const options &with = {}) const {
        std::vector<clg_executable> given;
        for (const auto &one : cases) {
            given.push_back(one.raw());
        }
        return decided(with, [&](const clg_node_options *c, node *to, clg_control *made) {
            return clg_graph_switch(raw_, index, given.data(), given.size(), c, to, made);
        });
    }
    // Adds a loop: the body runs as long as the number at the start of `condition` is not zero, which is read before each turn.
    clg::control repeat_while(clg_range condition, const executable &body, const loop_bounds &bounds = {}, const options &with = {}) const {
        return decided(with, [&](const clg_node_options *c, node *to, clg_control *made) {
            return clg_graph_repeat_while(raw_, condition, body.raw(), bounds.at_least_once, bounds.at_most, c, to, made);
        });
    }
    // Adds a loop with a known number of turns.
    clg::control repeat(std::uint64_t turns, const executable &body, const options &with = {}) const {
        return decided(with, [&](const clg_node_options *c, node *to, clg_control *made) {
            return clg_graph_repeat(raw_, turns, body.raw(), c, to, made);
        });
    }
    // A copy of a rectangle or a box.
    node copy_rect(clg_range from, clg_range into, const clg_rect &rect, const options &with = {}) const {
        return added(with, [&](const clg_node_options *c, node *to) { return clg_graph_copy_rect(raw_, from, into, &rect, c, to); });
    }
    node copy(clg_area from, clg_area into, const options &with = {}) const {
        return added(with, [&](const clg_node_options *c, node *to) { return clg_graph_copy_image(raw_, from, into, c, to); });
    }
    node copy(clg_area from, clg_range into, const options &with = {}) const {
        return added(with, [&](const clg_node_options *c, node *to) { return clg_graph_copy_image_to_buffer(raw_, from, into, c, to); });
    }
    node copy(clg_range from, clg_area into, const options &with = {}) const {
        return added(with, [&](const clg_node_options *c, node *to) { return clg_graph_copy_buffer_to_image(raw_, from, into, c, to); });
    }
    // Fills an image with a colour of float, std::int32_t or std::uint32_t.
    template <class T> node fill(clg_area into, const std::array<T, 4> &color, const options &with = {}) const {
        return added(with, [&](const clg_node_options *c, node *to) {
            return clg_graph_fill_image(raw_, into, detail::color_kind<T>(), color.data(), c, to);
        });
    }
    template <class Container> node write(clg_area into, const Container &data, const options &with = {}) const {
        return added(with, [&](const clg_node_options *c, node *to) {
            return clg_graph_write_image(raw_, into, data.data(), data.size() * sizeof(*data.data()), nullptr, nullptr, c, to);
        });
    }
    template <class Container> node write(clg_area into, std::shared_ptr<Container> data, const options &with = {}) const {
        const auto bytes = detail::bytes_of(data);
        return added(with, [&](const clg_node_options *c, node *to) {
            return clg_graph_write_image(raw_, into, bytes.first, bytes.second, detail::release<detail::shared_data>, detail::hold(data), c, to);
        });
    }
    node read(clg_area from, const options &with = {}) const {
        return added(with, [&](const clg_node_options *c, node *to) { return clg_graph_read_image(raw_, from, c, to); });
    }
    // Sets the range of a kernel node, up to its bound. Executables get it when they are updated.
    void set_range(node of, const range &over) const {
        detail::check(clg_graph_set_range(raw_, of, over.global.dims(), over.global.sizes().data(), over.offset.sizes().data(),
                                          over.local.sizes().data()));
    }
    // Makes queues record: commands on them become nodes, and nothing runs, until the object that this returns ends.
    class recording {
    public:
        recording(recording &&other) noexcept
            : graph_(std::exchange(other.graph_, nullptr)), queues_(std::move(other.queues_)), raw_(std::move(other.raw_)) {}
        recording &operator=(recording &&) = delete;
        ~recording() {
            if (graph_) {
                clg_graph_end_recording(graph_, raw_.data(), raw_.size(), nullptr);
                clg_graph_release(graph_);
            }
        }
        // Ends it now. Returns how many of the queues recorded.
        std::size_t end() {
            std::size_t ended = 0;
            if (const clg_graph of = std::exchange(graph_, nullptr)) {
                const detail::handle<clg_graph, clg_graph_retain, clg_graph_release> released(of);
                detail::check(clg_graph_end_recording(of, raw_.data(), raw_.size(), &ended));
            }
            return ended;
        }

    private:
        friend class graph;
        recording(const graph &of, std::vector<queue> queues) : queues_(std::move(queues)) {
            for (const auto &one : queues_) {
                raw_.push_back(one.raw());
            }
            detail::check(clg_graph_retain(of.raw()));
            const clg_status status = clg_graph_begin_recording(of.raw(), raw_.data(), raw_.size());
            if (status != CLG_SUCCESS) {
                const error failed(status, clg_last_cl_status(), clg_last_error());
                clg_graph_release(of.raw());
                throw failed;
            }
            graph_ = of.raw();
        }
        clg_graph graph_ = nullptr;
        std::vector<queue> queues_; // which live as long as they record
        std::vector<clg_queue> raw_;
    };
    // Gives a kernel node another argument, found by its index from 0. The other arguments, the range and all edges stay. The caller's
    // promise is that of `kernel`, for the launch with the new argument.
    void set_arg(node of, std::size_t index, const arg &value) const {
        const clg_arg given = value.c();
        detail::check(clg_graph_set_arg(raw_, of, index, &given));
    }
    // Calls `calls` while a queue is captured: what any code enqueues with OpenCL on its `cl_command_queue` becomes nodes, which are
    // returned in the order of the calls, and does not run. It needs clgraph's layer; clg_graph_begin_capture says more, and
    // clg_graph_end_capture what the caller promises. If `calls` throws, nothing is added; if it has spoilt the capture, what is thrown
    // names the call.
    template <class Calls> std::vector<node> capture(const queue &on, Calls &&calls, clg_capture_mode mode = CLG_CAPTURE_STRICT) const {
        detail::check(clg_graph_begin_capture(raw_, on.raw(), mode));
        std::vector<node> nodes;
        std::size_t count = 0;
        try {
            std::forward<Calls>(calls)();
            detail::check(clg_queue_captured(on.raw(), &count));
            nodes.resize(count);
        } catch (...) {
            // If the capture is spoilt, this says so.
            detail::check(clg_queue_drop_capture(on.raw()));
            throw;
        }
        const clg_status status = clg_graph_end_capture(raw_, on.raw(), count, nodes.data(), &count);
        if (status != CLG_SUCCESS) {
            const error failed(status, clg_last_cl_status(), clg_last_error());
            clg_queue_drop_capture(on.raw()); // another thread has enqueued more meanwhile, if it goes on
            throw failed;
        }
        nodes.resize(std::min(count, nodes.size()));
        return nodes;
    }
    // Makes all queues that record into the graph execute again, also those that joined by waiting for an event of a recorded command.
    // Returns how many there were.
    std::size_t end_all_recording() const {
        std::size_t ended = 0;
        detail::check(clg_graph_end_all_recording(raw_, &ended));
        return ended;
    }
    [[nodiscard]] recording record(const queue &on) const { return recording(*this, {on}); }
    [[nodiscard]] recording record(const std::vector<queue> &on) const { return recording(*this, on); }
    // The node that a recorded command has become.
    node node_of(const event &of) const {
        node found = {};
        detail::check(clg_event_node(of.raw(), raw_, &found));
        return found;
    }
    // Adds a function that gets memory mapped: a pointer to its first byte, and its size; before them the view of its submission, if it
    // takes one. If it throws, the submission fails with the text of the exception.
    node map(clg_range memory, clg_map_mode mode, memory_function function, const options &with = {}) const {
        return detail::map(std::move(function), [&](const clg_map_task *given) {
            return added(with, [&](const clg_node_options *c, node *to) { return clg_graph_map(raw_, memory, mode, given, c, to); });
        });
    }
    // The same for a part of an image.
    node map(clg_area area, clg_map_mode mode, pixels_function function, const options &with = {}) const {
        return detail::map_image(std::move(function), [&](const clg_map_task *given) {
            return added(with, [&](const clg_node_options *c, node *to) { return clg_graph_map_image(raw_, area, mode, given, c, to); });
        });
    }
    // Adds a function that enqueues OpenCL commands of its own on the queue that it is given. If it throws, the submission
    // fails. The promise of clg_graph_native_command holds for the commands.
    node native_command(std::function<void(const clg_native_target &)> function, const std::vector<use> &uses,
                        const options &with = {}) const {
        return native_command(native_functions{std::move(function), nullptr}, uses, with);
    }
    // The same with a function that records the commands once, where the device has command buffers.
    node native_command(native_functions functions, const std::vector<use> &uses, const options &with = {}) const {
        return detail::native(std::move(functions), uses, [&](const clg_native_command *given) {
            return added(with, [&](const clg_node_options *c, node *to) { return clg_graph_native_command(raw_, given, c, to); });
        });
    }
    node wait_event(const options &with = {}) const {
        return added(with, [&](const clg_node_options *c, node *to) { return clg_graph_wait_event(raw_, c, to); });
    }
    node signal_event(const options &with = {}) const {
        return added(with, [&](const clg_node_options *c, node *to) { return clg_graph_signal_event(raw_, c, to); });
    }
    // Adds a function that runs on the host. If it throws, the submission fails with the text of the exception.
    node host_task(std::function<void(const task &)> function, const std::vector<use> &uses = {},
                   const options &with = {}) const {
        return detail::host_task(std::move(function), uses, [&](const clg_host_task *given) {
            return added(with, [&](const clg_node_options *c, node *to) { return clg_graph_host_task(raw_, given, c, to); });
        });
    }
    void add_edge(node before, node after) const { detail::check(clg_graph_add_edge(raw_, before, after)); }
    executable finalize(clg_finalize_options with = {}) const {
        clg_executable made = nullptr;
        detail::check(clg_graph_finalize(raw_, &with, &made));
        return executable(made);
    }
    std::string to_dot(clg_drawing_detail detail = CLG_DRAWING_BRIEF) const {
        return detail::text([&](std::size_t room, char *text, std::size_t *size) {
            return clg_graph_to_dot(raw_, detail, room, text, size);
        });
    }
    std::string to_svg(clg_drawing_detail detail = CLG_DRAWING_BRIEF) const {
        return detail::text([&](std::size_t room, char *text, std::size_t *size) {
            return clg_graph_to_svg(raw_, detail, room, text, size);
        });
    }

private:
    template <class Add> static node added(const options &with, Add add) {
        auto c = with.c();
        node made = {};
        detail::check(add(&c, &made));
        return made;
    }
    // A node that is replaced has the handle that it got when it was added.
    template <class Add> static clg::control decided(const options &with, Add add) {
        clg_control made = nullptr;
        const auto as = added(with, [&](const clg_node_options *c, node *to) { return add(c, to, with.replaces.empty() ? &made : nullptr); });
        return {made, as};
    }
};

inline graph queue::recording_graph() const {
    clg_graph made = nullptr;
    detail::check(clg_queue_recording_graph(raw_, &made));
    return graph(made);
}

inline sub_graph submission::sub_graph(const graph &into) const {
    const auto as = into.node_of(event());
    clg_sub_graph made = nullptr;
    detail::check(clg_submission_sub_graph(raw_, &made));
    return clg::sub_graph(made, as);
}

// A read that was enqueued on a queue, or recorded.
class pending_read : public detail::handle<clg_pending_read, clg_pending_read_retain, clg_pending_read_release> {
public:
    pending_read(clg_pending_read raw, std::size_t size) noexcept : handle(raw), size_(size) {}
    // Blocks until the data is there.
    template <class T> std::vector<T> wait() const {
        std::vector<T> data(size_ / sizeof(T));
        detail::check(clg_pending_read_wait(raw_, data.data(), data.size() * sizeof(T)));
        return data;
    }
    // The event of the read.
    clg::event event() const {
        clg_event made = nullptr;
        detail::check(clg_pending_read_event(raw_, &made));
        return clg::event(made);
    }
    // The node of a recorded read: the name of the result of each submission.
    clg::node node() const {
        clg::node found = {};
        detail::check(clg_pending_read_node(raw_, &found));
        return found;
    }

private:
    std::size_t size_;
};

// A function that enqueues commands on the queue that it is given.
using body_function = std::function<void(const queue &)>;
// The same for one of several cases, which are counted from 0.
using case_function = std::function<void(const queue &, std::size_t)>;

namespace detail {

inline int ran(const body_function &function, clg_queue on) noexcept {
    return guarded([&] { function(queue::retained(on)); });
}

} // namespace detail

// What a queue has recorded for an event of the program: an event for wait lists of the recording, and the node.
struct recorded {
    clg::event event;
    clg::node node;
};

// The commands of a queue, which execute at once or are recorded. `Made` is what those without a handle of their own return: an event,
// or nothing.
template <class Made> class queue_commands {
public:
    explicit queue_commands(const queue &on) : queue_(on) {}
    // Launches a kernel. The promise of graph::kernel holds.
    Made kernel(const clg::kernel &of, const range &over, const std::vector<arg> &args, const events &after = {}) const {
        return detail::launched(of, over, args, [&](const clg_launch *launch) {
            return enqueued(after, [&](auto n, auto list, auto made) { return clg_enqueue_kernel(queue_.raw(), launch, n, list, made); });
        });
    }
    Made kernel(const launch &of, const events &after = {}) const {
        return detail::launched(of, [&](const clg_launch *launch) {
            return enqueued(after, [&](auto n, auto list, auto made) { return clg_enqueue_kernel(queue_.raw(), launch, n, list, made); });
        });
    }
    // A node of a group of the graph that the queue records into.
    Made command_group(const clg::command_group &of, const events &after = {}) const {
        return enqueued(after, [&](auto n, auto list, auto made) { return clg_enqueue_command_group(queue_.raw(), of.raw(), n, list, made); });
    }
    // Memory of the graph that the queue records into, of a size in bytes.
    memory allocate(std::size_t size, bool zeroed = false, const events &after = {}) const {
        clg_memory made = nullptr;
        auto list = raw(after);
        detail::check(clg_enqueue_allocate(queue_.raw(), size, zeroed, static_cast<std::uint32_t>(list.size()), list.data(), &made));
        return memory(made);
    }
    // The end of the life of such memory.
    Made free(const memory &of, const events &after = {}) const {
        return enqueued(after, [&](auto n, auto list, auto made) { return clg_enqueue_free(queue_.raw(), of.raw(), n, list, made); });
    }
    Made copy(clg_range from, clg_range into, const events &after = {}) const {
        return enqueued(after, [&](auto n, auto list, auto made) { return clg_enqueue_copy_buffer(queue_.raw(), from, into, n, list, made); });
    }
    Made copy(clg_area from, clg_area into, const events &after = {}) const {
        return enqueued(after, [&](auto n, auto list, auto made) { return clg_enqueue_copy_image(queue_.raw(), from, into, n, list, made); });
    }
    template <class T> Made fill(clg_range into, const T &pattern, const events &after = {}) const {
        static_assert(std::is_trivially_copyable_v<T>, "a pattern is plain data");
        return enqueued(after, [&](auto n, auto list, auto made) {
            return clg_enqueue_fill_buffer(queue_.raw(), into, &pattern, sizeof pattern, n, list, made);
        });
    }
    // Writes host data, which is copied.
    template <class Container> Made write(clg_range into, const Container &data, const events &after = {}) const {
        return enqueued(after, [&](auto n, auto list, auto made) {
            return clg_enqueue_write_buffer(queue_.raw(), into, data.data(), data.size() * sizeof(*data.data()), nullptr, nullptr, n, list, made);
        });
    }
    // The same, but the data is used where it is: it is kept, and must not change, until the event is complete.
    template <class Container> Made write(clg_range into, std::shared_ptr<Container> data, const events &after = {}) const {
        const auto bytes = detail::bytes_of(data);
        return enqueued(after, [&](auto n, auto list, auto made) {
            return clg_enqueue_write_buffer(queue_.raw(), into, bytes.first, bytes.second, detail::release<detail::shared_data>, detail::hold(data), n, list, made);
        });
    }
    pending_read read(clg_range from, const events &after = {}) const {
        std::size_t size = from.size;
        if (size == CLG_WHOLE) {
            detail::check(clg_memory_size(from.memory, &size));
            size -= from.offset;
        }
        clg_pending_read made = nullptr;
        auto list = raw(after);
        detail::check(clg_enqueue_read_buffer(queue_.raw(), from, static_cast<std::uint32_t>(list.size()), list.data(), &made));
        return pending_read(made, size);
    }
    Made copy_rect(clg_range from, clg_range into, const clg_rect &rect, const events &after = {}) const {
        return enqueued(after, [&](auto n, auto list, auto made) {
            return clg_enqueue_copy_buffer_rect(queue_.raw(), from, into, &rect, n, list, made);
        });
    }
    Made copy(clg_area from, clg_range into, const events &after = {}) const {
        return enqueued(after, [&](auto n, auto list, auto made) {
            return clg_enqueue_copy_image_to_buffer(queue_.raw(), from, into, n, list, made);
        });
    }
    Made copy(clg_range from, clg_area into, const events &after = {}) const {
        return enqueued(after, [&](auto n, auto list, auto made) {
            return clg_enqueue_copy_buffer_to_image(queue_.raw(), from, into, n, list, made);
        });
    }
    // Fills an image with a colour of float, std::int32_t or std::uint32_t.
    template <class T> Made fill(clg_area into, const std::array<T, 4> &color, const events &after = {}) const {
        return enqueued(after, [&](auto n, auto list, auto made) {
            return clg_enqueue_fill_image(queue_.raw(), into, detail::color_kind<T>(), color.data(), n, list, made);
        });
    }
    template <class Container> Made write(clg_area into, const Container &data, const events &after = {}) const {
        return enqueued(after, [&](auto n, auto list, auto made) {
            return clg_enqueue_write_image(queue_.raw(), into, data.data(), data.size() * sizeof(*data.data()), nullptr, nullptr, n, list, made);
        });
    }
    template <class Container> Made write(clg_area into, std::shared_ptr<Container> data, const events &after = {}) const {
        const auto bytes = detail::bytes_of(data);
        return enqueued(after, [&](auto n, auto list, auto made) {
            return clg_enqueue_write_image(queue_.raw(), into, bytes.first, bytes.second, detail::release<detail::shared_data>, detail::hold(data), n, list, made);
        });
    }
    // Reads an image, of which `size` bytes are packed pixels.
    pending_read read(clg_area from, std::size_t size, const events &after = {}) const {
        clg_pending_read made = nullptr;
        auto list = raw(after);
        detail::check(clg_enqueue_read_image(queue_.raw(), from, static_cast<std::uint32_t>(list.size()), list.data(), &made));
        return pending_read(made, size);
    }
    Made hint(clg_range of, clg_hint hint, std::uint32_t advice = 0, const events &after = {}) const {
        return enqueued(after, [&](auto n, auto list, auto made) {
            return clg_enqueue_hint(queue_.raw(), of, hint, advice, n, list, made);
        });
    }
    // Runs a function on the host after everything before it, or records it.
    submission host_task(std::function<void(const task &)> function, const events &after = {}) const {
        return detail::host_task(std::move(function), {}, [&](const clg_host_task *given) {
            return submitted(after, [&](auto n, auto list, auto made) { return clg_enqueue_host_task(queue_.raw(), given, n, list, made); });
        });
    }
    // Runs a function with memory mapped, or records it.
    submission map(clg_range of, clg_map_mode mode, memory_function function, const events &after = {}) const {
        return detail::map(std::move(function), [&](const clg_map_task *given) {
            return submitted(after, [&](auto n, auto list, auto made) { return clg_enqueue_map(queue_.raw(), of, mode, given, n, list, made); });
        });
    }
    // The same for a part of an image.
    submission map(clg_area of, clg_map_mode mode, pixels_function function, const events &after = {}) const {
        return detail::map_image(std::move(function), [&](const clg_map_task *given) {
            return submitted(after, [&](auto n, auto list, auto made) {
                return clg_enqueue_map_image(queue_.raw(), of, mode, given, n, list, made);
            });
        });
    }
    // Enqueues or records OpenCL commands of the program's own. The promise of clg_graph_native_command holds for them.
    submission native_command(std::function<void(const clg_native_target &)> function, const std::vector<use> &uses,
                              const events &after = {}) const {
        return native_command(native_functions{std::move(function), nullptr}, uses, after);
    }
    submission native_command(native_functions functions, const std::vector<use> &uses, const events &after = {}) const {
        return detail::native(std::move(functions), uses, [&](const clg_native_command *given) {
            return submitted(after, [&](auto n, auto list, auto made) {
                return clg_enqueue_native_command(queue_.raw(), given, n, list, made);
            });
        });
    }
    Made marker(const events &after = {}) const {
        return enqueued(after, [&](auto n, auto list, auto made) { return clg_enqueue_marker(queue_.raw(), n, list, made); });
    }
    Made barrier(const events &after = {}) const {
        return enqueued(after, [&](auto n, auto list, auto made) { return clg_enqueue_barrier(queue_.raw(), n, list, made); });
    }
    // Records a node that waits for an event, which each submission is given for it.
    recorded wait_event(const events &after = {}) const { return recorded_event(clg_record_wait_event, after); }
    // Records a node that completes a user event, which each submission is given for it.
    recorded signal_event(const events &after = {}) const { return recorded_event(clg_record_signal_event, after); }
    // An executable, which is recorded as a sub-graph.
    submission submit(const executable &of) const { return of.submit(queue_); }
    // Calls `then` if the number of 32 bits at the start of `condition` is not zero, and `otherwise` if it is: now, after it has waited for
    // the queue. Where the queue records, both are called once, and what they enqueue becomes bodies of a node. A function uses the
    // queue that it is given. If it throws, this throws a clg::error with the text.
    control when(clg_range condition, const body_function &then, const body_function &otherwise = {}) const {
        using both = std::pair<const body_function *, const body_function *>;
        auto first = [](clg_queue on, void *user) { return detail::ran(*static_cast<both *>(user)->first, on); };
        auto second = [](clg_queue on, void *user) { return detail::ran(*static_cast<both *>(user)->second, on); };
        both given{&then, &otherwise};
        return decided([&](node *as, clg_control *made) {
            return clg_queue_when(queue_.raw(), condition, then ? clg_body_function(first) : nullptr,
                                  otherwise ? clg_body_function(second) : nullptr, &given, as, made);
        });
    }
    // Calls the function with the number at the start of `index`, if that is less than `cases`. Where the queue records, it is called once
    // for each case.
    control switch_on(clg_range index, std::size_t cases, const case_function &function) const {
        auto run = [](clg_queue on, std::size_t number, void *user) -> int {
            return detail::guarded([&] { (*static_cast<const case_function *>(user))(queue::retained(on), number); });
        };
        return decided([&](node *as, clg_control *made) {
            return clg_queue_switch(queue_.raw(), index, cases, function ? clg_case_function(run) : nullptr,
                                    const_cast<case_function *>(&function), as, made);
        });
    }
    // Calls the function as long as the number at the start of `condition` is not zero, within bounds. Where the queue records, it is called
    // once.
    control repeat_while(clg_range condition, const body_function &body, const loop_bounds &bounds = {}) const {
        return decided([&](node *as, clg_control *made) {
            return clg_queue_repeat_while(queue_.raw(), condition, body ? clg_body_function(run_body) : nullptr,
                                          const_cast<body_function *>(&body), bounds.at_least_once, bounds.at_most, as, made);
        });
    }
    // Calls the function so many times. Where the queue records, it is called once.
    control repeat(std::uint64_t turns, const body_function &body) const {
        return decided([&](node *as, clg_control *made) {
            return clg_queue_repeat(queue_.raw(), turns, body ? clg_body_function(run_body) : nullptr, const_cast<body_function *>(&body), as, made);
        });
    }

private:
    static int run_body(clg_queue on, void *user) { return detail::ran(*static_cast<const body_function *>(user), on); }
    template <class Call> static control decided(Call call) {
        node as = {};
        clg_control made = nullptr;
        detail::check(call(&as, &made));
        return {made, as};
    }
    template <class Record> recorded recorded_event(Record record, const events &after) const {
        clg::node as = {};
        auto of = with_event(after, [&](auto n, auto list, auto made) { return record(queue_.raw(), n, list, made, &as); });
        return {std::move(of), as};
    }
    static std::vector<clg_event> raw(const events &of) {
        std::vector<clg_event> list;
        for (const auto &one : of) {
            list.push_back(one.raw());
        }
        return list;
    }
    template <class Call> static submission submitted(const events &after, Call call) {
        clg_submission made = nullptr;
        auto list = raw(after);
        detail::check(call(static_cast<std::uint32_t>(list.size()), static_cast<const clg_event *>(list.data()), &made));
        return submission(made);
    }
    template <class Call> static event with_event(const events &after, Call call) {
        clg_event made = nullptr;
        auto list = raw(after);
        detail::check(call(static_cast<std::uint32_t>(list.size()), static_cast<const clg_event *>(list.data()), &made));
        return event(made);
    }
    template <class Call> static Made enqueued(const events &after, Call call) {
        if constexpr (std::is_void_v<Made>) {
            auto list = raw(after);
            detail::check(call(static_cast<std::uint32_t>(list.size()), static_cast<const clg_event *>(list.data()), static_cast<clg_event *>(nullptr)));
        } else {
            return with_event(after, call);
        }
    }
    queue queue_;
};

// `clg::commands(queue).copy(a, b)` returns an event. `clg::detached_commands(queue).copy(a, b)` does not, and costs less, as the driver
// need not make one.
using commands = queue_commands<event>;
using detached_commands = queue_commands<void>;

} // namespace clg

#endif
