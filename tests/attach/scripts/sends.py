"""Trains on two ranks by DDP, which exchange a tensor before each step, by sends and receives that are waited for and by blocking ones:
sends.py OUT. Ends with an error if it takes more than a minute after its imports."""
import faulthandler
import json
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

STEPS, LIMIT_S = 3, 60


def exchanged(rank, step):
    """This rank's tensor, and the other rank's, twice."""
    own, other, again = torch.full((8,), float(10 * step + rank)), torch.empty(8), torch.empty(8)
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, own, 1 - rank), dist.P2POp(dist.irecv, other, 1 - rank)]):
        work.wait()
    for sender in range(2):
        if sender == rank:
            dist.send(own, 1 - rank)
        else:
            dist.recv(again, sender)
    return torch.stack([own, other, again])


def main():
    faulthandler.dump_traceback_later(LIMIT_S, exit=True)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(7)
    model = DistributedDataParallel(torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    losses = []
    for step in range(STEPS):
        loss = model(exchanged(rank, step)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    with open(f"{sys.argv[1]}.{rank}", "w", encoding="utf-8") as file:
        json.dump(losses, file)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
