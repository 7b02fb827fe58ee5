/* Takes three seconds to be loaded. */
#include <unistd.h>
__attribute__((constructor)) static void slow(void) { sleep(3); }
