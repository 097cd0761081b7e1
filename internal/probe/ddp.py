# preflight-ddp: trains a synthetic model on each card alone, and on more and more cards together.
import json, os, sys, time, datetime, threading, queue

def say(**line):
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()

say(phase="importing torch")
try:
    import torch
    import torch.distributed as dist
    import torch.nn as nn
except BaseException as e:
    say(missing="torch cannot be imported: %s: %s" % (type(e).__name__, str(e).split("\n")[0][:300]))
    sys.exit(0)
if not getattr(torch.version, "cuda", None):
    say(missing="this torch (%s) is built without CUDA" % torch.__version__)
    sys.exit(0)
want = int(os.environ["PREFLIGHT_PARAMETERS"])
tokens = int(os.environ["PREFLIGHT_TOKENS"])
steps = int(os.environ["PREFLIGHT_STEPS"])
stages = [[int(c) for c in s.split("+")] for s in os.environ["PREFLIGHT_STAGES"].split(",")]
store = os.environ["PREFLIGHT_STORE"]
data = os.environ.get("PREFLIGHT_DATA", "")
width = 2048
blocks = max(1, round(want / (8.0 * width * width)))

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(x)))

# Files of a folder, read over and over by a few threads as a loader would; a batch is as many bytes as the batch has in halves.
class Files:
    def __init__(self, folder, rank, world):
        self.paths = sorted(os.path.join(d, f) for d, _, fs in os.walk(folder) for f in fs)[rank::world]
        if not self.paths:
            raise RuntimeError("no file for card %d in %s" % (rank, folder))
        self.bytes = tokens * width * 2
        self.ready = queue.Queue(8)
        self.next, self.lock = 0, threading.Lock()
        for _ in range(4):
            threading.Thread(target=self.read, daemon=True).start()
    def read(self):
        while True:
            batch = bytearray()
            while len(batch) < self.bytes:
                with self.lock:
                    path = self.paths[self.next % len(self.paths)]
                    self.next += 1
                with open(path, "rb") as f:
                    batch += f.read(self.bytes - len(batch)) or b"\0"
            self.ready.put(bytes(batch))
    def batch(self):
        start = time.perf_counter()
        raw = self.ready.get()
        return raw, time.perf_counter() - start

def work(stage, cards, rank):
    world = len(cards)
    torch.cuda.set_device(cards[rank])
    torch.manual_seed(1)
    model = nn.Sequential(*[Block() for _ in range(blocks)]).cuda()
    parameters = sum(p.numel() for p in model.parameters())
    if world > 1:
        dist.init_process_group("nccl", init_method="file://%s.%d" % (store, stage), rank=rank, world_size=world, timeout=datetime.timedelta(seconds=600))
        model = nn.parallel.DistributedDataParallel(model, device_ids=[cards[rank]])
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    half = torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
    x = torch.randn(tokens, width, device="cuda")
    files = Files(data, rank, world) if data else None

    def step(sync):
        waited = 0.0
        y = x
        if files:
            raw, waited = files.batch()
            y = torch.frombuffer(bytearray(raw), dtype=torch.uint8)[:tokens].cuda(non_blocking=True).float().unsqueeze(1) * 1e-3 + x
        def run():
            with torch.autocast("cuda", half):
                loss = model(y).float().pow(2).mean()
            loss.backward()
        if sync or world == 1:
            run()
        else:
            with model.no_sync():
                run()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return waited

    def timed(n, sync):
        for _ in range(5):
            step(sync)
        torch.cuda.synchronize()
        if world > 1:
            dist.barrier()
        start, waited = time.perf_counter(), 0.0
        for _ in range(n):
            waited += step(sync)
        torch.cuda.synchronize()
        return (time.perf_counter() - start) / n * 1e3, waited / n * 1e3

    if rank == 0:
        say(phase="training", stage=stage, cards=cards, torch=torch.__version__, nccl=".".join(str(n) for n in torch.cuda.nccl.version()), parameters=parameters)
    with_sync, waited = timed(steps, True)
    without, _ = timed(steps, False) if world > 1 else (with_sync, 0)
    peak = torch.cuda.max_memory_allocated()
    if world > 1:
        worst = torch.tensor([with_sync, without, waited, float(peak)], device="cuda")
        dist.all_reduce(worst, op=dist.ReduceOp.MAX)
        with_sync, without, waited, peak = [float(v) for v in worst.tolist()]
    if rank == 0:
        say(phase="measured", stage=stage, cards=cards, step_ms=with_sync, no_sync_ms=without, wait_ms=waited, peak=int(peak), fetched=files.bytes if files else 0)
    if world > 1:
        dist.destroy_process_group()

# Forked before any CUDA call: each child opens the driver for itself, and gives its memory back by ending.
for stage, cards in enumerate(stages):
    children = []
    for rank in range(len(cards)):
        pid = os.fork()
        if pid == 0:
            code = 0
            try:
                work(stage, cards, rank)
            except BaseException as e:
                lines = [l for l in str(e).split("\n") if l.strip()]
                say(error="%s: %s" % (type(e).__name__, " ".join(lines[-3:])[:600]), cards=cards, rank=rank)
                code = 1
            os._exit(code)
        children.append(pid)
    bad = 0
    while children: # one that fails would leave the others waiting for it
        pid, status = os.wait()
        children.remove(pid)
        if status and not bad:
            bad = status
            time.sleep(2)
            for other in children:
                os.kill(other, 9)
    if bad:
        sys.exit(1)
say(phase="done")
