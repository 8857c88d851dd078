// Resizing of signals, images and volumes.
#include "operator.h"

namespace simnpu {
namespace {

// The ATen function with a plain number in place of each optional scale: callers pass 0 for a scale that was not given.
template <class Number, auto function>
struct ZeroIsNone;

template <class Number, class R, class... P, R (*function)(P...)>
struct ZeroIsNone<Number, function> {
    template <class T>
    static constexpr bool is_scale = std::is_same_v<T, std::optional<double>>;

    static R call(std::conditional_t<is_scale<P>, Number, P>... arguments) { return function(given<P>(arguments)...); }

private:
    template <class T, class Argument>
    static T given(const Argument& argument) {
        if constexpr (is_scale<T>) return argument > 0 ? T(argument) : T();
        else return argument;
    }
};

} // namespace
} // namespace simnpu

#define RESIZE_IN(NUMBER, NAME, ATEN_NAME)                                                                                     \
    SIMNPU_OPERATOR(NAME, at::_ops::ATEN_NAME::schema_str, &ZeroIsNone<NUMBER, &at::_ops::ATEN_NAME::call>::call)
#define RESIZE(NAME, ATEN_NAME) RESIZE_IN(double, NAME, ATEN_NAME)
#define RESIZE_BOTH(NAME, ATEN_NAME) RESIZE(NAME, ATEN_NAME) RESIZE(NAME##Backward, ATEN_NAME##_backward)

OPERATOR(UpsampleNearest1d, [](const Tensor& self, c10::SymIntArrayRef size) {
    return aten::upsample_nearest1d::call(self, size, {});
})
OPERATOR(UpsampleNearest2d, [](const Tensor& self, c10::SymIntArrayRef size) {
    return aten::upsample_nearest2d::call(self, size, {}, {});
})
RESIZE_IN(float, UpsampleNearest1dV2, upsample_nearest1d)
RESIZE_IN(float, UpsampleNearest2dV2, upsample_nearest2d)
RESIZE(UpsampleNearest1dBackward, upsample_nearest1d_backward)
RESIZE(UpsampleNearest2dBackward, upsample_nearest2d_backward)
RESIZE_BOTH(UpsampleNearest3d, upsample_nearest3d)
RESIZE_BOTH(UpsampleNearestExact1d, _upsample_nearest_exact1d)
RESIZE_BOTH(UpsampleNearestExact2d, _upsample_nearest_exact2d)
RESIZE_BOTH(UpsampleNearestExact3d, _upsample_nearest_exact3d)
RESIZE_BOTH(UpsampleLinear1d, upsample_linear1d)
RESIZE_BOTH(UpsampleBilinear2d, upsample_bilinear2d)
RESIZE(UpsampleBilinear2dBackwardV2, upsample_bilinear2d_backward)
RESIZE_BOTH(UpsampleBilinear2dAA, _upsample_bilinear2d_aa)
RESIZE_BOTH(UpsampleBicubic2d, upsample_bicubic2d)
RESIZE(UpsampleBicubic2dAA, _upsample_bicubic2d_aa)
RESIZE(UpsampleBicubic2dAAGrad, _upsample_bicubic2d_aa_backward)
RESIZE_BOTH(UpsampleTrilinear3d, upsample_trilinear3d)
