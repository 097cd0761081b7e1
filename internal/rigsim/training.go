package rigsim

import (
	"fmt"
	"strings"
)

// trainingStub answers preflight's scaling test as a Python with torch would: a model of the asked size, a card that reaches half
// of its peak, gradients of 32 bits that travel at the rig's bus bandwidth and hide behind six tenths of the step. Meanwhile the
// cards are under load, for nvidia-smi.
func trainingStub(m *machine) string {
	if m.Soft.TorchFails != "" || m.Soft.TorchCUDA == "" {
		return `[ -z "$PREFLIGHT_STAGES" ] || { cat >/dev/null; echo '{"missing": "this torch is built without CUDA"}'; exit 0; }`
	}
	var bdf []string
	for _, c := range m.answering() {
		bdf = append(bdf, c.BDF)
	}
	gbs := m.NCCL.BusBW
	if m.ddp == "slow" {
		gbs /= 5
	}
	return fmt.Sprintf(`if [ -n "$PREFLIGHT_STAGES" ]; then
	cat >/dev/null
	set -- %s
	burning=${0%%%%/rig-*}/$(printf %%s "${0#*/rig-}" | sed 's|/.*||; s|^|rig-|')/data/burning
	echo '{"phase": "importing torch"}'
	stage=0
	for cards in $(printf %%s "$PREFLIGHT_STAGES" | tr , ' '); do
		list=$(printf %%s "$cards" | tr + ,)
		n=$(printf '%%s\n' "$cards" | tr + '\n' | grep -c .)
		i=0
		for b in "$@"; do
			case ",$list," in *",$i,"*) [ ! -d "$burning" ] || echo $$ >"$burning/$b" ;; *) rm -f "$burning/$b" ;; esac
			i=$((i + 1))
		done
		echo "{\"phase\": \"training\", \"stage\": $stage, \"cards\": [$list], \"torch\": \"%s\", \"nccl\": \"%s\", \"parameters\": $PREFLIGHT_PARAMETERS}"
		if [ "%s" = hang ] && [ "$n" -gt 1 ]; then while :; do sleep 5; done; fi
		sleep "${PREFLIGHT_SIM_STAGE:-1}"
		awk -v n="$n" -v p="$PREFLIGHT_PARAMETERS" -v t="$PREFLIGHT_TOKENS" -v gbs=%.3f -v list="$list" -v stage="$stage" -v data="$PREFLIGHT_DATA" 'BEGIN {
			one = 6 * p * t / (165e12 * .5) * 1000
			comm = n > 1 ? 4 * p * 2 * (n - 1) / n / (gbs * 1e9) * 1000 : 0
			all = one * (1 + .004 * n) + (comm > .6 * one ? comm - .6 * one : 0)
			printf "{\"phase\": \"measured\", \"stage\": %%d, \"cards\": [%%s], \"step_ms\": %%.3f, \"no_sync_ms\": %%.3f, \"wait_ms\": %%.3f, \"peak\": %%d, \"fetched\": %%d}\n", stage, list, all, one * (1 + .004 * n), data == "" ? 0 : all * .01, p * 12 + t * 2048 * 40, data == "" ? 0 : t * 4096 }'
		stage=$((stage + 1))
	done
	echo '{"phase": "done"}'
	exit 0
fi`, strings.Join(bdf, " "), m.Soft.Torch, or(m.Soft.NCCLLoaded, m.Soft.NCCL), m.ddp, gbs)
}
