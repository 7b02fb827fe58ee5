/* What C does in targets. First: parks in poll() with every vector register, the rounding modes, errno, a signal mask and an alternate stack set. 0: all are intact. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EACH(move) \
  move(0) move(1) move(2) move(3) move(4) move(5) move(6) move(7) move(8) move(9) move(10) move(11) move(12) move(13) move(14) move(15)
#define TAKE(n) "vmovdqa 32*" #n "(%[in]),%%ymm" #n "\n"
#define GIVE(n) "vmovdqa %%ymm" #n ",32*" #n "(%[out])\n"

__attribute__((noinline)) static int registers(int milliseconds) {
  static unsigned char in[512] __attribute__((aligned(64))), out[512] __attribute__((aligned(64)));
  unsigned vector_mode = 0x3f80, vector_mode_after = 0, usual = 0x1f80;
  unsigned short mode = 0x0f7f, mode_after = 0;
  long result;
  for (int i = 0; i < 512; i++) in[i] = i * 7 + i / 16;
  __asm__ volatile("ldmxcsr %[vm]\n fldcw %[m]\n" EACH(TAKE) "syscall\n" EACH(GIVE) "stmxcsr %[vma]\n fnstcw %[ma]\n vzeroupper\n fninit\n"
                   : "=a"(result), [vma] "=m"(vector_mode_after), [ma] "=m"(mode_after)
                   : "a"(7), "D"(0), "S"(0), "d"(milliseconds), [in] "r"(in), [out] "r"(out), [vm] "m"(vector_mode), [m] "m"(mode)
                   : "rcx", "r11", "memory", "ymm0", "ymm1", "ymm2", "ymm3", "ymm4", "ymm5", "ymm6", "ymm7", "ymm8", "ymm9", "ymm10",
                     "ymm11", "ymm12", "ymm13", "ymm14", "ymm15");
  __asm__ volatile("ldmxcsr %0" ::"m"(usual));
  return (result != 0) | (memcmp(in, out, 512) != 0) << 1 | (vector_mode != vector_mode_after) << 2 | (mode != mode_after) << 3;
}

int park(int milliseconds) {
  sigset_t mask, before, after;
  stack_t own = {.ss_sp = malloc(65536), .ss_size = 65536}, found;
  sigemptyset(&mask);
  sigaddset(&mask, SIGUSR2);
  sigaltstack(&own, 0);
  pthread_sigmask(SIG_BLOCK, &mask, 0);
  pthread_sigmask(SIG_BLOCK, 0, &before);
  errno = 4711;
  int wrong = registers(milliseconds);
  wrong |= (errno != 4711) << 4;
  sigaltstack(0, &found);
  pthread_sigmask(SIG_BLOCK, 0, &after);
  wrong |= (found.ss_sp != own.ss_sp || found.ss_size != own.ss_size || found.ss_flags) << 5;
  return wrong | (memcmp(&before, &after, 8) != 0) << 6;
}

static void *load(void *path) { return dlopen(path, RTLD_NOW); }

void load_in_thread(char *path) {
  pthread_t thread;
  pthread_create(&thread, 0, load, path);
  pthread_detach(thread);
}

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
void wait_for_mutex(void) {
  pthread_mutex_lock(&held);
  pthread_mutex_lock(&held);
}

/* The caller cannot be interrupted until its child ends. */
void wait_for_child(int seconds) {
  if (!vfork()) {
    sleep(seconds);
    _exit(0);
  }
}

/* A worker, as libraries have them, and a caller that waits for it so many times with whatever it holds. */
static pthread_mutex_t work = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t begin = PTHREAD_COND_INITIALIZER, end = PTHREAD_COND_INITIALIZER;
static int given, done;

static void *serve(void *unused) {
  pthread_mutex_lock(&work);
  for (;;) {
    while (given == done) pthread_cond_wait(&begin, &work);
    done++;
    pthread_cond_signal(&end);
  }
  return unused;
}

void start_worker(void) {
  pthread_t thread;
  pthread_create(&thread, 0, serve, 0);
  pthread_detach(thread);
}

int compute(int times, int microseconds) {
  for (int i = 0; i < times; i++) {
    usleep(microseconds);
    pthread_mutex_lock(&work);
    given++;
    pthread_cond_signal(&begin);
    while (given != done) pthread_cond_wait(&end, &work);
    pthread_mutex_unlock(&work);
  }
  return done;
}

/* Mostly within the lock of the memory allocator: such blocks are too large for a thread's own store. */
static void *allocate(void *stop) {
  while (!*(volatile int *)stop) {
    void *one = malloc(5000), *other = malloc(70000);
    free(one);
    free(other);
  }
  return 0;
}

static int is_over;
void allocate_in_thread(void) {
  pthread_t thread;
  pthread_create(&thread, 0, allocate, &is_over);
  pthread_detach(thread);
}
