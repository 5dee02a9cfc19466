// A frame's codebooks 1-15 in one launch: a block a multiprocessor, all of them resident.
//
// A pass is one position through all layers; a layer is five phases with a barrier of the whole
// grid after each: queries, keys and values; attention; its projection; gate and up; down.
// After a pass come a head's logits and the draws, a row's by one block.

constexpr int MIXED = HEADS * HEAD_DIM;
// This block's columns, in stages of eight, and stages:
constexpr int QKV_COLUMNS = QKV / 8 / GRID, QKV_STAGES = QKV_COLUMNS * (WIDTH / SLAB);
constexpr int OUT_COLUMNS = WIDTH / 8 / GRID, MIX_STAGES = OUT_COLUMNS * (MIXED / SLAB);
constexpr int GATE_COLUMNS = 2 * INNER / 8 / GRID, GATE_STAGES = GATE_COLUMNS * (WIDTH / SLAB);
constexpr int DOWN_STAGES = OUT_COLUMNS * (INNER / SLAB);
constexpr int HEAD_COLUMNS = CODES / 8 / GRID, HEAD_STAGES = HEAD_COLUMNS * (WIDTH / SLAB);
constexpr int LAYER_STAGES = QKV_STAGES + MIX_STAGES + GATE_STAGES + DOWN_STAGES;
static_assert(QKV_STAGES <= STAGES && MIX_STAGES <= STAGES && GATE_STAGES <= STAGES &&
                  DOWN_STAGES <= STAGES && HEAD_STAGES <= STAGES, "a product's weights lie there");
static_assert(GATE_COLUMNS % 2 == 0, "gates and ups lie in the same block");
// Shared memory beside the weights: a product's sums or a draw's keys, own columns, words.
constexpr int SPACE = PRODUCTS + OWN * OUT_COLUMNS * 16 + WORDS;

struct Frame {
  const u8* layers;     // [LAYERS, LAYER_STAGES, GRID, STAGE]
  const u8* heads;      // [BOOKS, HEAD_STAGES, GRID, STAGE]
  const float* norms;   // [LAYERS, 2, HEAD_DIM] of queries and keys
  const float* turns;   // [POSITIONS, 2, HEAD_DIM]
  const u16* inputs;    // [BOOKS, CODES, WIDTH] embeddings as the predictor takes them
  const u16* const* embeddings;  // [BOOKS] of [CODES, WIDE]
  const u16* begin;     // [2, rows, WIDTH]: the talker's hidden state, codebook 0
  const u16* first;     // [rows, WIDE] codebook 0 as the talker takes it
  const float* inverse_temperature;  // a column each
  const float* top_k;
  const float* top_p;
  const float* luck;
  const float* lots;    // [rows, BOOKS]
  u64* codes;           // [rows, BOOKS]
  u16* total;           // [rows, WIDE]
  u16* x;               // [rows, WIDTH] and all below: between phases
  u16* qkv;             // [rows, QKV]
  u16* mixed;           // [rows, MIXED]
  u16* gated;           // [rows, INNER]
  u16* logits;          // [rows, CODES]
  u16* keys;            // [LAYERS, rows, KV_HEADS, POSITIONS, HEAD_DIM]
  u16* values;
  u32* barrier;         // [2]: arrivals, blocks that have left
  int rows, count, knob_stride, lot_stride;
};

struct State {
  Ring ring;
  u8* shared;  // [SPACE]
  u32* barrier;
  u32 goal;

  DEVICE float* space() const { return (float*)shared; }
  // Pairs of x in this block's columns, [TILES * 16, OUT_COLUMNS * 4].
  DEVICE u32* own() const { return (u32*)(shared + PRODUCTS); }
  DEVICE u32* words() const { return (u32*)(shared + SPACE - WORDS); }
  // What any block has written is there for all.
  DEVICE void sync() {
    sync_workers();
    goal += GRID;
    if (threadIdx.x == 0) grid_arrive(barrier), grid_wait(barrier, goal);
    sync_workers();
  }
};

// The weights in the order of use: the layers, then but for the first position a head. The first
// position's last layer leaves its keys and values only.
struct Runs {
  const Frame& frame;

  DEVICE int count() const { return 2 * POSITIONS; }
  DEVICE Run operator()(int number) const {
    constexpr int ALL = LAYERS * LAYER_STAGES, LAST = LAYER_STAGES - QKV_STAGES;
    int pass = number / 2;
    u64 own = blockIdx.x, head = (u64)(pass - 1) * HEAD_STAGES;
    if (number % 2 == 0)
      return {frame.layers + own * STAGE, pass ? ALL : ALL - LAST};
    return {frame.heads + (head * GRID + own) * STAGE, pass ? HEAD_STAGES : 0};
  }
};

// Of this block's columns.
DEVICE void put_pair(u16* to, int width, int own, int row, int column, Pair made) {
  *(u32*)(to + (u64)row * width + blockIdx.x * own * 8 + column) = pack(made.even, made.odd);
}

// The residual: `before` is where x lies at first, later it is at hand.
DEVICE void add_pair(State& s, u16* x, const u16* before, int row, int column, Pair made) {
  u64 at = (u64)row * WIDTH + blockIdx.x * OUT_COLUMNS * 8 + column;
  u32& own = s.own()[row * OUT_COLUMNS * 4 + column / 2];
  u32 old = before ? fresh4(before + at) : own;
  own = pack(low(old) + made.even, high(old) + made.odd);
  *(u32*)(x + at) = own;
}

DEVICE void attend_all(const Frame& frame, int layer, int position) {
  constexpr u64 SIZE = POSITIONS * HEAD_DIM;
  int tasks = frame.rows * KV_HEADS;
  for (int task = blockIdx.x + GRID * warp_id(); task < tasks; task += GRID * WARPS) {
    u64 row = task / KV_HEADS, at = ((u64)layer * tasks + task) * SIZE;
    attend(frame.qkv + row * QKV, task % KV_HEADS, position, frame.keys + at, frame.values + at,
           frame.norms + layer * 2 * HEAD_DIM, frame.turns + position * 2 * HEAD_DIM,
           [&](int dimension, uint2 pairs) {
             *(uint2*)(frame.mixed + row * MIXED + dimension) = pairs;
           });
  }
}

// `input`, which is x but in the first layer of the first positions, -> x.
DEVICE void run_layer(State& s, const Frame& frame, const u16* input, int layer, int position) {
  Runs runs{frame};
  int rows = frame.rows;
  product<QKV_COLUMNS, WIDTH / SLAB, true, false>(
      s.ring, runs, s.space(), input, rows, [&](int row, int column, Pair made) {
        put_pair(frame.qkv, QKV, QKV_COLUMNS, row, column, made);
      });
  s.sync();
  attend_all(frame, layer, position);
  s.sync();
  if (position == 0 && layer == LAYERS - 1) return;
  product<OUT_COLUMNS, MIXED / SLAB, false, false>(
      s.ring, runs, s.space(), frame.mixed, rows, [&](int row, int column, Pair made) {
        add_pair(s, frame.x, layer ? nullptr : input, row, column, made);
      });
  s.sync();
  product<GATE_COLUMNS, WIDTH / SLAB, true, true>(
      s.ring, runs, s.space(), frame.x, rows, [&](int row, int column, Pair made) {
        put_pair(frame.gated, INNER, GATE_COLUMNS / 2, row, column, made);
      });
  s.sync();
  product<OUT_COLUMNS, INNER / SLAB, false, false>(
      s.ring, runs, s.space(), frame.gated, rows, [&](int row, int column, Pair made) {
        add_pair(s, frame.x, nullptr, row, column, made);
      });
  s.sync();
}

DEVICE u32 draw_row(const State& s, const Frame& frame, int row, int book) {
  constexpr int EACH = CODES / WORKERS;
  u64 knob = (u64)row * frame.knob_stride, keys[EACH];
  Knobs own = {frame.inverse_temperature[knob], frame.top_k[knob], frame.top_p[knob],
               frame.luck[knob]};
  float lot = frame.lots[(u64)row * frame.lot_stride + book];
#pragma unroll
  for (int i = 0; i < EACH; i += 2) {
    u32 id = i * WORKERS + threadIdx.x * 2;
    u32 pair = fresh4(frame.logits + (u64)row * CODES + id);
    keys[i] = key_of(low(pair), id), keys[i + 1] = key_of(high(pair), id + 1);
  }
  return choose<EACH>((u64*)s.shared, s.words(), frame.count, own, lot, keys);
}

// Draw this block's rows, and lay out the next position's input.
DEVICE void draw_rows(const State& s, const Frame& frame, int book) {
  for (int row = blockIdx.x; row < frame.rows; row += GRID) {
    u32 code = draw_row(s, frame, row, book);
    const u16* input = frame.inputs + ((u64)book * CODES + code) * WIDTH;
    for (int i = threadIdx.x * 8; i < WIDTH; i += WORKERS * 8)
      *(uint4*)(frame.x + (u64)row * WIDTH + i) = *(const uint4*)(input + i);
    if (threadIdx.x == 0) frame.codes[(u64)row * BOOKS + book] = code;
  }
}

DEVICE void run_passes(State s, const Frame& frame) {
  for (int pass = 0; pass < POSITIONS; pass++) {
    for (int layer = 0; layer < LAYERS; layer++) {
      const u16* begin = frame.begin + (u64)pass * frame.rows * WIDTH;
      run_layer(s, frame, layer == 0 && pass < 2 ? begin : frame.x, layer, pass);
    }
    if (pass == 0) continue;
    product<HEAD_COLUMNS, WIDTH / SLAB, true, false>(
        s.ring, Runs{frame}, s.space(), frame.x, frame.rows, [&](int row, int column, Pair made) {
          put_pair(frame.logits, CODES, HEAD_COLUMNS, row, column, made);
        });
    s.sync();
    draw_rows(s, frame, pass - 1);
    s.sync();
  }
  for (int row = blockIdx.x; row < frame.rows; row += GRID)
    add_embeddings(frame.first, frame.embeddings, frame.codes, frame.total, row);
}

// The last block to leave puts the barrier back for the next launch.
DEVICE void leave(u32* barrier) {
  if (threadIdx.x == 0 && count_up(barrier + 1) == GRID - 1) barrier[0] = 0, barrier[1] = 0;
}

extern "C" __global__ void __launch_bounds__(WORKERS, 1) predict(const Frame frame) {
  SHARED(shared);  // [STAGES, STAGE] weights, [SPACE], [STAGES] gates
  u64* gates = (u64*)(shared + STAGES * STAGE + SPACE);
  Ring ring = {shared, gates};
  if (threadIdx.x == WORKERS - 1) {
    for (int i = 0; i < STAGES; i++) gate_open(gates + i, 1);
    gates_visible();
    ring.fill(Runs{frame}, STAGES);
  }
  sync_workers();
  run_passes({ring, shared + STAGES * STAGE, frame.barrier, 0}, frame);
  leave(frame.barrier);
}
