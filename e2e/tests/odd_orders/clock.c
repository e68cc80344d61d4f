/* The wall clock of one process, ahead of or behind the machine's by the seconds that stand in the file CLOCK_OFFSET. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

static volatile int64_t *offset;
static int (*clock_of_the_machine)(clockid_t, struct timespec *);

__attribute__((constructor)) static void begin(void) {
	int file = open(getenv("CLOCK_OFFSET"), O_RDONLY);
	offset = mmap(0, sizeof *offset, PROT_READ, MAP_SHARED, file, 0);
	clock_of_the_machine = dlsym(RTLD_NEXT, "clock_gettime");
}

int clock_gettime(clockid_t clock, struct timespec *now) {
	int answer = clock_of_the_machine(clock, now);
	if (clock == CLOCK_REALTIME && answer == 0)
		now->tv_sec += *offset;
	return answer;
}
