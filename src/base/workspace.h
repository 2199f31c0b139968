// Workspace ledger: a plan books typed pieces, phase 1 reports the total, run() turns the caller's
// pointer into spans. All scratch of an operator lives here; run() allocates nothing.
//
//   Ledger ledger;                       // in plan()
//   plan.sums = ledger.book<float>(n);
//   plan.workspace_bytes = ledger.bytes();
//   …
//   float* sums = plan.sums.in(workspace);   // in run()
#pragma once

#include <cstddef>
#include <cstdint>

namespace npuless {

// One cache line: a piece never shares a line with its neighbour, and 512-bit loads of its start
// do not split.
inline constexpr int64_t kWorkspaceAlign = 64;

template <class T>
struct Piece {
  int64_t offset = -1;
  int64_t count = 0;

  T* in(void* workspace) const {
    if (count == 0) return nullptr;
    const uintptr_t base = reinterpret_cast<uintptr_t>(workspace);
    const uintptr_t mask = static_cast<uintptr_t>(kWorkspaceAlign - 1);
    return reinterpret_cast<T*>(((base + mask) & ~mask) + static_cast<uintptr_t>(offset));
  }
};

class Ledger {
 public:
  template <class T>
  Piece<T> book(int64_t count) {
    if (count <= 0) return {};
    const Piece<T> piece{used_, count};
    const int64_t bytes = count * static_cast<int64_t>(sizeof(T));
    used_ += (bytes + kWorkspaceAlign - 1) / kWorkspaceAlign * kWorkspaceAlign;
    return piece;
  }

  // What the caller must provide. An aclrtMalloc block is aligned, but any pointer is accepted,
  // hence one line of slack whenever something is booked.
  int64_t bytes() const { return used_ == 0 ? 0 : used_ + kWorkspaceAlign; }

 private:
  int64_t used_ = 0;
};

}  // namespace npuless
