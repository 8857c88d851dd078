// Fourier transforms.
#include "operator.h"

// The only operator here whose name has no "nn" in it.
SIMNPU_ENTRY_POINTS(aclStft, "(self, window, out, n_fft, hop_length, win_length, normalized, onesided, return_complex)",
                    [](const Tensor& self, std::optional<Tensor> window, Out out, int64_t n_fft, int64_t hop_length,
                       int64_t win_length, bool normalized, bool onesided, bool return_complex) {
                        const auto result = aten::stft::call(self, n_fft, hop_length, win_length, window, normalized, onesided,
                                                             true, {});
                        out = return_complex ? result : aten::view_as_real::call(result);
                    })
