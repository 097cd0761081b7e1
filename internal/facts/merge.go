package facts

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
)

// Facts of several sources become one host by order of trust, which is the order in which sources are read: sysfs and
// configuration space, lspci, the SMBIOS table, dmidecode, nvidia-smi's XML, its text, its table, and then what only
// repeats others. The first known value stays; a later one that differs is kept as a conflict.

// restless are facts that differ between two readings of one healthy machine, by their JSON name: what changes with
// load, time or temperature is no contradiction.
var restless = map[string]bool{
	"speed": true, "gen_current": true, "pstate": true, "utilization": true, "utilization_min": true, "power_draw": true, "temperature": true,
	"temperature_memory": true, "memory_used": true, "compute_processes": true, "display_active": true, "clock_sm": true,
	"clocks_event_reasons": true, "clocks_event_time": true, "uptime": true, "shm_free": true, "boot_id": true, "sick": true,
	"correctable_status": true, "uncorrectable_status": true, "correctable_count": true, "nonfatal_count": true, "fatal_count": true,
	"smi_exit": true, "smi_error": true, "replays": true,
}

// sameWithin is how far two figures of one fact may lie apart: a table rounds watts that the long form prints exactly.
const sameWithin = 1

// maxConflicts bounds what is kept of a mixture of two machines.
const maxConflicts = 256

// merge fills what dst lacks from src, field by field, and notes where both know a fact and disagree. Both are pointers
// to the same type of struct; path names it in a conflict.
func (b *builder) merge(path string, dst, src any) {
	b.mergeValue(path, reflect.ValueOf(dst).Elem(), reflect.ValueOf(src).Elem())
}

func (b *builder) mergeValue(path string, dst, src reflect.Value) {
	for i := range dst.NumField() {
		field := dst.Type().Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		to, from := dst.Field(i), src.Field(i)
		if _, ok := to.Interface().(leafer); ok {
			b.mergeFact(path+"."+name, name, to, from)
			continue
		}
		switch {
		case field.Anonymous:
			b.mergeValue(path, to, from)
		case to.Kind() == reflect.Struct && field.Type.PkgPath() == dst.Type().PkgPath():
			b.mergeValue(path+"."+name, to, from)
		case to.IsZero() || to.Kind() == reflect.Slice && to.Len() == 0:
			to.Set(from)
		}
	}
}

func (b *builder) mergeFact(path, name string, to, from reflect.Value) {
	was, wasSource := to.Interface().(leafer).leaf()
	is, source := from.Interface().(leafer).leaf()
	switch {
	case source == "":
	case wasSource == "":
		to.Set(from)
	case restless[name] || sameValue(was, is) || len(b.host.Conflicts) >= maxConflicts:
	default:
		b.host.Conflicts = append(b.host.Conflicts, Conflict{
			Path: path, Used: Leaf{Value: was, Source: wasSource}, Ignored: Leaf{Value: is, Source: source},
		})
	}
}

// sameValue compares as a person would: white space and case of names do not matter, nor does rounding.
func sameValue(a, b any) bool {
	if x, ok := a.(float64); ok {
		y, isFloat := b.(float64)
		return isFloat && math.Abs(x-y) < sameWithin
	}
	if x, ok := a.(string); ok {
		y, isText := b.(string)
		return isText && strings.EqualFold(strings.Join(strings.Fields(x), " "), strings.Join(strings.Fields(y), " "))
	}
	return reflect.DeepEqual(a, b)
}

// relabel replaces the beginning of every fact's source below a struct, so that a value read by a shared decoder names
// the file it came from.
func relabel(v reflect.Value, from, to string) {
	switch v.Kind() {
	case reflect.Pointer:
		relabel(v.Elem(), from, to)
	case reflect.Slice:
		for i := range v.Len() {
			relabel(v.Index(i), from, to)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Field(i)
			if v.Type().Field(i).Name == "Source" && f.Kind() == reflect.String {
				if rest, ok := strings.CutPrefix(f.String(), from); ok {
					f.SetString(to + rest)
				}
				continue
			}
			if f.CanSet() {
				relabel(f, from, to)
			}
		}
	}
}

// mergeCard joins what one source says of a card with what is known of it; a card nobody named before is added.
func (b *builder) mergeCard(next Card) {
	c := b.card(next.BDF)
	if c == nil {
		if len(b.host.Cards) >= maxCards {
			return
		}
		b.host.Cards = append(b.host.Cards, next)
		return
	}
	b.merge(fmt.Sprintf("cards[%s]", c.BDF), c, &next)
}

// otherMachine says whether a text of nvidia-smi is of another machine than the bus: the whole bus is in the input, has
// cards, and not one is where the driver says. Joined they would be a rig that nobody has.
func (b *builder) otherMachine(name string, cards []Card) bool {
	if _, partly := b.host.Gaps[KindPCI]; partly || len(cards) == 0 {
		return false
	}
	var onBus, driven []string
	for _, c := range b.host.Cards {
		if c.Vendor == "10de" {
			onBus = append(onBus, c.BDF)
		}
	}
	for _, c := range cards {
		if slices.Contains(onBus, c.BDF) {
			return false
		}
		driven = append(driven, c.BDF)
	}
	if len(onBus) == 0 {
		return false
	}
	b.host.Conflicts = append(b.host.Conflicts, Conflict{
		Path: "cards", Used: Leaf{Value: strings.Join(onBus, ", "), Source: "lspci"}, Ignored: Leaf{Value: strings.Join(driven, ", "), Source: name},
	})
	b.regap(KindSMI, "%s is of another machine than the bus: none of its cards is where the bus has one", name)
	return true
}

// side is a builder for one source alone, whose result is then merged.
func (b *builder) side() *builder {
	return &builder{snap: &Snapshot{}, items: map[string]Item{}, host: &Host{Gaps: map[Kind]string{}}}
}

// filled says that a kind of fact was found after all.
func (b *builder) filled(kinds ...Kind) {
	for _, k := range kinds {
		delete(b.host.Gaps, k)
	}
}

// regap replaces the reason why a kind of fact is missing by a better one.
func (b *builder) regap(k Kind, format string, args ...any) {
	b.host.Gaps[k] = fmt.Sprintf(format, args...)
}
