package wire

import (
	"strings"
	"testing"
)

func TestCheckRequest(t *testing.T) {
	cases := map[string]struct {
		r    Request
		want string // part of the error; "" means that it can be run
	}{
		"hello":                {Request{Command: CommandHello}, ""},
		"unknown":              {Request{Command: "format-disk"}, "unknown command"},
		"environment":          {Request{Command: CommandHello, Env: map[string]string{"NCCL_P2P_DISABLE": "1"}}, ""},
		"loader":               {Request{Command: CommandHello, Env: map[string]string{"LD_PRELOAD": "/x.so"}}, "may not be set"},
		"log is ours":          {Request{Command: CommandHello, Env: map[string]string{"NCCL_DEBUG_FILE": "/etc/x"}}, "may not be set"},
		"two in one":           {Request{Command: CommandHello, Env: map[string]string{"NCCL_A=1\x00B": "x"}}, "may not be set"},
		"odd size":             {Request{Command: CommandAllReduce, AllReduce: &AllReduceRequest{Sizes: []int64{6}}}, "multiple of 4"},
		"huge size":            {Request{Command: CommandLinks, Links: &LinksRequest{Sizes: []int64{1 << 40}}}, "multiple of 4"},
		"layout":               {Request{Command: CommandAllReduce, AllReduce: &AllReduceRequest{Layout: "mpi"}}, "unknown layout"},
		"across without ranks": {Request{Command: CommandAcross}, "without its ranks"},
		"across without id":    {Request{Command: CommandAcross, Across: &AcrossRequest{FirstRank: 1, Ranks: 2}}, "needs the id"},
		"ranks without cards":  {Request{Command: CommandAllReduce, AllReduce: &AllReduceRequest{Layout: LayoutRanks}}, "cards named"},
		"across":               {Request{Command: CommandAcross, Cards: []int{0}, Across: &AcrossRequest{FirstRank: 1, Ranks: 2, ID: strings.Repeat("00", IDBytes)}}, ""},
		"limit":                {Request{Command: CommandHello, Limit: 1e9}, "within a day"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := c.r.Check()
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestPhaseLimit(t *testing.T) {
	across := Request{Command: CommandAcross}
	if got := PhaseLimit(across, PhaseNCCLInit); got <= PhaseLimit(Request{}, PhaseNCCLInit) {
		t.Errorf("between hosts NCCL retries for a minute; limit %v s", got)
	}
	busy := Request{Links: &LinksRequest{Busy: 90}, Deadlines: map[string]float64{PhaseLinkBusy: 10}}
	if got := PhaseLimit(busy, PhaseLinkBusy); got != 100 {
		t.Errorf("limit %v s, want the asked 90 on top of 10", got)
	}
	if got := PhaseLimit(Request{}, "unheard-of"); got <= 0 {
		t.Errorf("a phase without a limit: %v", got)
	}
}

func TestWords(t *testing.T) {
	ranks := Request{Command: CommandAllReduce, AllReduce: &AllReduceRequest{Layout: LayoutRanks}, Env: map[string]string{"NCCL_P2P_DISABLE": "1"}}
	for _, tc := range []struct {
		r    Request
		l    Line
		want string
	}{
		{Request{}, Line{Phase: PhaseLinkAlone, State: StateBegin}, "copying between host and cards, one at a time"},
		{Request{}, Line{Phase: PhaseLinkAlone, State: StateEnd}, ""},
		{ranks, Line{Phase: PhaseNCCLInit, State: StateBegin}, "initialising NCCL, a process for each card, without P2P"},
		{ranks, Line{Phase: PhaseNCCLMeasure, State: StateResult, AllReduce: &AllReduce{Bytes: 64 << 20, BusBW: 7.14}}, "all-reduce of 64 MiB: 7.1 GB/s, a process for each card, without P2P"},
		{Request{}, Line{Phase: "unheard-of", State: StateBegin}, ""},
	} {
		if got := Words(tc.r, tc.l); got != tc.want {
			t.Errorf("%+v: %q, want %q", tc.l, got, tc.want)
		}
	}
}
