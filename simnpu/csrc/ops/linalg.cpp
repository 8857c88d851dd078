// Decompositions and what follows from them.
#include "operator.h"

ATEN(Inverse, inverse)
ATEN(LinalgCholesky, linalg_cholesky)
ATEN(LinalgCross, linalg_cross)
ATEN(Slogdet, slogdet)
OPERATOR(LinalgQr, [](const Tensor& self, int64_t mode, Out q, Out r) {
    TORCH_CHECK(mode >= 0 && mode <= 2, "QR mode ", mode, " is not simulated");
    constexpr std::string_view modes[] = {"reduced", "complete", "r"};
    auto [orthogonal, triangular] = aten::linalg_qr::call(self, modes[mode]);
    if (mode != 2) q = orthogonal;
    r = triangular;
})
ATEN(TriangularSolve, triangular_solve)
OPERATOR(Cdist, [](const Tensor& x1, const Tensor& x2, float p, int64_t) { return aten::cdist::call(x1, x2, p, 0); })
OPERATOR(Svd, [](const Tensor& self, bool full_matrices, bool compute_uv, Out s, Out u, Out v) {
    auto [left, values, right] = aten::_linalg_svd::call(self, full_matrices, compute_uv, {});
    s = values;
    if (!compute_uv) return;
    u = left;
    v = right.mH();
})
OPERATOR(CdistBackward, [](const Tensor& grad, const Tensor& x1, const Tensor& x2, const Tensor& distance, float p) {
    return aten::_cdist_backward::call(grad, x1, x2, p, distance);
})
OPERATOR(Pdist, [](const Tensor& self, float p) { return aten::_pdist_forward::call(self.contiguous(), p); })
