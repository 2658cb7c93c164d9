/* How the ranks of zero3_run wait for one another, which a real runtime's collectives do by themselves: rank
 * 0 listens on a socket in the file system, hears from all others and answers them. C99 and POSIX, this
 * machine only. Nothing here is Shardscope's. */
#ifndef ZERO3_RUN_RENDEZVOUS_H
#define ZERO3_RUN_RENDEZVOUS_H

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { kMostRanks = 256, kRendezvousWait_s = 60 };

typedef struct Rendezvous {
  uint32_t rank, world;
  int peers[kMostRanks]; /* of rank 0: the connections to the others; of these: peers[0] alone */
} Rendezvous;

static int rendezvous_failed(const char* what) {
  fprintf(stderr, "zero3_run: waiting for the other ranks: %s: %s\n", what, strerror(errno));
  return -1;
}

/* One byte, waited for as long as anybody waits here. */
static int rendezvous_receive(int peer, unsigned char* word) {
  struct pollfd one = {peer, POLLIN, 0};
  int ready;
  while ((ready = poll(&one, 1, kRendezvousWait_s * 1000)) < 0 && errno == EINTR) continue;
  if (ready == 0) errno = ETIMEDOUT;
  if (ready != 1) return rendezvous_failed("waiting");
  const ssize_t got = recv(peer, word, 1, 0);
  if (got == 0) errno = EPIPE; /* it has ended */
  return got == 1 ? 0 : rendezvous_failed("hearing");
}

static int rendezvous_send(int peer, unsigned char word) {
  return send(peer, &word, 1, MSG_NOSIGNAL) == 1 ? 0 : rendezvous_failed("saying");
}

static int rendezvous_listen(Rendezvous* m, const struct sockaddr_un* at) {
  const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  unlink(at->sun_path); /* of a run that was killed */
  if (listener < 0 || bind(listener, (const struct sockaddr*)at, sizeof *at) != 0 ||
      listen(listener, kMostRanks) != 0) {
    return rendezvous_failed(at->sun_path);
  }
  for (uint32_t i = 1; i < m->world; ++i) {
    struct pollfd one = {listener, POLLIN, 0};
    const int ready = poll(&one, 1, kRendezvousWait_s * 1000);
    if (ready == 0) errno = ETIMEDOUT;
    if (ready != 1 || (m->peers[i] = accept(listener, NULL, NULL)) < 0)
      return rendezvous_failed("not all ranks came");
  }
  close(listener);
  unlink(at->sun_path);
  return 0;
}

static int rendezvous_connect(Rendezvous* m, const struct sockaddr_un* at) {
  for (int tries = 0; tries < kRendezvousWait_s * 100; ++tries) {
    m->peers[0] = socket(AF_UNIX, SOCK_STREAM, 0);
    if (m->peers[0] < 0) break;
    if (connect(m->peers[0], (const struct sockaddr*)at, sizeof *at) == 0) return 0;
    close(m->peers[0]);
    const struct timespec pause = {0, 10 * 1000 * 1000};
    nanosleep(&pause, NULL);
  }
  return rendezvous_failed(at->sun_path);
}

/* Waits until all ranks of the run are there. 0: they are. */
static int rendezvous_begin(Rendezvous* m, uint32_t rank, uint32_t world, const char* run_id) {
  m->rank = rank;
  m->world = world;
  if (world == 1) return 0;
  const char* folder = getenv("TMPDIR");
  struct sockaddr_un at = {0};
  at.sun_family = AF_UNIX;
  const int length =
      snprintf(at.sun_path, sizeof at.sun_path, "%s/zero3_run-%s", folder != NULL ? folder : "/tmp", run_id);
  if (length < 0 || (size_t)length >= sizeof at.sun_path || world > kMostRanks) {
    errno = world > kMostRanks ? E2BIG : ENAMETOOLONG;
    return rendezvous_failed(run_id);
  }
  return rank == 0 ? rendezvous_listen(m, &at) : rendezvous_connect(m, &at);
}

/* Returns when every rank has called it: the largest `word` of all; -1 if one of them has ended. */
static int meet(Rendezvous* m, unsigned char word) {
  unsigned char received;
  if (m->world == 1) return word;
  if (m->rank != 0) {
    return rendezvous_send(m->peers[0], word) == 0 && rendezvous_receive(m->peers[0], &received) == 0
               ? received
               : -1;
  }
  for (uint32_t i = 1; i < m->world; ++i) {
    if (rendezvous_receive(m->peers[i], &received) != 0) return -1;
    if (received > word) word = received;
  }
  for (uint32_t i = 1; i < m->world; ++i) {
    if (rendezvous_send(m->peers[i], word) != 0) return -1;
  }
  return word;
}

#endif
