/* An NCCL without a GPU: real sums over real ranks, in one process and across processes (a segment in /dev/shm, whose
 * name travels in the unique id), with the log lines of several generations. Written from the public ABI alone.
 *
 * FAKE_NCCL_VERSION  what ncclGetVersion says (22203); the log follows it
 * FAKE_GPU_P2P       1: edges are P2P, unless NCCL_P2P_DISABLE=1
 * FAKE_NCCL_MARK     begins the name of the segment behind nccl-, so that a test knows its own
 * FAKE_GPU_RING      bus bandwidth of the ring, GB/s (12; 20 over P2P); cards with P2P lose a third of it without
 * FAKE_GPU_LAZY      1: sums of contents that did not change are not computed again
 * FAKE_GPU_FAULT     a comma list: init-hang first-hang nccl-p2p-hang wrong-sums slow-ring crash nccl-oom,
 *                    and with P2P alone p2p-hang p2p-corrupt
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef int ncclResult_t;
typedef struct { char internal[128]; } ncclUniqueId;
enum { SLOT = 1 << 20, MAX_RANKS = 16 };

typedef struct {
    atomic_int joined, arrived, turn;
    char slots[MAX_RANKS][SLOT];
} segment;

typedef struct comm {
    segment *seg;
    int rank, ranks, card, connected;
} *ncclComm_t;

static char last_error[256];
static FILE *log_file;
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;

static int fault(const char *name) {
    char text[512], *save = NULL;
    snprintf(text, sizeof text, "%s", getenv("FAKE_GPU_FAULT") ? getenv("FAKE_GPU_FAULT") : "");
    for (char *t = strtok_r(text, ",", &save); t; t = strtok_r(NULL, ",", &save)) if (!strcmp(t, name)) return 1;
    return 0;
}
static int version(void) { const char *v = getenv("FAKE_NCCL_VERSION"); return v ? atoi(v) : 22203; }
static int set(const char *name) { const char *v = getenv(name); return v && !strcmp(v, "1"); }
/* The rig's /etc/nccl.conf: it holds for what the environment does not say, as in the real library. */
static int configured(const char *name) {
	char path[4096], line[256];
	size_t n = strlen(name);
	const char *root = getenv("PREFLIGHT_ROOT");
	int on = 0;
	FILE *f;
	if (getenv(name)) return set(name);
	snprintf(path, sizeof path, "%s/etc/nccl.conf", root ? root : "");
	if (!root || !(f = fopen(path, "r"))) return 0;
	while (fgets(line, sizeof line, f)) if (!strncmp(line, name, n) && line[n] == '=') on = line[n + 1] == '1';
	fclose(f);
	return on;
}
static int p2p(void) { return set("FAKE_GPU_P2P") && !configured("NCCL_P2P_DISABLE"); }

static void say(int warn, int card, const char *format, ...) {
    va_list args;
    pthread_mutex_lock(&log_lock);
    if (!log_file) {
        const char *path = getenv("NCCL_DEBUG_FILE");
        log_file = path ? fopen(path, "w") : stdout;
        if (!log_file) log_file = stdout;
        if (path) setlinebuf(log_file); /* standard output is left as NCCL leaves it: never flushed */
    }
    if (warn) fprintf(log_file, "\n%s", version() >= 22600 ? "[2026-01-02 03:04:05] " : "");
    fprintf(log_file, "fakehost:%d:%ld [%d] %s ", getpid(), syscall(SYS_gettid), card, warn ? "misc/fake.cc:42 NCCL WARN" : "NCCL INFO");
    va_start(args, format);
    vfprintf(log_file, format, args);
    va_end(args);
    fputc('\n', log_file);
    pthread_mutex_unlock(&log_lock);
}

static void *cuda(const char *name) {
    static void *lib;
    if (!lib) lib = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);
    return lib ? dlsym(lib, name) : NULL;
}
static int current_card(void) { int (*f)(void) = (int (*)(void))cuda("fake_current_card"); return f ? f() : 0; }

ncclResult_t ncclGetVersion(int *v) { *v = version(); return 0; }
const char *ncclGetErrorString(ncclResult_t r) {
    static const char *text[] = {
        "no error", "unhandled cuda error (run with NCCL_DEBUG=INFO for details)", "unhandled system error (run with NCCL_DEBUG=INFO for details)",
        "internal error - please report this issue to the NCCL developers", "invalid argument (run with NCCL_DEBUG=WARN for details)",
        "invalid usage (run with NCCL_DEBUG=WARN for details)", "remote process exited or there was a network error", "NCCL operation in progress" };
    return r >= 0 && r < 8 ? text[r] : "unknown result code";
}
const char *ncclGetLastError(ncclComm_t c) { (void)c; return last_error; }

static segment *map(int fd) {
    int flags = fd < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED;
    void *p = mmap(NULL, sizeof(segment), PROT_READ | PROT_WRITE, flags, fd, 0);
    return p == MAP_FAILED ? NULL : p;
}
ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
    const char *mark = getenv("FAKE_NCCL_MARK");
    char path[100];
    int fd;
    snprintf(path, sizeof path, "/dev/shm/nccl-%.40sXXXXXX", mark ? mark : "");
    fd = mkstemp(path);
    if (fd < 0 || ftruncate(fd, sizeof(segment)) || !map(fd)) return 2;
    close(fd);
    memset(id, 0xee, sizeof *id);
    memcpy(id->internal, "FAKENCCL", 8);
    memcpy(id->internal + 8, path, strlen(path) + 1);
    id->internal[127] = 0x5a; /* the last byte must arrive as well */
    return 0;
}

static void prologue(int rank, int ranks, int card) {
    const char *colon = version() >= 22400 ? "Bootstrap: Using" : "Bootstrap : Using";
    const char *who = version() >= 22400 ? "[Rank 0] ncclCommInitRank " : version() >= 22200 ? "ncclCommInitRank " : "";
    say(0, card, "%s eth0:10.0.0.1<0>", colon);
    if (rank == 0) say(0, card, "NCCL version %d.%d.%d+cuda12.4", version() / 10000, version() / 100 % 100, version() % 100);
    say(0, card, "NET/Socket : Using [0]eth0:10.0.0.1<0>");
    say(0, card, "Using network Socket");
    say(0, card, "%scomm 0x55d0 rank %d nranks %d cudaDev %d nvmlDev %d busId %x000 commId 0xabc - Init START", who, rank, ranks, card, card, 0x41 + card * 0x20);
    if (fault("init-hang")) for (;;) pause();
}
static void connections(ncclComm_t c, int processes) {
    int next = (c->rank + 1) % c->ranks;
    if (c->connected++) return;
    if (version() >= 22800) say(0, c->card, "Check P2P Type isAllDirectP2p %d directMode 0 isAllCudaP2p %d", p2p(), p2p());
    if (!p2p() && version() >= 22200) say(0, c->card, "P2P is disabled between connected GPUs %d and %d. You can repress this message with NCCL_IGNORE_DISABLED_P2P=1.", next, c->rank);
    for (int ch = 0; ch < 2; ch++) {
        if (p2p()) say(0, c->card, "Channel %02d/0 : %d[%d] -> %d[%d] via %s", ch, c->rank, c->rank, next, next, processes ? "P2P/IPC" : "P2P/direct pointer");
        else say(0, c->card, "Channel %02d : %d[%d] -> %d[%d] via %s", ch, c->rank, c->rank, next, next, version() >= 23000 ? "SHM/direct" : "SHM/direct/direct");
    }
    say(0, c->card, "Connected all rings");
}
static void epilogue(ncclComm_t c, int processes) {
    if (version() < 22200) connections(c, processes); /* later ones connect at the first collective */
    say(0, c->card, "%scomm 0x55d0 rank %d nranks %d cudaDev %d busId %x000 commId 0xabc - Init COMPLETE", version() >= 22200 ? "ncclCommInitRank " : "", c->rank, c->ranks, c->card, 0x41 + c->card * 0x20);
}
static ncclResult_t out_of_memory(int card) {
    snprintf(last_error, sizeof last_error, "Cuda failure 2 'out of memory'\n");
    say(1, card, "Cuda failure 2 'out of memory'");
    return 1;
}

ncclResult_t ncclCommInitRank(ncclComm_t *out, int ranks, ncclUniqueId id, int rank) {
    int card = current_card(), fd;
    segment *seg;
    if (memcmp(id.internal, "FAKENCCL", 8) || id.internal[127] != 0x5a || rank < 0 || rank >= ranks || ranks > MAX_RANKS || card < 0) return 4;
    prologue(rank, ranks, card);
    if (fault("nccl-oom")) return out_of_memory(card);
    fd = open(id.internal + 8, O_RDWR);
    if (fd < 0 || !(seg = map(fd))) return 2;
    close(fd);
    atomic_fetch_add(&seg->joined, 1);
    while (atomic_load(&seg->joined) < ranks) usleep(1000);
    if (rank == 0) unlink(id.internal + 8);
    *out = calloc(1, sizeof **out);
    **out = (struct comm){.seg = seg, .rank = rank, .ranks = ranks, .card = card};
    epilogue(*out, 1);
    return 0;
}
ncclResult_t ncclCommInitAll(ncclComm_t *out, int n, const int *devices) {
    segment *seg = map(-1);
    if (n < 1 || n > MAX_RANKS || !seg) return 4;
    for (int i = 0; i < n; i++) {
        int card = devices ? devices[i] : i;
        for (int j = 0; j < i; j++) if (card == out[j]->card) return 5;
        prologue(i, n, card);
        if (fault("nccl-oom")) return out_of_memory(card);
        out[i] = calloc(1, sizeof **out);
        *out[i] = (struct comm){.seg = seg, .rank = i, .ranks = n, .card = card};
    }
    for (int i = 0; i < n; i++) epilogue(out[i], 0);
    return 0;
}

static void barrier(segment *s, int n) {
    int turn = atomic_load(&s->turn);
    if (atomic_fetch_add(&s->arrived, 1) == n - 1) { atomic_store(&s->arrived, 0); atomic_fetch_add(&s->turn, 1); return; }
    while (atomic_load(&s->turn) == turn) sched_yield();
}

struct op { const void *send; void *recv; size_t count; int op; ncclComm_t comm; void *stream; };
static __thread struct op queue[64];
static __thread int queued, depth;

static void *reduce(void *arg) {
    struct op *o = arg;
    ncclComm_t c = o->comm;
    size_t per = SLOT / 4, done = 0;
    if (fault("crash")) raise(SIGSEGV);
    while (done < o->count) {
        size_t n = o->count - done < per ? o->count - done : per;
        memcpy(c->seg->slots[c->rank], (const float *)o->send + done, n * 4);
        barrier(c->seg, c->ranks);
        for (size_t i = 0; i < n; i++) {
            float v = ((float *)c->seg->slots[0])[i];
            for (int r = 1; r < c->ranks; r++) {
                float w = ((float *)c->seg->slots[r])[i];
                v = o->op == 2 ? (w > v ? w : v) : v + w;
            }
            ((float *)o->recv)[done + i] = v;
        }
        barrier(c->seg, c->ranks);
        done += n;
    }
    if ((fault("wrong-sums") || (fault("p2p-corrupt") && p2p())) && c->rank == 1 && o->count > 1000) ((float *)o->recv)[o->count - 7] += 1;
    return NULL;
}

/* The time of a ring at a given bus bandwidth. */
static double lasts(const struct op *o) {
    double rate = fault("slow-ring") ? 0.05e9 : getenv("FAKE_GPU_RING") ? atof(getenv("FAKE_GPU_RING")) * (set("FAKE_GPU_P2P") && !p2p() ? 0.64e9 : 1e9) : p2p() ? 20e9 : 12e9;
    return o->count * 4.0 * 2 * (o->comm->ranks - 1) / o->comm->ranks / rate;
}

/* Whether these sums lie in their buffers already. Every rank runs the same sequence, so all of them agree. */
static int again(const struct op *ops, int n) {
    static struct op last[64];
    static int lasted;
    static unsigned seen;
    unsigned (*generation)(void) = (unsigned (*)(void))cuda("fake_generation");
    int same = set("FAKE_GPU_LAZY") && generation && n == lasted && generation() == seen && !memcmp(last, ops, n * sizeof *ops);
    if (n <= 64) memcpy(last, ops, n * sizeof *ops);
    lasted = n;
    seen = generation ? generation() : 0;
    return same;
}

static ncclResult_t run(void) {
    pthread_t threads[64];
    void (*block)(void *) = (void (*)(void *))cuda("fake_stream_block");
    int processes = queued > 0 && queued < queue[0].comm->ranks;
    for (int i = 0; i < queued; i++) connections(queue[i].comm, processes);
    if (fault("first-hang") || ((fault("nccl-p2p-hang") || fault("p2p-hang")) && p2p())) {
        for (int i = 0; i < queued; i++) block(queue[i].stream);
        queued = 0;
        return 0;
    }
    double (*clock)(void) = (double (*)(void))cuda("fake_clock"), begin = clock();
    void (*worked)(double) = (void (*)(double))cuda("fake_worked");
    void (*busy)(void *, double) = (void (*)(void *, double))cuda("fake_stream_busy");
    if (!again(queue, queued)) {
        for (int i = 0; i < queued; i++) pthread_create(&threads[i], NULL, reduce, &queue[i]);
        for (int i = 0; i < queued; i++) pthread_join(threads[i], NULL);
    }
    worked(clock() - begin);
    for (int i = 0; i < queued; i++) busy(queue[i].stream, lasts(&queue[i]));
    queued = 0;
    return 0;
}
ncclResult_t ncclGroupStart(void) { depth++; return 0; }
ncclResult_t ncclGroupEnd(void) { if (depth <= 0) return 5; return --depth ? 0 : run(); }
ncclResult_t ncclAllReduce(const void *send, void *recv, size_t count, int type, int op, ncclComm_t c, void *stream) {
    if (type != 7 || (op != 0 && op != 2) || !c || queued == 64 || current_card() != c->card) return 4;
    queue[queued++] = (struct op){send, recv, count, op, c, stream};
    return depth ? 0 : run();
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t c, int *r) { (void)c; *r = 0; return 0; }
ncclResult_t ncclCommDestroy(ncclComm_t c) { say(0, c->card, "comm 0x55d0 rank %d nranks %d cudaDev %d busId 1000 - Destroy COMPLETE", c->rank, c->ranks, c->card); free(c); return 0; }
