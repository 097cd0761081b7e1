package html

import (
	"fmt"
	"math"
	"strconv"

	"preflight/internal/lang"
)

// picture is what all pictures share: a size in its own units, and the words for those who cannot see it.
type picture struct {
	W, H  float64
	Title string
	Desc  string
	Cols  []string   // heading of the table with the same numbers
	Table [][]string // its rows
	Why   string     // why nothing is drawn; then the rest is empty
}

// box is a rectangle with up to two lines of text.
type box struct {
	X, Y, W, H float64
	Class      string
	ID         string // of the thing that it stands for: a BDF, a slot
	Text, Sub  string
	Tip        string
}

// line is a straight or an elbowed line with a label.
type line struct {
	Path  string
	Class string
	ID    string
	Label string
	X, Y  float64 // of the label
	Tip   string
}

// mark is a word at a place.
type mark struct {
	X, Y   float64
	Text   string
	Class  string
	Anchor string
}

// num writes a coordinate or a figure without noise.
func num(v float64) string { return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64) }

func lanes(n int) string {
	if n == 0 {
		return "?"
	}
	return "x" + strconv.Itoa(n)
}

func gen(n int) string {
	if n == 0 {
		return "?"
	}
	return "Gen" + strconv.Itoa(n)
}

// bytesOf is a size as NCCL's tools write it.
func bytesOf(n int64) string {
	switch {
	case n >= 1<<30 && n%(1<<30) == 0:
		return fmt.Sprintf("%d GiB", n>>30)
	case n >= 1<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d B", n)
}

// nice is a round number at or above v, for the end of an axis.
func nice(v float64) float64 {
	if v <= 0 {
		return 1
	}
	p := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 2.5, 5, 10} {
		if v <= m*p*1.0001 {
			return m * p
		}
	}
	return 10 * p
}

// none is a picture that is not drawn.
func none(l lang.Language, why string) picture { return picture{Why: l.Say(why)} }
