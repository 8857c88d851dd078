// The runtime from many threads at once, for the sanitizers: what the tests in Python check for meaning, these run for races
// and memory errors.
#include "check.h"

#include <pthread.h>

#include <atomic>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

namespace {

constexpr size_t kMebi = 1U << 20;

aclrtStream stream_on(int32_t device) {
    OK(aclrtSetDevice(device));
    aclrtStream stream = nullptr;
    OK(aclrtCreateStream(&stream));
    return stream;
}

int* allocate(size_t count) {
    void* memory = nullptr;
    OK(aclrtMalloc(&memory, count * sizeof(int), ACL_MEM_MALLOC_HUGE_FIRST));
    return static_cast<int*>(memory);
}

int read(const int* device) {
    int value = -1;
    OK(aclrtMemcpy(&value, sizeof value, device, sizeof value, ACL_MEMCPY_DEVICE_TO_HOST));
    return value;
}

void add_one(void* place) {
    ++*static_cast<int*>(place);
}

} // namespace

TEST(memory_has_owners_and_bounds) {
    OK(aclrtSetDevice(0));
    int* memory = allocate(16);
    OK(aclrtMemset(memory, 64, 0, 64));
    REFUSES(ACL_ERROR_RT_PARAM_INVALID, aclrtMemset(memory, 65, 0, 65));
    CHECK(read(memory + 15) == 0);
    OK(aclrtFree(memory));
    REFUSES(ACL_ERROR_RT_PARAM_INVALID, aclrtFree(memory));
    void* pinned = nullptr;
    OK(aclrtMallocHost(&pinned, 100));
    std::memset(pinned, 1, 100);
    OK(aclrtFreeHost(pinned));
}

TEST(tasks_run_in_order_however_many_threads_queue_them) {
    aclrtStream stream = stream_on(0);
    int* counter = allocate(1);
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i)
        threads.emplace_back([&] {
            OK(aclrtSetDevice(0));
            for (int task = 0; task < 200; ++task) OK(aclrtLaunchHostFunc(stream, add_one, counter));
            OK(aclrtSynchronizeStream(stream));
        });
    for (auto& thread : threads) thread.join();
    CHECK(read(counter) == 1600);
    OK(aclrtDestroyStream(stream));
    OK(aclrtFree(counter));
}

TEST(a_host_function_may_end_its_thread) {
    aclrtStream stream = stream_on(0);
    int* counter = allocate(1);
    OK(aclrtLaunchHostFunc(stream, ::pthread_exit, nullptr));
    OK(aclrtLaunchHostFunc(stream, add_one, counter));
    REFUSES(ACL_ERROR_INTERNAL_ERROR, aclrtSynchronizeStream(stream));
    OK(aclrtLaunchHostFunc(stream, add_one, counter));
    OK(aclrtSynchronizeStream(stream));
    CHECK(read(counter) == 2);

    // A blocking callback that ends the thread that was to run it lets its stream go on.
    std::atomic<bool> subscribed{false}, launched{false};
    std::thread thread([&] {
        OK(aclrtSubscribeReport(::pthread_self(), stream));
        subscribed = true;
        subscribed.notify_all();
        launched.wait(false);
        aclrtProcessReport(-1);
        CHECK(!"reached after the callback ended the thread");
    });
    subscribed.wait(false);
    OK(aclrtLaunchCallback(::pthread_exit, nullptr, ACL_CALLBACK_BLOCK, stream));
    launched = true;
    launched.notify_all();
    thread.join();
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtDestroyStream(stream));
    OK(aclrtFree(counter));
}

TEST(a_value_goes_round_between_streams_of_both_devices) {
    constexpr int rounds = 100;
    aclrtStream streams[2] = {stream_on(0), stream_on(1)};
    int* counter = allocate(1);
    aclrtEvent event = nullptr;
    OK(aclrtCreateEvent(&event));
    for (int round = 0; round < rounds; ++round) {
        OK(aclrtLaunchHostFunc(streams[round % 2], add_one, counter));
        OK(aclrtRecordEvent(event, streams[round % 2]));
        OK(aclrtStreamWaitEvent(streams[(round + 1) % 2], event));
    }
    OK(aclrtSynchronizeEvent(event));
    CHECK(read(counter) == rounds);
    float milliseconds = -1;
    OK(aclrtEventElapsedTime(&milliseconds, event, event));
    CHECK(milliseconds == 0);
    OK(aclrtDestroyEvent(event));
    for (auto* stream : streams) OK(aclrtDestroyStream(stream));
    OK(aclrtFree(counter));
}

TEST(a_graph_is_replayed_by_many_threads) {
    aclrtStream stream = stream_on(0);
    int* counter = allocate(1);
    OK(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
    for (int i = 0; i < 10; ++i) OK(aclrtLaunchHostFunc(stream, add_one, counter));
    aclmdlRI model = nullptr;
    OK(aclmdlRICaptureEnd(stream, &model));
    CHECK(read(counter) == 0);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&] {
            OK(aclrtSetDevice(0));
            for (int replay = 0; replay < 25; ++replay) OK(aclmdlRIExecuteAsync(model, stream));
        });
    for (auto& thread : threads) thread.join();
    OK(aclmdlRIDestroy(model));
    OK(aclrtSynchronizeStream(stream));
    CHECK(read(counter) == 1000);
    OK(aclrtDestroyStream(stream));
    OK(aclrtFree(counter));
}

TEST(captures_in_several_threads_at_once) {
    OK(aclrtSetDevice(0));
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([] {
            aclrtStream stream = stream_on(0);
            aclrtStream side = stream_on(0);
            int* counter = allocate(1);
            aclrtEvent event = nullptr;
            OK(aclrtCreateEvent(&event));
            for (int round = 0; round < 20; ++round) {
                OK(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
                OK(aclrtLaunchHostFunc(stream, add_one, counter));
                OK(aclrtRecordEvent(event, stream));
                OK(aclrtStreamWaitEvent(side, event));
                OK(aclrtLaunchHostFunc(side, add_one, counter));
                OK(aclrtRecordEvent(event, side));
                OK(aclrtStreamWaitEvent(stream, event));
                if (round % 5 == 4) REFUSES(ACL_ERROR_RT_STREAM_CAPTURED, aclrtSynchronizeStream(stream));
                aclmdlRI model = nullptr;
                const aclError ended = aclmdlRICaptureEnd(stream, &model);
                if (round % 5 == 4) {
                    CHECK(ended == ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED);
                    continue;
                }
                OK(ended);
                OK(aclmdlRIExecuteAsync(model, stream));
                OK(aclmdlRIDestroy(model));
            }
            OK(aclrtSynchronizeStream(stream));
            CHECK(read(counter) == 32);
            OK(aclrtDestroyEvent(event));
            OK(aclrtDestroyStream(side));
            OK(aclrtDestroyStream(stream));
            OK(aclrtFree(counter));
        });
    for (auto& thread : threads) thread.join();
}

TEST(memory_is_freed_while_copies_are_under_way) {
    aclrtStream stream = stream_on(0);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&] {
            OK(aclrtSetDevice(0));
            for (int round = 0; round < 50; ++round) {
                int* memory = allocate(4096);
                OK(aclrtMemsetAsync(memory, 4096 * sizeof(int), 1, 4096 * sizeof(int), stream));
                OK(aclrtFree(memory)); // the task may come too late: then it says so, and touches nothing
            }
        });
    for (auto& thread : threads) thread.join();
    const aclError code = aclrtSynchronizeStream(stream);
    CHECK(code == ACL_SUCCESS || code == ACL_ERROR_RT_PARAM_INVALID);
    OK(aclrtDestroyStream(stream));
}

TEST(streams_come_and_go_in_many_threads) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([] {
            int* counter = nullptr;
            OK(aclrtSetDevice(1));
            counter = allocate(1);
            for (int round = 0; round < 20; ++round) {
                aclrtStream stream = nullptr;
                OK(aclrtCreateStreamWithConfig(&stream, 0, 0));
                OK(aclrtSetStreamFailureMode(stream, 1));
                for (int task = 0; task < 5; ++task) OK(aclrtLaunchHostFunc(stream, add_one, counter));
                if (round % 2)
                    OK(aclrtDestroyStream(stream));
                else
                    OK(aclrtDestroyStreamForce(stream));
                REFUSES(ACL_ERROR_RT_PARAM_INVALID, aclrtSynchronizeStream(stream));
            }
            CHECK(read(counter) >= 50);
            OK(aclrtFree(counter));
        });
    for (auto& thread : threads) thread.join();
}

TEST(callbacks_are_handed_to_their_thread) {
    aclrtStream stream = stream_on(0);
    int called = 0;
    std::atomic<bool> enough{false};
    std::atomic<uint64_t> id{0};
    std::thread subscriber([&] {
        OK(aclrtSetDevice(0));
        id = static_cast<uint64_t>(::pthread_self());
        while (!enough) aclrtProcessReport(20);
    });
    while (id == 0) std::this_thread::yield();
    OK(aclrtSubscribeReport(id, stream));
    for (int i = 0; i < 50; ++i)
        OK(aclrtLaunchCallback(add_one, &called, i % 2 ? ACL_CALLBACK_BLOCK : ACL_CALLBACK_NO_BLOCK, stream));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtUnSubscribeReport(id, stream));
    enough = true;
    subscriber.join();
    CHECK(called == 50);
    OK(aclrtDestroyStream(stream));
}

TEST(physical_memory_is_mapped_and_unmapped) {
    OK(aclrtSetDevice(0));
    aclrtPhysicalMemProp properties{};
    properties.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    void* range = nullptr;
    OK(aclrtReserveMemAddress(&range, 4 * kMebi, 0, nullptr, 1));
    for (int round = 0; round < 10; ++round) {
        aclrtDrvMemHandle first = nullptr;
        aclrtDrvMemHandle second = nullptr;
        OK(aclrtMallocPhysical(&first, 2 * kMebi, &properties, 0));
        OK(aclrtMallocPhysical(&second, 2 * kMebi, &properties, 0));
        OK(aclrtMapMem(range, 2 * kMebi, 0, first, 0));
        OK(aclrtMapMem(static_cast<char*>(range) + 2 * kMebi, 2 * kMebi, 0, second, 0));
        OK(aclrtMemset(range, 4 * kMebi, round, 4 * kMebi));
        OK(aclrtUnmapMem(range));
        OK(aclrtFreePhysical(first));
        OK(aclrtFreePhysical(second));
        OK(aclrtUnmapMem(static_cast<char*>(range) + 2 * kMebi));
    }
    OK(aclrtReleaseMemAddress(range));
}

TEST(random_calls_from_many_threads) {
    OK(aclrtSetDevice(0));
    aclrtStream streams[3];
    aclrtEvent events[3];
    for (auto& stream : streams) stream = stream_on(0);
    for (auto& event : events) OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_TIME_LINE));
    int* memory = allocate(3 * 1024); // a part per stream: nothing orders the streams among each other
    std::vector<std::thread> threads;
    for (unsigned seed = 0; seed < 6; ++seed)
        threads.emplace_back([&, seed] {
            std::mt19937 random(seed);
            OK(aclrtSetDevice(0));
            for (int call = 0; call < 300; ++call) {
                const size_t chosen = random() % 3;
                aclrtStream stream = streams[chosen];
                int* part = memory + 1024 * chosen;
                aclrtEvent event = events[random() % 3];
                switch (random() % 7) {
                case 0: OK(aclrtMemsetAsync(part, 4096, 1, 4096, stream)); break;
                case 1: OK(aclrtRecordEvent(event, stream)); break;
                case 2: OK(aclrtStreamWaitEvent(stream, event)); break;
                case 3: OK(aclrtSynchronizeEvent(event)); break;
                case 4: {
                    aclrtEventRecordedStatus status{};
                    OK(aclrtQueryEventStatus(event, &status));
                    break;
                }
                case 5: OK(aclrtMemcpyAsync(part, 64, part + 512, 64, ACL_MEMCPY_DEVICE_TO_DEVICE, stream)); break;
                default: OK(aclrtSynchronizeStream(stream)); break;
                }
            }
        });
    for (auto& thread : threads) thread.join();
    OK(aclrtSynchronizeDevice());
    CHECK(read(memory) == 0x01010101 || read(memory) == 0);
    for (auto* event : events) OK(aclrtDestroyEvent(event));
    for (auto* stream : streams) OK(aclrtDestroyStream(stream));
    OK(aclrtFree(memory));
}

TEST(a_reset_takes_everything_while_others_work) {
    aclrtStream stream = stream_on(1);
    int* memory = allocate(1024);
    std::atomic<bool> gone{false};
    std::thread worker([&] {
        // Its calls succeed until the reset, then say what happened; they never touch what is gone.
        while (!gone) aclrtMemsetAsync(memory, 4096, 3, 4096, stream);
    });
    OK(aclrtResetDeviceForce(1));
    gone = true;
    worker.join();
    REFUSES(ACL_ERROR_RT_PARAM_INVALID, aclrtSynchronizeStream(stream));
    OK(aclrtSetDevice(1));
    OK(aclrtSetDevice(0));
}
