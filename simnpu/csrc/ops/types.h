// The types that a device documents for each argument of an operator.
#pragma once

#include <acl/acl_base.h>

#include <string>
#include <string_view>
#include <vector>

namespace simnpu {

// One set per argument of the C function, as bits 1 << aclDataType; 0 is unknown.
using DocumentedTypes = std::vector<uint64_t>;

// Null where nothing is documented.
const DocumentedTypes* documented_types(std::string_view name);

bool takes(const DocumentedTypes* documented, size_t argument, aclDataType type);

// The names of a set's types.
std::string names_of(uint64_t types);

} // namespace simnpu
