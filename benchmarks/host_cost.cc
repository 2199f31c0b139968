// What a call costs its thread, with nothing to compute: a permute of one token of four columns.
#include <array>
#include <string>

#include "aclnnop/aclnn_moe_token_permute.h"
#include "device.h"
#include "work.h"

namespace npuless::bench {
namespace {

enum class Part { kPhase1, kPhase2, kBoth, kSynchronize };

class HostWork : public Work {
 public:
  HostWork(Part part, aclrtStream stream)
      : part_(part), stream_(stream), repeatable_(&aclnnMoeTokenPermute, stream) {
    fill(tokens_);
    experts_.data()[0] = 3;
    plan(repeatable_.workspace_size, repeatable_.executor);
    repeatable_.prepare();
    must(aclrtMalloc(&workspace_, repeatable_.workspace_size, ACL_MEM_MALLOC_HUGE_FIRST));
  }
  ~HostWork() override { aclrtFree(workspace_); }
  HostWork(const HostWork&) = delete;
  HostWork& operator=(const HostWork&) = delete;

  // kCalls of the part; what else a call needs is around it.
  void run() override {
    switch (part_) {
      case Part::kPhase1:
        for (aclOpExecutor*& executor : executors_) plan(size_, executor);
        for (aclOpExecutor* executor : executors_) aclDestroyAclOpExecutor(executor);
        return;
      case Part::kPhase2:
        for (int i = 0; i < kCalls; ++i) enqueue(repeatable_.executor);
        must(aclrtSynchronizeStream(stream_));
        return;
      case Part::kBoth:
        for (int i = 0; i < kCalls; ++i) {
          plan(size_, executors_[0]);
          enqueue(executors_[0]);
        }
        must(aclrtSynchronizeStream(stream_));
        return;
      case Part::kSynchronize:
        for (int i = 0; i < kCalls; ++i) repeatable_.run();
        return;
    }
  }
  bool right() const override { return true; }
  uint64_t workspace_bytes() const override { return repeatable_.workspace_size; }

  static constexpr int kCalls = 100;

 private:
  void plan(uint64_t& size, aclOpExecutor*& executor) {
    must(aclnnMoeTokenPermuteGetWorkspaceSize(tokens_.handle(), experts_.handle(), 0, false,
                                              permuted_.handle(), rows_.handle(), &size,
                                              &executor));
  }
  void enqueue(aclOpExecutor* executor) {
    must(aclnnMoeTokenPermute(workspace_, repeatable_.workspace_size, executor, stream_));
  }

  Part part_;
  aclrtStream stream_;
  DeviceTensor<float> tokens_{{1, 4}};
  DeviceTensor<int32_t> experts_{{1, 1}};
  DeviceTensor<float> permuted_{{1, 4}};
  DeviceTensor<int32_t> rows_{{1}};
  Launcher repeatable_;
  void* workspace_ = nullptr;
  uint64_t size_ = 0;
  std::array<aclOpExecutor*, kCalls> executors_{};
};

}  // namespace

void add_host_entries(Entries& entries) {
  const auto add = [&](const char* name, Part part) {
    Entry entry{std::string("host/") + name, Roof::kNone, DType::kFloat32, 0, 0, false, 0, {}};
    entry.calls = HostWork::kCalls;
    entry.make = [part](aclrtStream stream) { return std::make_unique<HostWork>(part, stream); };
    entries.push_back(entry);
  };
  add("phase1_and_destroy", Part::kPhase1);
  add("phase2", Part::kPhase2);
  add("both_phases", Part::kBoth);
  add("phase2_and_synchronize", Part::kSynchronize);
}

}  // namespace npuless::bench
