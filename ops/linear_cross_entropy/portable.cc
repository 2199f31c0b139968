#include <cstdint>

#include "isa/simd_portable.h"
#include "linear_cross_entropy/kernels.h"

namespace npuless::portable {
namespace {

#include "isa/exp.inl"
#include "linear_cross_entropy/kernels.inl"

}  // namespace

constinit const linear_cross_entropy::Kernels linear_cross_entropy_kernels = kTable;

}  // namespace npuless::portable
