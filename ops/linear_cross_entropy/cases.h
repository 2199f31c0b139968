// Shapes that tests and benches share. tokens × hidden × vocab.
#pragma once

#include <cstdint>

namespace npuless::linear_cross_entropy {

struct Case {
  int64_t tokens;
  int64_t hidden;
  int64_t vocab;
};

// Correctness: ones, primes, one past a tile (4, 8, 24, 48), past a k block (240, 480), past a
// token block (128), past a panel (1920, and 7680 for few tokens), and shapes from others' bug
// reports.
inline constexpr Case kCases[] = {
    {1, 1, 128},    {2, 1, 128},    {1, 48, 1921},  {5, 3, 129},    {8, 10, 128},   {33, 31, 251},
    {188, 31, 131}, {128, 64, 480}, {129, 65, 481}, {4, 7, 128},    {17, 241, 240}, {257, 129, 331},
    {3, 17, 4001},  {70, 482, 150}, {80, 125, 192}, {64, 25, 1943}, {5, 3, 7687},
};

// Speed: the first is the shape that the README quotes; then a rank's eighth of Llama 3's
// vocabulary and of Qwen 2.5's, and token counts down to one.
inline constexpr Case kBenchCases[] = {
    {1024, 2048, 8192}, {2048, 2048, 8192}, {4096, 4096, 16032}, {8192, 2048, 19000},
    {256, 2048, 8192},  {16, 2048, 8192},   {1, 2048, 8192},
};

// Speed against one dimension, the others fixed.
inline constexpr Case kVocabSeries[] = {
    {256, 512, 8192}, {256, 512, 32768}, {256, 512, 131072}, {256, 512, 262144}};
inline constexpr Case kTokensSeries[] = {{256, 1024, 8192}, {1024, 1024, 8192}, {4096, 1024, 8192}};

}  // namespace npuless::linear_cross_entropy
