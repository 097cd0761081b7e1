package export

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// tail parts a node's name into what is before its last number, and the number.
var tail = regexp.MustCompile(`^(.*?)(\d+)$`)

// Hostlist writes names as Slurm does: "gpu[01-03,07],login". Numbers of different widths stay apart.
func Hostlist(names []string) string {
	type family struct {
		prefix string
		width  int
	}
	numbers := map[family][]int{}
	var order []family
	var plain []string
	for _, n := range names {
		m := tail.FindStringSubmatch(n)
		if m == nil || len(m[2]) > 9 {
			plain = append(plain, n)
			continue
		}
		f := family{m[1], len(m[2])}
		v, _ := strconv.Atoi(m[2])
		if numbers[f] == nil {
			order = append(order, f)
		}
		numbers[f] = append(numbers[f], v)
	}
	var out []string
	for _, f := range order {
		list := numbers[f]
		slices.Sort(list)
		list = slices.Compact(list)
		if len(list) == 1 {
			out = append(out, fmt.Sprintf("%s%0*d", f.prefix, f.width, list[0]))
			continue
		}
		out = append(out, f.prefix+"["+ranges(list, f.width)+"]")
	}
	slices.Sort(plain)
	return strings.Join(append(out, slices.Compact(plain)...), ",")
}

func ranges(list []int, width int) string {
	var parts []string
	for i := 0; i < len(list); {
		j := i
		for j+1 < len(list) && list[j+1] == list[j]+1 {
			j++
		}
		part := fmt.Sprintf("%0*d", width, list[i])
		if j > i {
			part += fmt.Sprintf("-%0*d", width, list[j])
		}
		parts = append(parts, part)
		i = j + 1
	}
	return strings.Join(parts, ",")
}
