#include "gemm/engines.h"

namespace npuless::gemm {

const Engine& engine_for([[maybe_unused]] isa::Level level, [[maybe_unused]] DType dtype) {
#if defined(__x86_64__)
  switch (level) {
    case isa::Level::kPortable:
      break;
    case isa::Level::kAvx2:
      return avx2::gemm_engine;
    case isa::Level::kAvx512:
      return avx512::gemm_engine;
    case isa::Level::kAvx512Bf16:
      return dtype == DType::kBfloat16 ? avx512_bf16::gemm_engine : avx512::gemm_engine;
  }
#endif
  return portable::gemm_engine;
}

Source source_of(DType dtype) {
  if (dtype == DType::kBfloat16) return Source::kBfloat16;
  return dtype == DType::kFloat16 ? Source::kFloat16 : Source::kFloat32;
}

}  // namespace npuless::gemm
