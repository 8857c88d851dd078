// Fused optimizer steps and gradient scaling.
#include "operator.h"

#include <cmath>

OPERATOR(AmpUpdateScale, [](const Tensor& scale, const Tensor& tracker, const Tensor& found_inf, double growth_factor,
                            double backoff_factor, int64_t interval, Out new_scale, Out new_tracker) {
    auto next_scale = scale.clone(), next_tracker = tracker.clone();
    aten::_amp_update_scale_::call(next_scale, next_tracker, found_inf, growth_factor, backoff_factor, interval);
    new_scale = next_scale;
    new_tracker = next_tracker;
})

OPERATOR(ApplyAdamWV2, [](Tensor& self, Tensor& exp_avg, Tensor& exp_avg_sq, std::optional<Tensor> max_exp_avg_sq,
                          const Tensor& grad, const Tensor& step, float lr, float beta1, float beta2, float weight_decay,
                          float eps, bool amsgrad, bool maximize) {
    TORCH_CHECK(!amsgrad || max_exp_avg_sq, "amsgrad without a maximum to keep");
    const double steps = step.item().toDouble() + 1; // the caller counts from 0
    const auto g = maximize ? aten::neg::call(grad) : grad;
    aten::mul__Scalar::call(self, 1 - static_cast<double>(lr) * weight_decay);
    aten::lerp__Scalar::call(exp_avg, g, 1 - static_cast<double>(beta1));
    aten::addcmul_::call(aten::mul__Scalar::call(exp_avg_sq, beta2), g, g, 1 - static_cast<double>(beta2));
    auto square = exp_avg_sq;
    if (amsgrad) {
        square = aten::maximum::call(*max_exp_avg_sq, exp_avg_sq);
        aten::copy_::call(*max_exp_avg_sq, square, false);
    }
    const double correction = std::sqrt(1 - std::pow(static_cast<double>(beta2), steps));
    const auto divisor = aten::add_Scalar::call(aten::div_Scalar::call(aten::sqrt::call(square), correction), eps, 1);
    aten::addcdiv_::call(self, exp_avg, divisor, -lr / (1 - std::pow(static_cast<double>(beta1), steps)));
})

// The numbers come in float, which is how the device computes with them.
OPERATOR(FusedSgd, [](TensorList params, TensorList grads, TensorList momenta, std::optional<Tensor> grad_scale, float weight_decay,
                      float momentum, float lr, float dampening, bool nesterov, bool maximize, bool first_step) {
    aten::_fused_sgd_::call(params, grads, momenta, weight_decay, momentum, lr, dampening, nesterov, maximize, first_step,
                            grad_scale, {});
})
