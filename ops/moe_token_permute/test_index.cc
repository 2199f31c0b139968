// The index by itself: sizes beyond what whole operators are tested with, and lists by id.
#include "moe_token_permute/index.h"
#include "moe_token_permute/ref_permute.h"
#include "moe_token_permute/test_problem.h"

namespace npuless::moe_token_permute {
namespace {

template <class T>
std::vector<int64_t> as_ids(const std::vector<T>& ids) {
  return {ids.begin(), ids.end()};
}

template <class T>
Matrix matrix_of(std::vector<T>& ids) {
  return {ids.data(), static_cast<int64_t>(ids.size()), 1, 1, 1, kDType<T>};
}

struct Built {
  std::vector<int32_t> order;
  std::vector<int32_t> rank;
};

template <class T>
Built build(std::vector<T> ids, int threads = 3) {
  EXPECT_TRUE(set_num_threads(threads).ok());
  Ledger ledger;
  IndexPlan plan;
  plan_index(static_cast<int64_t>(ids.size()), ledger, plan);
  const TestTensor workspace(DType::kInt8, {ledger.bytes()});
  Built built;
  built.rank.assign(ids.size(), -1);
  const Vector rank{built.rank.data(), plan.slots, 1, DType::kInt32};
  void* memory = plan.slots == 0 ? nullptr : &workspace.at<char>(0);
  const int32_t* order = build_index(plan, matrix_of(ids), rank, memory);
  built.order.assign(order, order + plan.slots);
  std::vector<int32_t> alone(ids.size(), -1);
  build_rank(plan, matrix_of(ids), {alone.data(), plan.slots, 1, DType::kInt32}, memory);
  EXPECT_EQ(alone, built.rank);
  return built;
}

template <class T>
void expect_sorted(const std::vector<T>& ids, int threads = 3) {
  const Built built = build(ids, threads);
  EXPECT_EQ(built.order, model_order(as_ids(ids)));
  EXPECT_EQ(built.rank, model_rank(as_ids(ids)));
}

// Slots of each id from 0 to count − 1.
template <class T>
std::vector<std::vector<int32_t>> lists(std::vector<T> ids, int64_t count) {
  EXPECT_TRUE(set_num_threads(3).ok());
  Ledger ledger;
  ListsPlan plan;
  plan_lists(static_cast<int64_t>(ids.size()), count, ledger, plan);
  const TestTensor workspace(DType::kInt8, {ledger.bytes()});
  const Lists built = build_lists(plan, matrix_of(ids), &workspace.at<char>(0));
  std::vector<std::vector<int32_t>> result;
  for (int64_t id = 0; id < count; ++id) {
    result.emplace_back(built.slots + built.first[id], built.slots + built.first[id + 1]);
  }
  return result;
}

template <class T>
void expect_lists(const std::vector<T>& ids, int64_t count) {
  std::vector<std::vector<int32_t>> expected(static_cast<size_t>(count));
  for (size_t slot = 0; slot < ids.size(); ++slot) {
    if (ids[slot] < 0 || ids[slot] >= static_cast<T>(count)) continue;
    expected[static_cast<size_t>(ids[slot])].push_back(static_cast<int32_t>(slot));
  }
  EXPECT_EQ(lists(ids, count), expected);
}

template <class T>
std::vector<T> random_ids(size_t slots, T low, T high) {
  std::mt19937_64 random(17);
  std::uniform_int_distribution<T> draw(low, high);
  std::vector<T> ids(slots);
  for (T& id : ids) id = draw(random);
  return ids;
}

// Chunk borders at 65536 slots, digit borders at 2^11, 2^22, …
TEST(Index, SortsAnySizeAndDistance) {
  for (const int slots : {0, 1, 2, 65535, 65536, 65537, 200000}) {
    for (const int32_t high : {0, 1, 2047, 2048, (1 << 22) - 1, 1 << 22, INT32_MAX}) {
      expect_sorted(random_ids<int32_t>(static_cast<size_t>(slots), 0, high));
    }
  }
  for (int bits = 1; bits < 63; bits += 5) {
    expect_sorted(random_ids<int64_t>(3000, -(int64_t{1} << bits), (int64_t{1} << bits) - 1));
  }
}

// Case L1, L2: real 64-bit ids, whose high words decide; extremes of both types.
TEST(Index, SortsTheWholeRangeOfBothTypes) {
  expect_sorted<int64_t>({int64_t{3} << 32, 7, int64_t{1} << 32, -1, (int64_t{1} << 32) + 7, 7});
  expect_sorted<int64_t>({INT64_MAX, 0, INT64_MIN, -1, INT64_MAX, INT64_MIN, 1});
  expect_sorted<int32_t>({INT32_MAX, 0, INT32_MIN, -1, INT32_MAX, INT32_MIN, 1});
  expect_sorted(random_ids<int64_t>(70000, INT64_MIN, INT64_MAX));
  expect_sorted(random_ids<int32_t>(70000, INT32_MIN, INT32_MAX));
}

// Case L5: ids that fp32 cannot tell apart.
TEST(Index, TellsNeighboursBeyondFloatPrecisionApart) {
  expect_sorted<int32_t>({16777218, 16777217, 16777216, 16777217, 16777218});
  expect_sorted<int64_t>({(int64_t{1} << 53) + 1, int64_t{1} << 53, (int64_t{1} << 53) + 1});
}

// Cases D8, D9, D10, D14, E1, E2: any number of experts.
TEST(Index, TakesAnyNumberOfExperts) {
  for (const int32_t experts :
       {1, 2, 5, 6, 7, 15, 16, 17, 32, 33, 100, 257, 1024, 1025, 4096, 65536}) {
    auto ids = random_ids<int32_t>(5000, 0, experts - 1);
    ids.back() = experts - 1;
    expect_sorted(ids);
    expect_lists(ids, experts);
  }
}

// Case D11: positions are unique in every run, on any number of threads.
TEST(Index, GivesTheSamePositionsInEveryRun) {
  const auto ids = random_ids<int32_t>(100000, 0, 1);
  const Built first = build(ids, 1);
  EXPECT_EQ(first.rank, model_rank(as_ids(ids)));
  for (int run = 0; run < 100; ++run) {
    const Built again = build(ids, 1 + run % 7);
    ASSERT_EQ(again.rank, first.rank);
    ASSERT_EQ(again.order, first.order);
  }
}

// Case H6: tied experts keep the order of their slots.
TEST(Index, IsStable) {
  const Built built = build(std::vector<int32_t>(1000, 3));
  for (int32_t slot = 0; slot < 1000; ++slot) {
    ASSERT_EQ(built.rank[static_cast<size_t>(slot)], slot);
  }
}

// Case E4: no limit at 2^24 slots.
TEST(Index, TakesMoreSlotsThanFloatsCount) {
  constexpr int32_t kSlots = (1 << 24) + 5;
  std::vector<int32_t> ids(kSlots);
  for (int32_t slot = 0; slot < kSlots; ++slot) ids[static_cast<size_t>(slot)] = slot % 3;
  const Built built = build(ids);
  const int32_t starts[] = {0, (kSlots + 2) / 3, (kSlots + 2) / 3 + (kSlots + 1) / 3};
  for (int32_t slot = 0; slot < kSlots; ++slot) {
    ASSERT_EQ(built.rank[static_cast<size_t>(slot)], starts[slot % 3] + slot / 3);
  }
}

// Cases C4, C5, C6, C7 and C9: ids that name no expert are in no expert's list.
TEST(Lists, LeaveOutIdsOfNoExpert) {
  EXPECT_EQ(lists<int32_t>({-1}, 4), (std::vector<std::vector<int32_t>>(4)));
  EXPECT_EQ(lists<int32_t>({-1, 0}, 2), (std::vector<std::vector<int32_t>>{{1}, {}}));
  EXPECT_EQ(lists<int32_t>({7, 7, -1, 7}, 8)[7], (std::vector<int32_t>{0, 1, 3}));
  EXPECT_EQ(lists<int32_t>({4, 3, 1 << 30}, 4),
            (std::vector<std::vector<int32_t>>{{}, {}, {}, {1}}));
  expect_lists<int64_t>({INT64_MIN, 2, INT64_MAX, 2, -1, 0, 3, int64_t{1} << 32}, 3);
  expect_lists(random_ids<int32_t>(140000, -50, 3000), 2500);
}

// Cases D2 and D7: a list counts slots, however often a token names its expert.
TEST(Lists, CountSlots) {
  EXPECT_EQ(lists(std::vector<int32_t>(64 * 8, 3), 8)[3].size(), 512u);
  EXPECT_EQ(lists<int32_t>({0, 0, 0, 0}, 1)[0], (std::vector<int32_t>{0, 1, 2, 3}));
}

TEST(Lists, OfNothingAreEmpty) {
  EXPECT_EQ(lists<int32_t>({}, 3), (std::vector<std::vector<int32_t>>(3)));
  expect_lists<int32_t>({5, -3}, 0);
}

}  // namespace
}  // namespace npuless::moe_token_permute
