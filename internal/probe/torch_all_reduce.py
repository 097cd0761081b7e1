import json, os, sys, tempfile, time, datetime

def say(**line):
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()

say(phase="importing torch")
try:
    import torch
    import torch.distributed as dist
except BaseException as e:
    say(missing="torch cannot be imported: %s: %s" % (type(e).__name__, str(e).split("\n")[0][:300]))
    sys.exit(0)
if not getattr(torch.version, "cuda", None):
    say(missing="this torch (%s) is built without CUDA" % torch.__version__)
    sys.exit(0)
sizes = [int(s) << 20 for s in os.environ["PREFLIGHT_SIZES"].split(",")]
store = os.environ["PREFLIGHT_STORE"]

# Forked before any CUDA call: each child opens the driver for itself.
children, rank, world = [], 0, int(os.environ["PREFLIGHT_RANKS"])
if world < 2:
    say(missing="torch needs two cards")
    sys.exit(0)
for r in range(1, world):
    pid = os.fork()
    if pid == 0:
        rank, children = r, []
        break
    children.append(pid)

def main():
    if rank == 0:
        say(phase="opening the cards", torch=torch.__version__, ranks=world)
    torch.cuda.set_device(rank)
    if rank == 0:
        say(phase="initialisation", nccl=".".join(str(n) for n in torch.cuda.nccl.version()))
    dist.init_process_group("nccl", init_method="file://" + store, rank=rank, world_size=world, timeout=datetime.timedelta(seconds=600))
    first = torch.ones(1, device="cuda")
    if rank == 0:
        say(phase="the first all-reduce")
    dist.all_reduce(first)
    torch.cuda.synchronize()
    for size in sizes:
        data = torch.full((size // 4,), float(rank + 1), device="cuda")
        dist.all_reduce(data)
        wrong = int((data != world * (world + 1) / 2).sum().item())
        data.zero_()
        for _ in range(5):
            dist.all_reduce(data)
        torch.cuda.synchronize()
        best = None
        for _ in range(5):
            start = time.perf_counter()
            for _ in range(20):
                dist.all_reduce(data)
            torch.cuda.synchronize()
            took = (time.perf_counter() - start) / 20 * 1e6
            best = took if best is None else min(best, took)
        bad = torch.tensor([float(wrong)], device="cuda")
        slow = torch.tensor([best], device="cuda")
        dist.all_reduce(bad)
        dist.all_reduce(slow, op=dist.ReduceOp.MAX)
        if rank == 0:
            say(phase="measuring", ranks=world, bytes=size, time_us=float(slow.item()), wrong=int(bad.item()))
        del data
    dist.destroy_process_group()

code = 0
try:
    main()
except BaseException as e:
    lines = [l for l in str(e).split("\n") if l.strip()]
    say(error="%s: %s" % (type(e).__name__, " ".join(lines[-3:])[:600]))
    code = 1
if rank != 0:
    os._exit(code)
for pid in children:
    os.waitpid(pid, 0)
sys.exit(code)
