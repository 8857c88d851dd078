// Functions of two or three tensors (or scalars), element by element: arithmetic, comparison, logic, bits, selection.
#include "operator.h"

namespace simnpu {
namespace {

std::optional<std::string_view> rounding(int32_t mode) {
    TORCH_CHECK(mode >= 0 && mode <= 2, "rounding mode ", mode, " is not simulated");
    constexpr std::optional<std::string_view> modes[] = {std::nullopt, "trunc", "floor"};
    return modes[mode];
}

} // namespace
} // namespace simnpu

#define COMPARISON(NAME, ATEN_NAME)                                                                                            \
    ATEN(NAME##Tensor, ATEN_NAME##_Tensor)                                                                                     \
    ATEN(NAME##Scalar, ATEN_NAME##_Scalar)                                                                                     \
    ATEN(Inplace##NAME##Tensor, ATEN_NAME##__Tensor)                                                                           \
    ATEN(Inplace##NAME##Scalar, ATEN_NAME##__Scalar)

COMPARISON(Eq, eq)
COMPARISON(Ne, ne)
COMPARISON(Lt, lt)
COMPARISON(Le, le)
COMPARISON(Gt, gt)
COMPARISON(Ge, ge)
COMPARISON(BitwiseAnd, bitwise_and)
COMPARISON(BitwiseOr, bitwise_or)
COMPARISON(BitwiseXor, bitwise_xor)
ATEN(LessScalar, lt_Scalar)
ATEN(IsClose, isclose)
// One flag for the whole comparison.
OPERATOR(Equal, [](const Tensor& self, const Tensor& other, Out out) {
    const bool same = aten::equal::call(self, other);
    aten::fill__Scalar::call(const_cast<Tensor&>(out.tensor()), same);
})

ATEN(Add, add_Tensor)
ATEN(Adds, add_Scalar)
ATEN(InplaceAdd, add__Tensor)
ATEN(InplaceAdds, add__Scalar)
// A scalar plus alpha times a tensor.
COMPOSITE(AddV3, [](const Scalar& self, const Tensor& other, const Scalar& alpha) {
    return aten::add_Scalar::call(aten::mul_Scalar::call(other, alpha), self, 1);
})
ATEN(AddRelu, _add_relu_Tensor)
ATEN(InplaceAddRelu, _add_relu__Tensor)
ATEN(Sub, sub_Tensor)
ATEN(Subs, sub_Scalar)
ATEN(InplaceSub, sub__Tensor)
ATEN(InplaceSubs, sub__Scalar)
ATEN(Rsub, rsub_Tensor)
ATEN(Rsubs, rsub_Scalar)
ATEN(Mul, mul_Tensor)
ATEN(Muls, mul_Scalar)
ATEN(InplaceMul, mul__Tensor)
ATEN(InplaceMuls, mul__Scalar)
ATEN(Div, div_Tensor)
ATEN(Divs, div_Scalar)
ATEN(InplaceDiv, div__Tensor)
ATEN(InplaceDivs, div__Scalar)
OPERATOR(DivMod, [](const Tensor& self, const Tensor& other, int32_t mode) {
    return aten::div_Tensor_mode::call(self, other, rounding(mode));
})
OPERATOR(DivMods, [](const Tensor& self, const Scalar& other, int32_t mode) {
    return aten::div_Scalar_mode::call(self, other, rounding(mode));
})
OPERATOR(InplaceDivMod, [](Tensor& self, const Tensor& other, int32_t mode) {
    aten::div__Tensor_mode::call(self, other, rounding(mode));
})
OPERATOR(InplaceDivMods, [](Tensor& self, const Scalar& other, int32_t mode) {
    aten::div__Scalar_mode::call(self, other, rounding(mode));
})
ATEN(FloorDivide, floor_divide)
ATEN(InplaceFloorDivide, floor_divide__Tensor)
ATEN(FloorDivides, floor_divide_Scalar)
ATEN(InplaceFloorDivides, floor_divide__Scalar)
ATEN(FmodTensor, fmod_Tensor)
ATEN(FmodScalar, fmod_Scalar)
ATEN(InplaceFmodTensor, fmod__Tensor)
ATEN(InplaceFmodScalar, fmod__Scalar)
ATEN(RemainderTensorTensor, remainder_Tensor)
ATEN(RemainderTensorScalar, remainder_Scalar)
ATEN(RemainderScalarTensor, remainder_Scalar_Tensor)
ATEN(InplaceRemainderTensorTensor, remainder__Tensor)
ATEN(InplaceRemainderTensorScalar, remainder__Scalar)
ATEN(PowTensorTensor, pow_Tensor_Tensor)
ATEN(PowTensorScalar, pow_Tensor_Scalar)
ATEN(PowScalarTensor, pow_Scalar)
ATEN(InplacePowTensorTensor, pow__Tensor)
ATEN(InplacePowTensorScalar, pow__Scalar)
ATEN_BOTH(Atan2, atan2)
ATEN(Maximum, maximum)
ATEN(Minimum, minimum)
ATEN(Gcd, gcd)
ATEN(LogAddExp, logaddexp)
ATEN(LogAddExp2, logaddexp2)
ATEN(XLogYTensor, xlogy_Tensor)
ATEN(XLogYScalarOther, xlogy_Scalar_Other)
ATEN(XLogYScalarSelf, xlogy_Scalar_Self)
ATEN(InplaceXLogYScalarOther, xlogy__Scalar_Other)

ATEN_BOTH(LogicalAnd, logical_and)
ATEN_BOTH(LogicalOr, logical_or)
ATEN(LogicalXor, logical_xor)
ATEN(LeftShift, bitwise_left_shift_Tensor)
ATEN(LeftShifts, bitwise_left_shift_Tensor_Scalar)
ATEN(RightShift, bitwise_right_shift_Tensor)

ATEN(Lerp, lerp_Tensor)
ATEN(Lerps, lerp_Scalar)
ATEN(InplaceLerp, lerp__Tensor)
ATEN(InplaceLerps, lerp__Scalar)
ATEN_BOTH(Addcmul, addcmul)
ATEN_BOTH(Addcdiv, addcdiv)

ATEN(Clamp, clamp)
ATEN(ClampTensor, clamp_Tensor)
ATEN_BOTH(ClampMin, clamp_min)
ATEN_BOTH(ClampMax, clamp_max)
ATEN(ClampMinTensor, clamp_min_Tensor)
ATEN(ClampMaxTensor, clamp_max_Tensor)
ATEN(InplaceClampMinTensor, clamp_min__Tensor)
ATEN(InplaceClampMaxTensor, clamp_max__Tensor)

OPERATOR(SWhere, [](const Tensor& condition, const Tensor& self, const Tensor& other, Out out) {
    const auto chosen = condition.scalar_type() == at::kBool ? condition : aten::ne_Scalar::call(condition, 0);
    into<aten::where_self>(out, chosen, self, other);
})
ATEN(InplaceMaskedFillScalar, masked_fill__Scalar)
ATEN(InplaceMaskedFillTensor, masked_fill__Tensor)
ATEN(InplaceMaskedScatter, masked_scatter_)
ATEN(IsInScalarTensor, isin_Scalar_Tensor)
ATEN(IsInTensorScalar, isin_Tensor_Scalar)
ATEN(Complex, complex)
ATEN(Polar, polar)
