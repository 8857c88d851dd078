// Losses, forward and backward. `reduction` is ATen's: 0 none, 1 mean, 2 sum.
#include "operator.h"

#include <ATen/core/Reduction.h>

OPERATOR(NLLLoss, [](const Tensor& self, const Tensor& target, std::optional<Tensor> weight, int64_t reduction,
                     int64_t ignore_index) {
    return aten::nll_loss_forward::call(self, target.to(at::kLong), weight, reduction, ignore_index);
})
OPERATOR(NLLLossBackward, [](const Tensor& grad_output, const Tensor& self, const Tensor& target, std::optional<Tensor> weight,
                             int64_t reduction, int64_t ignore_index, const Tensor& total_weight) {
    return aten::nll_loss_backward::call(grad_output, self, target.to(at::kLong), weight, reduction, ignore_index, total_weight);
})
OPERATOR(NLLLoss2d, [](const Tensor& self, const Tensor& target, std::optional<Tensor> weight, int64_t reduction,
                       int64_t ignore_index) {
    return aten::nll_loss2d_forward::call(self, target.to(at::kLong), weight, reduction, ignore_index);
})
OPERATOR(NLLLoss2dBackward, [](const Tensor& grad_output, const Tensor& self, const Tensor& target, std::optional<Tensor> weight,
                               int64_t reduction, int64_t ignore_index, const Tensor& total_weight) {
    return aten::nll_loss2d_backward::call(grad_output, self, target.to(at::kLong), weight, reduction, ignore_index,
                                           total_weight);
})
ATEN(MseLoss, mse_loss)
ATEN(MseLossBackward, mse_loss_backward)
ATEN(L1Loss, l1_loss)
COMPOSITE(L1LossBackward, [](const Tensor& grad_output, const Tensor& self, const Tensor& target, int64_t reduction) {
    auto grad = aten::mul_Tensor::call(aten::sgn::call(aten::sub_Tensor::call(self, target, 1)), grad_output);
    return reduction == at::Reduction::Mean ? aten::div_Scalar::call(grad, grad.numel()) : grad;
})
OPERATOR(SmoothL1Loss, [](const Tensor& self, const Tensor& target, int64_t reduction, float beta) {
    return aten::smooth_l1_loss::call(self, target, reduction, beta);
})
OPERATOR(SmoothL1LossBackward, [](const Tensor& grad_output, const Tensor& self, const Tensor& target, int64_t reduction,
                                  float beta) {
    return aten::smooth_l1_loss_backward::call(grad_output, self, target, reduction, beta);
})
ATEN(BinaryCrossEntropy, binary_cross_entropy)
ATEN(BinaryCrossEntropyBackward, binary_cross_entropy_backward)
ATEN(BinaryCrossEntropyWithLogits, binary_cross_entropy_with_logits)
// d/dx of the loss: with w = pos_weight, l = log weight of the positive class: ((w - 1) t + 1) sigmoid(x) - w t.
COMPOSITE(BinaryCrossEntropyWithLogitsBackward,
          [](const Tensor& grad_output, const Tensor& self, const Tensor& target, std::optional<Tensor> weight,
             std::optional<Tensor> pos_weight, int64_t reduction) {
              auto positive = pos_weight ? aten::mul_Tensor::call(target, *pos_weight) : target;
              auto scale = aten::add_Scalar::call(aten::sub_Tensor::call(positive, target, 1), 1, 1);
              auto grad = aten::sub_Tensor::call(aten::mul_Tensor::call(scale, aten::sigmoid::call(self)), positive, 1);
              grad = aten::mul_Tensor::call(grad, grad_output);
              if (weight) grad = aten::mul_Tensor::call(grad, *weight);
              return reduction == at::Reduction::Mean ? aten::div_Scalar::call(grad, self.numel()) : grad;
          })
ATEN(KlDiv, kl_div)
ATEN(SoftMarginLoss, soft_margin_loss)
ATEN(SoftMarginLossBackward, soft_margin_loss_backward)
// d/dself and d/dtarget of target * (log target - self), or of exp(target) * (target - self).
COMPOSITE(KlDivBackward, [](const Tensor& grad_output, const Tensor& self, const Tensor& target, int64_t reduction, bool log_target) {
    const auto grad = aten::mul_Tensor::call(aten::neg::call(log_target ? aten::exp::call(target) : target), grad_output);
    return reduction == at::Reduction::Mean ? aten::div_Scalar::call(grad, self.numel()) : grad;
})
COMPOSITE(KlDivTargetBackward, [](const Tensor& grad_output, const Tensor& self, const Tensor& target, int64_t reduction,
                                  bool log_target) {
    const auto distance = aten::sub_Tensor::call(log_target ? target : aten::log::call(target), self, 1);
    auto grad = aten::mul_Tensor::call(aten::add_Scalar::call(distance, 1, 1), grad_output);
    if (log_target) grad = aten::mul_Tensor::call(grad, aten::exp::call(target));
    else grad = aten::masked_fill_Scalar::call(grad, aten::eq_Scalar::call(target, 0), 0);
    return reduction == at::Reduction::Mean ? aten::div_Scalar::call(grad, self.numel()) : grad;
})
OPERATOR(MultilabelMarginLoss, [](const Tensor& self, const Tensor& target, int64_t reduction, Out out, Out is_target) {
    auto [loss, flags] = aten::multilabel_margin_loss_forward::call(self, target.to(at::kLong), reduction);
    out = loss;
    is_target = flags;
})
OPERATOR(CtcLoss, [](const Tensor& log_probs, const Tensor& targets, IntArrayRef input_lengths, IntArrayRef target_lengths,
                     int64_t blank, bool zero_infinity, Out loss, Out log_alpha) {
    auto [losses, alphas] =
        aten::_ctc_loss::call(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity);
    loss = losses;
    // The device's has room for a few more labels.
    if (log_alpha) log_alpha.tensor().narrow(-1, 0, alphas.size(-1)).copy_(alphas);
})
ATEN(CtcLossBackward, _ctc_loss_backward)
