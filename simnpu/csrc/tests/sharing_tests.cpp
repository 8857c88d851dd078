// Memory and events shared with a second process: this program, started again.
#include "check.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

namespace {

// Runs this program as a child with a text, and returns its exit code.
int child(const char* kind, const char* text) {
    const pid_t pid = ::fork();
    if (pid == 0) {
        ::execl("/proc/self/exe", "runtime_tests", "--child", kind, text, nullptr);
        ::_exit(99);
    }
    int status = 0;
    ::waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}

} // namespace

int act_as_child(const char* kind, const char* text) {
    OK(aclrtSetDevice(0));
    if (std::strcmp(kind, "memory") == 0) {
        void* memory = nullptr;
        OK(aclrtIpcMemImportByKey(&memory, text, 0));
        char read[6] = {};
        OK(aclrtMemcpy(read, 6, memory, 6, ACL_MEMCPY_DEVICE_TO_HOST));
        CHECK(std::strcmp(read, "hello") == 0);
        OK(aclrtMemcpy(memory, 6, "howdy", 6, ACL_MEMCPY_HOST_TO_DEVICE));
        OK(aclrtIpcMemClose(text));
    } else {
        aclrtIpcEventHandle handle{};
        std::strncpy(handle.reserved, text, sizeof handle.reserved - 1);
        aclrtEvent event = nullptr;
        OK(aclrtIpcOpenEventHandle(handle, &event));
        aclrtStream stream = nullptr;
        OK(aclrtCreateStream(&stream));
        OK(aclrtStreamWaitEvent(stream, event));
        OK(aclrtSynchronizeStream(stream));
        OK(aclrtRecordEvent(event, stream));
        OK(aclrtSynchronizeEvent(event));
        OK(aclrtDestroyEvent(event));
    }
    return check::failures;
}

TEST(memory_is_shared_with_another_process) {
    OK(aclrtSetDevice(0));
    void* memory = nullptr;
    OK(aclrtMalloc(&memory, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMemcpy(memory, 64, "hello", 6, ACL_MEMCPY_HOST_TO_DEVICE));
    char key[65];
    OK(aclrtIpcMemGetExportKey(memory, 64, key, sizeof key, 1));
    CHECK(child("memory", key) == 0);
    char read[6] = {};
    OK(aclrtMemcpy(read, 6, memory, 6, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(std::strcmp(read, "howdy") == 0);
    OK(aclrtFree(memory));
}

TEST(events_are_shared_with_another_process) {
    OK(aclrtSetDevice(0));
    aclrtEvent event = nullptr;
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_IPC));
    aclrtIpcEventHandle handle{};
    OK(aclrtIpcGetEventHandle(event, &handle));
    OK(aclrtRecordEvent(event, nullptr));
    CHECK(child("event", handle.reserved) == 0);
    OK(aclrtStreamWaitEvent(nullptr, event));
    OK(aclrtSynchronizeDevice());
    OK(aclrtDestroyEvent(event));
}
