#include "types.h"

#include "objects.h"

#include <unordered_map>

namespace simnpu {
namespace {

const std::unordered_map<std::string_view, DocumentedTypes>& table() {
    constexpr uint64_t kAny = 0, FLOAT = 1ul << ACL_FLOAT, FLOAT16 = 1ul << ACL_FLOAT16, BF16 = 1ul << ACL_BF16,
                       DOUBLE = 1ul << ACL_DOUBLE, INT8 = 1ul << ACL_INT8, INT16 = 1ul << ACL_INT16, INT32 = 1ul << ACL_INT32,
                       INT64 = 1ul << ACL_INT64, UINT8 = 1ul << ACL_UINT8, UINT16 = 1ul << ACL_UINT16, UINT32 = 1ul << ACL_UINT32,
                       UINT64 = 1ul << ACL_UINT64, BOOL = 1ul << ACL_BOOL, COMPLEX32 = 1ul << ACL_COMPLEX32,
                       COMPLEX64 = 1ul << ACL_COMPLEX64, COMPLEX128 = 1ul << ACL_COMPLEX128;
    (void)kAny;
#define TYPES(NAME, ...) {#NAME, {__VA_ARGS__}},
    static const std::unordered_map<std::string_view, DocumentedTypes>& rows =
        *new std::unordered_map<std::string_view, DocumentedTypes>{
#include "types.inc"
        };
#undef TYPES
    return rows;
}

} // namespace

const DocumentedTypes* documented_types(std::string_view name) {
    const auto found = table().find(name);
    return found == table().end() ? nullptr : &found->second;
}

bool takes(const DocumentedTypes* documented, size_t argument, aclDataType type) {
    if (!documented || argument >= documented->size() || (*documented)[argument] == 0) return true;
    return (*documented)[argument] >> type & 1;
}

std::string names_of(uint64_t types) {
    std::string names;
    for (int type = 0; type < 64; ++type)
        if (types >> type & 1) names += std::string(names.empty() ? "" : ", ") + type_name(static_cast<aclDataType>(type));
    return names;
}

} // namespace simnpu
