// Element types. Values equal aclDataType (asserted in src/tensor), so a cast converts either way.
#pragma once

#include <cstdint>

namespace npuless {

enum class DType : int32_t {
  kUndefined = -1,
  kFloat32 = 0,
  kFloat16 = 1,
  kInt8 = 2,
  kInt32 = 3,
  kUint8 = 4,
  kInt64 = 9,
  kBool = 12,
  kBfloat16 = 27,
};

// Bytes of one element of any aclDataType value; 8 for a value without a meaning, 0 for
// kUndefined and strings, as aclDataTypeSize answers.
int64_t dtype_size(DType dtype);
// "FLOAT16", "BFLOAT16", … as the operator pages spell them; "another type" for the rest.
const char* dtype_name(DType dtype);

// Storage types of the two 16-bit formats, distinct so that templates can tell them apart.
struct bf16 {
  uint16_t bits;
};
struct f16 {
  uint16_t bits;
};

template <class T>
inline constexpr DType kDType = DType::kUndefined;
template <>
inline constexpr DType kDType<float> = DType::kFloat32;
template <>
inline constexpr DType kDType<f16> = DType::kFloat16;
template <>
inline constexpr DType kDType<bf16> = DType::kBfloat16;
template <>
inline constexpr DType kDType<int32_t> = DType::kInt32;
template <>
inline constexpr DType kDType<int64_t> = DType::kInt64;

}  // namespace npuless
