package inventory

import "github.com/zclconf/go-cty/cty"

// attr is one attribute of a block: what it holds, what is allowed, and what docs/inventory.md says of it.
type attr struct {
	name     string
	kind     cty.Type // cty.NilType: any expression, kept as it is
	required bool
	ok       func(cty.Value) string // "" or what is wrong; values are known, of the right type and not null
	oneOf    []string               // allowed words
	doc      string
}

// block is one kind of block.
type block struct {
	name   string
	label  string // what its label says; "" for none
	many   bool   // may occur several times in its parent
	attrs  []attr
	blocks []*block
	doc    string
}

func (b *block) attr(name string) *attr {
	for i := range b.attrs {
		if b.attrs[i].name == name {
			return &b.attrs[i]
		}
	}
	return nil
}

func (b *block) child(name string) *block {
	for _, c := range b.blocks {
		if c.name == name {
			return c
		}
	}
	return nil
}

// names lists attributes and blocks, for suggestions.
func (b *block) names() []string {
	var out []string
	for _, a := range b.attrs {
		out = append(out, a.name)
	}
	for _, c := range b.blocks {
		out = append(out, c.name)
	}
	return out
}

var (
	texts   = cty.List(cty.String)
	textMap = cty.Map(cty.String)
)

var (
	coolings   = []string{"air", "blower", "water"}
	mounts     = []string{"slot", "riser", "open", "sxm"}
	methods    = []string{"full", "lora", "qlora", "inference", "ppo"}
	strategies = []string{"auto", "ddp", "zero-1", "zero-2", "zero-3", "fsdp", "pipeline", "tensor"}
	keyModes   = []string{"strict", "accept-new"}

	precisions     = []string{"bf16", "fp16", "fp32", "8bit", "4bit"}
	optimizers     = []string{"adamw", "adamw-amp", "adamw-bf16", "adamw-10", "adamw-10-master", "adamw-14", "adamw-8bit", "adafactor", "sgd", "sgd-momentum"}
	checkpointings = []string{"none", "selective", "full"}
	attentions     = []string{"flash", "eager"}
)

// file is the schema of a whole inventory.
func file() *block {
	return &block{blocks: []*block{sshBlock(), profileBlock(), rigBlock(), workloadBlock(), catalogBlock(), variableBlock(), {name: "locals", many: true, doc: "Names for expressions, used as `local.NAME`; any order."}}}
}

func sshBlock() *block {
	return &block{name: "ssh", doc: "How to reach rigs. At the top it is the default of all; inside a `rig` it overrides, field by field. What is left out comes from `~/.ssh/config`.", attrs: []attr{
		{name: "user", kind: cty.String, ok: filled, doc: "Login name."},
		{name: "port", kind: cty.Number, ok: whole(1, 65535), doc: "TCP port."},
		{name: "identity_files", kind: texts, doc: "Private keys, tried in this order, before those of an agent."},
		{name: "jump_host", kind: cty.String, ok: filled, doc: "Host to go through, or several joined by commas, nearest first, as `ProxyJump`."},
		{name: "known_hosts_file", kind: cty.String, ok: filled, doc: "Where the keys of these hosts are kept, in place of `~/.ssh/known_hosts`."},
		{name: "host_keys", kind: cty.String, oneOf: keyModes, doc: "`strict` refuses a host whose key is not known; `accept-new` records it. A changed key is always refused."},
		{name: "connect_timeout", kind: cty.Number, ok: whole(1, 600), doc: "Seconds for the connection and the handshake."},
	}}
}

func profileBlock() *block {
	share := between(0, 1)
	return &block{name: "profile", label: "name", many: true, doc: "A named policy. What is left out comes from the profile it extends, at last from the built-in table (`default`).", attrs: []attr{
		{name: "extends", kind: cty.String, ok: filled, doc: "The profile to start from; `default` when left out."},
		{name: "burn_hot", kind: cty.Number, ok: between(50, 110), doc: "°C of a card's core above which a burn-in fails, after its first minute. Built in: 85."},
		{name: "burn_warm", kind: cty.Number, ok: between(40, 110), doc: "°C above which it warns. Built in: 80."},
		{name: "burn_spread", kind: cty.Number, ok: between(1, 60), doc: "Kelvin between the hottest and the coolest card above which it warns. Built in: 12."},
		{name: "burn_sag", kind: cty.Number, ok: between(0, 1), doc: "Share of its clock that a card may lose between the fifth minute of load and the end. Built in: 0.1."},
		{name: "burn_load", kind: cty.Number, ok: between(0, 1), doc: "Share of the power limit that a card must reach for the load to prove anything. Built in: 0.75; 0.6 for Hopper and later, whose full speed our kernels do not reach."},
		{name: "psu_margin", kind: cty.Number, ok: above(0), doc: "Usable watts ÷ draw below this fails. Built in: 1.2."},
		{name: "psu_note", kind: cty.Number, ok: above(0), doc: "Below this passes with a note. Built in: 1.3."},
		{name: "allow_x8", kind: cty.Bool, doc: "A link that is x8 by design passes. Built in: `false`."},
		{name: "cores", kind: cty.Number, ok: whole(1, 4096), doc: "Physical CPU cores of the whole rig. Built in: 8 for one or two cards, 16 to four, 32 above."},
		{name: "ram_per_card_gib", kind: cty.Number, ok: above(0), doc: "RAM for each card, GiB. Built in: 32."},
		{name: "storage_tb", kind: cty.Number, ok: atLeast(0), doc: "NVMe storage, TB (10^12 bytes). Built in: 2 to two cards, 4 above."},
		{name: "free_slots", kind: cty.Number, ok: whole(0, 8), doc: "Free slots between air-cooled cards. Built in: 1."},
		{name: "mains_load", kind: cty.Number, ok: share, doc: "Share of a breaker's rating that may be drawn for hours. Built in: 0.8."},
		{name: "nccl_pass", kind: cty.Number, ok: share, doc: "Share of the expected bus bandwidth from which an all-reduce passes. Built in: 0.70."},
		{name: "nccl_warn", kind: cty.Number, ok: share, doc: "Share below which it fails. Built in: 0.35."},
		{name: "require_p2p", kind: cty.Bool, doc: "Cards must reach each other's memory directly. Built in: `false`."},
		{name: "fit_margin", kind: cty.Number, ok: share, doc: "Share of a card's memory that `fit` keeps for fragmentation. Built in: 0.05."},
		{name: "fit_busy", kind: cty.Number, ok: share, doc: "Share of a card's peak that a training reaches, where no throughput was measured. Built in: 0.40."},
		{name: "fit_overlap", kind: cty.Number, ok: share, doc: "Share of the computing behind which communication can hide. Built in: 0.60."},
		{name: "fit_efficiency", kind: cty.Number, ok: share, doc: "Scaling efficiency from which the links suit a job; 0.15 below it a rig is not suited. Built in: 0.85 for two cards, 0.75 to four, 0.65 above."},
		{name: "require", kind: texts, doc: "Ids of checks that must come to a verdict: when one of these is unknown, the exit code is 4. Built in: all but those that need a declaration which was not given."},
		{name: "acceptance", kind: cty.Bool, doc: "This profile judges a hand-over."},
	}, blocks: []*block{
		{name: "check", label: "name", many: true, doc: "A site's own rule over the facts of a rig. It is a finding `site.NAME`; an absent fact makes it unknown, and a mistyped path is an error when the inventory is loaded.", attrs: []attr{
			{name: "assert", required: true, doc: "A condition over `host.…`, the same paths as `facts` in the JSON report. It must hold."},
			{name: "message", kind: cty.String, ok: filled, doc: "What to say when it does not."},
		}},
	}}
}

func rigBlock() *block {
	return &block{name: "rig", label: "name", many: true, doc: "A host with cards.", attrs: []attr{
		{name: "address", kind: cty.String, required: true, ok: address, doc: "Host name, IP address, `host:port`, or a name from `~/.ssh/config`."},
		{name: "for_each", doc: "A map or a set of texts: one rig for each entry, named NAME-KEY; `each.key` and `each.value` can be used inside."},
		{name: "cards", kind: cty.Number, ok: whole(1, 16), doc: "How many cards are fitted. Without it `gpu.count` is unknown."},
		{name: "gpu", kind: cty.String, ok: filled, doc: "Model, as `preflight catalog` writes it (`rtx-4090`). Left out: taken from what is seen."},
		{name: "profile", kind: cty.String, ok: filled, doc: "Policy for this rig. Default: `default`."},
		{name: "group", kind: cty.String, ok: name, doc: "Rigs that train together; `preflight check group:NAME` selects them."},
		{name: "labels", kind: textMap, doc: "Your own words about the rig; carried into reports."},
		{name: "python", kind: cty.String, ok: filled, doc: "Path of the Python whose NCCL will be trained with."},
		{name: "nic", kind: cty.String, ok: filled, doc: "Interface for traffic to other rigs."},
		{name: "slurm_node", kind: cty.String, ok: name, doc: "The rig's name in Slurm, when it is another."},
		{name: "price_per_hour", kind: cty.Number, ok: atLeast(0), doc: "What an hour of the whole rig costs: your own figure, in any currency. For the cost table of `fit`."},
		{name: "known_hosts_file", kind: cty.String, ok: filled, doc: "As in `ssh`, for this rig."},
		{name: "host_keys", kind: cty.String, oneOf: keyModes, doc: "As in `ssh`, for this rig."},
	}, blocks: []*block{sshBlock(), psuBlock(), mainsBlock(), chassisBlock()}}
}

func psuBlock() *block {
	return &block{name: "psu", many: true, doc: "A power supply, or several equal ones that share the load. Several blocks are supplies that do not share it. Unlocks `power.psu`.", attrs: []attr{
		{name: "watts", kind: cty.Number, required: true, ok: whole(1, 100_000), doc: "Rating of one unit, output watts, at the mains voltage it really gets."},
		{name: "count", kind: cty.Number, ok: whole(1, 64), doc: "Units. Default: 1."},
		{name: "spare", kind: cty.Number, ok: whole(0, 63), doc: "Units that may fail (N+1: 1). Default: 0."},
		{name: "cards", kind: texts, doc: "Which cards these supplies feed, by bus address. Left out: all."},
	}}
}

func mainsBlock() *block {
	return &block{name: "mains", doc: "What feeds the supplies. Unlocks `power.mains`.", attrs: []attr{
		{name: "volts", kind: cty.Number, required: true, ok: between(50, 1000), doc: "Volts at the socket."},
		{name: "amps", kind: cty.Number, required: true, ok: between(1, 1000), doc: "Rating of the breaker of one circuit."},
		{name: "circuits", kind: cty.Number, ok: whole(1, 64), doc: "Circuits with a breaker of their own. Default: 1."},
		{name: "shared", kind: cty.String, doc: "Name of these circuits, when other rigs hang on them too: `probe burn-in` puts rigs that name the same circuits under load together only when they bear it."},
	}}
}

func chassisBlock() *block {
	return &block{name: "chassis", doc: "How the cards sit. Unlocks `chassis.slot-spacing`.", attrs: []attr{
		{name: "cooling", kind: cty.String, oneOf: coolings, doc: "`air` is a cooler with open fans, `blower` blows out of the back."},
		{name: "mount", kind: cty.String, oneOf: mounts, doc: "`slot` is the board's own slots; `riser` and `open` are cables; `sxm` is a baseboard."},
	}, blocks: []*block{
		{name: "slot", label: "position, counted in slots of 20.32 mm", many: true, doc: "One expansion slot. The label is its position, a whole number from 1.", attrs: []attr{
			{name: "card", kind: cty.String, doc: "The card in it: bus address (`0000:41:00.0`), addresses from the root port down joined by `/`, or the first 12 hex digits of a card's UUID hash. Empty or left out: no card."},
			{name: "width", kind: cty.Number, ok: laneWidth, doc: "Lanes wired to the slot: 1, 2, 4, 8 or 16."},
			{name: "thickness", kind: cty.Number, ok: between(0.5, 8), doc: "Of the card, in slots (2, 2.5, 3, 3.5)."},
		}},
	}}
}

func workloadBlock() *block {
	return &block{name: "workload", label: "name", many: true, doc: "A training or serving job: `preflight fit -i` works it out for each rig, and `check` ends with its verdict. The model is given by `parameters`, `model` or `config`; what is left out is assumed, and said to be. See docs/fit.md.", attrs: []attr{
		{name: "parameters", kind: cty.String, ok: parameters, doc: "Size of the model: `\"7B\"`, `\"350M\"` or a number. Beside `model` or `config`: in place of the number that their shape makes."},
		{name: "model", kind: cty.String, ok: filled, doc: "A model by name (`\"llama-3-8b\"`); `preflight fit --model` lists them when the name is not known."},
		{name: "config", kind: cty.String, ok: filled, doc: "Path of a Hugging Face `config.json`, from the folder of the inventory."},
		{name: "method", kind: cty.String, required: true, oneOf: methods, doc: "How it is trained or served."},
		{name: "precision", kind: cty.String, oneOf: precisions, doc: "Of the weights; the small ones are for `inference`. Default: `bf16`."},
		{name: "optimizer", kind: cty.String, oneOf: optimizers, doc: "Bytes a parameter by name: docs/fit.md. Default: `adamw`, 16 bytes."},
		{name: "sequence", kind: cty.Number, ok: whole(1, 100_000_000), doc: "Tokens in one sequence. Default: 2048."},
		{name: "batch", kind: cty.Number, ok: whole(1, 1_000_000), doc: "Sequences on one card at a time (micro-batch). Default: the most that fit."},
		{name: "global_batch", kind: cty.Number, ok: whole(1, 1_000_000_000), doc: "Sequences of one optimizer step over all cards. Default: 64."},
		{name: "checkpointing", kind: cty.String, oneOf: checkpointings, doc: "What is computed again in the backward pass. Default: `none` or `full`, whichever fits and is faster."},
		{name: "attention", kind: cty.String, oneOf: attentions, doc: "`eager` stores the attention matrix. Default: `flash`."},
		{name: "strategy", kind: cty.String, oneOf: strategies, doc: "How the cards share the work. Default: `auto`."},
		{name: "requests", kind: cty.Number, ok: whole(1, 1_000_000), doc: "Requests served at once. Default: 1."},
		{name: "lora_rank", kind: cty.Number, ok: whole(1, 65_536), doc: "Rank of the adapters, on every linear layer. Default: 16."},
		{name: "tokens", kind: cty.String, ok: tokens, doc: "Of the whole training (`\"1B\"`): for hours and cost."},
		{name: "extra", kind: textMap, doc: "Further figures, by name; no formula takes them."},
	}}
}

func variableBlock() *block {
	return &block{name: "variable", label: "name", many: true, doc: "A value from outside, used as `var.NAME`: given by `--var NAME=VALUE`, else by the environment as `PREFLIGHT_VAR_NAME`, else the default.", attrs: []attr{
		{name: "type", doc: "`string`, `number`, `bool`, `list(string)`, `map(number)` …; left out: any."},
		{name: "default", doc: "Makes the variable optional."},
		{name: "description", kind: cty.String, doc: "For people."},
		{name: "nullable", kind: cty.Bool, doc: "Whether `null` is allowed. Default: `true`."},
	}}
}
