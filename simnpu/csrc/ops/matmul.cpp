// Matrix products. The last argument of most is the cube unit's precision (0 keep, 1 allow lower, 2 float16, 3 hfloat32): a
// permission to compute in less than the type's precision, which the simulator does not use.
#include "operator.h"

namespace simnpu {
namespace {

void check_cube(int8_t cube_math_type) {
    TORCH_CHECK(cube_math_type >= 0 && cube_math_type <= 3, "cube math type ", static_cast<int>(cube_math_type),
                " is not simulated");
}

} // namespace
} // namespace simnpu

OPERATOR(Mm, [](const Tensor& self, const Tensor& mat2, Out out, int8_t cube) {
    check_cube(cube);
    into<aten::mm>(out, self, mat2);
})
OPERATOR(BatchMatMul, [](const Tensor& self, const Tensor& mat2, Out out, int8_t cube) {
    check_cube(cube);
    into<aten::bmm>(out, self, mat2);
})
OPERATOR(Matmul, [](const Tensor& self, const Tensor& other, Out out, int8_t cube) {
    check_cube(cube);
    into<aten::matmul>(out, self, other);
})
OPERATOR(Mv, [](const Tensor& self, const Tensor& vec, Out out, int8_t cube) {
    check_cube(cube);
    into<aten::mv>(out, self, vec);
})
ATEN(Dot, dot)
ATEN(Addr, addr)
ATEN_INPLACE(Addr, addr_)

OPERATOR(Addmm, [](const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta, const Scalar& alpha, Out out,
                   int8_t cube) {
    check_cube(cube);
    into<aten::addmm>(out, self, mat1, mat2, beta, alpha);
})
OPERATOR(InplaceAddmm, [](Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta, const Scalar& alpha,
                          int8_t cube) {
    check_cube(cube);
    aten::addmm_::call(self, mat1, mat2, beta, alpha);
})
OPERATOR(Addmv, [](const Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar& alpha, const Scalar& beta, Out out,
                   int8_t cube) {
    check_cube(cube);
    into<aten::addmv>(out, self, mat, vec, beta, alpha);
})
OPERATOR(Baddbmm, [](const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta, const Scalar& alpha,
                     Out out, int8_t cube) {
    check_cube(cube);
    into<aten::baddbmm>(out, self, batch1, batch2, beta, alpha);
})
OPERATOR(Addbmm, [](const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta, const Scalar& alpha,
                    Out out, int8_t cube) {
    check_cube(cube);
    into<aten::addbmm>(out, self, batch1, batch2, beta, alpha);
})
