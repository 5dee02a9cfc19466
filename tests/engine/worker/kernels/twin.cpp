// The primitives of engine/worker/kernels/cuda/primitives.cu for the CPU: every thread of the grid
// is a fiber, and a waiting fiber yields to the others. Slow, with the same arithmetic.

#include <setjmp.h>
#include <ucontext.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#define DEVICE inline
#define __global__
#define __launch_bounds__(...)
#define SHARED(name) u8* name = me->block->shared.data()
#define threadIdx (me->thread)
#define blockIdx (me->block->index)

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
struct uint2 { u32 x, y; };
struct uint4 { u32 x, y, z, w; };
struct float4 { float x, y, z, w; };
inline uint2 make_uint2(u32 x, u32 y) { return {x, y}; }
inline uint4 make_uint4(u32 x, u32 y, u32 z, u32 w) { return {x, y, z, w}; }
struct float2 { float x, y; };
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

constexpr int WARPS = 8;
constexpr int WORKERS = WARPS * 32;
constexpr size_t STACK = 256 << 10;

struct Index { u32 x; };
struct Barrier { int arrived = 0; long round = 0; };
struct Gate { long round = 0; };
struct Warp { Barrier barrier; u32 words[32][6]; };
struct Block {
  Index index;
  std::vector<u8> shared;
  Barrier workers;
  Warp warps[WARPS];
  std::map<u64*, Gate> gates;
};
struct Fiber {
  Index thread;
  Block* block;
  ucontext_t context;
  jmp_buf place;
  bool begun = false, done = false;
};
static Fiber* me;
static jmp_buf scheduler;

// A context starts a fiber; afterwards jumps switch fibers, without a system call.
static void yield_fiber() {
  if (!_setjmp(me->place)) _longjmp(scheduler, 1);
}
static void resume(Fiber& fiber) {
  me = &fiber;
  if (_setjmp(scheduler)) return;
  if (fiber.begun) _longjmp(fiber.place, 1);
  fiber.begun = true;
  setcontext(&fiber.context);
}
static void wait_at(Barrier& barrier, int needed) {
  long round = barrier.round;
  if (++barrier.arrived == needed) { barrier.arrived = 0; barrier.round++; return; }
  while (barrier.round == round) yield_fiber();
}

inline u32 lane_id() { return threadIdx.x & 31; }
inline u32 warp_id() { return threadIdx.x >> 5; }
inline u32 __float_as_uint(float x) { u32 bits; memcpy(&bits, &x, 4); return bits; }
inline float __uint_as_float(u32 bits) { float x; memcpy(&x, &bits, 4); return x; }
inline u32 to_bf16(float x) {
  u32 bits = __float_as_uint(x);
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
inline u32 pack(float first, float second) { return to_bf16(first) | to_bf16(second) << 16; }
inline float low(u32 pair) { return __uint_as_float(pair << 16); }
inline float high(u32 pair) { return __uint_as_float(pair & 0xffff0000u); }
inline float rounded(float x) { return low(pack(x, 0.f)); }
inline float quick_exp(float x) { return expf(x); }
inline float quick_ratio(float x, float y) { return x / y; }
inline float quick_root(float x) { return 1.f / sqrtf(x); }
inline float silu(float x) { return rounded(quick_ratio(x, 1.f + quick_exp(-x))); }

inline void sync_warp() { wait_at(me->block->warps[warp_id()].barrier, 32); }
inline void sync_workers() { wait_at(me->block->workers, WORKERS); }

inline void multiply(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  auto& words = me->block->warps[warp_id()].words;
  u32 mine[6] = {a[0], a[1], a[2], a[3], b0, b1};
  memcpy(words[lane_id()], mine, sizeof mine);
  sync_warp();
  for (int i = 0; i < 4; i++) {
    int row = lane_id() / 4, column = lane_id() % 4 * 2 + (i & 1), below = i >> 1;
    for (int k = 0; k < 16; k++) {
      u32 left = words[row * 4 + k % 8 / 2][k / 8 * 2 + below];
      u32 right = words[column * 4 + k % 8 / 2][4 + k / 8];
      d[i] += (k & 1) ? high(left) * high(right) : low(left) * low(right);
    }
  }
  sync_warp();
}

inline uint4 fresh16(const void* at) { return *(const uint4*)at; }
inline uint2 fresh8(const void* at) { return *(const uint2*)at; }
inline u32 fresh4(const void* at) { return *(const u32*)at; }

constexpr u32 NOTHING = 0xffffffffu;
inline void post4(void* at, u32 v) { *(u32*)at = v; }
inline void post8(void* at, uint2 v) { *(uint2*)at = v; }
inline void post16(void* at, uint4 v) { *(uint4*)at = v; }
inline void look_again(u32) { yield_fiber(); }

inline float from_lane(float x, int lane) {
  auto& words = me->block->warps[warp_id()].words;
  words[lane_id()][0] = __float_as_uint(x);
  sync_warp();
  float there = __uint_as_float(words[lane & 31][0]);
  sync_warp();
  return there;
}
inline float from_lane_xor(float x, int mask) { return from_lane(x, lane_id() ^ mask); }
inline float from_lane_below(float x, int distance) {
  int lane = (int)lane_id() - distance;
  return from_lane(x, lane < 0 ? lane_id() : lane);
}

inline void gate_open(u64* gate, u32 arrivals) {
  me->block->gates[gate] = {};
}
inline void gates_visible() {}
inline void gate_wait(u64* at, u32 parity) {
  while ((me->block->gates.at(at).round & 1) == parity) yield_fiber();
}
inline void fetch(void* to, const void* from, u32 bytes, u64* gate) {
  memcpy(to, from, bytes);
  me->block->gates.at(gate).round++;
}
inline void grid_arrive(u32* counter) { ++*counter; }
inline void grid_wait(u32* counter, u32 goal) {
  while (*counter < goal) yield_fiber();
}
inline u32 count_up(u32* counter) { return (*counter)++; }
inline void raise_to(u32* number, u32 least) { *number = *number < least ? least : *number; }

static std::function<void()> work;
static void enter() {
  work();
  me->done = true;
  yield_fiber();
}

// The stack of fiber `i`; kept for the next launch, since fresh pages cost more than the kernels.
static u8* stack_of(size_t i) {
  static std::vector<std::unique_ptr<u8[]>> stacks;
  while (stacks.size() <= i) stacks.emplace_back(new u8[STACK]);
  return stacks[i].get();
}

// Run `kernel` by blocks of WORKERS threads; false: they are deadlocked.
inline bool run_grid(int blocks, size_t shared, std::function<void()> kernel) {
  work = kernel;
  std::vector<std::unique_ptr<Block>> grid;
  std::vector<std::unique_ptr<Fiber>> fibers;
  for (int b = 0; b < blocks; b++) {
    grid.emplace_back(new Block{{(u32)b}, std::vector<u8>(shared)});
    for (u32 t = 0; t < WORKERS; t++) {
      fibers.emplace_back(new Fiber{{t}, grid.back().get()});
      Fiber& fiber = *fibers.back();
      getcontext(&fiber.context);
      fiber.context.uc_stack.ss_sp = stack_of(fibers.size() - 1);
      fiber.context.uc_stack.ss_size = STACK;
      makecontext(&fiber.context, enter, 0);
    }
  }
  size_t left = fibers.size();
  for (long turns = 0; left && turns < 10000000; turns++)
    for (auto& fiber : fibers)
      if (!fiber->done) {
        resume(*fiber);
        left -= fiber->done;
      }
  return left == 0;
}
