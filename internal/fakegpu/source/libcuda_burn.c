/* Kernels without a GPU, for libcuda.c: modules of PTX text, and the functions that the helper's burn-in launches. Patterns are
 * written and compared word by word; a kernel of arithmetic gives every thread a word that depends on it and on its iterations,
 * and takes the time of a card of given speed. Of an allocation of many GiB only the first MiB has words: the rest is not there.
 *
 * FAKE_GPU_FREE   free memory of a card, MiB (22000)
 * FAKE_GPU_BUSY   a folder: while kernels run, the file CARD (its address) in it holds the process's number
 * FAKE_GPU_SPEED  a file of lines "ADDRESS<tab>SHARE": what a power cap leaves of a card's speed
 * FAKE_GPU_FAULT  burn-bits   card 1: one word of each pass after the second keeps two bits from before
 *                 burn-wrong  card 1: every fourth kernel gives one thread another result
 *                 burn-lost   card 1 is lost after FAKE_GPU_AFTER seconds (1.5) of load: every call on it fails from then on
 *                 burn-hang   card 1: the third kernel never ends
 *                 burn-slow   card 1 throttles: after FAKE_GPU_AFTER seconds its kernels take twice as long
 *                 ptx-old (PTX 6.x only)  ptx-target (no sm_50 any more)  no-jit  little-memory
 */
enum { KEPT_WORDS = 1 << 18 };
struct module { const char *text; };
enum what { BURN = 1, FILL, CHECK, COMPARE };
static const char *entries[] = {"", "burn", "burn_fill", "burn_check", "burn_compare"};
static struct kernel { enum what what; } kernels[5] = {{0}, {BURN}, {FILL}, {CHECK}, {COMPARE}};
static double began[MAX_CARDS]; /* the first kernel on a card */

static double after(void) { const char *v = getenv("FAKE_GPU_AFTER"); return v ? atof(v) : 1.5; }
static void fell(int dev) { /* what the kernel says of it, where FAKE_GPU_ROOT has a log */
    static int said;
    char bus[32], path[2048];
    const char *root = getenv("FAKE_GPU_ROOT");
    if (said++ || !root) return;
    cuDeviceGetPCIBusId(bus, sizeof bus, dev);
    bus[strlen(bus) - 2] = 0;
    snprintf(path, sizeof path, "%s/dev/kmsg", root);
    FILE *f = fopen(path, "a");
    if (f) { fprintf(f, "NVRM: Xid (PCI:%s): 79, pid=%d, name=helper, GPU has fallen off the bus.\n", bus, (int)getpid()); fclose(f); }
}
static int lost(int dev) {
    if (dev != 1 || !fault("burn-lost") || !began[dev] || real() - began[dev] <= after()) return 0;
    fell(dev);
    return 1;
}
static double share(int dev) { /* of its speed that a power cap leaves to a card; looked up once a second */
    static double last[MAX_CARDS], value[MAX_CARDS];
    char bus[32], line[128];
    const char *file = getenv("FAKE_GPU_SPEED");
    if (!file || (last[dev] && real() - last[dev] < 1)) return value[dev] ? value[dev] : 1;
    last[dev] = real();
    cuDeviceGetPCIBusId(bus, sizeof bus, dev);
    FILE *f = fopen(file, "r");
    while (f && fgets(line, sizeof line, f)) {
        char *tab = strchr(line, '\t');
        if (!tab) continue;
        *tab = 0;
        if (!strcasecmp(line, bus) && atof(tab + 1) > 0) value[dev] = atof(tab + 1);
    }
    if (f) fclose(f);
    return value[dev] ? value[dev] : 1;
}

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
    if (!current) return 201;
    cuDeviceTotalMem_v2(total, current->dev);
    *free_bytes = (size_t)(fault("little-memory") ? 40 : number("FAKE_GPU_FREE", 22000)) << 20;
    return 0;
}
CUresult cuModuleLoadData(struct module **m, const char *text) {
    if (!current) return 201;
    if (fault("no-jit")) return 221;
    double version = 0;
    const char *at = strstr(text, ".version ");
    if (!at || sscanf(at, ".version %lf", &version) != 1) return 218;
    if (fault("ptx-old") && version >= 7) return 222;
    if (fault("ptx-target") && strstr(text, ".target sm_50")) return 218;
    *m = malloc(sizeof **m);
    (*m)->text = strdup(text);
    return 0;
}
CUresult cuModuleGetFunction(struct kernel **k, struct module *m, const char *name) {
    char entry[64];
    snprintf(entry, sizeof entry, ".entry %s(", name);
    if (!strstr(m->text, entry)) return 500;
    for (int i = BURN; i <= COMPARE; i++) if (!strcmp(entries[i], name)) { *k = &kernels[i]; return 0; }
    return 500;
}

static uint32_t pattern(uint64_t i, uint32_t seed, uint32_t flip) {
    uint32_t x = ((uint32_t)i * 0x9E3779B1u) ^ seed ^ (uint32_t)(i >> 32);
    return (x ^ x >> 15) * 0x85EBCA6Bu ^ flip;
}
static uint32_t arithmetic(uint32_t thread, uint32_t iterations) {
    uint32_t x = thread * 0x9E3779B1u ^ iterations;
    return (x ^ x >> 13) * 0xC2B2AE35u;
}
static void busy(int dev) {
    static int written[MAX_CARDS];
    const char *dir = getenv("FAKE_GPU_BUSY");
    char bus[32], path[2048];
    if (!dir || written[dev]++) return;
    cuDeviceGetPCIBusId(bus, sizeof bus, dev);
    snprintf(path, sizeof path, "%s/%s", dir, bus);
    FILE *f = fopen(path, "w");
    if (f) { fprintf(f, "%d\n", (int)getpid()); fclose(f); }
}
static void found(uint64_t *f, uint64_t i, uint32_t bits) { f[0]++; if (i < f[1]) f[1] = i; f[2] |= bits; }

CUresult cuLaunchKernel(struct kernel *k, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                        CUstream s, void **p, void **extra) {
    static int passes[MAX_CARDS], rounds[MAX_CARDS];
    if (!current || current->dev != s->dev) return 400;
    if (!gx || !bx || gy != 1 || gz != 1 || by != 1 || bz != 1 || shared || extra || !p) return 1;
    int dev = s->dev, sick = dev == 1;
    if (lost(dev)) return 999;
    if (!began[dev]) began[dev] = real();
    busy(dev);
    wake();
    uint64_t threads = (uint64_t)gx * bx, n;
    double took, t = real();
    uint32_t *a = *(uint32_t **)p[0];
    if (k->what == BURN) {
        uint32_t iterations = *(uint32_t *)p[1];
        if (owner(a, threads * 4) != dev) return 1;
        for (uint64_t i = 0; i < threads; i++) a[i] = arithmetic((uint32_t)i, iterations);
        rounds[dev]++;
        if (sick && fault("burn-wrong") && rounds[dev] > 8 && rounds[dev] % 4 == 0) a[777] ^= 0x00400000;
        took = 512.0 * threads * iterations / 165e12 / share(dev); /* a 4090's tensor cores with sums of 32 bits */
        if (sick && fault("burn-slow") && real() - began[dev] > after()) took *= 2;
        if (sick && fault("burn-hang") && real() - began[dev] > after()) s->blocked = 1;
    } else if (k->what == COMPARE) {
        uint32_t *b = *(uint32_t **)p[1];
        n = *(uint64_t *)p[2];
        uint64_t *f = *(uint64_t **)p[3];
        if (owner(a, n * 4) != dev || owner(b, n * 4) != dev || owner(f, 24) != dev) return 1;
        for (uint64_t i = 0; i < n; i++) if (a[i] != b[i]) found(f, i, a[i] ^ b[i]);
        took = 8.0 * n / 900e9;
    } else {
        n = *(uint64_t *)p[1];
        uint32_t seed = *(uint32_t *)p[2], flip = *(uint32_t *)p[3];
        if (owner(a, n * 4) != dev) return 1;
        uint64_t kept = n < KEPT_WORDS ? n : KEPT_WORDS;
        if (k->what == FILL) {
            for (uint64_t i = 0; i < kept; i++) a[i] = pattern(i, seed, flip);
            if (sick && fault("burn-bits") && ++passes[dev] > 2) a[4242] ^= 0x00010001;
        } else {
            uint64_t *f = *(uint64_t **)p[4];
            if (owner(f, 24) != dev) return 1;
            for (uint64_t i = 0; i < kept; i++) if (a[i] != pattern(i, seed, flip)) found(f, i, a[i] ^ pattern(i, seed, flip));
        }
        took = 4.0 * n / 900e9;
    }
    worked += real() - t;
    fake_stream_busy(s, took);
    return 0;
}
