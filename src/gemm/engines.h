// Chooses the engine for a level and an input type.
#pragma once

#include "base/dtype.h"
#include "gemm/engine.h"
#include "isa/level.h"

namespace npuless::gemm {

// dtype: kBfloat16 or kFloat16. Only avx512_bf16 multiplies bf16 as such; every other pair widens
// to fp32 while packing.
const Engine& engine_for(isa::Level level, DType dtype);

Source source_of(DType dtype);

}  // namespace npuless::gemm
