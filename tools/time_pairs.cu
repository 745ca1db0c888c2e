// Times pairs of kernels, before and after a change: needs a GPU and the CUDA toolkit, nothing else.
//
//     nvcc -O2 -o time_pairs tools/time_pairs.cu -ldl && ./time_pairs FOLDER > times.jsonl
//
// FOLDER has plan.txt, cubins and contents of arrays, as `tools/time_cures.py prepare` and
// `tools/public_cures.py --pairs` write them. Both kernels of a pair run once on the same fresh arguments, and
// all bytes of all arrays are compared. Then they are timed in turn: warm, twenty launches of a CUDA graph at
// once; cold, one launch after 256 MiB were written, which fill the L2 cache. Medians of all rounds, in us.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cuda.h>
#include <dlfcn.h>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

static const int IN_A_GRAPH = 20, ROUNDS = 15, SKIPPED = 2;
static const size_t COLD_BYTES = 256u << 20;
static const int STATIC_SHARED_BYTES = 49152; // more requires opting in

struct Failed {
    std::string what;
};

// A function of the driver, found when it is called: toolkits come without the driver's library.
#define TEXT_OF(name) #name
#define AS_TEXT(name) TEXT_OF(name)
#define DRIVER(name) ((decltype(&name))of_driver(AS_TEXT(name)))

static void *of_driver(const char *name) {
    static void *const library = dlopen("libcuda.so.1", RTLD_NOW);
    void *const found = library ? dlsym(library, name) : nullptr;
    if (!found) throw Failed{library ? std::string("the driver has no ") + name : "there is no libcuda.so.1"};
    return found;
}

static void check(CUresult result) {
    const char *text = nullptr;
    if (result == CUDA_SUCCESS) return;
    DRIVER(cuGetErrorString)(result, &text);
    throw Failed{text ? text : "an unknown error"};
}

static std::string content(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw Failed{"there is no " + path};
    std::stringstream all;
    all << file.rdbuf();
    return all.str();
}

struct Argument {
    std::string file, bytes; // of an array, else of a value
};

struct Kernel {
    std::string cubin, name;
    unsigned grid[3], block[3];
    int shared, fixed;
};

struct Launch {
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    Kernel kernel;
    std::vector<CUdeviceptr> arrays;
    std::vector<size_t> sizes;
    std::vector<std::string> values;
    std::vector<void *> parameters;

    Launch(const std::string &folder, const Kernel &of, const std::vector<Argument> &arguments) : kernel(of) {
        check(DRIVER(cuModuleLoadData)(&module, content(folder + "/" + of.cubin).c_str()));
        check(DRIVER(cuModuleGetFunction)(&function, module, of.name.c_str()));
        if (of.shared + of.fixed > STATIC_SHARED_BYTES)
            check(DRIVER(cuFuncSetAttribute)(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, of.shared));
        for (const Argument &one : arguments) {
            std::string bytes = one.bytes;
            if (!one.file.empty()) {
                const std::string data = content(folder + "/" + one.file);
                CUdeviceptr at;
                check(DRIVER(cuMemAlloc)(&at, std::max<size_t>(data.size(), 1)));
                check(DRIVER(cuMemcpyHtoD)(at, data.data(), data.size()));
                arrays.push_back(at);
                sizes.push_back(data.size());
                bytes.assign((const char *)&at, sizeof(at));
            }
            values.push_back(bytes);
        }
        for (std::string &value : values) parameters.push_back(&value[0]);
    }
    ~Launch() {
        for (CUdeviceptr at : arrays) DRIVER(cuMemFree)(at);
        if (module) DRIVER(cuModuleUnload)(module);
    }
    void run(CUstream stream) {
        const unsigned *g = kernel.grid, *b = kernel.block;
        check(DRIVER(cuLaunchKernel)(
            function, g[0], g[1], g[2], b[0], b[1], b[2], kernel.shared, stream, parameters.data(), nullptr));
    }
    std::string results() const {
        std::string all;
        for (size_t one = 0; one < arrays.size(); ++one) {
            std::string bytes(sizes[one], 0);
            check(DRIVER(cuMemcpyDtoH)(&bytes[0], arrays[one], sizes[one]));
            all += bytes;
        }
        return all;
    }
};

template <typename Work>
static double microseconds(CUstream stream, Work work) {
    CUevent start, end;
    float milliseconds;
    check(DRIVER(cuEventCreate)(&start, 0));
    check(DRIVER(cuEventCreate)(&end, 0));
    check(DRIVER(cuEventRecord)(start, stream));
    work();
    check(DRIVER(cuEventRecord)(end, stream));
    check(DRIVER(cuEventSynchronize)(end));
    check(DRIVER(cuEventElapsedTime)(&milliseconds, start, end));
    DRIVER(cuEventDestroy)(start);
    DRIVER(cuEventDestroy)(end);
    return milliseconds * 1000;
}

static double median(std::vector<double> times) {
    times.erase(times.begin(), times.begin() + SKIPPED);
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

static std::string timed(const std::string &folder, const Kernel (&kernels)[2], const std::vector<Argument> &arguments) {
    Launch first(folder, kernels[0], arguments), second(folder, kernels[1], arguments), *both[] = {&first, &second};
    for (Launch *one : both) one->run(nullptr);
    check(DRIVER(cuCtxSynchronize)());
    const bool same = first.results() == second.results();
    CUstream stream;
    CUdeviceptr other;
    CUgraphExec graphs[2];
    check(DRIVER(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    check(DRIVER(cuMemAlloc)(&other, COLD_BYTES));
    for (int place = 0; place < 2; ++place) {
        CUgraph graph;
        check(DRIVER(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
        for (int times = 0; times < IN_A_GRAPH; ++times) both[place]->run(stream);
        check(DRIVER(cuStreamEndCapture)(stream, &graph));
        check(DRIVER(cuGraphInstantiate)(&graphs[place], graph, 0));
        DRIVER(cuGraphDestroy)(graph);
    }
    std::vector<double> warm[2], cold[2];
    for (int turn = 0; turn < ROUNDS + SKIPPED; ++turn)
        for (int place = 0; place < 2; ++place) {
            check(DRIVER(cuGraphLaunch)(graphs[place], stream));
            const auto launched = [&] { check(DRIVER(cuGraphLaunch)(graphs[place], stream)); };
            warm[place].push_back(microseconds(stream, launched) / IN_A_GRAPH);
            check(DRIVER(cuMemsetD8Async)(other, (unsigned char)turn, COLD_BYTES, stream));
            cold[place].push_back(microseconds(stream, [&] { both[place]->run(stream); }));
        }
    for (CUgraphExec graph : graphs) DRIVER(cuGraphExecDestroy)(graph);
    DRIVER(cuMemFree)(other);
    DRIVER(cuStreamDestroy)(stream);
    std::ostringstream told;
    told << "\"warm\": [" << median(warm[0]) << ", " << median(warm[1]) << "], \"cold\": [" << median(cold[0]) << ", "
         << median(cold[1]) << "], \"same\": " << (same ? "true" : "false");
    return told.str();
}

int main(int count, char **given) {
    if (count != 2) {
        std::cerr << "usage: time_pairs FOLDER, which has plan.txt\n";
        return 2;
    }
    const std::string folder = given[1];
    CUdevice device;
    CUcontext context;
    char gpu[256];
    int version;
    try {
        check(DRIVER(cuInit)(0));
        check(DRIVER(cuDeviceGet)(&device, 0));
        check(DRIVER(cuDeviceGetName)(gpu, sizeof gpu, device));
        check(DRIVER(cuDriverGetVersion)(&version));
        check(DRIVER(cuDevicePrimaryCtxRetain)(&context, device));
        check(DRIVER(cuCtxSetCurrent)(context));
        std::printf("{\"gpu\": \"%s\", \"cuda\": %d}\n", gpu, version);
        std::istringstream plan(content(folder + "/plan.txt"));
        std::string word, name;
        while (plan >> word >> name) { // pair NAME, two kernels, arguments
            Kernel kernels[2];
            for (Kernel &one : kernels) {
                plan >> one.cubin >> one.name;
                for (unsigned &extent : one.grid) plan >> extent;
                for (unsigned &extent : one.block) plan >> extent;
                plan >> one.shared >> one.fixed;
            }
            int number;
            plan >> number;
            std::vector<Argument> arguments(number);
            for (Argument &one : arguments) {
                plan >> word;
                if (word == "array") {
                    plan >> one.file;
                    continue;
                }
                plan >> word; // hexadecimal digits
                for (size_t at = 0; at + 1 < word.size(); at += 2)
                    one.bytes += (char)std::strtol(word.substr(at, 2).c_str(), nullptr, 16);
            }
            std::string told;
            try {
                told = timed(folder, kernels, arguments);
            } catch (const Failed &failure) {
                told = "\"failed\": \"" + failure.what + "\"";
            }
            std::printf("{\"pair\": \"%s\", %s}\n", name.c_str(), told.c_str());
            std::fflush(stdout);
            if (DRIVER(cuCtxSynchronize)() != CUDA_SUCCESS) return 1; // nothing works after an error of a kernel
        }
    } catch (const Failed &failure) {
        std::cerr << failure.what << "\n";
        return 1;
    }
}
