// What lies between the networks of a frame, a block a row: three launches. The rules are those
// of engine/worker/talker/frame_glue.py.

constexpr int CODEBOOKS = POSITIONS;
constexpr int MADE = CODEBOOKS + 1;  // a frame's codes, and whether the speech ends after them

// The rows of engine/worker/state/slot_state.py.
struct Lanes {
  u16* hidden;          // [slots, WIDE]
  u64* code;            // [slots]
  u64* position;
  u64* frame;
  u8* seen;             // [slots, VOCABULARY]
  const u16* text;      // [slots, limit, WIDE]
  const u64* texts;     // [slots]
  const u64* spoken;
  u16* made;            // [slots, limit, CODEBOOKS]
  const float* knobs;   // [slots, KNOBS]
  const u64* keys;      // [slots, 2]
  const u8* endless;    // [slots]
  u64 limit;            // positions
};

DEVICE u32 mixed_word(u32 word) {
  word = (word ^ word >> 16) * 0x21F0AAADu;
  word = (word ^ word >> 15) * 0x735A2D97u;
  return word ^ word >> 15;
}
// In [0, 1), for draw `counter` of this row's sequence.
DEVICE float uniform_of(const Lanes& lanes, u64 row, u64 counter) {
  u32 word = mixed_word((u32)counter + (u32)lanes.keys[row * 2]);
  return (float)(mixed_word(word ^ (u32)lanes.keys[row * 2 + 1]) >> 9) * 0x1p-23f;
}
DEVICE void copy_row(u16* to, const u16* from) {
  for (int i = threadIdx.x * 8; i < WIDE; i += WORKERS * 8)
    *(uint4*)(to + i) = *(const uint4*)(from + i);
}
DEVICE u64 next_of(u64 number, u64 limit) { return number + 1 < limit ? number + 1 : limit - 1; }

// What the predictor takes: hidden and first [R, WIDE], knobs [R, KNOBS], uniforms [R, BOOKS], and
// where the talker's next input goes, position [R].
extern "C" __global__ void __launch_bounds__(WORKERS)
    open_rows(const Lanes lanes, const u64* index, const u16* embeddings, u16* hidden, u16* first,
              float* knobs, float* uniforms, u64* position) {
  u64 r = blockIdx.x, row = index[r];
  copy_row(hidden + r * WIDE, lanes.hidden + row * WIDE);
  copy_row(first + r * WIDE, embeddings + lanes.code[row] * WIDE);
  u32 t = threadIdx.x;
  if (t < KNOBS) knobs[r * KNOBS + t] = lanes.knobs[row * KNOBS + t];
  if (t < BOOKS)
    uniforms[r * BOOKS + t] = uniform_of(lanes, row, lanes.frame[row] * CODEBOOKS + t + 1);
  if (t == 0) position[r] = lanes.position[row];
}

// The codes are drawn: codes [R, BOOKS], the sum of their embeddings total [R, WIDE], pad [WIDE]
// -> the talker's input x [R, WIDE], out [R, MADE] but for its last column.
extern "C" __global__ void __launch_bounds__(WORKERS)
    feed_rows(const Lanes lanes, const u64* index, const u64* codes, const u16* total,
              const u16* pad, u16* x, u64* out) {
  u64 r = blockIdx.x, row = index[r], frame = lanes.frame[row], at = lanes.spoken[row] + frame;
  bool past = at >= lanes.texts[row];
  const u16* text = past ? pad : lanes.text + (row * lanes.limit + at) * WIDE;
  for (int i = threadIdx.x * 2; i < WIDE; i += WORKERS * 2) {
    u32 sum = *(const u32*)(total + r * WIDE + i), own = *(const u32*)(text + i);
    *(u32*)(x + r * WIDE + i) = pack(low(sum) + low(own), high(sum) + high(own));
  }
  u32 t = threadIdx.x;
  if (t >= CODEBOOKS) return;
  u64 code = t ? codes[r * BOOKS + t - 1] : lanes.code[row];
  out[r * MADE + t] = code;
  lanes.made[(row * lanes.limit + frame) * CODEBOOKS + t] = (u16)code;
}

// A repeated id is punished; what may not come is never drawn.
DEVICE u64 restrained(float logit, u32 id, bool seen, float penalty, bool endable) {
  if (seen) logit = logit < 0 ? logit * penalty : logit / penalty;
  bool allowed = id == END ? endable : id < VOCABULARY - RESERVED;
  return key_of(allowed ? logit : __uint_as_float(0xff800000u), id);
}

// Draw codebook 0 of the frame to come from logits [R, VOCABULARY] of hidden [R, WIDE]. With
// `step` a frame lies behind it, and out[R, MADE] gets its last column.
extern "C" __global__ void __launch_bounds__(WORKERS)
    close_rows(const Lanes lanes, const u64* index, const u16* hidden, const u16* logits, u64* out,
               int step, int count) {
  constexpr int EACH = VOCABULARY / WORKERS;
  SHARED(shared);  // [2, VOCABULARY] keys, words
  u64 r = blockIdx.x, row = index[r], keys[EACH];
  u64 frame = step ? next_of(lanes.frame[row], lanes.limit) : lanes.frame[row];
  const float* knobs = lanes.knobs + row * KNOBS;
  SamplingTensors own = {knobs[0], knobs[1], knobs[2], knobs[3]};
  bool endable = frame >= LEAST_FRAMES && !lanes.endless[row];
#pragma unroll
  for (int i = 0; i < EACH; i += 2) {
    u32 id = i * WORKERS + threadIdx.x * 2, pair = *(const u32*)(logits + r * VOCABULARY + id);
    u16 seen = *(const u16*)(lanes.seen + row * VOCABULARY + id);
    keys[i] = restrained(low(pair), id, seen & 255, knobs[PENALTY], endable);
    keys[i + 1] = restrained(high(pair), id + 1, seen >> 8, knobs[PENALTY], endable);
  }
  float lot = uniform_of(lanes, row, frame * CODEBOOKS);
  u32* words = (u32*)(shared + VOCABULARY * 16);
  u32 code = choose<EACH>((u64*)shared, words, count, own, lot, keys);
  copy_row(lanes.hidden + row * WIDE, hidden + r * WIDE);
  if (threadIdx.x) return;
  lanes.code[row] = code;
  lanes.seen[row * VOCABULARY + code] = 1;
  if (!step) return;
  lanes.frame[row] = frame;
  lanes.position[row] = next_of(lanes.position[row], lanes.limit);
  out[r * MADE + CODEBOOKS] = code == END;
}
