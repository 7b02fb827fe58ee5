/* A stand-in for libnvidia-ml.so.1, as pynvml calls it. What it answers is in the text file that NVML_STAND_IN names, read
 * again whenever it changes: lines "KEY VALUE" for the machine, "INDEX.KEY VALUE" for one GPU.
 *
 *   cards 2              how many GPUs; 1 if not said
 *   init 9               the error of nvmlInit; "hang init" hangs there
 *   0.util 100           percent; also mem_util, power_mw, limit_mw, sm, mem_clock, temp, mem_temp, reasons, used, total, replays,
 *                        ecc_corrected, ecc, remap_pending, remap_failed, links, down (a link), link_errors, mig
 *   0.pids 12,13         the processes that use it
 *   0.error 15           every call on it fails like this
 *   0.error.power 3      one call fails like this
 *   0.hang power         one call hangs (a name as in the line above); 0.slow_ms 50 makes every call slow
 *   event_step_ms 20     how often the stand-in looks for events
 *   0.xid 79 1           an Xid event; fires whenever the second number, which counts, grows
 *
 * Built with -DOLD it lacks the calls that drivers before 525 lack.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OK = 0, INVALID = 2, UNSUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7, TIMED_OUT = 10, LOST = 15, OTHER_VERSION = 25 };
enum { MOST_CARDS = 16, MOST_LINES = 512 };

typedef struct { int index; } Card;
typedef struct { Card *device; unsigned long long type, data; unsigned gpu_instance, compute_instance; } EventData;
typedef struct { unsigned field, scope; long long at, latency; unsigned type, result; union { double d; unsigned u; unsigned long long q; } value; } FieldValue;
typedef struct { char legacy[16]; unsigned domain, bus, device, id, subsystem; char bus_id[32]; } Pci;
typedef struct { unsigned pid; unsigned long long used; unsigned gpu_instance, compute_instance; } Process;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } MemoryV2;
typedef struct { unsigned version, sensor; int temperature; } Temperature;

static Card cards[MOST_CARDS];
static struct { char text[MOST_LINES][160]; int count; } files[2], *file = &files[0];  /* two: another thread may still read */
static pthread_mutex_t reading = PTHREAD_MUTEX_INITIALIZER;
static struct stat seen_file;
static unsigned registered[MOST_CARDS], fired[MOST_CARDS];

static int is_new(const struct stat *now) {
    return now->st_ino != seen_file.st_ino || now->st_mtim.tv_sec != seen_file.st_mtim.tv_sec ||
           now->st_mtim.tv_nsec != seen_file.st_mtim.tv_nsec || now->st_size != seen_file.st_size;
}

static void read_file(void) {
    const char *path = getenv("NVML_STAND_IN");
    struct stat now;
    if (!path || stat(path, &now)) return;
    pthread_mutex_lock(&reading);
    FILE *stream = is_new(&now) ? fopen(path, "r") : NULL;
    if (stream) {
        typeof(file) next = file == files ? &files[1] : &files[0];
        for (next->count = 0; next->count < MOST_LINES && fgets(next->text[next->count], 160, stream); next->count++)
            next->text[next->count][strcspn(next->text[next->count], "\n")] = 0;
        fclose(stream);
        file = next;
        seen_file = now;
    }
    pthread_mutex_unlock(&reading);
}

/* The value of a key, or NULL. */
static const char *find(const char *key) {
    size_t size = strlen(key);
    typeof(file) now = file;
    for (int i = 0; i < now->count; i++)
        if (!strncmp(now->text[i], key, size) && now->text[i][size] == ' ') return now->text[i] + size + 1;
    return NULL;
}

static const char *find_of(Card *card, const char *key) {
    char name[96];
    snprintf(name, sizeof name, "%d.%s", card->index, key);
    return find(name);
}

static unsigned long long number(Card *card, const char *key, unsigned long long otherwise) {
    const char *text = find_of(card, key);
    return text ? strtoull(text, NULL, 0) : otherwise;
}

/* What every call on a GPU begins with: hang, be slow, fail. */
static int enter(Card *card, const char *call) {
    char key[96];
    read_file();
    const char *hangs = find_of(card, "hang");
    if (hangs && !strcmp(hangs, call)) for (;;) pause();
    unsigned slow_ms = number(card, "slow_ms", 0);
    if (slow_ms) usleep(slow_ms * 1000);
    int error = number(card, "error", OK);
    snprintf(key, sizeof key, "error.%s", call);
    return error ? error : (int)number(card, key, OK);
}

#define GIVE(call, pointer, value) do { int error = enter(card, call); if (error) return error; *(pointer) = (value); return OK; } while (0)

int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    read_file();
    const char *hangs = find("hang");
    if (hangs && !strcmp(hangs, "init")) for (;;) pause();
    const char *error = find("init");
    return error ? atoi(error) : OK;
}

int nvmlShutdown(void) { return OK; }

const char *nvmlErrorString(int error) {
    switch (error) {
    case 3: return "Not Supported";
    case 4: return "Insufficient Permissions";
    case 9: return "Driver Not Loaded";
    case 15: return "GPU is lost";
    case 18: return "Driver/library version mismatch";
    default: return "Unknown Error";
    }
}

int nvmlSystemGetDriverVersion(char *text, unsigned size) { snprintf(text, size, "550.54.15"); return OK; }

int nvmlDeviceGetCount_v2(unsigned *count) {
    read_file();
    const char *text = find("cards");
    *count = text ? atoi(text) : 1;
    return OK;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, Card **card) {
    if (index >= MOST_CARDS) return INVALID;
    cards[index].index = index;
    *card = &cards[index];
    return enter(*card, "handle");
}

int nvmlDeviceGetUUID(Card *card, char *text, unsigned size) {
    int error = enter(card, "uuid");
    snprintf(text, size, "GPU-0000000%d-1111-2222-3333-444444444444", card->index);
    return error;
}

int nvmlDeviceGetName(Card *card, char *text, unsigned size) {
    int error = enter(card, "name");
    snprintf(text, size, "NVIDIA Stand-in");
    return error;
}

int nvmlDeviceGetPciInfo_v3(Card *card, Pci *pci) {
    int error = enter(card, "pci");
    memset(pci, 0, sizeof *pci);
    snprintf(pci->bus_id, sizeof pci->bus_id, "00000000:%02X:00.0", 0x1b + card->index);
    return error;
}

int nvmlDeviceGetUtilizationRates(Card *card, unsigned *rates) {
    int error = enter(card, "util");
    rates[0] = number(card, "util", 0);
    rates[1] = number(card, "mem_util", 0);
    return error;
}

int nvmlDeviceGetPowerUsage(Card *card, unsigned *mw) { GIVE("power", mw, number(card, "power_mw", 70000)); }
int nvmlDeviceGetEnforcedPowerLimit(Card *card, unsigned *mw) { GIVE("limit", mw, number(card, "limit_mw", 700000)); }
int nvmlDeviceGetPcieReplayCounter(Card *card, unsigned *count) { GIVE("replays", count, number(card, "replays", 0)); }
int nvmlDeviceGetMaxMigDeviceCount(Card *card, unsigned *count) { GIVE("mig", count, number(card, "mig", 0) ? 7 : 0); }

int nvmlDeviceGetClockInfo(Card *card, int kind, unsigned *mhz) {
    GIVE("clock", mhz, kind == 1 ? number(card, "sm", 1980) : number(card, "mem_clock", 2619));
}

int nvmlDeviceGetTotalEccErrors(Card *card, int kind, int counter, unsigned long long *count) {
    (void)counter;
    GIVE("ecc", count, number(card, kind ? "ecc" : "ecc_corrected", 0));
}

int nvmlDeviceGetRemappedRows(Card *card, unsigned *corrected, unsigned *uncorrected, unsigned *pending, unsigned *failed) {
    *corrected = *uncorrected = 0;
    *pending = number(card, "remap_pending", 0);
    *failed = number(card, "remap_failed", 0);
    return enter(card, "rows");
}

int nvmlDeviceGetMigMode(Card *card, unsigned *current, unsigned *pending) {
    *current = *pending = number(card, "mig", 0);
    return enter(card, "migmode");
}

int nvmlDeviceGetMigDeviceHandleByIndex(Card *card, unsigned index, Card **part) {
    *part = card;
    return index ? NOT_FOUND : enter(card, "migpart");
}

int nvmlDeviceGetNvLinkState(Card *card, unsigned link, unsigned *is_up) {
    GIVE("links", is_up, link < number(card, "links", 0) && link != number(card, "down", 99));
}

static int give_field(Card *card, FieldValue *field) {
    field->type = 1;
    field->result = OK;
    switch (field->field) {
    case 82: field->value.u = number(card, "mem_temp", 60); return find_of(card, "mem_temp") ? OK : UNSUPPORTED;
    case 91: field->value.u = number(card, "links", 0); return OK;
    case 161: field->value.u = field->scope ? 0 : number(card, "link_errors", 0); return OK;
    case 162: case 163: field->value.u = 0; return OK;
    default: return UNSUPPORTED;
    }
}

int nvmlDeviceGetFieldValues(Card *card, int count, FieldValue *fields) {
    int error = enter(card, "fields");
    for (int i = 0; i < count; i++) fields[i].result = give_field(card, &fields[i]);
    return error;
}

static int give_processes(Card *card, unsigned *count, Process *processes) {
    int error = enter(card, "pids");
    if (error) return error;
    const char *text = find_of(card, "pids");
    unsigned found = 0, room = processes ? *count : 0;
    while (text && *text) {
        if (found < room) processes[found] = (Process){strtoul(text, NULL, 10), 1 << 30, ~0u, ~0u};
        found++;
        text = strchr(text, ',');
        if (text) text++;
    }
    *count = found;
    return found > room ? TOO_SMALL : OK;
}

int nvmlDeviceGetComputeRunningProcesses_v2(Card *card, unsigned *count, Process *processes) { return give_processes(card, count, processes); }

#ifdef OLD
int nvmlDeviceGetMemoryInfo(Card *card, unsigned long long *memory) {
    memory[0] = number(card, "total", 80ull << 30);
    memory[2] = number(card, "used", 1ull << 30);
    memory[1] = memory[0] - memory[2];
    return enter(card, "memory");
}
int nvmlDeviceGetTemperature(Card *card, int sensor, unsigned *celsius) { (void)sensor; GIVE("temp", celsius, number(card, "temp", 40)); }
int nvmlDeviceGetCurrentClocksThrottleReasons(Card *card, unsigned long long *bits) { GIVE("reasons", bits, number(card, "reasons", 0)); }
#else
int nvmlDeviceGetComputeRunningProcesses_v3(Card *card, unsigned *count, Process *processes) { return give_processes(card, count, processes); }

int nvmlDeviceGetMemoryInfo_v2(Card *card, MemoryV2 *memory) {
    int error = enter(card, "memory");
    if (memory->version != (sizeof *memory | 2 << 24)) return OTHER_VERSION;
    memory->total = number(card, "total", 80ull << 30);
    memory->used = number(card, "used", 1ull << 30);
    memory->reserved = 500 << 20;
    memory->free = memory->total - memory->used - memory->reserved;
    return error;
}

int nvmlDeviceGetTemperatureV(Card *card, Temperature *found) {
    int error = enter(card, "temp");
    if (found->version != (sizeof *found | 1 << 24)) return OTHER_VERSION;
    found->temperature = number(card, "temp", 40);
    return error;
}

int nvmlDeviceGetCurrentClocksEventReasons(Card *card, unsigned long long *bits) { GIVE("reasons", bits, number(card, "reasons", 0)); }
#endif

int nvmlEventSetCreate(void **set) { *set = registered; return OK; }
int nvmlEventSetFree(void *set) { (void)set; memset(registered, 0, sizeof registered); return OK; }

static unsigned turn_of(Card *card, unsigned *code) {
    const char *text = find_of(card, "xid");
    unsigned turn = 0;
    if (text) sscanf(text, "%u %u", code, &turn);
    return turn;
}

int nvmlDeviceRegisterEvents(Card *card, unsigned long long types, void *set) {
    unsigned code;
    (void)set;
    if (types != 8) return UNSUPPORTED;
    int error = enter(card, "events");
    if (error) return error;
    if (!registered[card->index]) fired[card->index] = turn_of(card, &code);
    registered[card->index] = 1;
    return OK;
}

int nvmlEventSetWait_v2(void *set, EventData *event, unsigned timeout_ms) {
    (void)set;
    const char *step = find("event_step_ms");
    unsigned step_ms = step ? atoi(step) : 20;
    for (unsigned waited_ms = 0; waited_ms < timeout_ms; waited_ms += step_ms) {
        read_file();
        for (int index = 0; index < MOST_CARDS; index++) {
            unsigned code = 0;
            if (!registered[index]) continue;
            if (number(&cards[index], "error", OK) == LOST) return LOST;
            unsigned turn = turn_of(&cards[index], &code);
            if (turn <= fired[index]) continue;
            fired[index] = turn;
            *event = (EventData){&cards[index], 8, code, ~0u, ~0u};
            return OK;
        }
        usleep(step_ms * 1000);
    }
    return TIMED_OUT;
}
