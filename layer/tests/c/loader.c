/* A loader with a driver that only remembers what it is called with. `loader LIBRARY WHAT` prints `ok`. */
#define _GNU_SOURCE
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_0_APIS
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define CL_USE_DEPRECATED_OPENCL_2_0_APIS
#define CL_USE_DEPRECATED_OPENCL_2_1_APIS
#define CL_USE_DEPRECATED_OPENCL_2_2_APIS
#include <CL/cl_icd.h>
#include <CL/cl_layer.h>
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { WORDS = 14, MOST = 200 };

/* One argument is one word: so it is on x86-64 and AArch64. */
typedef intptr_t (*function)(intptr_t, intptr_t, intptr_t, intptr_t, intptr_t, intptr_t, intptr_t, intptr_t, intptr_t,
                             intptr_t, intptr_t, intptr_t, intptr_t, intptr_t);

static int called_place = -1, calls;
static intptr_t given[WORDS], answer;

static intptr_t remember(int place, intptr_t a, intptr_t b, intptr_t c, intptr_t d, intptr_t e, intptr_t f, intptr_t g,
                         intptr_t h, intptr_t i, intptr_t j, intptr_t k, intptr_t l, intptr_t m, intptr_t n) {
    intptr_t all[WORDS] = {a, b, c, d, e, f, g, h, i, j, k, l, m, n};
    memcpy(given, all, sizeof all);
    called_place = place;
    calls++;
    return answer;
}

#define ONE(n)                                                                                                            \
    static intptr_t driver_##n(intptr_t a, intptr_t b, intptr_t c, intptr_t d, intptr_t e, intptr_t f, intptr_t g,        \
                               intptr_t h, intptr_t i, intptr_t j, intptr_t k, intptr_t l, intptr_t m, intptr_t o) {      \
        return remember(0##n - 01000, a, b, c, d, e, f, g, h, i, j, k, l, m, o);                                          \
    }
/* Octal numbers from 01000 on have the same number of digits, so they can be put together. */
#define EIGHT(n) ONE(n##0) ONE(n##1) ONE(n##2) ONE(n##3) ONE(n##4) ONE(n##5) ONE(n##6) ONE(n##7)
#define MANY(n) EIGHT(n##0) EIGHT(n##1) EIGHT(n##2) EIGHT(n##3) EIGHT(n##4) EIGHT(n##5) EIGHT(n##6) EIGHT(n##7)
MANY(10)
MANY(11)
MANY(12)
#define ONE_OF(n) driver_##n,
#define EIGHT_OF(n) ONE_OF(n##0) ONE_OF(n##1) ONE_OF(n##2) ONE_OF(n##3) ONE_OF(n##4) ONE_OF(n##5) ONE_OF(n##6) ONE_OF(n##7)
#define MANY_OF(n)                                                                                              \
    EIGHT_OF(n##0) EIGHT_OF(n##1) EIGHT_OF(n##2) EIGHT_OF(n##3) EIGHT_OF(n##4) EIGHT_OF(n##5) EIGHT_OF(n##6) \
        EIGHT_OF(n##7)
static const function DRIVER[] = {MANY_OF(10) MANY_OF(11) MANY_OF(12)};

/* Why a function is wrapped: for the report, or for command buffers. */
enum { REPORTS = 1, SERVES = 2 };
static int mode;

/* The functions that the layer wraps, with the number of their arguments, whether they return an object, and why. */
static const struct {
    const char *name;
    size_t offset;
    int arguments, object, modes;
} LOOKED_AT[] = {
#define WRAPS(name, arguments, object, modes) {#name, offsetof(cl_icd_dispatch, name), arguments, object, modes}
#define LOOKS(name, arguments, object) WRAPS(name, arguments, object, REPORTS | SERVES)
    WRAPS(clGetPlatformInfo, 5, 0, SERVES),
    WRAPS(clGetDeviceInfo, 5, 0, SERVES),
    WRAPS(clRetainMemObject, 1, 0, SERVES),
    WRAPS(clReleaseMemObject, 1, 0, SERVES),
    WRAPS(clCreateFromGLBuffer, 4, 1, SERVES),
    WRAPS(clCreateFromGLTexture2D, 6, 1, SERVES),
    WRAPS(clCreateFromGLTexture3D, 6, 1, SERVES),
    WRAPS(clCreateFromGLRenderbuffer, 4, 1, SERVES),
    WRAPS(clCreateFromGLTexture, 6, 1, SERVES),
    WRAPS(clCreateFromEGLImageKHR, 6, 1, SERVES),
    WRAPS(clCreateSampler, 5, 1, SERVES),
    WRAPS(clRetainSampler, 1, 0, SERVES),
    WRAPS(clReleaseSampler, 1, 0, SERVES),
    WRAPS(clCreateSamplerWithProperties, 3, 1, SERVES),
    WRAPS(clRetainKernel, 1, 0, SERVES),
    WRAPS(clReleaseKernel, 1, 0, SERVES),
    WRAPS(clFlush, 1, 0, SERVES),
    WRAPS(clSetUserEventStatus, 2, 0, SERVES),
    WRAPS(clRetainEvent, 1, 0, SERVES),
    WRAPS(clReleaseEvent, 1, 0, SERVES),
    WRAPS(clCreateCommandQueue, 4, 1, REPORTS),
    WRAPS(clRetainCommandQueue, 1, 0, REPORTS),
    WRAPS(clReleaseCommandQueue, 1, 0, REPORTS),
    LOOKS(clCreateBuffer, 5, 1),
    LOOKS(clCreateImage2D, 8, 1),
    LOOKS(clCreateImage3D, 10, 1),
    LOOKS(clCreateKernel, 3, 1),
    LOOKS(clCreateKernelsInProgram, 4, 0),
    LOOKS(clSetKernelArg, 4, 0),
    LOOKS(clWaitForEvents, 2, 0),
    LOOKS(clGetEventInfo, 5, 0),
    LOOKS(clGetEventProfilingInfo, 5, 0),
    LOOKS(clFinish, 1, 0),
    LOOKS(clEnqueueReadBuffer, 9, 0),
    LOOKS(clEnqueueWriteBuffer, 9, 0),
    LOOKS(clEnqueueCopyBuffer, 9, 0),
    LOOKS(clEnqueueReadImage, 11, 0),
    LOOKS(clEnqueueWriteImage, 11, 0),
    LOOKS(clEnqueueCopyImage, 9, 0),
    LOOKS(clEnqueueCopyImageToBuffer, 9, 0),
    LOOKS(clEnqueueCopyBufferToImage, 9, 0),
    LOOKS(clEnqueueMapBuffer, 10, 1),
    LOOKS(clEnqueueMapImage, 12, 1),
    LOOKS(clEnqueueUnmapMemObject, 6, 0),
    LOOKS(clEnqueueNDRangeKernel, 9, 0),
    LOOKS(clEnqueueTask, 5, 0),
    LOOKS(clEnqueueNativeKernel, 10, 0),
    LOOKS(clEnqueueMarker, 2, 0),
    LOOKS(clEnqueueWaitForEvents, 3, 0),
    LOOKS(clEnqueueBarrier, 1, 0),
    LOOKS(clGetExtensionFunctionAddress, 1, 1),
    LOOKS(clEnqueueAcquireGLObjects, 6, 0),
    LOOKS(clEnqueueReleaseGLObjects, 6, 0),
    LOOKS(clEnqueueAcquireD3D10ObjectsKHR, 6, 0),
    LOOKS(clEnqueueReleaseD3D10ObjectsKHR, 6, 0),
    WRAPS(clSetEventCallback, 4, 0, REPORTS),
    LOOKS(clCreateSubBuffer, 5, 1),
    WRAPS(clCreateUserEvent, 2, 1, REPORTS),
    LOOKS(clEnqueueReadBufferRect, 14, 0),
    LOOKS(clEnqueueWriteBufferRect, 14, 0),
    LOOKS(clEnqueueCopyBufferRect, 13, 0),
    LOOKS(clCreateImage, 6, 1),
    LOOKS(clEnqueueFillBuffer, 9, 0),
    LOOKS(clEnqueueFillImage, 8, 0),
    LOOKS(clEnqueueMigrateMemObjects, 7, 0),
    LOOKS(clEnqueueMarkerWithWaitList, 4, 0),
    LOOKS(clEnqueueBarrierWithWaitList, 4, 0),
    LOOKS(clGetExtensionFunctionAddressForPlatform, 2, 1),
    LOOKS(clEnqueueAcquireD3D11ObjectsKHR, 6, 0),
    LOOKS(clEnqueueReleaseD3D11ObjectsKHR, 6, 0),
    LOOKS(clEnqueueAcquireDX9MediaSurfacesKHR, 6, 0),
    LOOKS(clEnqueueReleaseDX9MediaSurfacesKHR, 6, 0),
    LOOKS(clEnqueueAcquireEGLObjectsKHR, 6, 0),
    LOOKS(clEnqueueReleaseEGLObjectsKHR, 6, 0),
    WRAPS(clCreateCommandQueueWithProperties, 4, 1, REPORTS),
    LOOKS(clCreatePipe, 6, 1),
    LOOKS(clEnqueueSVMFree, 8, 0),
    LOOKS(clEnqueueSVMMemcpy, 8, 0),
    LOOKS(clEnqueueSVMMemFill, 8, 0),
    LOOKS(clEnqueueSVMMap, 8, 0),
    LOOKS(clEnqueueSVMUnmap, 5, 0),
    LOOKS(clSetKernelArgSVMPointer, 3, 0),
    WRAPS(clSetKernelExecInfo, 4, 0, SERVES),
    LOOKS(clCloneKernel, 2, 1),
    LOOKS(clEnqueueSVMMigrateMem, 8, 0),
    LOOKS(clCreateBufferWithProperties, 6, 1),
    LOOKS(clCreateImageWithProperties, 7, 1),
};
enum { LOOKED = sizeof LOOKED_AT / sizeof *LOOKED_AT };

typedef cl_int (*init_function)(cl_uint, const function *, cl_uint *, const function **);
typedef cl_int (*init_with_properties)(cl_uint, const function *, cl_uint *, const function **, const cl_properties *);
typedef cl_int (*info_function)(cl_uint, size_t, void *, size_t *);
typedef cl_int (*deinit_function)(void);

typedef cl_int (*marker_function)(cl_command_queue, cl_uint, const cl_event *, cl_event *);
typedef cl_int (*finish_function)(cl_command_queue);

static init_function init;
static init_with_properties init_with;
static info_function info;
static deinit_function deinit;

static int threads(void) {
    int count = 0;
    DIR *folder = opendir("/proc/self/task");
    CHECK(folder != NULL);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) count += entry->d_name[0] != '.';
    CHECK(closedir(folder) == 0);
    return count;
}

/* A table of so many entries, behind which nothing can be read. */
static function *table_of(int count) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), room = ((size_t)count * sizeof(function) + page - 1) / page * page;
    char *at = mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(at != MAP_FAILED && mprotect(at + room, page, PROT_NONE) == 0);
    function *table = (function *)(void *)(at + room) - count;
    for (int i = 0; i < count; i++) table[i] = i < (int)(sizeof DRIVER / sizeof *DRIVER) ? DRIVER[i] : DRIVER[0];
    return table;
}

static int looks_at(int place) {
    for (int i = 0; i < LOOKED; i++)
        if (LOOKED_AT[i].offset / sizeof(function) == (size_t)place) return (LOOKED_AT[i].modes & mode) != 0;
    return 0;
}

/* A wrapper calls the function of its place, with what it was given, and returns what that returns. */
static void call(function wrapper, int place, int arguments, int object) {
    answer = object ? 0 : -1000 - place;
    calls = 0;
    intptr_t w = 1000;
    intptr_t result = wrapper(w, w + 1, w + 2, w + 3, w + 4, w + 5, w + 6, w + 7, w + 8, w + 9, w + 10, w + 11, w + 12, w + 13);
    CHECK(calls == 1 && called_place == place);
    CHECK(object ? result == 0 : (cl_int)result == -1000 - place);
    /* Of 32 bits of a slot the other ones mean nothing. */
    for (int i = 0; i < arguments; i++) CHECK((uint32_t)given[i] == (uint32_t)(w + i));
}

/* Calls each wrapper, and returns how many there are. What reads a name is not called with what is none. */
static int call_all(const function *wrappers, int count) {
    int there = 0;
    for (int i = 0; i < LOOKED; i++) {
        int place = (int)(LOOKED_AT[i].offset / sizeof(function));
        if (place >= count || !looks_at(place)) continue;
        there++;
        if ((mode & SERVES) != 0 && strncmp(LOOKED_AT[i].name, "clGetExtensionFunction", 22) == 0) {
            answer = 0;
            const char *name = "clNoSuchFunction";
            int last = LOOKED_AT[i].arguments - 1;
            CHECK(wrappers[place](last == 0 ? (intptr_t)name : 7, (intptr_t)name, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) == 0);
            CHECK(called_place == place && given[last] == (intptr_t)name);
        } else {
            call(wrappers[place], place, LOOKED_AT[i].arguments, LOOKED_AT[i].object);
        }
    }
    return there;
}

static void with_table(int count, int newer) {
    function *table = table_of(count);
    const function *wrappers = NULL;
    cl_uint entries = 12345;
    int before = threads();
    calls = 0;
    cl_int status = newer ? init_with((cl_uint)count, table, &entries, &wrappers, NULL)
                          : init((cl_uint)count, table, &entries, &wrappers);
    CHECK(status == CL_SUCCESS && wrappers != NULL && entries <= (cl_uint)count);
    CHECK(calls == 0 && threads() == before);
    int wrapped = 0;
    for (int place = 0; place < (int)entries; place++) {
        CHECK((wrappers[place] != NULL) == looks_at(place));
        wrapped += wrappers[place] != NULL;
    }
    if (mode == 0) {
        CHECK(wrapped == 0);
        CHECK(deinit() == CL_SUCCESS);
        return;
    }
    CHECK(wrapped == call_all(wrappers, count));
    /* There is one layer: a second loader goes without. */
    cl_uint other = 0;
    const function *none = NULL;
    CHECK(init((cl_uint)count, table, &other, &none) == CL_INVALID_OPERATION && other == 0 && none == NULL);
    CHECK(deinit() == CL_SUCCESS);
    call_all(wrappers, count);
}

static void entries(void) {
    static const int COUNTS[] = {0, 1, 47, 48, 78, 100, 108, 149, 150, MOST};
    for (size_t i = 0; i < sizeof COUNTS / sizeof *COUNTS; i++) with_table(COUNTS[i], (int)i % 2);
    with_table(100, 1);
    with_table(150, 0);
    /* Functions that a loader has not. */
    function *table = table_of(149);
    for (int i = 0; i < 149; i += 2) table[i] = NULL;
    const function *wrappers;
    cl_uint count;
    CHECK(init(149, table, &count, &wrappers) == CL_SUCCESS);
    for (int i = 0; i < (int)count; i++) CHECK((wrappers[i] != NULL) == (i % 2 == 1 && looks_at(i)));
    CHECK(deinit() == CL_SUCCESS);
    CHECK(deinit() == CL_SUCCESS);
}

static void wrong(void) {
    function *table = table_of(149);
    const function *wrappers;
    cl_uint count;
    static const cl_properties none[] = {0}, some[] = {1, 2, 0};
    CHECK(init(149, NULL, &count, &wrappers) == CL_INVALID_VALUE);
    CHECK(init(149, table, NULL, &wrappers) == CL_INVALID_VALUE);
    CHECK(init(149, table, &count, NULL) == CL_INVALID_VALUE);
    CHECK(init_with(149, table, &count, &wrappers, some) == CL_INVALID_PROPERTY);
    CHECK(init_with(149, table, &count, &wrappers, none) == CL_SUCCESS);
    CHECK(deinit() == CL_SUCCESS);

    cl_uint version = 0;
    char name[64];
    size_t size = 0;
    CHECK(info(CL_LAYER_API_VERSION, sizeof version, &version, &size) == CL_SUCCESS);
    CHECK(version == CL_LAYER_API_VERSION_100 && size == sizeof version);
    CHECK(info(CL_LAYER_NAME, sizeof name, name, &size) == CL_SUCCESS);
    CHECK(strcmp(name, "clgraph_layer") == 0 && size == sizeof "clgraph_layer");
    CHECK(info(CL_LAYER_NAME, 0, NULL, &size) == CL_SUCCESS && size == sizeof "clgraph_layer");
    CHECK(info(CL_LAYER_NAME, 0, NULL, NULL) == CL_SUCCESS);
    CHECK(info(CL_LAYER_NAME, 4, name, NULL) == CL_INVALID_VALUE);
    CHECK(info(0, sizeof name, name, &size) == CL_INVALID_VALUE);
}

/* The library stays, whoever closes it. */
static void closed(void *library) {
    function *table = table_of(149);
    const function *wrappers;
    cl_uint count;
    CHECK(init(149, table, &count, &wrappers) == CL_SUCCESS);
    int place = (int)(offsetof(cl_icd_dispatch, clEnqueueTask) / sizeof(function));
    function task = wrappers[place];
    CHECK(dlclose(library) == 0);
    call(task, place, 5, 0);
}

static const function *wrappers_of(function *table) {
    const function *wrappers;
    cl_uint count;
    CHECK(init(149, table, &count, &wrappers) == CL_SUCCESS);
    return wrappers;
}

static volatile int stop;

static void *calls_always(void *wrappers) {
    marker_function marker =
        (marker_function)(void *)((function *)wrappers)[offsetof(cl_icd_dispatch, clEnqueueMarkerWithWaitList) / sizeof(function)];
    while (!stop) CHECK(marker((cl_command_queue)2, 0, NULL, NULL) == CL_SUCCESS);
    return NULL;
}

/* Children go on, although the parent's other thread may be in the layer when they begin; and so do theirs. */
static void forks(void) {
    const function *wrappers = wrappers_of(table_of(149));
    answer = 0;
    pthread_t other;
    CHECK(pthread_create(&other, NULL, calls_always, (void *)wrappers) == 0);
    marker_function marker =
        (marker_function)(void *)wrappers[offsetof(cl_icd_dispatch, clEnqueueMarkerWithWaitList) / sizeof(function)];
    finish_function finish = (finish_function)(void *)wrappers[offsetof(cl_icd_dispatch, clFinish) / sizeof(function)];
    for (int i = 0; i < 100; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            alarm(60);
            /* One that calls nothing has no report; the last one has one, and so has its child. */
            for (int k = 0; k < 30 && i >= 50; k++) {
                CHECK(marker((cl_command_queue)1, 0, NULL, NULL) == CL_SUCCESS);
                CHECK(marker((cl_command_queue)1, 0, NULL, NULL) == CL_SUCCESS);
                CHECK(finish((cl_command_queue)1) == CL_SUCCESS);
            }
            if (i < 99) {
                /* Without what is done at the end. */
                if (i >= 50) _exit(0);
                exit(0);
            }
            pid_t grandchild = fork();
            CHECK(grandchild >= 0);
            if (grandchild == 0) {
                alarm(60);
                for (int k = 0; k < 40; k++) CHECK(marker((cl_command_queue)1, 0, NULL, NULL) == CL_SUCCESS);
                exit(0);
            }
            int status;
            CHECK(waitpid(grandchild, &status, 0) == grandchild && status == 0);
            exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    stop = 1;
    CHECK(pthread_join(other, NULL) == 0);
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) fprintf(stderr, "%s\n", dlerror());
    CHECK(library != NULL);
    *(void **)&init = dlsym(library, "clInitLayer");
    *(void **)&init_with = dlsym(library, "clInitLayerWithProperties");
    *(void **)&info = dlsym(library, "clGetLayerInfo");
    *(void **)&deinit = dlsym(library, "clDeinitLayer");
    CHECK(init != NULL && init_with != NULL && info != NULL && deinit != NULL);
    const char *serves = getenv("CLGRAPH_LAYER"), *reports = getenv("CLGRAPH_LAYER_REPORT");
    if (serves == NULL || strcmp(serves, "never") != 0) mode |= SERVES;
    if (reports != NULL) mode |= REPORTS;
    if (strcmp(argv[2], "entries") == 0) entries();
    else if (strcmp(argv[2], "wrong") == 0) wrong();
    else if (strcmp(argv[2], "forks") == 0) forks();
    else if (strcmp(argv[2], "closed") == 0) closed(library);
    else CHECK(!"something that there is");
    printf("ok\n");
    return 0;
}
