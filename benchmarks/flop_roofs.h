// The arithmetic roof: multiply-adds on registers only, with enough independent sums to hide the
// latency, on `threads` threads at once. What a matrix product can approach and never pass.
#pragma once

#include "base/dtype.h"
#include "isa/level.h"

namespace npuless::bench {

// Flops per second (a multiply-add is two) of the instruction that the level's engine uses for
// operands of this type: bf16 dot products, or fp32 FMA. Portable: multiply and add. The best of
// several passes.
double flop_roof(isa::Level level, DType dtype, int threads, int passes);

}  // namespace npuless::bench
