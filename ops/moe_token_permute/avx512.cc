#include <cstdint>

#include "isa/simd_avx512.h"
#include "moe_token_permute/kernels.h"

namespace npuless::avx512 {
namespace {

#include "moe_token_permute/kernels.inl"

}  // namespace

constinit const moe_token_permute::Kernels moe_token_permute_kernels = kTable;

}  // namespace npuless::avx512
