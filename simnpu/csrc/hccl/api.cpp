#include "api.h"

#include <cstdarg>
#include <cstdio>

namespace simnpu::hccl {

HcclResult refuse(HcclResult code, const char* format, ...) {
    char text[1024];
    va_list values;
    va_start(values, format);
    std::vsnprintf(text, sizeof text, format, values);
    va_end(values);
    fail(static_cast<aclError>(code), "%s", text);
    return code;
}

// By number: older wheels' headers lack the newer types.
size_t size_of(uint32_t type) {
    switch (type) {
    case 0: case 7: case 14: case 15: case 16: case 17: return 1;
    case 1: case 3: case 8: case 11: return 2;
    case 2: case 4: case 9: return 4;
    case 5: case 6: case 10: return 8;
    case 12: return 16;
    default: return 0;
    }
}

const char* type_name(uint32_t type) {
    switch (type) {
    case 0: return "int8";
    case 1: return "int16";
    case 2: return "int32";
    case 3: return "float16";
    case 4: return "float32";
    case 5: return "int64";
    case 6: return "uint64";
    case 7: return "uint8";
    case 8: return "uint16";
    case 9: return "uint32";
    case 10: return "float64";
    case 11: return "bfloat16";
    case 12: return "int128";
    case 14: return "hifloat8";
    case 15: return "float8_e4m3";
    case 16: return "float8_e5m2";
    case 17: return "float8_e8m0";
    default: return "unknown type";
    }
}

const char* reduction_name(uint32_t op) {
    switch (op) {
    case HCCL_REDUCE_SUM: return "sum";
    case HCCL_REDUCE_PROD: return "prod";
    case HCCL_REDUCE_MAX: return "max";
    case HCCL_REDUCE_MIN: return "min";
    default: return "unknown reduction";
    }
}

} // namespace simnpu::hccl
