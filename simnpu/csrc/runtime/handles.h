// Opaque handles that are numbers, never addresses: a stale or foreign handle is recognised instead of dereferenced, and a
// number is never used twice.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

namespace simnpu {

template <typename T>
class HandleTable {
public:
    explicit HandleTable(uintptr_t kind) : next_(kind << 40) {}

    void* add(std::shared_ptr<T> object) {
        std::unique_lock lock(mutex_);
        next_ += 16;
        objects_.emplace(next_, std::move(object));
        return reinterpret_cast<void*>(next_);
    }

    std::shared_ptr<T> find(const void* handle) const {
        std::shared_lock lock(mutex_);
        auto at = objects_.find(reinterpret_cast<uintptr_t>(handle));
        return at == objects_.end() ? nullptr : at->second;
    }

    std::shared_ptr<T> take(const void* handle) {
        std::unique_lock lock(mutex_);
        auto at = objects_.find(reinterpret_cast<uintptr_t>(handle));
        if (at == objects_.end()) return nullptr;
        auto object = std::move(at->second);
        objects_.erase(at);
        return object;
    }

    std::vector<std::shared_ptr<T>> all() const {
        std::shared_lock lock(mutex_);
        std::vector<std::shared_ptr<T>> found;
        found.reserve(objects_.size());
        for (const auto& [handle, object] : objects_) found.push_back(object);
        return found;
    }

    template <typename Condition>
    std::vector<std::shared_ptr<T>> take_if(Condition&& condition) {
        std::unique_lock lock(mutex_);
        std::vector<std::shared_ptr<T>> taken;
        for (auto at = objects_.begin(); at != objects_.end();) {
            if (condition(*at->second)) {
                taken.push_back(std::move(at->second));
                at = objects_.erase(at);
            } else {
                ++at;
            }
        }
        return taken;
    }

private:
    mutable std::shared_mutex mutex_;
    uintptr_t next_;
    std::unordered_map<uintptr_t, std::shared_ptr<T>> objects_;
};

} // namespace simnpu
