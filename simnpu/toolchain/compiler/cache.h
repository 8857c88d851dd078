// Kernels that were compiled before: autotuning asks for the same one many times, under options that change nothing here.
#pragma once

#include "supervise.h"

#include <optional>
#include <string>

namespace simnpu {

// A file's content. Nothing, with errno set, if it cannot be read.
std::optional<std::string> content_of(const std::string& path);

// Makes a file whole or not at all. False, with errno set, if it cannot be written.
bool write_whole(const std::string& path, const std::string& content);

// The place of one kernel below $SIMNPU_CACHE/kernels, which processes share and which is bounded. What is there is the result of
// the same compiler for the same text, and is refused if it is damaged. A place that cannot be used costs time, nothing else.
class CacheEntry {
  public:
    // `compiler` is the program that compiles, `input` the file with the kernel. Without $SIMNPU_CACHE, or when the input is no
    // regular file, nothing is kept.
    CacheEntry(const std::string& compiler, const std::string& input);
    ~CacheEntry();
    CacheEntry(const CacheEntry&) = delete;
    CacheEntry& operator=(const CacheEntry&) = delete;

    // The binary, if it is there.
    std::optional<std::string> find();
    // Waits for another process that compiles it; holds the place until the end. False if the deadline has passed.
    bool hold(const Deadline& deadline);
    void store(const std::string& binary);

  private:
    std::string directory_;
    std::string path_;
    std::string before_; // the binary: what it is the result of
    int lock_ = -1;
};

} // namespace simnpu
