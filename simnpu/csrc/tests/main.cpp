// Runs every test of the runtime, or those named. `--child KIND TEXT` is the second process of the sharing tests.
#include "check.h"

#include <cstring>

int act_as_child(const char* kind, const char* text); // sharing_tests.cpp

int main(int argc, char** argv) {
    if (argc == 4 && std::strcmp(argv[1], "--child") == 0) return act_as_child(argv[2], argv[3]);
    int run = 0;
    for (const auto& test : check::all()) {
        bool chosen = argc == 1;
        for (int i = 1; i < argc; ++i) chosen |= std::strcmp(argv[i], test.name) == 0;
        if (!chosen) continue;
        ++run;
        const int before = check::failures;
        test.run();
        std::printf("%-45s %s\n", test.name, check::failures == before ? "ok" : "FAILED");
        std::fflush(stdout);
    }
    std::printf("%d tests, %d failed checks\n", run, check::failures.load());
    return run == 0 || check::failures != 0;
}
