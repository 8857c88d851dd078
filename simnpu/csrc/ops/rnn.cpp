// Recurrent layers of the legacy path: one layer in one direction, time first; the caller stacks them.
#include "legacy.h"

#include <ATen/core/IListRef.h>

namespace simnpu {
namespace {

void check(const Legacy& call, const std::string& gate_order) {
    TORCH_CHECK(call.attribute<bool>("time_major") && call.attribute<float>("cell_clip") == -1 &&
                    call.attribute<int64_t>("num_proj") == 0,
                "this layout, clipping or projection is not simulated");
    const auto& order = call.attribute<std::string>("gate_order");
    TORCH_CHECK(order == gate_order, "gates in the order ", order, " are not simulated");
}

void check_gru(const Legacy& call, size_t mask) {
    check(call, "rzh");
    TORCH_CHECK(call.attribute<bool>("reset_after"), "a reset gate before the product is not simulated");
    TORCH_CHECK(!call.has_input(mask) || call.input(mask).dim() != 3, "packed sequences are not simulated");
}

Tensor plus(const Tensor& a, const Tensor& b) { return aten::add_Tensor::call(a, b, 1); }
Tensor minus(const Tensor& a, const Tensor& b) { return aten::sub_Tensor::call(a, b, 1); }
Tensor times(const Tensor& a, const Tensor& b) { return aten::mul_Tensor::call(a, b); }
template <class... More>
Tensor times(const Tensor& a, const Tensor& b, const More&... more) {
    return times(times(a, b), more...);
}
Tensor product(const Tensor& a, const Tensor& b) { return aten::mm::call(a, b); }
Tensor joined(const std::vector<Tensor>& parts, int64_t dim) { return aten::cat::call(TensorList(parts), dim); }
Tensor sum_rows(const Tensor& a) { return aten::sum_dim_IntList::call(a, IntArrayRef({0}), false, {}); }
Tensor one_minus(const Tensor& a) { return aten::rsub_Scalar::call(a, 1, 1); }
Tensor sigmoid_slope(const Tensor& y) { return times(y, one_minus(y)); }
Tensor tanh_slope(const Tensor& y) { return one_minus(times(y, y)); }
Tensor matrix(const Tensor& x) { return x.reshape({-1, x.size(-1)}); }

bool is_reversed(const Legacy& call) {
    const auto& direction = call.attribute<std::string>("direction");
    TORCH_CHECK(direction == "UNIDIRECTIONAL" || direction == "REDIRECTIONAL", "direction ", direction, " is not simulated");
    return direction == "REDIRECTIONAL";
}
// An input's steps as a list of matrices, in the layer's direction; a single step may come without its dimension.
std::vector<Tensor> steps(const Legacy& call, size_t input) {
    const auto sequence = call.input(input);
    auto list = (sequence.dim() == 2 ? sequence.unsqueeze(0) : sequence).unbind(0);
    if (is_reversed(call)) std::reverse(list.begin(), list.end());
    return list;
}
// The reverse of steps().
Tensor sequence(const Legacy& call, std::vector<Tensor> list) {
    if (is_reversed(call)) std::reverse(list.begin(), list.end());
    return aten::stack::call(list, 0);
}
// For packed sequences: 1 at the steps that a sequence has, 0 behind its end. One number for everything if there is no mask.
std::vector<Tensor> present(const Legacy& call, size_t mask, const std::vector<Tensor>& like) {
    if (call.has_input(mask) && call.input(mask).dim() == 3) {
        auto list = steps(call, mask);
        for (auto& flags : list) flags = flags.to(like[0].scalar_type());
        return list;
    }
    return {like.size(), aten::ones_like::call(like[0].select(-1, 0).unsqueeze(-1), {}, {}, {}, {}, {})};
}
// `a` at the steps that are there, else `b`.
Tensor choose(const Tensor& there, const Tensor& a, const Tensor& b) { return plus(times(there, a), times(one_minus(there), b)); }

// The states before each step.
std::vector<Tensor> shifted(const Legacy& call, size_t initial, size_t sequence) {
    auto states = steps(call, sequence);
    states.insert(states.begin(), matrix(call.input(initial)));
    states.pop_back();
    return states;
}

// Inputs from `mask` on: mask, init_h, init_c. Behind the end of a sequence its state stays, and what it returns is 0.
void run_lstm(const Legacy& call, const Tensor& weight, size_t bias, size_t mask) {
    std::array<std::vector<Tensor>, 8> results; // y, h, c, i, j, f, o, tanh(c)
    auto h = matrix(call.input(mask + 1)), c = matrix(call.input(mask + 2));
    const auto inputs = steps(call, 0), there = present(call, mask, inputs);
    for (size_t t = 0; t < inputs.size(); ++t) {
        auto sum = product(joined({inputs[t], h}, -1), weight);
        if (call.has_input(bias)) sum = plus(sum, call.input(bias));
        const auto gates = sum.chunk(4, -1);
        const auto i = gates[0].sigmoid(), f = gates[1].sigmoid(), j = gates[2].tanh(), o = gates[3].sigmoid();
        const auto new_c = plus(times(f, c), times(i, j));
        const auto tanh_c = new_c.tanh(), new_h = times(o, tanh_c);
        h = choose(there[t], new_h, h);
        c = choose(there[t], new_c, c);
        size_t result = 0;
        for (const auto& value : {times(there[t], new_h), h, c, i, j, f, o, tanh_c}) results[result++].push_back(value);
    }
    for (size_t result = 0; result < results.size(); ++result) call.output(result) = sequence(call, results[result]);
}

struct Gradients {
    Tensor weight, bias, x, h, c;
};

// Inputs from `y` on: y, init_h, init_c, h, c, dy, dh, dc, i, j, f, o, tanh(c). The weight's rows: first the input's.
Gradients lstm_gradients(const Legacy& call, const Tensor& weight, size_t y, size_t mask) {
    const auto x = steps(call, 0), grad_y = steps(call, y + 5);
    const auto h_before = shifted(call, y + 1, y + 3), c_before = shifted(call, y + 2, y + 4);
    const auto i = steps(call, y + 8), j = steps(call, y + 9), f = steps(call, y + 10);
    const auto o = steps(call, y + 11), tanh_c = steps(call, y + 12);
    const auto there = present(call, mask, x);
    auto grad_h = matrix(call.input(y + 6)), grad_c = matrix(call.input(y + 7));
    std::vector<Tensor> grad_x(x.size()), grad_gates(x.size()), rows(x.size());
    for (size_t t = x.size(); t-- > 0;) {
        const auto stays_h = times(one_minus(there[t]), grad_h), stays_c = times(one_minus(there[t]), grad_c);
        grad_h = times(there[t], plus(grad_h, grad_y[t]));
        grad_c = times(there[t], grad_c);
        grad_c = plus(grad_c, times(grad_h, o[t], tanh_slope(tanh_c[t])));
        grad_gates[t] = joined({times(grad_c, j[t], sigmoid_slope(i[t])), times(grad_c, c_before[t], sigmoid_slope(f[t])),
                                times(grad_c, i[t], tanh_slope(j[t])), times(grad_h, tanh_c[t], sigmoid_slope(o[t]))},
                               -1);
        rows[t] = joined({x[t], h_before[t]}, -1);
        const auto grad_rows = product(grad_gates[t], weight.t());
        grad_x[t] = grad_rows.narrow(-1, 0, x[t].size(-1));
        grad_h = plus(grad_rows.narrow(-1, x[t].size(-1), grad_h.size(-1)), stays_h);
        grad_c = plus(times(grad_c, f[t]), stays_c);
    }
    const auto all = joined(grad_gates, 0);
    return {product(joined(rows, 0).t(), all), sum_rows(all), sequence(call, grad_x), grad_h, grad_c};
}

} // namespace

void lstm(const Legacy& call) {
    check(call, "ifjo");
    run_lstm(call, call.input(1), 2, 3);
}

void lstm_grad(const Legacy& call) {
    check(call, "ifjo");
    TORCH_CHECK(!is_reversed(call), "the gradient of a reversed layer with packed sequences is not simulated");
    const auto grads = lstm_gradients(call, call.input(1), 3, 16);
    call.output(0) = grads.weight;
    call.output(1) = grads.bias;
    call.output(2) = grads.x;
    call.output(3) = grads.h;
    call.output(4) = grads.c;
}

void lstm_cell(const Legacy& call) {
    check(call, "ifco"); // another name of the same order
    run_lstm(call, joined({call.input(1), call.input(2)}, 0), 3, 4);
}

void lstm_cell_grad(const Legacy& call) {
    check(call, "ifjo");
    const auto grads = lstm_gradients(call, joined({call.input(1), call.input(2)}, 0), 3, 20);
    const auto inputs = call.input(1).size(0), hidden = call.input(2).size(0);
    call.output(0) = grads.weight.narrow(0, 0, inputs);
    call.output(1) = grads.weight.narrow(0, inputs, hidden);
    call.output(2) = grads.bias;
    call.output(3) = grads.x.view_as(call.output(3).tensor());
    call.output(4) = grads.h;
    call.output(5) = grads.c;
}

void gru(const Legacy& call) {
    check_gru(call, 5);
    std::array<std::vector<Tensor>, 6> results; // y, h, update, reset, new, the hidden state's part of new
    auto h = matrix(call.input(6));
    for (const auto& x : steps(call, 0)) {
        const auto from_x = plus(product(x, call.input(1)), call.input(3)).chunk(3, -1);
        const auto from_h = plus(product(h, call.input(2)), call.input(4)).chunk(3, -1);
        const auto reset = plus(from_x[0], from_h[0]).sigmoid(), update = plus(from_x[1], from_h[1]).sigmoid();
        const auto fresh = plus(from_x[2], times(reset, from_h[2])).tanh();
        h = plus(times(one_minus(update), fresh), times(update, h));
        size_t result = 0;
        for (const auto& value : {h, h, update, reset, fresh, from_h[2]}) results[result++].push_back(value);
    }
    for (size_t result = 0; result < results.size(); ++result) call.output(result) = sequence(call, results[result]);
}

void gru_grad(const Legacy& call) {
    check_gru(call, 12);
    const auto input_weight = call.input(1), hidden_weight = call.input(2);
    const auto x = steps(call, 0), h_before = shifted(call, 4, 5), grad_y = steps(call, 6);
    auto grad_h = matrix(call.input(7));
    const auto update = steps(call, 8), reset = steps(call, 9), fresh = steps(call, 10);
    const auto hidden = steps(call, 11);
    std::vector<Tensor> grad_x(x.size()), from_x(x.size()), from_h(x.size());
    for (size_t t = x.size(); t-- > 0;) {
        grad_h = plus(grad_h, grad_y[t]);
        const auto grad_new = times(grad_h, one_minus(update[t]), tanh_slope(fresh[t]));
        const auto grad_reset = times(grad_new, hidden[t], sigmoid_slope(reset[t]));
        const auto grad_update = times(grad_h, minus(h_before[t], fresh[t]), sigmoid_slope(update[t]));
        from_x[t] = joined({grad_reset, grad_update, grad_new}, -1);
        from_h[t] = joined({grad_reset, grad_update, times(grad_new, reset[t])}, -1);
        grad_x[t] = product(from_x[t], input_weight.t());
        grad_h = plus(times(grad_h, update[t]), product(from_h[t], hidden_weight.t()));
    }
    const auto all_x = joined(from_x, 0), all_h = joined(from_h, 0);
    call.output(0) = product(joined(x, 0).t(), all_x);
    call.output(1) = product(joined(h_before, 0).t(), all_h);
    call.output(2) = sum_rows(all_x);
    call.output(3) = sum_rows(all_h);
    call.output(4) = sequence(call, grad_x);
    call.output(5) = grad_h;
}

} // namespace simnpu
