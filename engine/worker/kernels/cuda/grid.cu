// One position of every row through a transformer's layers, by a grid of blocks that are all
// resident, one a multiprocessor.
//
// A layer is five phases with a barrier of the whole grid after each: queries, keys and values;
// attention; its projection; gate and up; down. A product whose weights for this block do not
// fit in shared memory is made in parts of fewer columns.
//
// A launch may have several such grids, crews, that never wait for each other: each takes rows of
// its own through all of the layers.

DEVICE u32 own_block() { return blockIdx.x % GRID; }
DEVICE u32 own_crew() { return blockIdx.x / GRID; }

constexpr int MIXED = HEADS * HEAD_DIM;
// This block's columns, in stages of eight, and stages of a part:
constexpr int QKV_COLUMNS = QKV / 8 / GRID, QKV_STAGES = QKV_COLUMNS / QKV_PARTS * (WIDTH / SLAB);
constexpr int OUT_COLUMNS = WIDTH / 8 / GRID, MIX_STAGES = OUT_COLUMNS / MIX_PARTS * (MIXED / SLAB);
constexpr int GATE_COLUMNS = 2 * INNER / 8 / GRID;
constexpr int GATE_STAGES = GATE_COLUMNS / GATE_PARTS * (WIDTH / SLAB);
constexpr int DOWN_STAGES = OUT_COLUMNS / DOWN_PARTS * (INNER / SLAB);
constexpr int LAYER_STAGES = QKV_STAGES * QKV_PARTS + MIX_STAGES * MIX_PARTS +
                             GATE_STAGES * GATE_PARTS + DOWN_STAGES * DOWN_PARTS;
static_assert(QKV_STAGES <= STAGES && MIX_STAGES <= STAGES && GATE_STAGES <= STAGES &&
                  DOWN_STAGES <= STAGES, "a part's weights lie there");
static_assert(GATE_COLUMNS / GATE_PARTS % 2 == 0, "gates and ups lie in the same part");
// Shared memory beside the weights: a product's sums or a draw's keys, own columns, words.
constexpr int SPACE = PRODUCTS + OWN * OUT_COLUMNS * 16 + WORDS;

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

// shared: [STAGES, STAGE] weights, which begin to come, [SPACE], [STAGES] gates.
template <class Runs> DEVICE State begin(u8* shared, const Runs& runs, u32* barrier) {
  u64* gates = (u64*)(shared + STAGES * STAGE + SPACE);
  Ring ring = {shared, gates};
  if (threadIdx.x == WORKERS - 1) {
    for (int i = 0; i < STAGES; i++) gate_open(gates + i, 1);
    gates_visible();
    ring.fill(runs, STAGES);
  }
  sync_workers();
  return {ring, shared + STAGES * STAGE, barrier, 0};
}

// What lies between the phases, and how many rows it has.
struct Between {
  u16* x;      // [rows, WIDTH]
  u16* qkv;    // [rows, QKV]
  u16* mixed;  // [rows, MIXED]
  u16* gated;  // [rows, INNER]
  int rows;
};

// Of this block's columns.
DEVICE void put_pair(u16* to, int width, int own, int row, int column, Pair made) {
  *(u32*)(to + (u64)row * width + own_block() * own * 8 + column) = pack(made.even, made.odd);
}

// The residual: `before` is where x lies at first, later it is at hand.
DEVICE void add_pair(State& s, u16* x, const u16* before, int row, int column, Pair made) {
  u64 at = (u64)row * WIDTH + own_block() * OUT_COLUMNS * 8 + column;
  u32& own = s.own()[row * OUT_COLUMNS * 4 + column / 2];
  u32 old = before ? fresh4(before + at) : own;
  own = pack(low(old) + made.even, high(old) + made.odd);
  *(u32*)(x + at) = own;
}

// A product in parts of this block's COLUMNS; emit as for one.
template <int COLUMNS, int PARTS, int SLABS, bool NORMED, bool GATED, class Runs, class Emit>
DEVICE void in_parts(State& s, const Runs& runs, const u16* source, int rows, Emit emit) {
  constexpr int SOME = COLUMNS / PARTS, MADE = GATED ? SOME / 2 : SOME;
  for (int part = 0; part < PARTS; part++) {
    product<SOME, SLABS, NORMED, GATED>(
        s.ring, runs, s.space(), source, rows,
        [&](int row, int column, Pair made) { emit(row, part * MADE * 8 + column, made); });
    if (PARTS > 1) sync_workers();  // the next part uses the same space
  }
}

// `input` -> x; both are at hand where `input` is x of the layer before, and `before` is none.
// attend() makes mixed of qkv; with `keys_only` that is all.
template <class Runs, class Attend>
DEVICE void run_layer(State& s, const Runs& runs, const Between& to, const u16* input,
                      const u16* before, bool keys_only, Attend attend) {
  in_parts<QKV_COLUMNS, QKV_PARTS, WIDTH / SLAB, true, false>(
      s, runs, input, to.rows, [&](int row, int column, Pair made) {
        put_pair(to.qkv, QKV, QKV_COLUMNS, row, column, made);
      });
  s.sync();
  attend();
  s.sync();
  if (keys_only) return;
  in_parts<OUT_COLUMNS, MIX_PARTS, MIXED / SLAB, false, false>(
      s, runs, to.mixed, to.rows,
      [&](int row, int column, Pair made) { add_pair(s, to.x, before, row, column, made); });
  s.sync();
  in_parts<GATE_COLUMNS, GATE_PARTS, WIDTH / SLAB, true, true>(
      s, runs, to.x, to.rows, [&](int row, int column, Pair made) {
        put_pair(to.gated, INNER, GATE_COLUMNS / 2, row, column, made);
      });
  s.sync();
  in_parts<OUT_COLUMNS, DOWN_PARTS, INNER / SLAB, false, false>(
      s, runs, to.gated, to.rows,
      [&](int row, int column, Pair made) { add_pair(s, to.x, nullptr, row, column, made); });
  s.sync();
}

// The last block to leave puts the barrier back for the next launch.
DEVICE void leave(u32* barrier) {
  if (threadIdx.x == 0 && count_up(barrier + 1) == GRID - 1) barrier[0] = 0, barrier[1] = 0;
}
