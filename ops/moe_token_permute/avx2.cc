#include <cstdint>

#include "isa/simd_avx2.h"
#include "moe_token_permute/kernels.h"

namespace npuless::avx2 {
namespace {

#include "moe_token_permute/kernels.inl"

}  // namespace

constinit const moe_token_permute::Kernels moe_token_permute_kernels = kTable;

}  // namespace npuless::avx2
