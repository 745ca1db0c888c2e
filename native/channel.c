#define _GNU_SOURCE
#include "channel.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

enum { NOT_INITIALIZED = 3, NO_DEVICE = 100, NOT_SUPPORTED = 801, UNKNOWN = 999 };  // of CUresult

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
static int channel = -1, state = -1;  // state: -1 not tried yet, else what connecting gave
static pid_t owner;
static struct hello device;
static uint32_t attributes[2 * 512];

static int send_all(const void *data, size_t size) {
  while (size) {
    ssize_t sent = send(channel, data, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return UNKNOWN;
    data = (const char *)data + sent;
    size -= (size_t)sent;
  }
  return 0;
}

static int receive_all(void *data, size_t size) {
  while (size) {
    ssize_t came = recv(channel, data, size, 0);
    if (came < 0 && errno == EINTR) continue;
    if (came <= 0) return UNKNOWN;
    data = (char *)data + came;
    size -= (size_t)came;
  }
  return 0;
}

// What is answered when memsim has ended: nothing is left of what a program gives back at its own end.
static int without_memsim(enum operation op) {
  return op == OP_UNLOAD || op == OP_FREE || op == OP_FORGET ? 0 : UNKNOWN;
}

static int ask(enum operation op, const void *a, size_t na, const void *b, size_t nb, void *answer, size_t room,
               size_t *got) {
  uint32_t head[2] = {op, (uint32_t)(na + nb)};
  struct { int32_t result; uint32_t size; } reply;
  if (na + nb > UINT32_MAX || send_all(head, sizeof head) || send_all(a, na) || send_all(b, nb) ||
      receive_all(&reply, sizeof reply)) {
    if (channel >= 0 && without_memsim(op)) fprintf(stderr, "memsim: the memsim that runs this program has ended\n");
    close(channel);
    channel = -1;
    return without_memsim(op);
  }
  size_t taken = reply.size < room ? reply.size : room;
  if (receive_all(answer, taken)) return UNKNOWN;
  for (size_t left = reply.size - taken; left;) {
    char rest[256];
    size_t part = left < sizeof rest ? left : sizeof rest;
    if (receive_all(rest, part)) return UNKNOWN;
    left -= part;
  }
  if (got) *got = taken;
  return reply.result;
}

// The memory file comes with one byte, before the answer to the first request.
static int receive_file(void) {
  char byte, space[CMSG_SPACE(sizeof(int))];
  struct iovec piece = {&byte, 1};
  struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
  if (recvmsg(channel, &message, MSG_CMSG_CLOEXEC) != 1) return -1;
  struct cmsghdr *head = CMSG_FIRSTHDR(&message);
  int file;
  if (!head || head->cmsg_type != SCM_RIGHTS) return -1;
  memcpy(&file, CMSG_DATA(head), sizeof file);
  return file;
}

static int connect_once(void) {
  const char *path = getenv("MEMSIM_DRIVER");
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (!path || strlen(path) >= sizeof address.sun_path) return NO_DEVICE;
  strcpy(address.sun_path, path);
  channel = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (channel < 0 || connect(channel, (struct sockaddr *)&address, sizeof address)) return NO_DEVICE;
  int file = receive_file();
  if (file < 0) return NO_DEVICE;
  struct { struct hello hello; uint32_t attributes[2 * 512]; } answer;
  if (ask(OP_HELLO, NULL, 0, NULL, 0, &answer, sizeof answer, NULL) || answer.hello.attributes > 512) return NO_DEVICE;
  device = answer.hello;
  memcpy(attributes, answer.attributes, sizeof attributes);
  void *place = (void *)(uintptr_t)device.base;
  void *mapped = mmap(place, device.bytes, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, file, 0);
  close(file);
  if (mapped != place) {
    fprintf(stderr, "memsim: cannot map %llu bytes of device memory at %p: %s\n", (unsigned long long)device.bytes, place,
            mapped == MAP_FAILED ? strerror(errno) : "the place is taken");
    return NO_DEVICE;
  }
  owner = getpid();
  return 0;
}

int memsim_connect(void) {
  pthread_mutex_lock(&one_at_a_time);
  if (state < 0) state = connect_once();
  int found = state == 0 && owner != getpid() ? NOT_INITIALIZED : state;  // as CUDA after fork()
  pthread_mutex_unlock(&one_at_a_time);
  return found;
}

int memsim_ask(enum operation op, const void *a, size_t na, const void *b, size_t nb, void *answer, size_t room,
               size_t *got) {
  int failed = memsim_connect();
  if (failed) return failed;
  pthread_mutex_lock(&one_at_a_time);
  int result = channel < 0 ? without_memsim(op) : ask(op, a, na, b, nb, answer, room, got);
  pthread_mutex_unlock(&one_at_a_time);
  return result;
}

const struct hello *memsim_device(void) { return &device; }
const uint32_t *memsim_attributes(void) { return attributes; }

int memsim_refuse(const char *name) {
  memsim_ask(OP_REFUSED, name, strlen(name), NULL, 0, NULL, 0, NULL);
  return NOT_SUPPORTED;
}
