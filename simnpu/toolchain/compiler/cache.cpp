#include "cache.h"

#include "simnpu/kernel.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <tuple>
#include <vector>

namespace simnpu {

namespace {

// Of each of the 256 directories; those unused for longest go first.
constexpr off_t kLimit = off_t{1} << 20;
constexpr const char* kLock = "lock";
constexpr const char* kUnfinished = "unfinished";

bool is_whole(const std::string& binary) {
    simnpu_kernel_seal end{};
    if (binary.size() < sizeof end) return false;
    const size_t size = binary.size() - sizeof end;
    std::memcpy(&end, binary.data() + size, sizeof end);
    const simnpu_kernel_seal right{SIMNPU_KERNEL_SEAL, simnpu_kernel_checksum(binary.data(), size)};
    return std::memcmp(end.mark, right.mark, sizeof end.mark) == 0 && end.checksum == right.checksum;
}

void complain(const std::string& place) {
    std::fprintf(stderr, "bishengir-compile (simulated NPU): %s cannot be used (%s); going on without it\n", place.c_str(), std::strerror(errno));
}

bool make_directory(const std::string& path) {
    return ::mkdir(path.c_str(), 0777) == 0 || errno == EEXIST;
}

void remove_unused(const std::string& directory, const std::string& keep) {
    DIR* const open = ::opendir(directory.c_str());
    if (!open) return complain(directory);
    std::vector<std::tuple<int64_t, int64_t, std::string, off_t>> entries;
    off_t total = 0;
    while (const dirent* entry = ::readdir(open)) {
        const std::string path = directory + "/" + entry->d_name;
        struct stat status{};
        if (std::strcmp(entry->d_name, kLock) == 0 || ::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
        entries.emplace_back(status.st_mtim.tv_sec, status.st_mtim.tv_nsec, path, status.st_size);
        total += status.st_size;
    }
    ::closedir(open);
    std::sort(entries.begin(), entries.end());
    for (const auto& [seconds, nanoseconds, path, size] : entries) {
        if (total <= kLimit) return;
        if (path == keep) continue;
        ::unlink(path.c_str());
        total -= size;
    }
}

} // namespace

std::optional<std::string> content_of(const std::string& path) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return std::nullopt;
    std::string content;
    char part[1 << 16];
    ssize_t got = 0;
    while ((got = ::read(file, part, sizeof part)) > 0) content.append(part, static_cast<size_t>(got));
    const int why = errno;
    ::close(file);
    errno = why;
    return got < 0 ? std::nullopt : std::optional(std::move(content));
}

bool write_whole(const std::string& path, const std::string& content) {
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (file < 0) return false;
    ssize_t put = 1;
    for (size_t done = 0; done < content.size() && put > 0; done += static_cast<size_t>(std::max<ssize_t>(put, 0)))
        put = ::write(file, content.data() + done, content.size() - done);
    int why = errno;
    const bool good = put > 0;
    if (::close(file) == 0 && good) return true;
    if (good) why = errno;
    ::unlink(path.c_str());
    errno = why;
    return false;
}

CacheEntry::CacheEntry(const std::string& compiler, const std::string& input) {
    const char* const root = std::getenv("SIMNPU_CACHE");
    struct stat status{};
    if (!root || !*root || ::stat(input.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return;
    const auto text = content_of(input);
    if (!text || ::stat(compiler.c_str(), &status) != 0) return;
    before_ = compiler + " " + std::to_string(status.st_size) + " " + std::to_string(status.st_mtim.tv_sec) + "." +
              std::to_string(status.st_mtim.tv_nsec) + "\n" + std::to_string(text->size()) + "\n" + *text;
    char name[17];
    std::snprintf(name, sizeof name, "%016llx", static_cast<unsigned long long>(simnpu_kernel_checksum(before_.data(), before_.size())));
    const std::string all = std::string(root) + "/kernels";
    const std::string directory = all + "/" + std::string(name, 2);
    if (!make_directory(all) || !make_directory(directory)) {
        complain(directory);
        return;
    }
    directory_ = directory;
    path_ = directory + "/" + name;
}

CacheEntry::~CacheEntry() {
    if (lock_ >= 0) ::close(lock_);
}

std::optional<std::string> CacheEntry::find() {
    if (path_.empty()) return std::nullopt;
    const auto all = content_of(path_);
    if (!all) {
        if (errno != ENOENT) complain(path_);
        return std::nullopt;
    }
    // Another kernel may have the same name here: the new one takes its place.
    if (all->compare(0, before_.size(), before_) != 0) return std::nullopt;
    std::string binary = all->substr(before_.size());
    if (!is_whole(binary)) return std::nullopt;
    ::utimensat(AT_FDCWD, path_.c_str(), nullptr, 0); // used now; who may not write here cannot say so
    return binary;
}

bool CacheEntry::hold(const Deadline& deadline) {
    if (path_.empty()) return true;
    const std::string path = directory_ + "/" + kLock;
    lock_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (lock_ < 0) {
        complain(path);
        path_.clear();
        return true;
    }
    // A signal each second ends the wait, also if one comes just before it.
    struct sigaction action{};
    action.sa_handler = [](int) {};
    ::sigaction(SIGALRM, &action, nullptr);
    sigset_t alarm;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    ::sigprocmask(SIG_UNBLOCK, &alarm, nullptr);
    const itimerval each{{1, 0}, {1, 0}}, never{};
    ::setitimer(ITIMER_REAL, &each, nullptr);
    int code = 0;
    while ((code = ::flock(lock_, LOCK_EX)) != 0 && errno == EINTR && deadline.rest().tv_sec >= 0) {}
    const int why = errno;
    ::setitimer(ITIMER_REAL, &never, nullptr);
    if (code == 0) return true;
    if (why == EINTR) return false;
    errno = why;
    complain(path);
    path_.clear();
    return true;
}

void CacheEntry::store(const std::string& binary) {
    if (path_.empty()) return;
    const std::string unfinished = directory_ + "/" + kUnfinished; // who holds the place may take it from one that was killed
    if (!write_whole(unfinished, before_ + binary) || ::rename(unfinished.c_str(), path_.c_str()) != 0) return complain(path_);
    remove_unused(directory_, path_);
}

} // namespace simnpu
