// Shapes that tests and benches share.
#pragma once

#include <cstdint>

namespace npuless::moe_token_permute {

struct Case {
  int64_t tokens;
  int64_t topk;
  int64_t hidden;
};

// Correctness: every hidden size that others' kernels got wrong (below, at and above a vector, a
// line, a block; not a multiple of anything), every topk around a power of two up to the limit,
// token counts that are one or prime.
inline constexpr Case kCases[] = {
    {1, 1, 1},   {13, 1, 3},    {11, 2, 7},   {7, 3, 15},   {5, 2, 17},   {17, 5, 31},
    {19, 8, 33}, {3, 9, 63},    {23, 2, 65},  {2, 129, 33}, {3, 129, 1},  {2, 512, 65},
    {1, 512, 7}, {1, 16, 3584}, {3, 8, 2880}, {2, 9, 7169}, {5, 1, 2880}, {1, 3, 7169},
    {4, 16, 17}, {29, 8, 130},  {509, 8, 65}, {31, 5, 1},   {8191, 1, 3}, {1021, 16, 15},
};

struct BenchCase {
  int64_t tokens;
  int64_t topk;
  int64_t hidden;
  int64_t experts;
};

// Speed: the first is the shape that the README quotes; then DeepSeek-V3's and gpt-oss's, few
// experts a token, few tokens, short rows.
inline constexpr BenchCase kBenchCases[] = {
    {4096, 8, 4096, 64}, {4096, 8, 7168, 256}, {4096, 4, 2880, 128}, {4096, 2, 4096, 8},
    {256, 8, 4096, 64},  {16, 8, 4096, 64},    {1, 8, 4096, 64},     {4096, 8, 64, 64},
};

}  // namespace npuless::moe_token_permute
