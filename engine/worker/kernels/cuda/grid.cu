// One position of every row through a transformer's layers, by a grid of resident blocks, one per
// multiprocessor.
//
// A layer is five phases with a barrier of the whole grid after each: queries, keys and values;
// attention; its projection; gate and up; down. A product whose weights for this block do not
// fit in shared memory is computed in parts of fewer columns.
//
// A launch may have several such grids, its partitions, which never wait for each other: each runs
// its own rows through all layers.
//
// POSTED: for few rows there are no such barriers. Each layer has activations of its own, in which
// there is NOTHING before, and blocks read them until all of it has been posted. A launch uses one
// half of that memory and clears the other, which the launch before has used.

DEVICE u32 block_id() { return blockIdx.x % GRID; }
DEVICE u32 partition_id() { return blockIdx.x / GRID; }

constexpr int ATTENDED = HEADS * HEAD_DIM;
// This block's columns, in stages of eight, and stages of a part:
constexpr int QKV_COLUMNS = QKV / 8 / GRID, QKV_STAGES = QKV_COLUMNS / QKV_PARTS * (WIDTH / SLAB);
constexpr int OUT_COLUMNS = WIDTH / 8 / GRID, OUT_STAGES = OUT_COLUMNS / OUT_PARTS * (ATTENDED / SLAB);
constexpr int GATE_COLUMNS = 2 * INNER / 8 / GRID;
constexpr int GATE_STAGES = GATE_COLUMNS / GATE_PARTS * (WIDTH / SLAB);
constexpr int DOWN_STAGES = OUT_COLUMNS / DOWN_PARTS * (INNER / SLAB);
constexpr int LAYER_STAGES = QKV_STAGES * QKV_PARTS + OUT_STAGES * OUT_PARTS +
                             GATE_STAGES * GATE_PARTS + DOWN_STAGES * DOWN_PARTS;
static_assert(QKV_STAGES <= STAGES && OUT_STAGES <= STAGES && GATE_STAGES <= STAGES &&
                  DOWN_STAGES <= STAGES, "a part's weights lie there");
static_assert(GATE_COLUMNS / GATE_PARTS % 2 == 0, "gates and ups lie in the same part");
// Shared memory beside the weights: a product's sums or a draw's keys, the residual, counters.
constexpr int SPACE = PRODUCT_BYTES + MAX_ROWS * OUT_COLUMNS * 16 + SCRATCH;

struct State {
  Ring ring;
  u8* shared;  // [SPACE]
  u32* barrier;
  u32 goal;

  DEVICE float* space() const { return (float*)shared; }
  // The residual: pairs of x in this block's columns, [TILES * 16, OUT_COLUMNS * 4].
  DEVICE u32* residual() const { return (u32*)(shared + PRODUCT_BYTES); }
  DEVICE u32* words() const { return (u32*)(shared + SPACE - SCRATCH); }
  // Behind it every block sees what any block has written; if POSTED, what its own threads have.
  DEVICE void sync() {
    sync_workers();
    if (POSTED) return;
    goal += GRID;
    if (threadIdx.x == 0) grid_arrive(barrier), grid_wait(barrier, goal);
    sync_workers();
  }
};

// shared: [STAGES, STAGE] weights, whose loads start here; [SPACE]; [STAGES] gates.
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

// Activations between the phases, and their rows.
struct Activations {
  u16* between;   // [rows, WIDTH] between attention and MLP
  u16* x;         // [rows, WIDTH] may be the same
  u16* qkv;       // [rows, QKV]
  u16* attended;  // [rows, ATTENDED]
  u16* gated;     // [rows, INNER]
  int rows;
};

constexpr u64 POSTED_LAYER = 2 * WIDTH + QKV + ATTENDED + INNER;  // numbers of a row

// Activations of one layer in the memory where they are posted.
DEVICE Activations activations_at(u16* posted, int layer, int rows) {
  u16 *between = posted + layer * POSTED_LAYER * rows, *x = between + rows * WIDTH;
  u16 *qkv = x + rows * WIDTH, *attended = qkv + rows * QKV;
  return {between, x, qkv, attended, attended + rows * ATTENDED, rows};
}

// The half of `posted` for this launch; the other one is cleared. launches: how many there were, and
// the rows of the latest one in either half. SIZE: numbers of a row; there is room for POSTED_ROWS.
template <u64 SIZE> DEVICE u16* begin_posted(u16* posted, const u32* launches) {
  u32 half = fresh4(launches) & 1;
  u16* other = posted + (half ^ 1) * SIZE * POSTED_ROWS;
  u64 used = fresh4(launches + 1 + (half ^ 1)) * SIZE;
  uint4 nothing = {NOTHING, NOTHING, NOTHING, NOTHING};
  for (u64 at = (block_id() * WORKERS + threadIdx.x) * 8; at < used; at += GRID * WORKERS * 8)
    *(uint4*)(other + at) = nothing;
  return posted + half * SIZE * POSTED_ROWS;
}

DEVICE void write4(void* at, u32 v) {
  if (POSTED) post4(at, v);
  else *(u32*)at = v;
}

// Write a pair of this block's columns.
DEVICE void put_pair(u16* to, int width, int own, int row, int column, Pair result) {
  write4(to + (u64)row * width + block_id() * own * 8 + column, pack(result.even, result.odd));
}

// Add to the residual, which is read from `before` in the first layer and held afterwards.
DEVICE void add_pair(State& s, u16* x, const u16* before, int row, int column, Pair result) {
  u64 at = (u64)row * WIDTH + block_id() * OUT_COLUMNS * 8 + column;
  u32& own = s.residual()[row * OUT_COLUMNS * 4 + column / 2];
  u32 old = before ? fresh4(before + at) : own;
  own = pack(low(old) + result.even, high(old) + result.odd);
  write4(x + at, own);
}

// A product in parts of this block's COLUMNS; emit as in `product`.
template <int COLUMNS, int PARTS, int SLABS, bool NORMED, bool GATED, class Runs, class Emit>
DEVICE void in_parts(State& s, const Runs& runs, const u16* source, bool posted, int rows, Emit emit) {
  constexpr int PART_COLUMNS = COLUMNS / PARTS, RESULTS = GATED ? PART_COLUMNS / 2 : PART_COLUMNS;
  for (int part = 0; part < PARTS; part++) {
    product<PART_COLUMNS, SLABS, NORMED, GATED>(
        s.ring, runs, s.space(), source, posted, rows,
        [&](int row, int column, Pair result) { emit(row, part * RESULTS * 8 + column, result); });
    if (PARTS > 1) sync_workers();  // the next part uses the same space
  }
}

// One layer: `input` -> x. `before`: the residual, or null where the block holds it.
// attend() turns qkv into `attended`; with `keys_only` the layer ends there. `posted`: so is the input.
template <class Runs, class Attend>
DEVICE void run_layer(State& s, const Runs& runs, const Activations& to, const u16* input,
                      const u16* before, bool posted, bool keys_only, Attend attend) {
  in_parts<QKV_COLUMNS, QKV_PARTS, WIDTH / SLAB, true, false>(
      s, runs, input, posted, to.rows, [&](int row, int column, Pair result) {
        put_pair(to.qkv, QKV, QKV_COLUMNS, row, column, result);
      });
  s.sync();
  attend();
  s.sync();
  if (keys_only) return;
  in_parts<OUT_COLUMNS, OUT_PARTS, ATTENDED / SLAB, false, false>(
      s, runs, to.attended, POSTED, to.rows, [&](int row, int column, Pair result) {
        add_pair(s, to.between, before, row, column, result);
      });
  s.sync();
  in_parts<GATE_COLUMNS, GATE_PARTS, WIDTH / SLAB, true, true>(
      s, runs, to.between, POSTED, to.rows, [&](int row, int column, Pair result) {
        put_pair(to.gated, INNER, GATE_COLUMNS / 2, row, column, result);
      });
  s.sync();
  in_parts<OUT_COLUMNS, DOWN_PARTS, INNER / SLAB, false, false>(
      s, runs, to.gated, POSTED, to.rows,
      [&](int row, int column, Pair result) { add_pair(s, to.x, nullptr, row, column, result); });
  s.sync();
}

// The last block to leave resets the barrier for the next launch, and notes which half has been used.
DEVICE void leave(u32* barrier, u32* launches, int rows) {
  if (threadIdx.x || count_up(barrier + 1) != GRID - 1) return;
  barrier[0] = 0, barrier[1] = 0;
  if (POSTED) launches[1 + (launches[0] & 1)] = rows, launches[0]++;
}
