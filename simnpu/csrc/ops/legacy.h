// An operator of the legacy path as its definition sees it, and the definitions that have a file of their own.
#pragma once

#include "operator.h"

#include <simnpu/aclop.h>

namespace simnpu {

// One call: what descriptions and buffers say, as handles that live as long as the task.
struct Legacy {
    std::vector<TensorHandle> inputs, outputs;
    std::map<size_t, std::vector<int64_t>> numbers; // inputs that came in host memory: sizes, strides, offsets
    std::map<std::string, aclopAttr::Value> attributes;

    bool has_input(size_t i) const { return i < inputs.size() && inputs[i]; }
    Tensor input(size_t i) const {
        TORCH_CHECK(has_input(i), "input ", i, " is missing");
        return inputs[i]->view();
    }
    const std::vector<int64_t>& numbers_of(size_t i) const {
        const auto found = numbers.find(i);
        TORCH_CHECK(found != numbers.end(), "input ", i, " does not come in host memory");
        return found->second;
    }
    int64_t number(size_t i) const {
        TORCH_CHECK(numbers_of(i).size() == 1, "input ", i, " is not one number");
        return numbers_of(i)[0];
    }
    Out output(size_t i) const { return Out(outputs.at(i)); }
    template <class T>
    const T& attribute(const char* name) const {
        auto found = attributes.find(name);
        TORCH_CHECK(found != attributes.end() && std::holds_alternative<T>(found->second), "attribute ", name,
                    " is missing or of an unexpected type");
        return std::get<T>(found->second);
    }
};

// rnn.cpp
void lstm(const Legacy& call);
void lstm_grad(const Legacy& call);
void lstm_cell(const Legacy& call);
void lstm_cell_grad(const Legacy& call);
void gru(const Legacy& call);
void gru_grad(const Legacy& call);

} // namespace simnpu
