// What the C++ tests share beside common.h: what is as an object of opencl.hpp, and checks of exceptions.
#ifndef COMMON_HPP
#define COMMON_HPP

#include "common.h"
#include <clgraph.hpp>
#include <atomic>
#include <numeric>
#include <thread>

// As a class of opencl.hpp: the C handle comes from a call.
template <class Raw> struct object {
    Raw raw;
    Raw operator()() const { return raw; }
};
template <class Raw> object(Raw) -> object<Raw>;

template <class Call> inline void throws(clg_status kind, const char *words, Call call) {
    try {
        call();
    } catch (const clg::error &error) {
        CHECK(error.kind() == kind);
        CHECK(strstr(error.what(), words) != nullptr);
        return;
    }
    CHECK(!"it throws");
}

#endif
