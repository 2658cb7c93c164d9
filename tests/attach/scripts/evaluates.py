"""Trains on two ranks by DDP, evaluates after the second step on the training data and on other data, and ends its loop after it
has fetched one batch too many."""
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

STEPS = 4


def evaluate(model, data):
    model.eval()
    with torch.no_grad():
        losses = [torch.nn.functional.mse_loss(model(x), y).item() for x, y in DataLoader(data, batch_size=2)]
    model.train()
    return losses


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data, other = (TensorDataset(torch.randn(count, 16), torch.randn(count, 1)) for count in (2 * (STEPS + 4), 6))
    for step, (x, y) in enumerate(DataLoader(data, batch_size=2)):
        if step == STEPS:
            break
        torch.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()
        if step == 1:
            evaluate(model, data)
            evaluate(model, other)
    evaluate(model, other)
    optimizer.step()  # nothing was trained: no step
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
