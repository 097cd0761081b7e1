/* The few functions of NVML that say what CUDA cannot say of a card that is not in use. Card 61:00.0 is split by MIG
 * when FAKE_GPU_FAULT=mig-mode. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device) {
    static int handles[16];
    if (strlen(bus) != 12 || strncmp(bus, "0000:", 5)) return 2;
    *device = &handles[(strtol(bus + 5, NULL, 16) - 0x41) / 0x20];
    **(int **)device = (int)strtol(bus + 5, NULL, 16);
    return 0;
}
int nvmlDeviceGetMemoryInfo(void *device, uint64_t memory[3]) {
    memory[0] = 24564ull << 20;
    memory[1] = (uint64_t)*(int *)device << 20;
    memory[2] = memory[0] - memory[1];
    return 0;
}
int nvmlDeviceGetMigMode(void *device, unsigned *current, unsigned *pending) {
    const char *f = getenv("FAKE_GPU_FAULT");
    *current = *pending = f && !strcmp(f, "mig-mode") && *(int *)device == 0x61;
    return 0;
}
