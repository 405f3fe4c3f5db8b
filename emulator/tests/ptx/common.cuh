// The sources of kernels.ptx and saxpy.ptx: clang++-22 -x cuda --cuda-device-only --cuda-gpu-arch=sm_80 -nocudainc -nocudalib
// -O2 -ffp-contract=off -S
#define DEV __attribute__((device))
#define GLOBAL extern "C" __attribute__((global))
#define SHARED __attribute__((shared))
#define TID __nvvm_read_ptx_sreg_tid_x()
#define BID __nvvm_read_ptx_sreg_ctaid_x()
#define NT __nvvm_read_ptx_sreg_ntid_x()
#define NB __nvvm_read_ptx_sreg_nctaid_x()
#define I (BID*NT+TID)
typedef unsigned u32; typedef unsigned long long u64;
