/* A CUDA driver without a GPU: host memory is device memory, and copies take the time that a link of a given rate
 * would take. Written from the public driver ABI alone; it shares no text with the helper that it tests. It is strict:
 * a copy outside an allocation, to memory of the host that is not pinned, or in another card's context, fails.
 *
 * FAKE_GPU_COUNT  cards (2)         FAKE_GPU_P2P  1: cards can access each other
 * FAKE_GPU_BDFS   their addresses, a comma list    FAKE_GPU_LINKS  their links, GB/s one way, a comma list (20)
 * FAKE_GPU_NAME   their name
 * FAKE_GPU_ROOT   a tree of files, and FAKE_GPU_WAKE a list of lines "FILE<tab>TEXT": what each file below the root
 *                 says from the first copy on, as the links of a real card wake up
 * FAKE_GPU_FAULT  a comma list: cuinit-hang context-hang no-device not-ready mismatch busy exclusive prohibited mig out-of-memory
 *                 slow-link (card 1) p2p-hang p2p-corrupt p2p-corrupt-big, and those of libcuda_burn.c
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

typedef int CUresult;
typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef struct ctx { int dev; int peers; } *CUcontext;
typedef struct stream { int dev; double ready; int blocked; } *CUstream;
typedef struct event { double at; int recorded; int blocked; int dev; } *CUevent;

enum { MAX_CARDS = 16, MAX_BLOCKS = 4096 };
static struct ctx contexts[MAX_CARDS];
static double link_in[MAX_CARDS], link_out[MAX_CARDS]; /* when each direction of a link is free again */
static __thread CUcontext current;
static int initialised;
static struct { char *at; size_t size; int dev; } blocks[MAX_BLOCKS]; /* dev -1: pinned memory of the host */
static int nblocks;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int fault(const char *name) {
    const char *all = getenv("FAKE_GPU_FAULT");
    size_t n = strlen(name);
    while (all && *all) {
        size_t len = strcspn(all, ",");
        if (len == n && !memcmp(all, name, n)) return 1;
        all += len + (all[len] == ',');
    }
    return 0;
}
static int number(const char *name, int otherwise) { const char *v = getenv(name); return v ? atoi(v) : otherwise; }
/* The nth entry of a comma list in the environment, or NULL. */
static const char *entry(const char *name, int n, char *buffer, size_t size) {
    const char *all = getenv(name);
    while (all && n-- > 0) { all = strchr(all, ','); if (all) all++; }
    if (!all || !*all) return NULL;
    size_t len = strcspn(all, ",");
    if (len >= size) return NULL;
    memcpy(buffer, all, len);
    buffer[len] = 0;
    return buffer;
}
static int cards(void) { int n = number("FAKE_GPU_COUNT", 2); return n > MAX_CARDS ? MAX_CARDS : n; }
static double real(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec / 1e9; }
/* Streams have a clock of their own, in which the host costs nothing: work begins when its stream is free, and not
 * before the last event that the host saw. So rates are those of the links below, however busy the machine is that
 * runs the test. An event is done once as much real time has passed, less what the copies themselves took. */
static double worked, seen;
static double now(void) { return real() - worked; }
static double later(double a, double b) { return a > b ? a : b; }

/* For the fake NCCL only. */
int fake_current_card(void) { return current ? current->dev : -1; }
void fake_set_card(int dev) { current = &contexts[dev]; }
static double begins(CUstream s) { return later(s->ready, seen); }
void fake_stream_busy(CUstream s, double seconds) { s->ready = begins(s) + seconds; }
double fake_clock(void) { return real(); }
void fake_worked(double seconds) { worked += seconds; }
void fake_stream_block(CUstream s) { s->blocked = 1; }

static int owner(const void *p, size_t n) { /* card, -1 pinned, -2 nobody's */
    int found = -2;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < nblocks; i++)
        if (blocks[i].at && (char *)p >= blocks[i].at && (char *)p + n <= blocks[i].at + blocks[i].size) { found = blocks[i].dev; break; }
    pthread_mutex_unlock(&lock);
    return found;
}
static char *take(size_t n, int dev) {
    char *p = n > 1ul << 28 ? mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) : calloc(1, n);
    if (p == MAP_FAILED) return NULL;
    pthread_mutex_lock(&lock);
    if (p && nblocks < MAX_BLOCKS) { blocks[nblocks].at = p; blocks[nblocks].size = n; blocks[nblocks++].dev = dev; }
    pthread_mutex_unlock(&lock);
    return p;
}
static CUresult give(void *p) {
    CUresult r = 1;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < nblocks; i++) if (blocks[i].at == p) { blocks[i].at = NULL; if (blocks[i].size <= 1ul << 28) free(p); else munmap(p, blocks[i].size); r = 0; break; }
    pthread_mutex_unlock(&lock);
    return r;
}

CUresult cuInit(unsigned flags) {
    if (flags) return 1;
    if (fault("cuinit-hang")) for (;;) pause();
    if (fault("no-device")) return 100;
    if (fault("not-ready")) return 802;
    if (fault("mismatch")) return 803;
    for (int i = 0; i < MAX_CARDS; i++) contexts[i].dev = i;
    initialised = 1;
    seen = now();
    return 0;
}
CUresult cuDriverGetVersion(int *v) { *v = 12040; return 0; }
CUresult cuDeviceGetCount(int *n) { if (!initialised) return 3; *n = cards(); return 0; }
CUresult cuDeviceGet(CUdevice *d, int ordinal) { if (!initialised) return 3; if (ordinal < 0 || ordinal >= cards()) return 101; *d = ordinal; return 0; }
CUresult cuDeviceGetName(char *s, int n, CUdevice d) { (void)d; snprintf(s, n, "%s", fault("mig") ? "NVIDIA Fake A100 MIG 1g.5gb" : getenv("FAKE_GPU_NAME") ? getenv("FAKE_GPU_NAME") : "NVIDIA Fake RTX 4090"); return 0; }
CUresult cuDeviceGetPCIBusId(char *s, int n, CUdevice d) {
    char given[32];
    if (entry("FAKE_GPU_BDFS", d, given, sizeof given)) snprintf(s, n, "%s", given);
    else snprintf(s, n, "0000:%02X:00.0", 0x41 + d * 0x20);
    return 0;
}
CUresult cuDeviceTotalMem_v2(size_t *n, CUdevice d) { (void)d; *n = 24564ul << 20; return 0; }
CUresult cuDeviceGetAttribute(int *v, int what, CUdevice d) {
    (void)d;
    switch (what) {
    case 16: *v = 128; return 0;
    case 20: *v = fault("exclusive") ? 3 : fault("prohibited") ? 2 : 0; return 0;
    case 75: *v = 8; return 0;
    case 76: *v = 9; return 0;
    }
    return 1;
}
CUresult cuDeviceCanAccessPeer(int *yes, CUdevice a, CUdevice b) { *yes = a != b && number("FAKE_GPU_P2P", 0); return 0; }

CUresult cuDevicePrimaryCtxRetain(CUcontext *c, CUdevice d) {
    if (fault("context-hang")) for (;;) pause();
    if (fault("busy") || fault("exclusive") || fault("prohibited")) return 46;
    *c = &contexts[d];
    return 0;
}
CUresult cuCtxSetCurrent(CUcontext c) { current = c; return 0; }
CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
    if (flags || !current || !peer) return 1;
    if (!number("FAKE_GPU_P2P", 0)) return 217;
    if (current->peers & 1 << peer->dev) return 704;
    current->peers |= 1 << peer->dev;
    return 0;
}

CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t n) {
    if (!current) return 201;
    if (fault("out-of-memory")) return 2;
    *p = (CUdeviceptr)take(n, current->dev);
    return *p ? 0 : 2;
}
CUresult cuMemFree_v2(CUdeviceptr p) { return give((void *)p); }
#ifndef WITHOUT_HOST_ALLOC
CUresult cuMemHostAlloc(void **p, size_t n, unsigned flags) { (void)flags; if (!current) return 201; *p = take(n, -1); return *p ? 0 : 2; }
#endif
CUresult cuMemFreeHost(void *p) { return give(p); }

CUresult cuStreamCreate(CUstream *s, unsigned flags) { if (flags > 1) return 1; if (!current) return 201; *s = calloc(1, sizeof **s); (*s)->dev = current->dev; return 0; }
CUresult cuEventCreate(CUevent *e, unsigned flags) { (void)flags; if (!current) return 201; *e = calloc(1, sizeof **e); (*e)->dev = current->dev; return 0; }
CUresult cuEventRecord(CUevent e, CUstream s) {
    if (!current || current->dev != s->dev || e->dev != s->dev) return 400;
    s->ready = e->at = begins(s); e->recorded = 1; e->blocked = s->blocked;
    return 0;
}
CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned flags) { if (flags) return 1; s->ready = later(s->ready, e->at); s->blocked |= e->blocked; return 0; }
static int lost(int dev);
CUresult cuEventQuery(CUevent e) {
    if (lost(e->dev)) return 999;
    if (e->recorded && (e->blocked || now() < e->at)) return 600;
    seen = later(seen, e->at);
    return 0;
}
CUresult cuEventElapsedTime(float *ms, CUevent a, CUevent b) {
    if (a->dev != b->dev || !a->recorded || !b->recorded) return 400;
    if (cuEventQuery(a) || cuEventQuery(b)) return 600;
    *ms = (float)((b->at - a->at) * 1e3);
    return 0;
}

/* Files that change once cards have work. */
static void wake(void) {
    static int awake;
    const char *root = getenv("FAKE_GPU_ROOT"), *list = getenv("FAKE_GPU_WAKE");
    char line[1024], path[2048];
    if (awake++ || !root || !list) return;
    FILE *f = fopen(list, "r");
    while (f && fgets(line, sizeof line, f)) {
        char *tab = strchr(line, '\t');
        if (!tab) continue;
        *tab = 0;
        snprintf(path, sizeof path, "%s/%s", root, line);
        FILE *to = fopen(path, "w");
        if (to) { fputs(tab + 1, to); fclose(to); }
    }
    if (f) fclose(f);
}
static double rate(int dev) {
    char given[32];
    if (fault("slow-link") && dev == 1) return 1.5e9;
    return entry("FAKE_GPU_LINKS", dev, given, sizeof given) ? atof(given) * 1e9 : 20e9;
}
static unsigned generation; /* of the contents of all cards: an all-reduce of the same contents has the same sums */
unsigned fake_generation(void) { return generation; }
static void occupy(CUstream s, double *link, size_t n, double bytes_per_second) {
    wake();
    if (n <= 4096) { s->ready = begins(s) + 2e-6; return; } /* what is so small waits for nobody */
    double begin = later(begins(s), *link);
    s->ready = *link = begin + n / bytes_per_second;
}
static void move(void *dst, const void *src, size_t n) {
    generation++; double t = real(); memcpy(dst, src, n); worked += real() - t; }
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t n, CUstream s) {
    if (!current || current->dev != s->dev) return 400;
    if (owner((void *)dst, n) != s->dev || owner(src, n) != -1) return 1;
    move((void *)dst, src, n);
    occupy(s, &link_in[s->dev], n, rate(s->dev));
    return 0;
}
CUresult cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t n, CUstream s) {
    if (!current || current->dev != s->dev) return 400;
    if (owner((void *)src, n) != s->dev || owner(dst, n) != -1) return 1;
    move(dst, (void *)src, n);
    occupy(s, &link_out[s->dev], n, rate(s->dev));
    return 0;
}
CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dc, CUdeviceptr src, CUcontext sc, size_t n, CUstream s) {
    if (!current || current->dev != s->dev) return 400;
    if (owner((void *)dst, n) != dc->dev || owner((void *)src, n) != sc->dev) return 1;
    int direct = sc->peers & 1 << dc->dev;
    if (direct && fault("p2p-hang")) { s->blocked = 1; return 0; }
    size_t good = !direct ? n : fault("p2p-corrupt") ? 0 : fault("p2p-corrupt-big") && n > 32u << 20 ? 32u << 20 : n;
    move((void *)dst, (void *)src, good);
    occupy(s, &link_out[s->dev], n, direct ? 25e9 : 8e9);
    return 0;
}
CUresult cuMemsetD32Async(CUdeviceptr dst, unsigned v, size_t count, CUstream s) {
    if (!current || current->dev != s->dev) return 400;
    if (owner((void *)dst, count * 4) != s->dev) return 1;
    double t = real();
    generation++;
    for (size_t i = 0; i < count; i++) ((unsigned *)dst)[i] = v;
    worked += real() - t;
    return 0;
}

#include "libcuda_burn.c"

static const struct { int code; const char *name, *text; } words[] = {
    {0, "CUDA_SUCCESS", "no error"}, {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"}, {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"}, {46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "CUDA-capable device(s) is/are busy or unavailable"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"}, {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"}, {217, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", "peer access is not supported between these two devices"},
    {218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"}, {221, "CUDA_ERROR_JIT_COMPILER_NOT_FOUND", "PTX JIT compiler library not found"},
    {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the provided PTX was compiled with an unsupported toolchain."}, {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"}, {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
    {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"}, {600, "CUDA_ERROR_NOT_READY", "device not ready"},
    {704, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access is already enabled"}, {802, "CUDA_ERROR_SYSTEM_NOT_READY", "system not yet initialized"},
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "system has unsupported display driver / cuda driver combination"},
};
static int word(int code) { for (unsigned i = 0; i < sizeof words / sizeof *words; i++) if (words[i].code == code) return (int)i; return -1; }
CUresult cuGetErrorName(CUresult code, const char **s) { int i = word(code); *s = i < 0 ? NULL : words[i].name; return i < 0; }
CUresult cuGetErrorString(CUresult code, const char **s) { int i = word(code); *s = i < 0 ? NULL : words[i].text; return i < 0; }
