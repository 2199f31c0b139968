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
    for (int64_t i = 0; i < p.m; i += Tile::kMr) {
      const auto* a_panel = a + i / Tile::kMr * p.a_panel_stride;
      Tile::run(groups, a_panel, b_panel, p.c + i * p.c_stride + j, p.c_stride, p.accumulate);
    }
  }
}
