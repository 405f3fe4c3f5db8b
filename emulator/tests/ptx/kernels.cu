#include "common.cuh"
// sum of a block by shared memory and barriers, then one atomic
GLOBAL void block_sum(const float* x, float* out, int n) {
  SHARED float part[256];
  int t = TID; float s = 0;
  for (int i = I; i < n; i += NT * NB) s += x[i];
  part[t] = s; __nvvm_bar_sync(0);
  for (int k = NT / 2; k > 0; k /= 2) { if (t < k) part[t] += part[t + k]; __nvvm_bar_sync(0); }
  if (t == 0) __nvvm_atom_add_gen_f(out, part[0]);
}
// the number of steps of Collatz: loops of different lengths, with a branch inside
GLOBAL void collatz(const u32* x, u32* steps, int n) {
  int i = I; if (i >= n) return;
  u32 v = x[i], k = 0;
  while (v != 1) { if (v & 1) v = 3 * v + 1; else v /= 2; ++k; }
  steps[i] = k;
}
DEV __attribute__((noinline)) int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
GLOBAL void recursion(int* out) { out[I] = fibonacci(TID % 16); }
// each thread adds to a counter under one lock: plain loads and stores between fences
GLOBAL void spin_lock(int* lock, int* counter) {
  bool done = false;
  while (!done) {
    if (__nvvm_atom_cas_gen_i(lock, 0, 1) == 0) {
      __nvvm_membar_gl(); *counter = *counter + 1; __nvvm_membar_gl();
      __nvvm_atom_xchg_gen_i(lock, 0); done = true;
    }
  }
}
// the same without a way out of the loop's head: the holder stands above those that wait
GLOBAL void spin_lock_straight(int* lock, int* counter) {
  while (__nvvm_atom_cas_gen_i(lock, 0, 1) != 0) {}
  __nvvm_membar_gl(); *counter = *counter + 1; __nvvm_membar_gl();
  __nvvm_atom_xchg_gen_i(lock, 0);
}
GLOBAL void warp_sum(const int* x, int* out) {
  int v = x[I];
  for (int k = 16; k > 0; k /= 2) v += __nvvm_shfl_sync_down_i32(0xffffffff, v, k, 31);
  u32 odd = __nvvm_vote_ballot_sync(0xffffffff, x[I] & 1);
  if (TID % 32 == 0) { out[2 * (I / 32)] = v; out[2 * (I / 32) + 1] = (int)odd; }
}
struct Pair4 { float x, y, z, w; } __attribute__((aligned(16)));
struct Mixed { signed char c; unsigned char u; short s; unsigned short v; int i; long long l; double d; };
GLOBAL void vectors(const Pair4* a, Pair4* b, const Mixed* m, Mixed* r, int n) {
  int i = I; if (i >= n) return;
  Pair4 p = a[i]; b[i] = Pair4{p.w, p.z, p.y, p.x};
  Mixed q = m[i];
  r[i].c = q.c - 1; r[i].u = q.u + 1; r[i].s = q.s * 3; r[i].v = q.v / 3; r[i].i = -q.i; r[i].l = q.l * q.i; r[i].d = q.d / q.c;
}
extern "C" DEV int vprintf(const char*, void*);
GLOBAL void printing(const char*) { struct { int a; double b; u64 c; const char* s; } v = {(int)TID, TID * 0.5, 1ull << 40, "text"}; if (TID < 2) vprintf("thread %d: %5.2f %llu %s 100%%\n", &v); }
typedef float (*Fn)(float);
DEV __attribute__((noinline)) float twice(float x) { return 2 * x; }
DEV __attribute__((noinline)) float square(float x) { return x * x; }
DEV __attribute__((noinline)) float negative(float x) { return -x; }
DEV Fn table[3] = {twice, square, negative};
GLOBAL void pointers(const float* x, float* y) { y[I] = table[TID % 3](x[I]); }
GLOBAL void switches(const int* x, int* y) {
  int v = x[I], r;
  switch (v) { case 0: r = 10; break; case 1: r = v * 7 + (int)TID; break; case 2: r = 5 * x[0]; break; case 3: r = v << (TID & 3); break; case 4: r = -3; break; case 5: r = TID / 3; break; case 6: r= 77; break; default: r = 1; }
  y[I] = r;
}
// a local array with an index that is not constant
GLOBAL void local_array(const int* x, int* y, int k) { int a[16]; for (int i = 0; i < 16; ++i) a[i] = x[i] * TID; y[I] = a[(k + TID) & 15]; }
struct Big { int a[12]; };
DEV __attribute__((noinline)) int pick(Big b, int k) { return b.a[k]; }
DEV __attribute__((noinline)) Big make(int k) { Big b; for (int i = 0; i < 12; ++i) b.a[i] = k * i; return b; }
GLOBAL void by_value(Big b, int* y) { y[I] = pick(b, TID % 12) + pick(make(TID), 3); }
extern SHARED int dynamic[];
GLOBAL void dynamic_shared(int* y) { SHARED int fixed[32]; fixed[TID] = TID; dynamic[TID] = TID * 2; __nvvm_bar_sync(0); y[I] = dynamic[NT - 1 - TID] + fixed[(TID + 1) % NT]; }
__attribute__((constant)) int weights[4] = {2, 3, 5, 7};
GLOBAL void constants(int* y) { y[I] = weights[TID % 4]; }
GLOBAL void counting(u32* out) { __nvvm_atom_add_gen_i((int*)out, 1); __nvvm_atom_max_gen_ui(out + 1, TID); __nvvm_atom_min_gen_ui(out + 2, TID); __nvvm_atom_or_gen_i((int*)out + 3, 1 << (TID & 31)); __nvvm_atom_inc_gen_ui(out + 4, 9); __nvvm_atom_add_gen_ll((long long*)out + 3, 1ll << 33); }
extern "C" DEV void __assertfail(const char*, const char*, u32, const char*, u64);
GLOBAL void asserting(int k) { if ((int)TID == k) __assertfail("k != 5", "source.py", 12, "asserting", 1); }
