// The work between the networks of a frame, one block per row, in three launches. The rules are
// those of engine/worker/talker/frame_glue.py.

constexpr int CODEBOOKS = POSITIONS;
constexpr int FRAME = CODEBOOKS + 1;  // a frame's codes, and whether the speech ends

// The tensors of engine/worker/state/slot_state.py.
struct SlotPointers {
  u16* hidden;          // [slots, WIDE]
  u64* code;            // [slots]
  u64* position;
  u64* frame;
  u8* seen;             // [slots, VOCABULARY]
  const u16* text;      // [slots, limit, WIDE]
  const u64* texts;     // [slots]
  const u64* spoken;
  u16* codes;           // [slots, limit, CODEBOOKS]
  const float* settings;  // [slots, SETTINGS]
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
DEVICE float uniform_at(const SlotPointers& slots, u64 row, u64 counter) {
  u32 word = mixed_word((u32)counter + (u32)slots.keys[row * 2]);
  return (float)(mixed_word(word ^ (u32)slots.keys[row * 2 + 1]) >> 9) * 0x1p-23f;
}
DEVICE void copy_row(u16* to, const u16* from) {
  for (int i = threadIdx.x * 8; i < WIDE; i += WORKERS * 8)
    *(uint4*)(to + i) = *(const uint4*)(from + i);
}
DEVICE u64 next_of(u64 number, u64 limit) { return number + 1 < limit ? number + 1 : limit - 1; }

// The predictor's inputs: hidden and first [R, WIDE], settings [R, SETTINGS], uniforms [R, BOOKS],
// and the position of the talker's next input, position [R].
extern "C" __global__ void __launch_bounds__(WORKERS)
    predictor_inputs(const SlotPointers slots, const u64* index, const u16* embeddings,
                     u16* hidden, u16* first, float* settings, float* uniforms, u64* position) {
  u64 r = blockIdx.x, row = index[r];
  copy_row(hidden + r * WIDE, slots.hidden + row * WIDE);
  copy_row(first + r * WIDE, embeddings + slots.code[row] * WIDE);
  u32 t = threadIdx.x;
  if (t < SETTINGS) settings[r * SETTINGS + t] = slots.settings[row * SETTINGS + t];
  if (t < BOOKS)
    uniforms[r * BOOKS + t] = uniform_at(slots, row, slots.frame[row] * CODEBOOKS + t + 1);
  if (t == 0) position[r] = slots.position[row];
}

// codes [R, BOOKS], the sum of their embeddings total [R, WIDE], pad [WIDE] -> the talker's input
// x [R, WIDE], and out [R, FRAME] except its last column.
extern "C" __global__ void __launch_bounds__(WORKERS)
    talker_inputs(const SlotPointers slots, const u64* index, const u64* codes, const u16* total,
                  const u16* pad, u16* x, u64* out) {
  u64 r = blockIdx.x, row = index[r], frame = slots.frame[row], at = slots.spoken[row] + frame;
  bool past = at >= slots.texts[row];
  const u16* text = past ? pad : slots.text + (row * slots.limit + at) * WIDE;
  for (int i = threadIdx.x * 2; i < WIDE; i += WORKERS * 2) {
    u32 sum = *(const u32*)(total + r * WIDE + i), own = *(const u32*)(text + i);
    *(u32*)(x + r * WIDE + i) = pack(low(sum) + low(own), high(sum) + high(own));
  }
  u32 t = threadIdx.x;
  if (t >= CODEBOOKS) return;
  u64 code = t ? codes[r * BOOKS + t - 1] : slots.code[row];
  out[r * FRAME + t] = code;
  slots.codes[(row * slots.limit + frame) * CODEBOOKS + t] = (u16)code;
}

// Applies the repetition penalty; an id that is not allowed is never sampled.
DEVICE u64 penalized(float logit, u32 id, bool seen, float penalty, bool endable) {
  if (seen) logit = logit < 0 ? logit * penalty : logit / penalty;
  bool allowed = id == END ? endable : id < VOCABULARY - RESERVED;
  return key_of(allowed ? logit : __uint_as_float(0xff800000u), id);
}

// Sample codebook 0 of the next frame from logits [R, VOCABULARY] of hidden [R, WIDE]. With
// `advance` the rows advance past a frame, and the last column of out [R, FRAME] is written.
extern "C" __global__ void __launch_bounds__(WORKERS)
    sample_next(const SlotPointers slots, const u64* index, const u16* hidden,
                const u16* logits, u64* out, int advance, int count) {
  constexpr int EACH = VOCABULARY / WORKERS;
  SHARED(shared);  // [2, VOCABULARY] keys, words
  u64 r = blockIdx.x, row = index[r], keys[EACH];
  u64 frame = advance ? next_of(slots.frame[row], slots.limit) : slots.frame[row];
  const float* settings = slots.settings + row * SETTINGS;
  SamplingTensors sampling = {settings[0], settings[1], settings[2], settings[3]};
  bool endable = frame >= MIN_FRAMES && !slots.endless[row];
#pragma unroll
  for (int i = 0; i < EACH; i += 2) {
    u32 id = i * WORKERS + threadIdx.x * 2, pair = *(const u32*)(logits + r * VOCABULARY + id);
    u16 seen = *(const u16*)(slots.seen + row * VOCABULARY + id);
    keys[i] = penalized(low(pair), id, seen & 255, settings[PENALTY], endable);
    keys[i + 1] = penalized(high(pair), id + 1, seen >> 8, settings[PENALTY], endable);
  }
  float uniform = uniform_at(slots, row, frame * CODEBOOKS);
  u32* words = (u32*)(shared + VOCABULARY * 16);
  u32 code = choose<EACH>((u64*)shared, words, count, sampling, uniform, keys);
  copy_row(slots.hidden + row * WIDE, hidden + r * WIDE);
  if (threadIdx.x) return;
  slots.code[row] = code;
  slots.seen[row * VOCABULARY + code] = 1;
  if (!advance) return;
  slots.frame[row] = frame;
  slots.position[row] = next_of(slots.position[row], slots.limit);
  out[r * FRAME + CODEBOOKS] = code == END;
}
