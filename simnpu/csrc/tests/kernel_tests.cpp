// Kernels from many threads, and the ways in which they go wrong, for the sanitizers.
#include "check.h"
#include "simnpu/kernel.h"

#include <runtime/runtime/rt.h>

#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace {

struct Arguments {
    void* ffts;
    void* lock;
    void* workspace;
    int* data;
    int64_t index;
    int32_t grid[3];
};

const std::vector<char>& binary() {
    static const std::vector<char> bytes = [] {
        std::ifstream file(TEST_KERNELS, std::ios::binary);
        std::vector<char> whole(std::istreambuf_iterator<char>(file), {});
        const simnpu_kernel_seal seal{SIMNPU_KERNEL_SEAL, simnpu_kernel_checksum(whole.data(), whole.size())};
        const auto* end = reinterpret_cast<const char*>(&seal);
        whole.insert(whole.end(), end, end + sizeof seal); // as the kernel compiler does
        return whole;
    }();
    return bytes;
}

void* load() {
    const rtDevBinary_t described{RT_DEV_BINARY_MAGIC_ELF_AIVEC, 0, binary().data(), binary().size()};
    void* handle = nullptr;
    OK(rtDevBinaryRegister(&described, &handle));
    return handle;
}

// A kernel under a stub of its own: this object's address.
struct Stub {
    Stub(void* binary, const char* name) { OK(rtFunctionRegister(binary, this, name, name, 0)); }
    void launch(aclrtStream stream, int* data, int64_t index = 0, uint32_t blocks = 1) {
        Arguments args{nullptr, nullptr, nullptr, data, index, {static_cast<int32_t>(blocks), 1, 1}};
        OK(rtKernelLaunch(this, blocks, &args, sizeof args, nullptr, stream));
    }
    char place = 0;
};

int* allocate(size_t bytes) {
    void* memory = nullptr;
    OK(aclrtMalloc(&memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
    return static_cast<int*>(memory);
}

int read(const int* device) {
    int value = -1;
    OK(aclrtMemcpy(&value, sizeof value, device, sizeof value, ACL_MEMCPY_DEVICE_TO_HOST));
    return value;
}

// The stream failed with this code, and its text has the fragment.
void failed(aclrtStream stream, aclError code, const char* fragment, const char* file, int line) {
    const aclError found = aclrtSynchronizeStream(stream);
    const std::string text = aclGetRecentErrMsg();
    check::that(found == code && text.find(fragment) != std::string::npos, fragment, file, line, std::to_string(found) + " " + text);
}
#define FAILED(stream, code, fragment) failed(stream, code, fragment, __FILE__, __LINE__)

} // namespace

TEST(kernels_fault_and_run_in_many_threads_at_once) {
    OK(aclrtSetDevice(0));
    void* loaded = load();
    Stub step(loaded, "twice_plus_one"), write(loaded, "write_at"), divide(loaded, "divide"), trap(loaded, "trap");
    std::vector<std::thread> threads;
    for (int i = 0; i < 6; ++i)
        threads.emplace_back([&] {
            OK(aclrtSetDevice(0));
            aclrtStream stream = nullptr;
            OK(aclrtCreateStream(&stream));
            for (int round = 0; round < 10; ++round) {
                int* memory = allocate(400);
                OK(aclrtMemsetAsync(memory, 400, 0, 400, stream));
                step.launch(stream, memory, 0, 100);
                step.launch(stream, memory, 0, 100);
                OK(aclrtSynchronizeStream(stream));
                CHECK(read(memory) == 3 && read(memory + 99) == 3);
                write.launch(stream, memory, 1024);
                FAILED(stream, ACL_ERROR_RT_AICORE_EXCEPTION, "kernel write_at wrote out of bounds");
                write.launch(stream, memory, 100);
                FAILED(stream, ACL_ERROR_RT_AICORE_EXCEPTION, "0 bytes behind the allocation of 400 bytes");
                OK(aclrtMemsetAsync(memory, 400, 0, 400, stream));
                divide.launch(stream, memory);
                FAILED(stream, ACL_ERROR_RT_AICORE_EXCEPTION, "divided an integer by zero");
                trap.launch(stream, memory);
                FAILED(stream, ACL_ERROR_RT_AICORE_EXCEPTION, "illegal instruction");
                OK(aclrtFree(memory));
            }
            OK(aclrtDestroyStream(stream));
        });
    for (auto& thread : threads) thread.join();
    OK(rtDevBinaryUnRegister(loaded));
}

TEST(binaries_are_loaded_and_dropped_while_their_kernels_are_queued) {
    OK(aclrtSetDevice(0));
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([] {
            OK(aclrtSetDevice(0));
            aclrtStream stream = nullptr;
            OK(aclrtCreateStream(&stream));
            int* memory = allocate(4);
            OK(aclrtMemset(memory, 4, 0, 4));
            for (int round = 0; round < 10; ++round) {
                void* loaded = load();
                Stub step(loaded, "twice_plus_one");
                step.launch(stream, memory);
                OK(rtDevBinaryUnRegister(loaded));
            }
            OK(aclrtSynchronizeStream(stream));
            CHECK(read(memory) == 1023);
            OK(aclrtDestroyStream(stream));
            OK(aclrtFree(memory));
        });
    for (auto& thread : threads) thread.join();
}

TEST(a_captured_kernel_is_replayed_after_its_binary_was_dropped) {
    OK(aclrtSetDevice(0));
    aclrtStream stream = nullptr;
    OK(aclrtCreateStream(&stream));
    void* loaded = load();
    int* memory = allocate(4);
    OK(aclrtMemset(memory, 4, 0, 4));
    OK(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
    {
        Stub step(loaded, "twice_plus_one");
        step.launch(stream, memory);
        OK(rtDevBinaryUnRegister(loaded));
    }
    aclmdlRI model = nullptr;
    OK(aclmdlRICaptureEnd(stream, &model));
    for (int i = 0; i < 5; ++i) OK(aclmdlRIExecuteAsync(model, stream));
    OK(aclrtSynchronizeStream(stream));
    CHECK(read(memory) == 31);
    OK(aclmdlRIDestroy(model));
    OK(aclrtDestroyStream(stream));
    OK(aclrtFree(memory));
}

TEST(atomic_kernels_wait_for_each_other) {
    OK(aclrtSetDevice(0));
    void* loaded = load();
    Stub meet(loaded, "meet_alone");
    aclrtStream streams[4] = {};
    int* memory = allocate(12);
    const int open[3] = {0, 0, 1};
    OK(aclrtMemcpy(memory, 12, open, 12, ACL_MEMCPY_HOST_TO_DEVICE));
    for (auto& stream : streams) OK(aclrtCreateStream(&stream));
    for (int i = 0; i < 400; ++i) meet.launch(streams[i % 4], memory);
    for (auto* stream : streams) OK(aclrtDestroyStream(stream));
    CHECK(read(memory) == 0 && read(memory + 1) == 1);
    OK(aclrtFree(memory));
    OK(rtDevBinaryUnRegister(loaded));
}
