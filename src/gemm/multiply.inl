// The blocked product over a micro-kernel that the including file defines in its own namespace:
//   struct Tile { static constexpr int kMr, kNr, kUnit; using Packed;
//     static void run(int64_t groups, const Packed* a, const Packed* b, float* c, int64_t c_stride,
//                     bool accumulate); };
//
// B's micro-panel (kc × NR) stays in the first-level cache while the A block (m × kc), which the
// caller sizes for the second level, streams past it.

template <class Tile>
static void multiply_blocks(const gemm::Product& p) {
  const auto* a = static_cast<const typename Tile::Packed*>(p.a);
  const auto* b = static_cast<const typename Tile::Packed*>(p.b);
  const int64_t groups = (p.k + Tile::kUnit - 1) / Tile::kUnit;
  for (int64_t j = 0; j < p.n; j += Tile::kNr) {
    const auto* b_panel = b + j / Tile::kNr * p.b_panel_stride;
    // The next micro-panel, fetched while this one is used: its share per tile, so that the fetches
    // spread over the whole of it.
    const char* next = reinterpret_cast<const char*>(b_panel + p.b_panel_stride);
    const int64_t bytes = j + Tile::kNr < p.n
                              ? groups * Tile::kUnit * Tile::kNr * static_cast<int64_t>(sizeof(*b))
                              : 0;
    const int64_t share = (bytes / ((p.m + Tile::kMr - 1) / Tile::kMr) + 63) / 64 * 64;
    for (int64_t i = 0; i < p.m; i += Tile::kMr) {
      for (int64_t byte = 0; byte < share; byte += 64) __builtin_prefetch(next + byte, 0, 2);
      next += share;
      const auto* a_panel = a + i / Tile::kMr * p.a_panel_stride;
      Tile::run(groups, a_panel, b_panel, p.c + i * p.c_stride + j, p.c_stride, p.accumulate);
    }
  }
}
