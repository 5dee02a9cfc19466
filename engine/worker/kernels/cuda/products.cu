// Products of a few rows with streamed weights: out[row, column] for this block's columns.
//
// Weights come in stages of 8 columns and SLAB inputs, in the order of use, through a ring that is
// refilled as soon as a product is done with its stages. The inputs of a slab are split into 8
// chunks. A chunk is summed in order and the chunks are added as a tree, however the warps share
// them: a row's result does not depend on the number of rows.

constexpr int CHUNK = SLAB / 8;         // inputs
constexpr int BLOCKS = CHUNK / 32;      // of 32 inputs: 16 bytes a lane
constexpr int STAGE = 8 * SLAB * 2;     // bytes
constexpr int SPLIT = WARPS / TILES;    // warps that share a tile of 16 rows
constexpr int AHEAD = 3;  // steps of activations in registers

// Consecutive weights of this block: `left` stages, GRID stages apart.
struct Run { const u8* next; int left; };

// A ring of stages in shared memory, filled from a launch's runs in order.
struct Ring {
  u8* stages;  // [STAGES, STAGE]
  u64* full;   // [STAGES]
  u32 at, phase;  // the next stage to be used, and the parity of the ring's rounds
  u32 to;        // the next stage to be filled
  Run run;
  int number;

  // Called by one thread when no thread reads those stages any more.
  template <class Runs> DEVICE void fill(const Runs& runs, int count) {
    for (; count; count--) {
      while (run.left == 0 && number < runs.count()) run = runs(number++);
      if (run.left == 0) return;
      fetch(stages + to * STAGE, run.next, STAGE, full + to);
      run.next += (u64)GRID * STAGE, run.left--;
      to = to + 1 == STAGES ? 0 : to + 1;
    }
  }
  DEVICE void wait(int count) const {
    for (int c = 0; c < count; c++) {
      u32 stage = at + c;
      bool round = stage >= STAGES;
      gate_wait(full + (round ? stage - STAGES : stage), phase ^ round);
    }
  }
  DEVICE void advance(int count) {
    at += count;
    if (at >= STAGES) at -= STAGES, phase ^= 1;
  }
};

struct Block32 { u32 step[2][4]; };  // activations of 16 rows and 32 inputs, in the order of `multiply`
struct Chunk { Block32 block[BLOCKS]; };

// Inputs [first, first + CHUNK) of rows g and g + 8 of a tile. A lane's 16 bytes of a row are
// inputs in sequence: weights are laid out in the same order.
DEVICE Chunk load_chunk(const u16* source, int stride, int tile, int first, int rows) {
  Chunk chunk;
  int row = tile * 16 + lane_id() / 4, input = first + lane_id() % 4 * 8;
  uint4 none = {0, 0, 0, 0};
#pragma unroll
  for (int b = 0; b < BLOCKS; b++) {
    const u16* at = source + (u64)row * stride + input + b * 32;
    uint4 upper = row < rows ? fresh16(at) : none;
    uint4 lower = row + 8 < rows ? fresh16(at + 8 * stride) : none;
    u32 (&step)[2][4] = chunk.block[b].step;
    step[0][0] = upper.x, step[0][2] = upper.y, step[1][0] = upper.z, step[1][2] = upper.w;
    step[0][1] = lower.x, step[0][3] = lower.y, step[1][1] = lower.z, step[1][3] = lower.w;
  }
  return chunk;
}

DEVICE bool missing(const Chunk& chunk) {
  u32 most = 0;
#pragma unroll
  for (int b = 0; b < BLOCKS; b++)
#pragma unroll
    for (int i = 0; i < 8; i++) {
      u32 word = chunk.block[b].step[i >> 2][i & 3];
      most = most > word ? most : word;
    }
  return most == NOTHING;
}

DEVICE float square_of(u32 pair) { return low(pair) * low(pair) + high(pair) * high(pair); }

// Sums of squares of rows g and g + 8.
DEVICE void add_squares(float (&sums)[2], const Chunk& chunk) {
#pragma unroll
  for (int b = 0; b < BLOCKS; b++)
#pragma unroll
    for (int i = 0; i < 8; i++) sums[i & 1] += square_of(chunk.block[b].step[i >> 2][i & 3]);
}

// Independent accumulators, so that products of few columns do not wait for each other: of every
// other step of inputs, and of every other slab.
DEVICE constexpr int chains_of(int columns) { return columns == 1 ? 4 : columns == 2 ? 2 : 1; }

template <int COLUMNS> struct Sums { float chain[chains_of(COLUMNS)][COLUMNS][4]; };

template <int COLUMNS> DEVICE void add_chunk(Sums<COLUMNS>& sums, const Chunk& chunk,
                                             const Ring& ring, int first, int slab) {
  constexpr int CHAINS = chains_of(COLUMNS);
  int even = CHAINS == 4 ? slab % 2 * 2 : 0, odd = even + (CHAINS > 1);
#pragma unroll
  for (int c = 0; c < COLUMNS; c++) {
    u32 stage = ring.at + c >= STAGES ? ring.at + c - STAGES : ring.at + c;
    const u8* at = ring.stages + stage * STAGE + first * 16 + lane_id() * 16;
#pragma unroll
    for (int b = 0; b < BLOCKS; b++) {
      uint4 w = *(const uint4*)(at + b * 512);
      multiply(sums.chain[even][c], chunk.block[b].step[0], w.x, w.y);
      multiply(sums.chain[odd][c], chunk.block[b].step[1], w.z, w.w);
    }
  }
}

// Add the chains into the first.
template <int COLUMNS> DEVICE void add_chains(Sums<COLUMNS>& sums) {
  constexpr int CHAINS = chains_of(COLUMNS);
#pragma unroll
  for (int span = 1; span < CHAINS; span *= 2)
#pragma unroll
    for (int i = 0; i + span < CHAINS; i += 2 * span)
#pragma unroll
      for (int c = 0; c < COLUMNS * 4; c++)
        sums.chain[i][c / 4][c % 4] += sums.chain[i + span][c / 4][c % 4];
}

// The four lanes of a row have different inputs.
DEVICE void add_quads(float (&sums)[TILES][2]) {
#pragma unroll
  for (int c = 0; c < TILES; c++)
#pragma unroll
    for (int i = 0; i < 2; i++) {
      sums[c][i] += from_lane_xor(sums[c][i], 1);
      sums[c][i] += from_lane_xor(sums[c][i], 2);
    }
}

// The tree over one warp's chunks.
template <int N> DEVICE void add_tree(float (&parts)[TILES][N]) {
#pragma unroll
  for (int span = 1; span < TILES; span *= 2)
#pragma unroll
    for (int c = 0; c + span < TILES; c += 2 * span)
#pragma unroll
      for (int i = 0; i < N; i++) parts[c][i] += parts[c + span][i];
}

// The tree over the warps' chunks of a row: a pair of results each, `stride` floats apart.
struct Pair { float even, odd; };

DEVICE Pair tree_of(const float* parts, int stride) {
  Pair sums[SPLIT];
#pragma unroll
  for (int i = 0; i < SPLIT; i++) sums[i] = *(const Pair*)(parts + i * stride);
#pragma unroll
  for (int span = 1; span < SPLIT; span *= 2)
#pragma unroll
    for (int i = 0; i + span < SPLIT; i += 2 * span)
      sums[i].even += sums[i + span].even, sums[i].odd += sums[i + span].odd;
  return sums[0];
}

// The chunks' sums, [WARPS, COLUMNS, 32, 4], and the squares of rows g and g + 8,
// [WARPS, 8, 2].
template <int COLUMNS>
DEVICE void share(float* space, const float (&sums)[COLUMNS * 4], const float (&squares)[2]) {
  float4* mine = (float4*)space + warp_id() * COLUMNS * 32 + lane_id();
#pragma unroll
  for (int c = 0; c < COLUMNS; c++)
    mine[c * 32] = make_float4(sums[c * 4], sums[c * 4 + 1], sums[c * 4 + 2], sums[c * 4 + 3]);
  float2* squared = (float2*)(space + WARPS * COLUMNS * 128) + warp_id() * 8;
  if (lane_id() % 4 == 0) squared[lane_id() / 4] = make_float2(squares[0], squares[1]);
  sync_workers();
}

// emit(row, column, pair) receives columns `column` and `column + 1` of each row.
// With NORMED they are divided by the root mean square of the row's inputs. With GATED the first
// half of the block's columns are gates, and `emit` receives the gated other half.
template <int COLUMNS, int INPUTS, bool NORMED, bool GATED, class Emit>
DEVICE void finish(const float* space, int rows, Emit emit) {
  constexpr int MADE = GATED ? COLUMNS / 2 : COLUMNS;
  const float* squared = space + WARPS * COLUMNS * 128;
  // A lane has four results: rows g and g + 8 of columns 2t and 2t + 1. A thread takes one row's.
  for (int i = threadIdx.x; i < TILES * MADE * 64; i += WORKERS) {
    int below = i & 1, lane = i >> 1 & 31, c = (i >> 6) % MADE, t = (i >> 6) / MADE;
    int row = t * 16 + lane / 4 + below * 8;
    if (row >= rows) continue;
    float scale = 1.f;
    if (NORMED) {
      Pair both = tree_of(squared + t * SPLIT * 16 + lane / 4 * 2, 16);
      scale = quick_root((below ? both.odd : both.even) * (1.f / INPUTS) + EPS);
    }
    auto result = [&](int column) -> Pair {
      const float* at = space + ((t * SPLIT * COLUMNS + column) * 32 + lane) * 4 + below * 2;
      Pair made = tree_of(at, COLUMNS * 128);
      return {rounded(made.even * scale), rounded(made.odd * scale)};
    };
    Pair made = result(c);
    if (GATED) {
      Pair up = result(c + MADE);
      made = {silu(made.even) * up.even, silu(made.odd) * up.odd};
    }
    emit(row, c * 8 + lane % 4 * 2, made);
  }
}

// source [rows, SLABS * SLAB] times this block's COLUMNS * 8 columns. `posted`: other blocks may
// still be posting it.
template <int COLUMNS, int SLABS, bool NORMED, bool GATED, class Runs, class Emit>
DEVICE void product(Ring& ring, const Runs& runs, float* space, const u16* source, bool posted,
                    int rows, Emit emit) {
  constexpr int STEPS = SLABS * TILES, INPUTS = SLABS * SLAB;
  constexpr int KEPT = AHEAD < STEPS ? AHEAD : STEPS;
  int tile = warp_id() / SPLIT, part = warp_id() % SPLIT;
  Sums<COLUMNS> sums[TILES] = {};
  float squares[TILES][2] = {};
  Chunk chunks[KEPT];
  auto load = [&](int step) {
    int first = step / TILES * SLAB + (part * TILES + step % TILES) * CHUNK;
    return load_chunk(source, INPUTS, tile, first, rows);
  };
#pragma unroll
  for (int step = 0; step < KEPT; step++) chunks[step] = load(step);
#pragma unroll
  for (int step = 0; step < STEPS; step++) {
    int c = step % TILES;
    if (posted) {
      for (u32 looks = 0; missing(chunks[step % KEPT]); looks++)
        look_again(looks), chunks[step % KEPT] = load(step);
      sync_warp();
    }
    if (c == 0) ring.wait(COLUMNS);
    add_chunk<COLUMNS>(sums[c], chunks[step % KEPT], ring, (part * TILES + c) * CHUNK,
                       step / TILES);
    if (NORMED) add_squares(squares[c], chunks[step % KEPT]);
    if (step + KEPT < STEPS) chunks[step % KEPT] = load(step + KEPT);
    if (c == TILES - 1) ring.advance(COLUMNS);
  }
  float whole[TILES][COLUMNS * 4];
#pragma unroll
  for (int c = 0; c < TILES; c++) {
    add_chains(sums[c]);
#pragma unroll
    for (int i = 0; i < COLUMNS * 4; i++) whole[c][i] = sums[c].chain[0][i / 4][i % 4];
  }
  add_tree<COLUMNS * 4>(whole);
  if (NORMED) add_quads(squares), add_tree<2>(squares);
  share<COLUMNS>(space, whole[0], squares[0]);
  if (threadIdx.x == WORKERS - 1) ring.fill(runs, COLUMNS * SLABS);
  finish<COLUMNS, INPUTS, NORMED, GATED>(space, rows, emit);
}
