// Numbers, matrix fragments, copies and barriers of the GPU. Needs sm_90; no headers.
// The tests have each primitive for the CPU (twin.cpp), so that the other sources run there.

#define DEVICE __device__ __forceinline__
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

constexpr int WARPS = 8;
constexpr int WORKERS = WARPS * 32;

DEVICE u32 lane_id() { return threadIdx.x & 31; }
DEVICE u32 warp_id() { return threadIdx.x >> 5; }

// bf16 pairs: the lower half is the first number.
DEVICE u32 pack(float first, float second) {
  u32 both;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
  return both;
}
DEVICE float low(u32 pair) { return __uint_as_float(pair << 16); }
DEVICE float high(u32 pair) { return __uint_as_float(pair & 0xffff0000u); }
DEVICE float rounded(float x) { return low(pack(x, 0.f)); }
// Nearly exact, in few instructions.
DEVICE float quick_exp(float x) { return __expf(x); }
DEVICE float quick_ratio(float x, float y) { return __fdividef(x, y); }
DEVICE float quick_root(float x) { return rsqrtf(x); }  // reciprocal square root
DEVICE float silu(float x) { return rounded(quick_ratio(x, 1.f + quick_exp(-x))); }

// d[16, 8] += a[16, 16] b[16, 8]
DEVICE void multiply(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Reads of memory that other blocks write: past the L1 cache, which does not see them. Relaxed where they are
// repeated until another block has written: the assembler moves other loads out of the loop.
#if POSTED
#define FRESH "ld.relaxed.gpu.global"
#else
#define FRESH "ld.global.cg"
#endif
DEVICE uint4 fresh16(const void* at) {
  uint4 v;
  asm volatile(FRESH ".v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(at) : "memory");
  return v;
}
DEVICE uint2 fresh8(const void* at) {
  uint2 v;
  asm volatile(FRESH ".v2.u32 {%0,%1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(at) : "memory");
  return v;
}
DEVICE u32 fresh4(const void* at) {
  u32 v;
  asm volatile(FRESH ".u32 %0, [%1];" : "=r"(v) : "l"(at) : "memory");
  return v;
}

// Numbers that other blocks post: a consumer reads them again until they are there, so it needs no
// barrier. `pack` never makes NOTHING, which lies there before.
constexpr u32 NOTHING = 0xffffffffu;
DEVICE void post4(void* at, u32 v) {
  asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" :: "l"(at), "r"(v) : "memory");
}
DEVICE void post8(void* at, uint2 v) {
  asm volatile("st.relaxed.gpu.global.v2.u32 [%0], {%1,%2};"
               :: "l"(at), "r"(v.x), "r"(v.y) : "memory");
}
DEVICE void post16(void* at, uint4 v) {
  asm volatile("st.relaxed.gpu.global.v4.u32 [%0], {%1,%2,%3,%4};"
               :: "l"(at), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}
DEVICE void look_again(u32 looks) {
  if (looks == 1u << 24) __trap();  // some ten seconds: an error rather than waiting forever
}

template <class T> DEVICE T from_lane_xor(T x, int mask) {
  return __shfl_xor_sync(0xffffffffu, x, mask);
}
DEVICE float from_lane_below(float x, int distance) {
  return __shfl_up_sync(0xffffffffu, x, distance);
}
DEVICE float from_lane(float x, int lane) { return __shfl_sync(0xffffffffu, x, lane); }
DEVICE void sync_warp() { __syncwarp(); }
DEVICE void sync_workers() { asm volatile("bar.sync 1, 256;" ::: "memory"); }

// Shared memory and the barriers that the copy engine completes.
DEVICE u32 shared_address(const void* at) { return (u32)__cvta_generic_to_shared(at); }

DEVICE void gate_open(u64* gate, u32 arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;"
               :: "r"(shared_address(gate)), "r"(arrivals) : "memory");
}
DEVICE void gates_visible() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
DEVICE void gate_wait(u64* gate, u32 parity) {
  asm volatile(
      "{\n .reg .pred done;\n"
      "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra through;\n bra again;\n through:\n}\n"
      :: "r"(shared_address(gate)), "r"(parity) : "memory");
}
// Global to shared memory; the gate completes when all bytes have arrived.
DEVICE void fetch(void* to, const void* from, u32 bytes, u64* gate) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
               :: "r"(shared_address(gate)), "r"(bytes) : "memory");
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
      :: "r"(shared_address(to)), "l"(from), "r"(bytes), "r"(shared_address(gate)) : "memory");
}

// Barrier of the whole grid, called by one thread of each block.
DEVICE void grid_arrive(u32* counter) {
  asm volatile("red.release.gpu.global.add.u32 [%0], 1;" :: "l"(counter) : "memory");
}
DEVICE void grid_wait(u32* counter, u32 goal) {
  u32 seen = 0;
  for (u32 looks = 0; seen < goal; looks++) {
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(counter) : "memory");
    if (looks == 1u << 26) __trap();  // a minute: an error rather than waiting forever
  }
}
DEVICE u32 count_up(u32* counter) { return atomicAdd(counter, 1u); }
DEVICE void raise_to(u32* number, u32 least) { atomicMax(number, least); }

#define SHARED(name) extern __shared__ __align__(128) u8 name[]
