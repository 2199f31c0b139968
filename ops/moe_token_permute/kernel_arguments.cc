#include "moe_token_permute/kernel_arguments.h"

namespace npuless::moe_token_permute {

const Kernels& kernels_for([[maybe_unused]] isa::Level level) {
#if defined(__x86_64__)
  if (level >= isa::Level::kAvx512) return avx512::moe_token_permute_kernels;
  if (level == isa::Level::kAvx2) return avx2::moe_token_permute_kernels;
#endif
  return portable::moe_token_permute_kernels;
}

}  // namespace npuless::moe_token_permute
