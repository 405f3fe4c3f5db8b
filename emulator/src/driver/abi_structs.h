// Structs of the driver's interface, included into a namespace that defines their types (abi.h; a test compares them
// with cuda.h).

struct CUuuid {
    char bytes[16];
};
struct CUipcMemHandle {
    char reserved[64];
};
struct CUipcEventHandle {
    char reserved[64];
};
struct CUmemAccessDesc {
    int location_type, location_id, flags;
};
struct CUDA_MEMCPY2D {
    size_t srcXInBytes, srcY;
    CUmemorytype srcMemoryType;
    const void* srcHost;
    CUdeviceptr srcDevice;
    CUarray srcArray;
    size_t srcPitch;
    size_t dstXInBytes, dstY;
    CUmemorytype dstMemoryType;
    void* dstHost;
    CUdeviceptr dstDevice;
    CUarray dstArray;
    size_t dstPitch;
    size_t WidthInBytes, Height;
};
struct CUlaunchAttribute {
    int id;
    int pad;
    union {
        char bytes[64];
        void* alignment;  // that of the pointers among its members in cuda.h
        struct {
            unsigned int x, y, z;
        } clusterDim;
        int programmaticStreamSerializationAllowed;
    } value;
};
struct CUlaunchConfig {
    unsigned int gridDimX, gridDimY, gridDimZ;
    unsigned int blockDimX, blockDimY, blockDimZ;
    unsigned int sharedMemBytes;
    CUstream hStream;
    CUlaunchAttribute* attrs;
    unsigned int numAttrs;
};
struct CUgraphEdgeData {
    unsigned char from_port, to_port, type, reserved[5];
};
struct CUDA_CONDITIONAL_NODE_PARAMS {
    CUgraphConditionalHandle handle;
    CUgraphConditionalNodeType type;
    unsigned int size;
    CUgraph* phGraph_out;
    CUcontext ctx;
};
struct CUDA_CHILD_GRAPH_NODE_PARAMS {
    CUgraph graph;
    int ownership;
};
struct CUgraphNodeParams {
    CUgraphNodeType type;
    int reserved0[3];
    union {
        long long reserved1[29];
        CUDA_CHILD_GRAPH_NODE_PARAMS graph;
        CUDA_CONDITIONAL_NODE_PARAMS conditional;
    };
    long long reserved2;
};
struct CUmemLocation {
    int type, id;
};
