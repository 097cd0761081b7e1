remedy "ddp.scaling/communication" {
  title    = "Find what slows the gradients"
  title_zh = "查明梯度通信慢的原因"
  reboot   = "no"
  verify   = "preflight probe ddp -i rigs.hcl {rig}"
  clears   = ["ddp.scaling"]

  step {
    text    = "Measure the all-reduce itself: when it is slow as well, its finding names the link."
    text_zh = "直接测量 all-reduce：如果它也慢，检查结果会指出是哪条链路。"
    command = "preflight probe nccl -i rigs.hcl {rig}"
  }
  step {
    text    = "When the all-reduce is right, send less and less often: accumulate gradients over several micro-batches (no_sync), and let DDP compress them to 16 bits (bf16_compress_hook)."
    text_zh = "如果 all-reduce 正常，就减少通信量和次数：用 no_sync 在多个微批次上累积梯度，并用 bf16_compress_hook 把梯度压缩到 16 位。"
    hand    = true
  }
  step {
    text    = "See which strategy suits these links."
    text_zh = "查看哪种并行策略适合这些链路。"
    command = "preflight fit -i rigs.hcl --model 7B {rig}"
  }
}

remedy "ddp.scaling/hang" {
  title    = "Find what the training waits for"
  title_zh = "查明训练卡死的原因"
  reboot   = "no"
  verify   = "preflight probe ddp -i rigs.hcl {rig}"
  clears   = ["ddp.scaling"]

  step {
    text    = "Run the all-reduce alone, which tells P2P's share in a hang."
    text_zh = "单独运行 all-reduce，可以看出卡死是否与 P2P 有关。"
    command = "preflight probe nccl -i rigs.hcl {rig} -v"
  }
  step {
    text    = "When it runs, look at what torch waits for: its own watchdog writes the stacks of all ranks."
    text_zh = "如果 all-reduce 能运行，查看 torch 在等什么：它的看门狗会写出所有进程的调用栈。"
    command = "TORCH_NCCL_TRACE_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1 NCCL_DEBUG=WARN torchrun --standalone --nproc-per-node=2 train.py"
  }
}

remedy "ddp.scaling/error" {
  title    = "Mend what torch reports"
  title_zh = "修复 torch 报告的错误"
  reboot   = "no"
  verify   = "preflight probe ddp -i rigs.hcl {rig}"
  clears   = ["ddp.scaling"]

  step {
    text    = "See whether this torch fits driver and cards."
    text_zh = "查看该 torch 与驱动和显卡是否匹配。"
    command = "preflight check -i rigs.hcl --only runtime.torch,driver {rig}"
  }
  step {
    text    = "Out of memory: train a smaller model."
    text_zh = "显存不足时：训练更小的模型。"
    command = "preflight probe ddp -i rigs.hcl --size 100M {rig}"
  }
}

remedy "ddp.scaling/slow-card" {
  title    = "Find why {bdf} is slower than the others"
  title_zh = "查明 {bdf} 比其他显卡慢的原因"
  params   = { bdf = "the card" }
  reboot   = "no"
  verify   = "preflight probe ddp -i rigs.hcl {rig}"
  clears   = ["ddp.scaling"]

  step {
    text    = "Look at its clocks, limit and reasons beside those of the others while all are under load."
    text_zh = "在所有显卡满载时，对比它与其他显卡的频率、功耗上限和降频原因。"
    command = "preflight probe burn-in -i rigs.hcl {rig} --duration quick"
  }
  step {
    text    = "Compare the power limits, and set them alike."
    text_zh = "比较功耗上限，并设置为一致。"
    command = "nvidia-smi --query-gpu=pci.bus_id,power.limit,power.default_limit,clocks.max.sm --format=csv"
  }
}

remedy "ddp.scaling/thermal" {
  title    = "Cool {bdf} while it trains"
  title_zh = "改善 {bdf} 训练时的散热"
  params   = { bdf = "the card" }
  reboot   = "no"
  verify   = "preflight probe ddp -i rigs.hcl {rig}"
  clears   = ["ddp.scaling"]

  step {
    text    = "Put all cards under load for half an hour: that tells which card is held back, by what, and what its neighbours do."
    text_zh = "让所有显卡满载半小时：可以看出哪张卡因何降频，以及相邻显卡的情况。"
    command = "preflight probe burn-in -i rigs.hcl {rig}"
  }
}

remedy "ddp.scaling/contention" {
  title    = "Find what the cards share"
  title_zh = "查明各卡争用了什么资源"
  reboot   = "no"
  verify   = "preflight probe ddp -i rigs.hcl {rig}"
  clears   = ["ddp.scaling"]

  step {
    text    = "Cards that slow each other without talking share power (look at the power reasons), cooling, or the processor that feeds them: see whether cores are busy, and whether the governor lets them run."
    text_zh = "显卡之间没有通信却互相拖慢，说明共用了供电（查看功率降频原因）、散热或负责提交任务的处理器：查看 CPU 是否繁忙、调频策略是否限制了频率。"
    command = "preflight watch -i rigs.hcl {rig} --for 1m; uptime; cat /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"
  }
  step {
    text    = "Let the processor run at full clock."
    text_zh = "让处理器全频运行。"
    command = "preflight provision -i rigs.hcl cpu-governor {rig} --apply"
  }
}

remedy "ddp.scaling/input" {
  title    = "Feed the cards faster"
  title_zh = "加快数据供给"
  reboot   = "no"
  verify   = "preflight probe ddp -i rigs.hcl {rig}"
  clears   = ["ddp.scaling"]

  step {
    text    = "More workers that load and prepare data, pinned memory and prefetch (DataLoader: num_workers 4 to 8 for each card, pin_memory, prefetch_factor), and data in few large files on a local NVMe drive."
    text_zh = "增加加载和预处理数据的进程，使用锁页内存和预取（DataLoader：每卡 num_workers 4 到 8，pin_memory，prefetch_factor），并把数据以少量大文件的形式放在本地 NVMe 上。"
    hand    = true
  }
  step {
    text    = "See what the drive gives."
    text_zh = "查看磁盘的读取速度。"
    command = "fio --name=read --rw=randread --bs=1M --size=4G --numjobs=4 --runtime=20 --time_based --group_reporting --readonly --filename=DATAFILE"
  }
}
