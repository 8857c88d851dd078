// The command that triton-ascend starts: bishengir-compile INPUT.mlir OPTIONS… -o OUTPUT writes OUTPUT.o, here a shared object for
// the host. Under the name bisheng it answers the one question that triton-ascend asks the real one: whether it knows the device.
//
// Of ten calls nine ask for help, for what is refused or for what was compiled before, so this program starts quickly: LLVM is in
// compile-kernel, which it starts for the rest.
#include "cache.h"
#include "name.h"
#include "supervise.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

namespace {

// "limit-auto-multi-buffer-buffer" tells triton-ascend that the result is OUTPUT.o.
constexpr const char* kHelp = R"(usage: bishengir-compile INPUT.mlir [OPTION…] -o OUTPUT

The kernel compiler of the simulated NPU: writes OUTPUT.o, a shared object that the simulated runtime loads.

  -o OUTPUT                              the result without its suffix .o
  --target=ARCH, --enable-…, --limit-auto-multi-buffer-buffer=…, …
                                         accepted: they steer how a real device is used, not what is computed
  --pure-simt                            refused: SIMT kernels are not simulated

SIMNPU_COMPILE_TIMEOUT=SECONDS ends a compile that takes longer (default 600; 0: no limit).
SIMNPU_CACHE=DIRECTORY keeps what was compiled, at most 256 MiB below its kernels/; unset: nothing is kept.
)";

// Where it lies beside this program, links followed; empty if that is not known.
std::string compiler() {
    char here[4096];
    const ssize_t size = ::readlink("/proc/self/exe", here, sizeof here);
    if (size <= 0 || size == sizeof here) return "";
    const std::string path(here, static_cast<size_t>(size));
    const size_t program = path.rfind('/');
    return path.substr(0, path.rfind('/', program - 1)) + "/libexec/compile-kernel";
}

int deliver(const std::string& input, const std::string& binary, const std::string& output) {
    // It has its name only when it is whole.
    const std::string image = output + ".image";
    if (simnpu::write_whole(image, binary) && ::rename(image.c_str(), output.c_str()) == 0) return 0;
    const std::string why = std::strerror(errno);
    return simnpu::refuse("kernel " + simnpu::kernel_in(input) + " cannot be compiled: cannot write " + output + ": " + why);
}

int compile(const std::string& input, const std::string& output) {
    const simnpu::Deadline deadline;
    if (!deadline.is_known()) return 1;
    const std::string program = compiler();
    if (program.empty()) return simnpu::refuse("cannot find out where this program lies: /proc is not there");
    simnpu::CacheEntry entry(program, input);
    if (const auto binary = entry.find()) return deliver(input, *binary, output);
    if (!entry.hold(deadline))
        return simnpu::refuse("kernel " + simnpu::kernel_in(input) + " cannot be compiled: another process that compiles it, or one beside it, was " +
                              deadline.overdue());
    // Made while this one waited.
    if (const auto binary = entry.find()) return deliver(input, *binary, output);
    const int code = simnpu::supervised(input, {program, input, output}, deadline);
    if (code != 0) return code;
    const auto binary = simnpu::content_of(output);
    if (!binary) return simnpu::refuse("cannot read " + output + ": " + std::strerror(errno));
    entry.store(*binary);
    return 0;
}

} // namespace

int main(int count, char** values) {
    const std::string_view name = values[0];
    if (name.substr(name.rfind('/') + 1) == "bisheng") {
        if (count == 2 && std::strcmp(values[1], "-print-targets") == 0) return std::puts("hiipu64") < 0;
        return simnpu::refuse("as bisheng it only answers -print-targets");
    }
    std::string input, output;
    for (int i = 1; i < count; ++i) {
        const std::string word = values[i];
        if (word == "--help") return std::fputs(kHelp, stdout) < 0;
        if (word == "-o" && i + 1 < count)
            output = values[++i];
        else if (word == "--pure-simt" || word == "--enable-triton-ir-compile")
            return simnpu::refuse("SIMT kernels (" + word + ") are not simulated");
        else if (!word.starts_with("-") && input.empty())
            input = word;
        else if (!word.starts_with("--"))
            return simnpu::refuse("cannot understand \"" + word + "\"; see --help");
    }
    if (input.empty() || output.empty()) return simnpu::refuse("give an input and -o OUTPUT; see --help");
    // A file that grows too large is an error with a name, here and in what this starts.
    std::signal(SIGXFSZ, SIG_IGN);
    return compile(input, output + ".o");
}
