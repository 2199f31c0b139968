#include "base/handle_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <thread>
#include <vector>

namespace npuless {
namespace {

struct Item {
  explicit Item(int v) noexcept : value(v) { alive.fetch_add(1); }
  ~Item() { alive.fetch_sub(1); }

  const int value;
  static inline std::atomic<int> alive{0};
};

// Tables are globals that are never destroyed; each test has its own.
using Table = HandleTable<Item, 'i'>;

TEST(HandleTable, FindsWhatWasInserted) {
  static constinit Table table;
  void* handle = table.insert(7).handle();
  ASSERT_NE(handle, nullptr);
  ASSERT_TRUE(table.find(handle));
  EXPECT_EQ(table.find(handle)->value, 7);
  EXPECT_EQ(table.find(handle).handle(), handle);
  EXPECT_TRUE(table.take(handle));
}

TEST(HandleTable, GarbageIsNoHandle) {
  static constinit Table table;
  void* handle = table.insert(7).handle();
  int local = 0;
  const auto bits = reinterpret_cast<uintptr_t>(handle);
  const uintptr_t wrong[] = {0,
                             1,
                             ~bits,
                             bits + 1,
                             bits - 1,
                             bits + (uintptr_t{1} << 32),
                             UINTPTR_MAX,
                             bits ^ (uintptr_t{1} << 60),
                             reinterpret_cast<uintptr_t>(&local)};
  for (const uintptr_t value : wrong) {
    SCOPED_TRACE(value);
    EXPECT_FALSE(table.find(reinterpret_cast<void*>(value)));
    EXPECT_FALSE(table.take(reinterpret_cast<void*>(value)));
  }
  EXPECT_TRUE(table.take(handle));
}

TEST(HandleTable, TakenHandleStaysStaleWhenItsSlotIsReused) {
  static constinit Table table;
  std::set<void*> seen;
  for (int i = 0; i < 1000; ++i) {
    void* handle = table.insert(i).handle();
    EXPECT_TRUE(seen.insert(handle).second);
    EXPECT_TRUE(table.take(handle));
    EXPECT_FALSE(table.take(handle));
    EXPECT_FALSE(table.find(handle));
  }
  for (void* handle : seen) EXPECT_FALSE(table.find(handle));
}

TEST(HandleTable, PinKeepsATakenObjectAlive) {
  static constinit Table table;
  const int before = Item::alive;
  auto first = table.insert(3);
  auto second = first.share();
  EXPECT_TRUE(table.take(first.handle()));
  first = {};
  EXPECT_EQ(Item::alive, before + 1);
  EXPECT_EQ(second->value, 3);
  EXPECT_EQ(second.share()->value, 3);
  second = {};
  EXPECT_EQ(Item::alive, before);
}

TEST(HandleTable, CountsWhatIsAvailable) {
  static constinit Table table;
  const uint32_t all = table.available();
  void* handle = table.insert(1).handle();
  EXPECT_EQ(table.available(), all - 1);
  EXPECT_TRUE(table.take(handle));
  EXPECT_EQ(table.available(), all);
}

TEST(HandleTable, ForEachVisitsExactlyTheLiving) {
  static constinit Table table;
  std::vector<void*> handles;
  for (int i = 0; i < 300; ++i) handles.push_back(table.insert(i).handle());
  for (size_t i = 0; i < handles.size(); i += 3) EXPECT_TRUE(table.take(handles[i]));
  std::vector<int> visited;
  table.for_each([&](const Table::Pin& pin) { visited.push_back(pin->value); });
  std::sort(visited.begin(), visited.end());
  std::vector<int> expected;
  for (int i = 0; i < 300; ++i) {
    if (i % 3 != 0) expected.push_back(i);
  }
  EXPECT_EQ(visited, expected);
  for (void* handle : handles) table.take(handle);
}

TEST(HandleTable, GrowthLeavesOldHandlesValid) {
  static constinit Table table;
  std::vector<void*> handles;
  for (int i = 0; i < 20000; ++i) handles.push_back(table.insert(i).handle());
  for (int i = 0; i < 20000; ++i) {
    ASSERT_EQ(table.find(handles[static_cast<size_t>(i)])->value, i);
  }
  for (void* handle : handles) EXPECT_TRUE(table.take(handle));
}

// Several threads look up, take and insert at once: each handle is taken exactly once and a pin
// never sees an object that is gone.
TEST(HandleTable, ConcurrentTakersNeverBothSucceed) {
  static constinit Table table;
  const int before = Item::alive;
  constexpr int kHandles = 2000;
  std::vector<void*> handles;
  for (int i = 0; i < kHandles; ++i) handles.push_back(table.insert(i).handle());
  std::atomic<int> taken{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kHandles; ++i) {
        void* handle = handles[static_cast<size_t>(i)];
        if (const auto pin = table.find(handle)) {
          EXPECT_EQ(pin->value, i);
        }
        if (const auto pin = table.take(handle)) taken += pin->value == i ? 1 : kHandles;
        EXPECT_TRUE(table.take(table.insert(-1).handle()));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(taken, kHandles);
  EXPECT_EQ(Item::alive, before);
}

}  // namespace
}  // namespace npuless
