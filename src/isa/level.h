// ISA levels: which set of kernels runs. A level is a bundle of features, ordered; a family
// provides tables for the levels where it gains and lower ones serve the rest.
//   portable     whatever the compiler targets by default (SSE2 on x86-64)
//   avx2         AVX2, FMA, F16C
//   avx512       AVX-512 F, BW, DQ, VL on top
//   avx512_bf16  AVX-512 BF16 on top
// NPULESS_ISA=<level>, read once before first use, forces one.
#pragma once

#include "base/status.h"

namespace npuless::isa {

enum class Level : int { kPortable, kAvx2, kAvx512, kAvx512Bf16 };
inline constexpr int kLevels = 4;
inline constexpr Level kAllLevels[kLevels] = {Level::kPortable, Level::kAvx2, Level::kAvx512,
                                              Level::kAvx512Bf16};

const char* level_name(Level level);
// Whether this machine (processor and operating system) can run the level.
bool available(Level level);
// The level that plans made now use. Fails with 361001 and a sentence naming what the machine has
// when NPULESS_ISA asks for something unknown or lacking.
Status active_level(Level& level);
// Replaces the choice for plans made afterwards; same errors.
Status set_level(Level level);
Status set_level(const char* name);

}  // namespace npuless::isa
