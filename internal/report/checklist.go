package report

// item is something that only hands and eyes can tell.
type item struct {
	from int // least number of cards for which it matters
	text string
}

// handsAndEyes by number of cards: what no fact of the host shows.
var handsAndEyes = []item{
	{1, "16-pin plugs are fully in, no gap, no bend within 35 mm of the plug"},
	{1, "each card has its own cable from the supply: no splitters, the supply maker's own cables"},
	{1, "cards are screwed down and do not sag; the slot's latch is closed"},
	{1, "fans turn on every card, dust filters are clean"},
	{2, "no card's fans press against its neighbour's back plate"},
	{2, "risers are rated for the generation that the BIOS sets, and are not folded sharply"},
	{4, "the rig hangs on a circuit of its own, not on an extension cord"},
	{4, "air flows front to back, and nothing blows hot air into the intake"},
	{5, "two separate circuits feed the supplies, and the supplies are spread over them"},
	{5, "high-static-pressure fans run at full speed under load; blanks close every empty slot"},
	{5, "spare supplies are really spare: pull one under load once, before the hand-over"},
}

// Checklist is what to look at by hand on a rig of so many cards.
func Checklist(cards int) []string {
	var out []string
	for _, i := range handsAndEyes {
		if cards >= i.from {
			out = append(out, i.text)
		}
	}
	return out
}
