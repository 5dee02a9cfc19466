// Small kernels for many rows, one launch each, between cuBLAS products.

DEVICE float block_sum(float x, float* sums) {  // [WARPS]
  x = warp_sum(x);
  if (lane_id() == 0) sums[warp_id()] = x;
  sync_workers();
  float whole = 0;
  for (int i = 0; i < WARPS; i++) whole += sums[i];
  return whole;
}

// x [rows, WIDTH] += added; normed = x over its root mean square times weight. One block per row.
extern "C" __global__ void __launch_bounds__(WORKERS) add_norm(u16* x, const u16* added,
                                                               const u16* weight, u16* normed) {
  constexpr int EACH = WIDTH / WORKERS / 2;
  SHARED(sums);
  u64 row = (u64)blockIdx.x * WIDTH;
  u32 own[EACH];
  float squares = 0;
#pragma unroll
  for (int i = 0; i < EACH; i++) {
    int at = (i * WORKERS + threadIdx.x) * 2;
    own[i] = *(u32*)(x + row + at);
    if (added) {
      u32 other = *(const u32*)(added + row + at);
      own[i] = pack(low(own[i]) + low(other), high(own[i]) + high(other));
      *(u32*)(x + row + at) = own[i];
    }
    squares += low(own[i]) * low(own[i]) + high(own[i]) * high(own[i]);
  }
  float scale = quick_root(block_sum(squares, (float*)sums) * (1.f / WIDTH) + EPS);
#pragma unroll
  for (int i = 0; i < EACH; i++) {
    int at = (i * WORKERS + threadIdx.x) * 2;
    u32 w = *(const u32*)(weight + at);
    *(u32*)(normed + row + at) = pack(low(own[i]) * scale * low(w), high(own[i]) * scale * high(w));
  }
}

// [rows, 2 * INNER], gates first -> out [rows, INNER]. One block per row.
extern "C" __global__ void __launch_bounds__(WORKERS) gate(const u16* gates, u16* out) {
  const u16* row = gates + (u64)blockIdx.x * 2 * INNER;
  for (int at = threadIdx.x * 2; at < INNER; at += WORKERS * 2) {
    u32 g = *(const u32*)(row + at), up = *(const u32*)(row + INNER + at);
    u32 made = pack(silu(low(g)) * low(up), silu(high(g)) * high(up));
    *(u32*)(out + (u64)blockIdx.x * INNER + at) = made;
  }
}

// qkv [rows, QKV] of one position -> attended [rows, HEADS * HEAD_DIM]. keys and values
// [rows, KV_HEADS, POSITIONS, HEAD_DIM]. One warp per row and group of heads.
extern "C" __global__ void __launch_bounds__(WORKERS)
    attend_rows(const u16* qkv, u16* keys, u16* values, const float* norms, const float* rotary,
                u16* attended, int position, int rows) {
  int task = blockIdx.x * WARPS + warp_id();
  if (task >= rows * KV_HEADS) return;
  u64 row = task / KV_HEADS, at = (u64)task * POSITIONS * HEAD_DIM;
  attend(qkv + row * QKV, task % KV_HEADS, position, keys + at, values + at, norms,
         rotary + position * 2 * HEAD_DIM, [&](int dimension, uint2 pairs) {
           *(uint2*)(attended + row * HEADS * HEAD_DIM + dimension) = pairs;
         });
}

// logits [rows, CODES] -> codes[row, book], and its embedding from inputs [CODES, WIDTH] to
// x [rows, WIDTH]. One block per row.
extern "C" __global__ void __launch_bounds__(WORKERS)
    draw_rows(const u16* logits, const float* inverse_temperature, const float* top_k,
              const float* top_p, const float* sample_mask, const float* uniforms, const u16* inputs,
              u64* codes, u16* x, int book, int count, int setting_stride, int uniform_stride) {
  constexpr int EACH = CODES / WORKERS;
  SHARED(shared);  // [2, CODES] keys, words
  u64 row = blockIdx.x, at_row = row * setting_stride, keys[EACH];
  SamplingTensors sampling = {inverse_temperature[at_row], top_k[at_row], top_p[at_row], sample_mask[at_row]};
#pragma unroll
  for (int i = 0; i < EACH; i += 2) {
    u32 id = i * WORKERS + threadIdx.x * 2, pair = *(const u32*)(logits + row * CODES + id);
    keys[i] = key_of(low(pair), id), keys[i + 1] = key_of(high(pair), id + 1);
  }
  u32* words = (u32*)(shared + CODES * 16);
  u32 code = choose<EACH>((u64*)shared, words, count, sampling, uniforms[row * uniform_stride + book], keys);
  for (int i = threadIdx.x * 8; i < WIDTH; i += WORKERS * 8)
    *(uint4*)(x + row * WIDTH + i) = *(const uint4*)(inputs + (u64)code * WIDTH + i);
  if (threadIdx.x == 0) codes[row * BOOKS + book] = code;
}

// The sum of all embeddings, rounded after each as tensors are: first [rows, WIDE] and
// embeddings [BOOKS] of [CODES, WIDE] -> total. One block per row.
extern "C" __global__ void __launch_bounds__(WORKERS)
    sum_rows(const u16* first, const u16* const* embeddings, const u64* codes, u16* total) {
  add_embeddings(first, embeddings, codes, total, blockIdx.x);
}
